"""Charts in a folder, and those that changed since a commit."""

import re
from pathlib import Path

import pytest
from chartfolder import config_map, write
from gitcheckout import commit, git

from seatrial.model.errors import CannotContinue
from seatrial.sources.charts.folder import changed_charts, charts_in, is_folder_of_charts


def chart(name: str, more: str = "") -> str:
    return f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n{more}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two charts, of which `web` uses the library `base`; `web` has a vendored copy of another chart."""
    uses = "dependencies: [{name: base, version: 1.0.0, repository: file://../base}]\n"
    files = {
        "charts/base/Chart.yaml": chart("base", "type: library\n"),
        "charts/base/templates/_helpers.tpl": '{{ define "base" }}a{{ end }}\n',
        "charts/db/Chart.yaml": chart("db"),
        "charts/db/templates/config.yaml": config_map("db"),
        "charts/web/Chart.yaml": chart("web", uses),
        "charts/web/charts/other/Chart.yaml": chart("other"),
        "charts/web/templates/config.yaml": config_map("web"),
    }
    write(tmp_path, files)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "v1")
    return tmp_path


def changed(folder: Path, ref: str = "main") -> list[tuple[str, bool]]:
    """The names of the changed charts, and whether each has an old version."""
    return [
        (found.name, re.fullmatch("git:[0-9a-f]{7,12}", old) is not None) for found, old in changed_charts(folder, ref)
    ]


def test_a_chart_in_a_chart_is_part_of_it(checkout: Path) -> None:
    assert [found.name for found in charts_in(checkout)] == ["base", "db", "web"]


def test_a_folder_with_kubernetes_objects_beside_charts_is_a_folder_of_manifests(checkout: Path) -> None:
    assert is_folder_of_charts(str(checkout / "charts"))
    write(checkout, {"charts/values-prod.yaml": "replicas: 2\n", "charts/ci.yaml": "kind: pipeline\n"})
    assert is_folder_of_charts(str(checkout / "charts"))
    write(checkout, {"charts/extra/config.yaml": config_map("extra")})
    assert not is_folder_of_charts(str(checkout / "charts"))
    assert not is_folder_of_charts(str(checkout / "charts" / "web"))


def test_only_what_differs_from_the_merge_base_has_changed(checkout: Path) -> None:
    assert changed(checkout) == []
    git(checkout, "checkout", "-q", "-b", "topic")
    write(checkout, {"charts/web/templates/config.yaml": config_map("changed")})
    assert changed(checkout) == [("web", True)]
    commit(checkout, "topic-1")
    git(checkout, "checkout", "-q", "main")
    write(checkout, {"charts/db/templates/config.yaml": config_map("elsewhere")})
    commit(checkout, "main-2")
    git(checkout, "checkout", "-q", "topic")
    assert changed(checkout) == [("web", True)]


def test_a_chart_that_uses_a_changed_library_has_changed(checkout: Path) -> None:
    write(checkout, {"charts/base/templates/_helpers.tpl": '{{ define "base" }}b{{ end }}\n'})
    assert changed(checkout) == [("base", True), ("web", True)]


def test_a_new_chart_has_no_old_version_and_ignored_files_do_not_count(checkout: Path) -> None:
    write(checkout, {"charts/new/Chart.yaml": chart("new"), ".gitignore": "*.tmp\n", "charts/db/x.tmp": "x"})
    assert changed(checkout) == [("new", False)]


def test_a_deleted_file_is_a_change(checkout: Path) -> None:
    (checkout / "charts/db/templates/config.yaml").unlink()
    assert changed(checkout) == [("db", True)]


def test_a_ref_that_does_not_exist_is_named(checkout: Path) -> None:
    with pytest.raises(CannotContinue, match="no branch, tag or commit nowhere"):
        list(changed_charts(checkout, "nowhere"))


def test_unrelated_histories_have_no_merge_base(checkout: Path) -> None:
    git(checkout, "checkout", "-q", "--orphan", "alone")
    git(checkout, "commit", "-q", "-m", "alone")
    with pytest.raises(CannotContinue, match="--since main: it has no commit in common"):
        list(changed_charts(checkout, "main"))
