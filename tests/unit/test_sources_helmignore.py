from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import CHART, write

from seatrial.helm import sdk as helmsdk
from seatrial.model.errors import CannotContinue
from seatrial.sources.charts.files import read_folder

FILES = ["a.md", "b.txt", "sub/a.md", "sub/deep/c.txt", "x[1].txt", "dir.d/f", "docs/a.md", "*.lit", "ci/v.yaml"]
RULES = [
    "*.md",
    "/a.md",
    "sub/*.md",
    "sub/",
    "/sub/",
    "a.*",
    "?.txt",
    "[ab].*",
    "[^ab]*",
    "x\\[1\\].txt",
    "\\*.lit",
    "dir.d",
    "dir.d/",
    "b.txt/",
    "!*.md",
    "![Ctabs.]*",
    "!/Chart.yaml\n!C*",
    "*.txt\n!b*",
    "  # comment\n\n*.md  ",
    "docs/../a.md",
    "ci/\n*.tmp",
    "./a.md",
    "sub/deep",
    "/*/deep",
]


@pytest.mark.parametrize("rules", RULES)
def test_a_chart_has_the_same_files_as_for_helm(rules: str, tmp_path: Path) -> None:
    write(tmp_path, {name: name for name in FILES})
    write(
        tmp_path, {"Chart.yaml": CHART, "templates/.hidden": "x", "templates/a.yaml": "", ".helmignore": rules + "\n"}
    )
    ours = set(read_folder(str(tmp_path)).files)
    try:
        with helmsdk.Chart.load(tmp_path) as chart:
            helms = {"Chart.yaml", *(file["name"] for file in (*chart.files, *chart.templates))}
    except helmsdk.HelmError as error:
        assert str(error) == "Chart.yaml file is missing"
        assert "Chart.yaml" not in ours
        return
    assert ours == helms


@pytest.mark.parametrize(
    ("rule", "words"), [("**/x", "double-star (**) syntax is not supported"), ("[a", "syntax error in pattern")]
)
def test_a_rule_that_helm_refuses_is_refused_with_its_place(rule: str, words: str, tmp_path: Path) -> None:
    write(tmp_path, {"Chart.yaml": CHART, ".helmignore": f"ok\n{rule}\n"})
    with pytest.raises(CannotContinue) as complaint:
        read_folder(str(tmp_path))
    assert str(complaint.value) == f"{tmp_path}/.helmignore:2: read .helmignore: {words}"
    with pytest.raises(helmsdk.HelmError):
        helmsdk.Chart.load(tmp_path)
