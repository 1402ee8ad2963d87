"""`seatrial explain`: where its text comes from, and its JSON. `tests/scenarios/explain-*.md` show its pages."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from seatrial.cli import main

Capture = pytest.CaptureFixture[str]


def test_explain_lists_every_rule(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    assert "\nST201  release-to-hook-flip\n       A regular resource becomes" in capsys.readouterr().out


def test_explain_lists_rules_by_part_of_their_name(capsys: Capture) -> None:
    assert main(["explain", "flux-dependson"]) == 0
    listed = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("ST")]
    assert listed == ["flux-dependson-without-wait", "flux-dependson-of-another-kind"]


def test_explain_shows_a_rule_by_name_or_code(capsys: Capture) -> None:
    assert main(["explain", "release-to-hook-flip"]) == 0
    by_name = capsys.readouterr().out
    assert main(["explain", "st201"]) == 0
    assert capsys.readouterr().out == by_name
    assert by_name.startswith("release-to-hook-flip (ST201)\n\nA regular resource becomes a hook")


def test_explain_shows_several_rules(capsys: Capture) -> None:
    assert main(["explain", "ST101", "crds-dir-not-upgraded"]) == 0
    shown = capsys.readouterr().out
    assert "crd-and-cr-in-same-templates (ST101)" in shown
    assert "\ncrds-dir-not-upgraded (ST102)" in shown


def test_an_error_text_is_read_from_an_argument_a_file_or_a_pipe(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = 'Error: configmap "shop" not found'
    (tmp_path / "helm.log").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    shown = set()
    for given in ([text], text.split(), [str(tmp_path / "helm.log")], ["-"]):
        assert main(["explain", *given]) == 0
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1


def test_a_text_without_a_known_error_is_exit_code_3(capsys: Capture) -> None:
    assert main(["explain", "the widget has no wobble"]) == 3
    assert capsys.readouterr().err == "seatrial: explain: no known error in this text\n"
    assert main(["explain", 'no match for kind "Shop"']) == 3
    assert "no known error in this text; similar texts that are known:\n  no matches" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_read(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'\xff\xfe\x00 secret "shop" not found')
    assert main(["explain", str(tmp_path / "log")]) == 0


def test_json_has_a_version_and_one_entry_per_topic(capsys: Capture) -> None:
    assert main(["explain", "ST101", "ST102", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == 1
    assert [(one["topic"], one["name"]) for one in document["explained"]] == [
        ("rule", "crd-and-cr-in-same-templates"),
        ("rule", "crds-dir-not-upgraded"),
    ]
    assert main(["explain", 'secret "shop" not found', "--engine", "argocd", "-o", "json"]) == 0
    (error,) = json.loads(capsys.readouterr().out)["explained"]
    assert (error["topic"], error["error"], error["context"]["engine"]) == ("error", "secret-not-found", "argocd")
