"""An engine is one folder that exports one object, found by its folder and loaded on demand."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial import engines
from seatrial.check import check
from seatrial.cli import main
from seatrial.engines.engine import load, names
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.plan.steps import DEPLOYING

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/seatrial"
TUG = '''"""Tug: creates objects in the order of their names, and deletes them in reverse. Waits for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.engines import Ended
from seatrial.engines.act import Apply, Manifest
from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.script import Command, Script, Verb
from seatrial.engines.setting import Setting, release_of
from seatrial.model.engine import Action
from seatrial.model.resource import name_of
from seatrial.model.trial import Step


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Apply]:
    release = release_of(step, setting)
    objects = tuple(Manifest(resource.body, resource.file) for resource in release.resources)
    deployed = release if step.action == "tow" else None
    return PlannedStep(step, "tug", release.name, release.namespace, Apply(objects), deployed)


def script(planned: PlannedStep[Apply], scene: Scene) -> Script:
    ordered = sorted((one.body for one in planned.act.objects), key=name_of)
    verb: Verb = "apply" if planned.step.action == "tow" else "delete"
    for body in ordered if verb == "apply" else reversed(ordered):
        sent = body if verb == "apply" else None
        answer = yield Command(
            verb, body["apiVersion"], body["kind"], planned.namespace, name_of(body), sent, "tug"
        )
        if answer.message:
            return Ended("failed", f"tug: {answer.message}")
    return Ended("ok")


ENGINE = Engine(
    name="tug",
    label="Tug",
    versions=("0.9", "1.0"),
    actions=(
        Action("tow", "replace", "tug tow"),
        Action("cast-off", "remove", "tug cast-off"),
    ),
    default_trial=round_trip("tow", "cast-off"),
    stage=stage,
    script=script,
    usual_for=(("tug.example", "Berth"),),
)
'''
OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web-config}
---
apiVersion: v1
kind: Secret
metadata: {name: a-key}
"""
INVALID = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 0}]}\n"
TRIAL = "engine: tug@1\nsteps: [{tow: app.yaml}, {apply: other.yaml}, {cast-off: app.yaml}]\n"
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-hand}\n"
LISTS = (ast.Tuple, ast.List, ast.Set)


@pytest.fixture
def tug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an engine, on the path of the package; the working directory holds what it deploys."""
    (tmp_path / "engines/tug").mkdir(parents=True)
    (tmp_path / "engines/tug/__init__.py").write_text(TUG)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path / "engines")])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("seatrial.engines.tug", None)
    vars(engines).pop("tug", None)


def test_an_engine_is_found_by_its_folder(tug: Path) -> None:
    assert "tug" in names()
    assert load("tug").label == "Tug"


def test_an_engine_in_one_folder_is_planned_rehearsed_and_reported(
    tug: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tug / "app.yaml").write_text(OBJECTS)
    assert main(["check", "app.yaml", "--engine", "tug", "-v"]) == 0
    said = capsys.readouterr().out
    assert "tug@1.0, ordinary, lazy and eager schedules" in said
    assert [line.split()[:2] for line in said.splitlines()[1:4]] == [["1", "tow"], ["2", "tow"], ["3", "cast-off"]]


def test_its_requests_come_in_its_own_order(tug: Path) -> None:
    (tug / "app.yaml").write_text(OBJECTS)
    result = check(CheckOptions(inputs=("app.yaml",), engines=("tug",)))
    rehearsal = result.played[0].rehearsal
    own = [(event.step, event.verb, event.object.name) for event in rehearsal.timeline if event.actor == "tug"]
    applied = ["a-key", "web-config"]
    assert [(verb, name) for step, verb, name in own if step == 0] == [("apply", name) for name in applied]
    assert [(verb, name) for step, verb, name in own if step == 2] == [("delete", name) for name in reversed(applied)]
    assert {step.by for step in rehearsal.steps} == {"Tug"}


def test_a_refusal_is_a_finding_in_its_own_words(tug: Path) -> None:
    (tug / "app.yaml").write_text(INVALID)
    result = check(CheckOptions(inputs=("app.yaml",), engines=("tug",)))
    assert result.played[0].rehearsal.steps[0].outcome == "failed"
    assert any("tug tow" in finding.message for finding in result.findings)


def test_a_trial_file_has_actions_of_the_engine_and_of_users(tug: Path) -> None:
    for name, text in (("app.yaml", OBJECTS), ("other.yaml", OTHER), ("trial.yaml", TRIAL)):
        (tug / name).write_text(text)
    steps = check(CheckOptions(inputs=("trial.yaml",))).played[0].rehearsal.steps
    assert [(step.act, step.by, step.outcome) for step in steps] == [
        ("tug tow", "Tug", "ok"),
        ("kubectl apply", "kubectl", "ok"),
        ("tug cast-off", "Tug", "ok"),
    ]


def test_manifests_of_its_own_kinds_are_rehearsed_with_it(tug: Path) -> None:
    (tug / "berth.yaml").write_text("apiVersion: tug.example/v1\nkind: Berth\nmetadata: {name: north}\n")
    result = check(CheckOptions(inputs=("berth.yaml",)))
    assert result.played[0].rehearsal.engine.name == "tug"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("tug@2", "--engine tug@2: this version is not modelled; use 0.9 to 1.0"),
        ("barge", "unknown engine 'barge'; known engines: argocd, flux, helm, kubectl, pulumi, tug"),
    ],
)
def test_what_it_does_not_have_is_refused(tug: Path, asked: str, says: str) -> None:
    (tug / "app.yaml").write_text(OBJECTS)
    with pytest.raises(CannotContinue) as why:
        check(CheckOptions(inputs=("app.yaml",), engines=(asked,)))
    assert str(why.value) == says


@pytest.mark.parametrize("name", names())
def test_every_engine_describes_its_default_trial(name: str) -> None:
    engine = load(name)
    assert engine.name == name
    for steps in (engine.default_trial("new", "", 0), engine.default_trial("new", "old", 0)):
        assert [step.action for step in steps if engine.action(step.action) is None] == []


def test_a_check_with_helm_imports_no_other_engine() -> None:
    program = (
        "import sys\nfrom seatrial.check import check\nfrom seatrial.plan.plans import CheckOptions\n"
        "check(CheckOptions(inputs=('examples/basic-app/v2',), old='examples/basic-app/v1'))\n"
        "print(*(name for name in sys.modules if name.startswith('seatrial.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {tuple(name.split(".")[1:3]) for name in ran.stdout.split()}
    others = [name for name in names() if name != "helm"]
    assert ("engines", "helm") in loaded
    assert [name for name in others if loaded & {("engines", name), ("sources", name)}] == []


def test_only_engines_list_engines() -> None:
    """A table of engines elsewhere is one more file to edit for the next engine, unless it has a row for the rest."""
    listed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        if SOURCES / "engines" not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.expr) and len(_engines_in(node)) > 1
    ]
    assert listed == []


def _engines_in(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Dict):
        if any(isinstance(key, ast.Constant) and key.value == "" for key in node.keys):
            return set()
        entries: list[ast.expr | None] = [*node.keys, *node.values]
    elif isinstance(node, LISTS):
        entries = [*node.elts]
    else:
        return set()
    return {str(entry.value) for entry in entries if isinstance(entry, ast.Constant)} & set(names())


def test_every_kind_that_an_engine_acts_on_is_known_without_importing_it() -> None:
    assert {kind for name in names() for _, kind in load(name).usual_for} == set(DEPLOYING)
