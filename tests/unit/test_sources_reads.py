"""The record of what was read, and whether it still holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from gitcheckout import commit, git

from seatrial.sources import disk, kind_of
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.disk import FilesRead
from seatrial.sources.reads import unchanged

FILES = {
    "Chart.yaml": CHART + "dependencies:\n- {name: lib, repository: file://../lib, version: 1.0.0}\n",
    "templates/a.yaml": config_map("a"),
    "ci/one-values.yaml": "a: 1\n",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    write(tmp_path / "demo", FILES)
    write(tmp_path / "lib", {"Chart.yaml": CHART.replace("demo", "lib"), "templates/_l.tpl": ""})
    (tmp_path / ".git").mkdir()
    return tmp_path / "demo"


def _read(chart: Path) -> FilesRead:
    with disk.recording() as record:
        kind_of(str(chart))
        open_chart(str(chart), str(chart))
    return record


def _as_link(path: Path, target: Path) -> None:
    path.rename(target)
    path.symlink_to(target)


def _is_unchanged(record: FilesRead) -> bool:
    return unchanged(record.reads, {})


def test_what_is_read_again_is_unchanged(chart: Path) -> None:
    assert _read(chart).complete
    assert _is_unchanged(_read(chart))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a template changes": lambda chart: (chart / "templates/a.yaml").write_text(config_map("b")),
    "a template comes": lambda chart: (chart / "templates/b.yaml").write_text(config_map("b")),
    "a template goes": lambda chart: (chart / "templates/a.yaml").unlink(),
    "values for CI come": lambda chart: (chart / "ci/two-values.yaml").write_text("a: 2\n"),
    "rules for files to leave out come": lambda chart: (chart / ".helmignore").write_text("ci\n"),
    "it becomes a Pulumi program": lambda chart: (chart / "Pulumi.yaml").write_text("name: demo\n"),
    "the chart beside it changes": lambda chart: (chart.parent / "lib/templates/_l.tpl").write_text("{{/* */}}"),
    "it is no longer in a checkout": lambda chart: (chart.parent / ".git").rmdir(),
    "a file becomes a link": lambda chart: _as_link(chart / "templates/a.yaml", chart.parent / "a.yaml"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_noticed(chart: Path, change: Callable[[Path], object]) -> None:
    record = _read(chart)
    change(chart)
    assert not _is_unchanged(record)


def test_a_branch_that_moves_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "demo", {**FILES, "Chart.yaml": CHART})
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "one")
    with disk.recording() as record:
        open_chart("git:main", str(tmp_path / "demo"))
    assert record.complete and _is_unchanged(record)
    (tmp_path / "new").write_text("")
    commit(tmp_path, "two")
    assert not _is_unchanged(record)


def test_what_comes_through_a_pipe_cannot_be_known(tmp_path: Path) -> None:
    with disk.recording() as record:
        disk.read(Path("/dev/null"))
    assert not record.complete
