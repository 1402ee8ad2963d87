"""Cases that differ in their name alone are rehearsed once."""

from __future__ import annotations

from pathlib import Path

from seatrial.check import check
from seatrial.model.options import CheckOptions

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {colour: '{{ .Values.colour }}'}\n"


def test_a_values_file_that_changes_nothing_is_not_rehearsed_again(tmp_path: Path) -> None:
    for folder in ("templates", "ci"):
        (tmp_path / folder).mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: app\nversion: 1.0.0\n")
    (tmp_path / "templates" / "config.yaml").write_text(CONFIG)
    (tmp_path / "ci" / "default-values.yaml").write_text("{}\n")
    (tmp_path / "ci" / "red-values.yaml").write_text("colour: red\n")
    said: list[str] = []
    result = check(CheckOptions(inputs=(str(tmp_path),)), said.append)
    cases = ["", "ci/default-values.yaml", "ci/red-values.yaml", "--wait"]
    assert list(dict.fromkeys(one.case for one in result.played)) == cases
    assert len(result.played) == 3 * len(cases)
    assert not any("default-values" in line for line in said)
    assert any("red-values" in line for line in said)
