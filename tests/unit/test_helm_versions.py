"""The table of Helm's versions: what it says, where it is published, and the helm on the PATH."""

from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from test_helm_binary import program

from seatrial.cli import main
from seatrial.engines.helm import process
from seatrial.helm.versions import CRDS_NOT_AWAITED, TABLE, Behaviour, Versions, full_version
from seatrial.sandbox.client import on_path

PAGE = Path(__file__).parents[2] / "docs" / "helm-3-and-4.md"


def test_versions_are_said_as_a_span() -> None:
    spans = (CRDS_NOT_AWAITED, Versions((4, 2, 1), (4, 2, 1)), Versions((4, 3, 0)))
    assert [str(span) for span in spans] == ["Helm 4.0.0 to 4.3.0", "Helm 4.2.1", "Helm 4.3.0 and later"]
    assert [version in CRDS_NOT_AWAITED for version in ((3, 22, 0), (4, 0, 0), (4, 3, 0), (4, 3, 1))] == [
        *(False, True, True, False)
    ]


def test_a_minor_version_is_its_last_patch_version() -> None:
    asked = ("4.0", "v4.3", "4.3.0", "3", "3.14", "3.2", "2", "5.0.0")
    assert [full_version(text) for text in asked] == ["4.0.5", "4.3.1", "4.3.0", "3.22.0", "3.14.4", "", "", ""]


def test_the_page_has_the_table() -> None:
    """To publish a change, paste what this test prints."""
    text = "\n".join(row(one) for one in TABLE)
    assert text in PAGE.read_text(), text


def row(one: Behaviour) -> str:
    versions = str(one.versions).removeprefix("Helm ")
    return f"| {one.about} | {versions} | {one.does} | {'yes' if one.known else ''} | {', '.join(one.seen)} |"


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("v3.19.5", "helm on the PATH is 3.19.5; rehearsed with the built-in Helm 4.2.3. Use --helm-binary helm to"),
        ("v4.2.1", ""),
        ("something else", ""),
    ],
)
def test_a_helm_of_another_minor_version_on_the_path_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, version: str, says: str
) -> None:
    monkeypatch.setattr(process, "on_path", on_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", version=version)
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/cm.yaml": config_map("cm")})
    main(["check", str(tmp_path / "chart")])
    report = " ".join(capsys.readouterr().out.split())
    assert says in report
    assert bool(says) == ("on the PATH" in report)


def test_a_helm_of_the_checked_project_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "on_path", on_path)
    write(tmp_path, {"chart/Chart.yaml": CHART, "chart/templates/cm.yaml": config_map("cm"), ".git/HEAD": ""})
    (tmp_path / "bin").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "bin/helm").write_text(f"#!/bin/sh\ntouch {mark}\necho v3.19.5\n")
    (tmp_path / "bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    main(["check", str(tmp_path / "chart")])
    assert "on the PATH" not in capsys.readouterr().out
    assert not mark.exists()
