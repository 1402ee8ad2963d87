"""Schedules between the bounds: which are tried, that a finding is shrunk, and that a schedule can be replayed."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.act import Apply, Manifest
from seatrial.engines.engine import PlannedStep
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.faults.exploring import explore
from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.mix import Mix, mixed, parse
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse

ENGINE = EngineId("kubectl", "1.34")
FOUND = Finding("rule", "ST999", "will", "outage", (ENGINE,), "apply", (Ref("ConfigMap", "default", "a"),), "It fails.")


def deployment(name: str) -> Body:
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    wanted = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def plan(*names: str) -> Plan:
    applied = Apply(tuple(Manifest(deployment(name)) for name in names))
    return Plan(ENGINE, (PlannedStep(Step("apply"), "kubectl", "", "default", applied),), Case("", (None,)))


def test_a_finding_is_shrunk_to_the_objects_that_must_be_slow() -> None:
    needed = {"Deployment/default/a", "Deployment/default/c"}

    def judge(seen: list[ComparedRehearsal]) -> list[Finding]:
        mix = parse(seen[0].rehearsal.mix.encode(), "it")
        return [FOUND] if needed <= set(mix.slow) else []

    found = explore(plan("a", "b", "c", "d"), Heard(), 40, judge, lambda said: None)
    (finding,) = found.findings
    assert finding.schedule == "{base: eager, slow: [Deployment/default/a, Deployment/default/c]}"
    assert finding.certainty == "may"
    assert found.seen[0].rehearsal.mix == finding.schedule


def test_no_more_schedules_are_tried_than_asked_for() -> None:
    tried: list[str] = []

    def judge(seen: list[ComparedRehearsal]) -> list[Finding]:
        tried.append(seen[0].rehearsal.mix)
        return []

    explored = explore(plan("a", "b", "c"), Heard(), 7, judge, lambda said: None).explored
    assert (len(tried), len(set(tried)), explored.rehearsals) == (7, 7, 7)


def test_a_schedule_gives_the_same_timeline_each_time() -> None:
    mix = mixed("lazy", ("Deployment/default/b",))
    first, second = (rehearse(plan("a", "b"), "mixed", mix=parse(str(mix).encode(), "it")) for _ in range(2))
    assert first == second


def test_only_fast_objects_act_between_two_requests() -> None:
    def made(mix: Mix) -> list[str]:
        events = rehearse(plan("a", "b", "c"), "mixed", mix=mix).timeline
        last = max(event.index for event in events if event.actor == "kubectl")
        return [e.object.name[0] for e in events[:last] if e.object.kind == "Pod" and e.effect == "created"]

    assert made(Mix("lazy", fast=("Deployment/default/b",))) == ["b"]
    assert made(replace(Mix("eager"), slow=("Deployment/default/b",))) == ["a"]
