"""The same release gives the same timeline in every process, and two schedules bound all others."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.engines.act import Apply, Manifest
from seatrial.engines.engine import PlannedStep
from seatrial.model.engine import EngineId
from seatrial.model.release import Case
from seatrial.model.resource import Body
from seatrial.model.timeline import Rehearsal, Schedule
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse

PROGRAM = """
from test_schedule_bounds import release, played, lines
for schedule in ("ordinary", "lazy", "eager", "seeded"):
    print("\\n".join(lines(played(release("abc"), schedule, seed=3))))
"""


def release(names: str) -> list[Body]:
    """For each name a ConfigMap, a ServiceAccount, and a Deployment that needs both."""
    return [body for name in names for body in _app(name)]


def _app(name: str) -> tuple[Body, Body, Body]:
    pod = {
        "serviceAccountName": name,
        "containers": [{"name": "main", "image": "app:1"}],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"metadata": {"name": name}}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", **meta},
        {"apiVersion": "v1", "kind": "ServiceAccount", **meta},
        {"apiVersion": "apps/v1", "kind": "Deployment", **meta, "spec": spec},
    )


def played(objects: list[Body], schedule: Schedule, seed: int = 0) -> Rehearsal:
    steps = tuple(
        PlannedStep(Step(action), "kubectl", "", "default", Apply(tuple(map(Manifest, objects))))
        for action in ("apply", "delete")
    )
    return rehearse(Plan(EngineId("kubectl", "1.34"), steps, Case("", (None, None))), schedule, seed=seed)


def lines(rehearsal: Rehearsal) -> list[str]:
    return [f"{e.index} {e.actor} {e.verb} {e.object} {e.effect} {e.message} {e.cause}" for e in rehearsal.timeline]


def done(rehearsal: Rehearsal) -> list[set[tuple[str, str, str]]]:
    """What controllers had done before each object that kubectl applied: kind, beginning of the name, and verb."""
    found: list[set[tuple[str, str, str]]] = []
    so_far: set[tuple[str, str, str]] = set()
    for event in rehearsal.of_step(0):
        if event.actor == "kubectl":
            found.append(set(so_far))
        elif event.effect != "said":
            so_far.add((event.object.kind, event.object.name.partition("-")[0], event.verb))
    return found


def is_clean(rehearsal: Rehearsal) -> bool:
    return all(step.outcome == "ok" for step in rehearsal.steps) and not any(
        event.effect in ("said", "refused") for event in rehearsal.timeline
    )


def test_the_timeline_does_not_depend_on_the_hash_seed() -> None:
    here = os.path.dirname(__file__)  # noqa: PTH120
    timelines = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((here, *sys.path))}
        command = [sys.executable, "-c", PROGRAM]
        timelines.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(timelines) == 1
    assert "Deployment/default/a" in timelines.pop()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.permutations(release("ab")), st.integers(0, 50))
def test_what_is_clean_under_both_schedules_is_clean_under_every_seed(objects: list[Body], seed: int) -> None:
    if is_clean(played(objects, "lazy")) and is_clean(played(objects, "eager")):
        assert is_clean(played(objects, "seeded", seed))
        assert is_clean(played(objects, "ordinary"))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.permutations(release("ab")))
def test_an_ordinary_cluster_does_no_less_than_a_slow_one_and_no_more_than_a_fast_one(objects: list[Body]) -> None:
    slow, ordinary, fast = (done(played(objects, schedule)) for schedule in ("lazy", "ordinary", "eager"))
    assert len(slow) == len(ordinary) == len(fast) == len(objects)
    for less, between, more in zip(slow, ordinary, fast, strict=True):
        assert less <= between <= more


def test_an_ordinary_cluster_creates_pods_at_once_and_starts_none() -> None:
    """The ReplicaSet and its pods take milliseconds; a node takes seconds, and nothing waits for them."""
    objects = [*release("a"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}}]
    before_last = {(kind, verb) for kind, _, verb in done(played(objects, "ordinary"))[-1]}
    assert {("ReplicaSet", "create"), ("Pod", "create")} <= before_last
    assert ("Pod", "update") not in before_last
    assert ("Pod", "update") in {(kind, verb) for kind, _, verb in done(played(objects, "eager"))[-1]}


def test_without_waits_lazy_alone_is_not_a_bound() -> None:
    """With the slow cluster nothing runs before all objects exist, so only a fast one shows that the account comes
    last."""
    config, account, deployment = release("a")
    objects = [deployment, config, account]
    assert is_clean(played(objects, "lazy"))
    assert not is_clean(played(objects, "eager"))
