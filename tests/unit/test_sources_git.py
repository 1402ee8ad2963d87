"""Charts at a commit, read through git."""

from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from gitcheckout import commit, git

from seatrial.model.errors import CannotContinue
from seatrial.sources import line_at
from seatrial.sources.charts.chart import ChartSource, open_chart
from seatrial.sources.charts.rendering import render
from seatrial.sources.places import place_of

LIBRARY = "apiVersion: v2\nname: core\nversion: 1.0.0\n"
DEPENDS = CHART + "dependencies:\n- {name: core, version: 1.0.0, repository: 'file://../core'}\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose tag v1 has an older chart than its files."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    write(tmp_path, {"charts/demo/Chart.yaml": CHART, "charts/demo/templates/cm.yaml": config_map("old")})
    commit(tmp_path, "v1")
    write(tmp_path, {"charts/demo/templates/cm.yaml": config_map("new")})
    return tmp_path


def names(chart: ChartSource) -> list[str]:
    return [str(resource.ref) for resource in render(chart, {}, release="r", namespace="default").resources]


def refused(source: str, beside: str = "charts/demo") -> str:
    with pytest.raises(CannotContinue) as why:
        open_chart(source, beside)
    return str(why.value)


def test_the_chart_is_that_of_the_commit(checkout: Path) -> None:
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
    assert names(open_chart("charts/demo")) == ["ConfigMap/default/new"]


def test_nothing_is_written_into_the_checkout(checkout: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))}
    open_chart("git:v1", "charts/demo")
    assert {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))} == before


def test_a_moved_chart_needs_its_old_path(checkout: Path) -> None:
    (checkout / "charts/demo").rename(checkout / "app")
    assert refused("git:v1", "app") == ("git:v1: no app at v1; if the chart was in another folder, use git:v1:FOLDER")
    assert names(open_chart("git:v1:charts/demo", "app")) == ["ConfigMap/default/old"]


def test_a_chart_may_be_the_whole_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    write(tmp_path, {"Chart.yaml": CHART, "templates/cm.yaml": config_map("old")})
    commit(tmp_path, "v1")
    write(tmp_path, {"templates/cm.yaml": config_map("new")})
    assert names(open_chart("git:HEAD", ".")) == ["ConfigMap/default/old"]


def test_a_place_in_a_commit_is_named_as_in_git_and_can_be_read_again(checkout: Path) -> None:
    chart = open_chart("git:v1", "charts/demo")
    (resource,) = render(chart, {}, release="r", namespace="default").resources
    place = place_of(resource.place("metadata", "name"))
    assert (str(place), line_at(place)) == ("git:v1:charts/demo/templates/cm.yaml:4", "  name: old")


def test_a_file_dependency_is_that_of_the_same_commit(checkout: Path) -> None:
    write(checkout, {"charts/core/Chart.yaml": LIBRARY, "charts/core/templates/cm.yaml": config_map("core-old")})
    write(checkout, {"charts/demo/Chart.yaml": DEPENDS})
    commit(checkout, "v2")
    write(checkout, {"charts/core/templates/cm.yaml": config_map("core-new")})
    chart = open_chart("git:v2", "charts/demo")
    assert names(chart) == ["ConfigMap/default/core-old", "ConfigMap/default/new"]
    assert chart.missing_dependencies == ()


def test_helmignore_applies_to_a_commit(checkout: Path) -> None:
    write(
        checkout, {"charts/demo/.helmignore": "drafts/\n", "charts/demo/templates/drafts/x.yaml": config_map("draft")}
    )
    commit(checkout, "v2")
    assert names(open_chart("git:v2", "charts/demo")) == ["ConfigMap/default/new"]


def test_symlinks_are_followed_within_the_commit(checkout: Path) -> None:
    write(checkout, {"shared/cm.yaml": config_map("shared"), "charts/core/Chart.yaml": LIBRARY})
    write(checkout, {"charts/core/templates/cm.yaml": config_map("core")})
    (checkout / "charts/demo/templates/shared.yaml").symlink_to("../../../shared/cm.yaml")
    (checkout / "charts/demo/charts").mkdir()
    (checkout / "charts/demo/charts/core").symlink_to("../../core")
    commit(checkout, "v2")
    assert names(open_chart("git:v2", "charts/demo")) == [
        "ConfigMap/default/core",
        "ConfigMap/default/new",
        "ConfigMap/default/shared",
    ]


def test_a_symlink_out_of_the_checkout_is_not_followed(checkout: Path) -> None:
    (checkout / "charts/demo/templates/out.yaml").symlink_to("/etc/passwd")
    commit(checkout, "v2")
    assert refused("git:v2") == (
        "git:v2:charts/demo/templates/out.yaml: the symlink points out of the checkout; seatrial does not follow it"
    )


def test_a_linked_license_that_leads_out_of_the_checkout_is_skipped(checkout: Path) -> None:
    (checkout / "charts/demo/LICENSE").symlink_to("/etc/passwd")
    commit(checkout, "v2")
    source = open_chart("git:v2", "charts/demo")
    assert names(source) == ["ConfigMap/default/new"]
    assert "LICENSE" not in source.files.files


def test_a_symlink_to_itself_is_refused(checkout: Path) -> None:
    (checkout / "charts/demo/templates/again").symlink_to("..")
    commit(checkout, "v2")
    assert refused("git:v2").endswith("the symlink points to a folder that contains it")


@pytest.mark.parametrize("ref", ["--help", "-x", "", "a b", "a\nb"])
def test_an_invalid_ref_is_refused_before_git_runs(checkout: Path, ref: str) -> None:
    assert refused(f"git:{ref}") == (
        f"git:{ref}: {ref!r} is not a valid branch, tag or commit; use git:REF or git:REF:FOLDER"
    )


def test_an_unknown_ref_is_refused(checkout: Path) -> None:
    assert refused("git:v9") == f"git:v9: no branch, tag or commit v9 in the git checkout {checkout}"


def test_an_unknown_ref_in_a_shallow_clone_suggests_a_fetch(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "-q", "--depth=1", "--no-tags", f"file://{checkout}", ".")
    assert refused("git:v1", str(clone / "charts/demo")) == (
        f"git:v1: no branch, tag or commit v1 in the git checkout {clone}; this is a shallow clone: "
        "run git fetch --unshallow --tags"
    )


def test_a_path_out_of_the_checkout_is_refused(checkout: Path) -> None:
    assert refused("git:v1:../elsewhere") == f"git:v1:../elsewhere: the path is outside of the checkout {checkout}"


def test_git_must_be_on_the_path(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert refused("git:v1") == "git:v1: needs git, which is not on the PATH"


def test_no_hook_or_filter_of_the_checkout_runs(checkout: Path) -> None:
    trap = checkout / "trap"
    trap.write_text("#!/bin/sh\ntouch sprung\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "core.sshCommand", "filter.x.smudge", "diff.x.textconv"):
        git(checkout, "config", setting, str(trap))
    write(checkout, {".gitattributes": "* filter=x diff=x\n"})
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
    assert not list(checkout.rglob("sprung"))


def test_the_environment_of_a_git_hook_is_ignored(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
