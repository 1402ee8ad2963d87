"""Defects of Helm versions that are not installed here."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from seatrial.model.engine import EngineId, engine_id
from seatrial.model.finding import Finding
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Origin, ref_of
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.rules.releases.engine_bug import RULE

OLD = {"apiVersion": "old.example/v1", "kind": "Gate", "metadata": {"name": "north", "namespace": "default"}}
NEW = {**OLD, "apiVersion": "new.example/v1"}
LATER = {**OLD, "apiVersion": "old.example/v2"}
HOOK = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migrate", "namespace": "default", "annotations": {"helm.sh/hook": "pre-upgrade"}},
}

UPGRADED = Rehearsal(
    engine=EngineId("helm", "4.2.3"),
    schedule="lazy",
    steps=(
        StepResult("install", "canal", "default", "./v1", "ok", by="Helm", act="helm install"),
        StepResult("upgrade", "canal", "default", "./v2", "ok", flags=("--wait",), by="Helm", act="helm upgrade"),
    ),
    timeline=(),
    label="Helm",
    actors=("helm",),
)


def test_until_3_17_0_an_object_of_the_same_kind_in_another_group_is_left_behind() -> None:
    case = _case(OLD, NEW)
    said = (
        "helm upgrade --wait with Helm 3.0.0 to 3.17.0 leaves Gate/default/north of old.example behind and creates "
        "that of"
    )
    assert _reported("helm@4.2.3", case) == [("may", "nuisance", f"{said} new.example")]
    assert _reported("helm@3.17.0", case) == [("will", "nuisance", f"{said} new.example")]


def test_an_object_that_stays_beside_its_successor_is_not_left_behind() -> None:
    release = _release(OLD, NEW)
    assert [*RULE.check(UPGRADED, Case("", (_release(OLD), release)))] == []


def test_helm_4_1_0_deletes_objects_it_has_just_changed() -> None:
    said = "helm upgrade --wait with Helm 4.0.0 to 4.1.0 deletes Gate/default/north right after updating it"
    assert _reported("helm@4.1.0", _case(OLD, LATER)) == [("will", "outage", f"{said} from v1 to v2")]
    assert _reported("helm@4.1.1", _case(OLD, LATER)) == [("may", "outage", f"{said} from v1 to v2")]


def test_only_helm_4_2_1_waits_for_missing_hooks() -> None:
    case = _case(HOOK, HOOK)
    said = "helm upgrade --wait with Helm 4.2.1 waits until --timeout for the deletion of Job/default/migrate"
    assert _reported("helm@4.2.1", case) == [("will", "nuisance", f"{said}, which does not exist")]
    assert _reported("helm@4.2.3", case) == []


def _reported(engine: str, case: Case) -> list[tuple[str, str, str]]:
    found: list[Finding] = [*RULE.check(replace(UPGRADED, engine=engine_id(engine)), case)]
    return [(finding.certainty, finding.damage, finding.message) for finding in found]


def _case(before: dict[str, Any], after: dict[str, Any]) -> Case:
    return Case("", (_release(before), _release(after)))


def _release(*bodies: dict[str, Any]) -> Release:
    written = tuple(Resource(ref_of(body), body, Origin("canal.yaml")) for body in bodies)
    return Release("canal", "default", "./canal", written)
