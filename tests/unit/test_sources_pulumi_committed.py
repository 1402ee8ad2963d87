"""Pulumi programs at a commit, run with the installed packages."""

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
    """A checkout whose tag v1 has an older program than its files."""
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


def test_a_program_is_upgraded_from_a_commit(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "app", "--from", "git:v1", "--engine", "pulumi", "-v"]) == 0
    assert capsys.readouterr().out.splitlines()[:10] == [
        "pulumi@4.32, ordinary, lazy and eager schedules",
        "  1  up       git:v1  ok  2 created",
        "  2  up       app     ok  1 created, 1 deleted, 1 recreated",
        "     recreated: ConfigMap/default/settings (Pulumi deletes it)",
        "  3  up       app     ok",
        "  4  up       git:v1  ok  1 created, 1 deleted, 1 recreated",
        "     recreated: ConfigMap/default/settings (Pulumi deletes it)",
        "  5  destroy  app     ok  2 deleted",
        "  6  up       app     ok  2 created",
        "",
    ]


def test_places_in_a_program_at_a_commit_are_named_as_in_git(checkout: Path) -> None:
    release = read_program("git:v1", beside="app")
    settings, rendered = (place_of(resource.place("metadata", "name")) for resource in release.resources)
    assert (str(settings), line_at(settings)) == ("git:v1:app/Pulumi.yaml:4", "  settings:")
    assert (str(rendered), line_at(rendered)) == ("git:v1:charts/demo/templates/cm.yaml:4", "  name: old")
    assert release.source == "git:v1"


def test_a_program_at_a_commit_leaves_no_files_behind(checkout: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))}
    read_program("git:v1", beside="app")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in sorted(checkout.rglob("*"))} == before


def test_a_recording_is_read_from_a_commit(checkout: Path) -> None:
    urn = "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::a"
    state = {"urn": urn, "type": "kubernetes:core/v1:ConfigMap", "custom": True}
    write(checkout, {"stack.json": f'{{"version": 3, "deployment": {{"resources": [\n{json.dumps(state)}]}}}}'})
    commit(checkout, "v2")
    write(checkout, {"stack.json": "{}"})
    (resource,) = read_program("git:v2", beside="stack.json").resources
    assert str(place_of(resource.place())) == "git:v2:stack.json:2"


def test_errors_of_a_program_at_a_commit_name_the_commit(checkout: Path) -> None:
    write(checkout, {"other/Pulumi.yaml": "name: app\n"})
    assert complaint("git:v1", beside="other") == (
        "git:v1:other: does not exist at v1; if the program was in another folder, use git:v1:FOLDER"
    )
    commit(checkout, "v2")
    assert complaint("git:v2", beside="other") == (
        "git:v2:other/Pulumi.yaml: read the Pulumi project: it needs a name and a runtime"
    )


def test_symlinks_stay_within_the_commit(checkout: Path) -> None:
    write(checkout, {"app/Pulumi.yaml": PROGRAM.replace("../charts/demo", "linked")})
    (checkout / "app/linked").symlink_to("../charts/demo")
    (checkout / "app/lost").symlink_to("/etc")
    commit(checkout, "v2")
    write(checkout, {"charts/demo/templates/cm.yaml": config_map("newer")})
    assert [str(one.ref) for one in registered("git:v2", beside="app").registrations if one.ref] == [
        "ConfigMap/default/settings",
        "ConfigMap/default/new",
    ]


def test_installed_packages_are_current_and_packages_of_the_repository_are_those_of_the_commit(
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
        "git:v2:app/package.json differs from the working tree; the program was run with the currently installed "
        "packages",
    )


def test_missing_packages_must_be_installed_in_the_working_tree(checkout: Path, node_packages: Path) -> None:
    write(checkout, {"app/Pulumi.yaml": NODE, "app/index.js": ""})
    commit(checkout, "v2")
    assert complaint("git:v2", beside="app") == (
        "git:v2:app: run the program: node_modules/@pulumi/pulumi was not found in its folder or above; "
        "install its packages in app: npm install --ignore-scripts"
    )
