"""`seatrial explain`: all rules, rules by part of a name, and the page of one rule."""

from __future__ import annotations

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
