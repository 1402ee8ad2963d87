"""Charts as they were at a commit, read through git."""

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
    """A checkout whose tag v1 holds an older chart than its files."""
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


def test_the_chart_is_as_it_was_then(checkout: Path) -> None:
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
    assert names(open_chart("charts/demo")) == ["ConfigMap/default/new"]


def test_nothing_is_written_into_the_checkout(checkout: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))}
    open_chart("git:v1", "charts/demo")
    assert {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))} == before


def test_a_chart_that_has_moved_is_named_by_its_path_of_that_time(checkout: Path) -> None:
    (checkout / "charts/demo").rename(checkout / "app")
    assert refused("git:v1", "app") == ("git:v1: there is no app at v1; if the chart was elsewhere then: git:v1:FOLDER")
    assert names(open_chart("git:v1:charts/demo", "app")) == ["ConfigMap/default/old"]


def test_a_chart_may_be_the_whole_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    write(tmp_path, {"Chart.yaml": CHART, "templates/cm.yaml": config_map("old")})
    commit(tmp_path, "v1")
    write(tmp_path, {"templates/cm.yaml": config_map("new")})
    assert names(open_chart("git:HEAD", ".")) == ["ConfigMap/default/old"]


def test_a_place_is_named_as_git_names_it_and_can_be_read_again(checkout: Path) -> None:
    chart = open_chart("git:v1", "charts/demo")
    (resource,) = render(chart, {}, release="r", namespace="default").resources
    place = place_of(resource.place("metadata", "name"))
    assert (str(place), line_at(place)) == ("git:v1:charts/demo/templates/cm.yaml:4", "  name: old")


def test_a_neighbour_is_of_the_same_time(checkout: Path) -> None:
    write(checkout, {"charts/core/Chart.yaml": LIBRARY, "charts/core/templates/cm.yaml": config_map("core-old")})
    write(checkout, {"charts/demo/Chart.yaml": DEPENDS})
    commit(checkout, "v2")
    write(checkout, {"charts/core/templates/cm.yaml": config_map("core-new")})
    chart = open_chart("git:v2", "charts/demo")
    assert names(chart) == ["ConfigMap/default/core-old", "ConfigMap/default/new"]
    assert chart.missing_dependencies == ()


def test_what_helmignore_keeps_out_is_kept_out(checkout: Path) -> None:
    write(
        checkout, {"charts/demo/.helmignore": "drafts/\n", "charts/demo/templates/drafts/x.yaml": config_map("draft")}
    )
    commit(checkout, "v2")
    assert names(open_chart("git:v2", "charts/demo")) == ["ConfigMap/default/new"]


def test_links_are_followed_within_the_commit(checkout: Path) -> None:
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


def test_a_link_out_of_the_checkout_is_not_followed(checkout: Path) -> None:
    (checkout / "charts/demo/templates/out.yaml").symlink_to("/etc/passwd")
    commit(checkout, "v2")
    assert refused("git:v2") == (
        "git:v2:charts/demo/templates/out.yaml: the link leads out of the checkout; seatrial does not follow it"
    )


def test_a_link_to_itself_ends(checkout: Path) -> None:
    (checkout / "charts/demo/templates/again").symlink_to("..")
    commit(checkout, "v2")
    assert refused("git:v2").endswith("the link leads back to a folder that holds it")


@pytest.mark.parametrize("ref", ["--help", "-x", "", "a b", "a\nb"])
def test_what_can_be_no_ref_is_refused_before_git_hears_of_it(checkout: Path, ref: str) -> None:
    assert refused(f"git:{ref}") == (
        f"git:{ref}: git:REF names a branch, tag or commit, and {ref!r} can be none of them"
    )


def test_a_ref_that_is_not_there(checkout: Path) -> None:
    assert refused("git:v9") == f"git:v9: there is no v9 in the git checkout {checkout}"


def test_a_shallow_clone_says_so(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "-q", "--depth=1", "--no-tags", f"file://{checkout}", ".")
    assert refused("git:v1", str(clone / "charts/demo")) == (
        f"git:v1: there is no v1 in the git checkout {clone}; it is a shallow clone: git fetch --unshallow --tags"
    )


def test_a_path_out_of_the_checkout(checkout: Path) -> None:
    assert refused("git:v1:../elsewhere") == f"git:v1:../elsewhere: the path leads out of the checkout {checkout}"


def test_without_git_it_cannot_be_done(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert refused("git:v1") == "git:v1: git is needed for this, and there is none on the PATH"


def test_no_program_of_the_checkout_is_run(checkout: Path) -> None:
    trap = checkout / "trap"
    trap.write_text("#!/bin/sh\ntouch sprung\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "core.sshCommand", "filter.x.smudge", "diff.x.textconv"):
        git(checkout, "config", setting, str(trap))
    write(checkout, {".gitattributes": "* filter=x diff=x\n"})
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
    assert not list(checkout.rglob("sprung"))


def test_the_environment_of_a_hook_does_not_lead_elsewhere(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert names(open_chart("git:v1", "charts/demo")) == ["ConfigMap/default/old"]
