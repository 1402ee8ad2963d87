"""How the findings of several rehearsals of one hazard become one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.finding import Certainty, Damage, Finding, agreed, worst_first
from seatrial.model.resource import Ref
from seatrial.model.timeline import SCHEDULES

ARGOCD, HELM = EngineId("argocd", "3.5"), EngineId("helm", "4.2.3")
WEB = Ref("Deployment", "default", "web", "apps")


def _found(
    *schedules: str,
    engine: EngineId = HELM,
    damage: Damage = "failed-deploy",
    certainty: Certainty = "will",
    after: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        "a-rule",
        "ST999",
        certainty,
        damage,
        (engine,),
        "install",
        (WEB,),
        f"under {engine.name}",
        schedules=schedules,
        after=after,
    )


@pytest.mark.parametrize(
    ("schedules", "certainty"),
    [
        (SCHEDULES, "will"),
        (("ordinary",), "likely"),
        (("ordinary", "lazy"), "likely"),
        (("ordinary", "eager"), "likely"),
        (("lazy",), "may"),
        (("eager",), "may"),
        (("lazy", "eager"), "may"),
    ],
)
def test_certainty_follows_from_the_schedules(schedules: tuple[str, ...], certainty: str) -> None:
    assert [one.certainty for one in agreed(_found(schedule) for schedule in schedules)] == [certainty]


@pytest.mark.parametrize("certainty", ["likely", "may"])
def test_a_rule_that_is_not_certain_itself_stays_so(certainty: Certainty) -> None:
    found = [_found(schedule, certainty=certainty) for schedule in SCHEDULES]
    assert [one.certainty for one in agreed(found)] == [certainty]


@pytest.mark.parametrize("first", [ARGOCD, HELM])
def test_a_failure_under_one_engine_is_not_a_nuisance_because_another_retries(first: EngineId) -> None:
    retried = [_found(schedule, engine=ARGOCD, damage="nuisance") for schedule in SCHEDULES]
    fails = [_found(schedule, engine=HELM) for schedule in ("ordinary", "lazy")]
    [merged] = agreed([*retried, *fails] if first == ARGOCD else [*fails, *retried])
    assert (merged.certainty, merged.damage, merged.message) == ("likely", "failed-deploy", "under helm")
    assert merged.engines == (HELM, ARGOCD)


def test_what_happens_after_repairs_comes_after_its_equals_and_before_what_is_less_certain() -> None:
    now, next_, last = (_found(*SCHEDULES, after=("x",) * repairs) for repairs in range(3))
    worse = _found(*SCHEDULES, after=("x",), damage="data-loss")
    likely = _found("ordinary", certainty="likely")
    assert sorted([likely, last, next_, worse, now], key=worst_first) == [now, worse, next_, last, likely]


def test_what_happens_to_many_objects_comes_first_then_what_has_the_lower_code() -> None:
    few = _found(*SCHEDULES)
    many = replace(few, objects=(*few.objects, *few.objects))
    lower = replace(few, code="ST001")
    assert sorted([few, lower, many], key=worst_first) == [many, lower, few]
