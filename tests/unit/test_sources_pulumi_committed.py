"""Pulumi programs as they were at a commit, run with what is installed today."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from gitcheckout import commit, git
from programsread import complaint, registered

from seatrial.cli import main
from seatrial.model.program import short
from seatrial.sources import line_at
from seatrial.sources.places import place_of
from seatrial.sources.pulumi import read_program

PROGRAM = """\
name: app
runtime: yaml
resources:
  settings:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {name: settings}
      data: {size: SIZE}
  chart:
    type: kubernetes:helm.sh/v4:Chart
    properties: {chart: ../charts/demo}
"""
NODE = "name: app\nruntime: {name: nodejs, options: {typescript: false}}\n"
MADE = """
const pulumi = require("@pulumi/pulumi");
exports.Made = class extends pulumi.CustomResource {
    constructor(name) { super("kubernetes:core/v1:ConfigMap", name, { data: { path: __dirname } }); }
};
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose tag v1 holds an older program than its files."""
    where = tmp_path / "checkout"
    where.mkdir()
    monkeypatch.chdir(where)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    git(where, "init", "-q")
    write(where, {"app/Pulumi.yaml": PROGRAM.replace("SIZE", "small")})
    write(where, {"charts/demo/Chart.yaml": CHART, "charts/demo/templates/cm.yaml": config_map("old")})
    commit(where, "v1")
    write(where, {"app/Pulumi.yaml": PROGRAM.replace("SIZE", "large")})
    write(where, {"charts/demo/templates/cm.yaml": config_map("new")})
    return where


def test_a_program_is_checked_from_one_commit_to_what_is_there(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "app", "--from", "git:v1", "--engine", "pulumi"]) == 0
    assert capsys.readouterr().out.splitlines()[:8] == [
        "pulumi@4.32, lazy and eager schedules",
        "  1  up       git:v1  ok  2 created",
        "  2  up       app     ok  1 created, 1 deleted, 1 recreated",
        "  3  up       app     ok",
        "  4  up       git:v1  ok  1 created, 1 deleted, 1 recreated",
        "  5  destroy  app     ok  2 deleted",
        "  6  up       app     ok  2 created",
        "",
    ]


def test_places_are_named_as_git_names_them_and_can_be_read_again(checkout: Path) -> None:
    release = read_program("git:v1", beside="app")
    settings, rendered = (place_of(resource.place("metadata", "name")) for resource in release.resources)
    assert (str(settings), line_at(settings)) == ("git:v1:app/Pulumi.yaml:4", "  settings:")
    assert (str(rendered), line_at(rendered)) == ("git:v1:charts/demo/templates/cm.yaml:4", "  name: old")
    assert release.source == "git:v1"


def test_nothing_is_left_behind_and_nothing_is_written_into_the_checkout(checkout: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))}
    read_program("git:v1", beside="app")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))} == before


def test_what_pulumi_wrote_down_is_read_as_it_was_committed(checkout: Path) -> None:
    urn = "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::a"
    state = {"urn": urn, "type": "kubernetes:core/v1:ConfigMap", "custom": True}
    write(checkout, {"stack.json": f'{{"version": 3, "deployment": {{"resources": [\n{json.dumps(state)}]}}}}'})
    commit(checkout, "v2")
    write(checkout, {"stack.json": "{}"})
    (resource,) = read_program("git:v2", beside="stack.json").resources
    assert str(place_of(resource.place())) == "git:v2:stack.json:2"


def test_a_program_that_was_elsewhere_or_is_broken_is_told_of_by_its_commit(checkout: Path) -> None:
    write(checkout, {"other/Pulumi.yaml": "name: app\n"})
    assert complaint("git:v1", beside="other") == (
        "git:v1:other: it was not there at v1; if the program was elsewhere then: git:v1:FOLDER"
    )
    commit(checkout, "v2")
    assert complaint("git:v2", beside="other") == (
        "git:v2:other/Pulumi.yaml: read the Pulumi project: it needs a name and a runtime"
    )


def test_links_stay_within_the_commit(checkout: Path) -> None:
    write(checkout, {"app/Pulumi.yaml": PROGRAM.replace("../charts/demo", "linked")})
    (checkout / "app/linked").symlink_to("../charts/demo")
    (checkout / "app/lost").symlink_to("/etc")
    commit(checkout, "v2")
    write(checkout, {"charts/demo/templates/cm.yaml": config_map("newer")})
    assert [str(one.ref) for one in registered("git:v2", beside="app").registrations if one.ref] == [
        "ConfigMap/default/settings",
        "ConfigMap/default/new",
    ]


def test_packages_are_those_that_are_installed_and_those_of_the_repository_are_of_the_commit(
    checkout: Path, node_packages: Path
) -> None:
    write(checkout, {"core/index.js": MADE, "core/package.json": "{}", "app/package.json": "{}"})
    write(checkout, {"app/Pulumi.yaml": NODE, ".gitignore": "node_modules\n"})
    write(checkout, {"app/index.js": 'const { Made } = require("@own/core");\nnew Made("old");\n'})
    commit(checkout, "v2")
    (checkout / "node_modules/@own").mkdir(parents=True)
    (checkout / "node_modules/@own/core").symlink_to("../../core")
    for package in ("@pulumi", "google-protobuf"):
        (checkout / "node_modules" / package).symlink_to(node_packages / package)
    write(checkout, {"core/index.js": "throw new Error('of today');\n", "app/package.json": '{"private": true}'})
    program = registered("git:v2", beside="app")
    (only,) = program.registrations
    assert short(only.urn) == "ConfigMap old"
    assert only.inputs["data"] == {"path": str(checkout / "core")}
    assert program.warnings == (
        "git:v2:app/package.json is not that of today; the program was run with the packages that are installed today",
    )


def test_packages_that_are_not_installed_are_to_be_installed_in_the_working_tree(
    checkout: Path, node_packages: Path
) -> None:
    write(checkout, {"app/Pulumi.yaml": NODE, "app/index.js": ""})
    commit(checkout, "v2")
    assert complaint("git:v2", beside="app") == (
        "git:v2:app: run the program: there is no node_modules/@pulumi/pulumi beside it or above; install its packages "
        "in app: npm install --ignore-scripts"
    )
