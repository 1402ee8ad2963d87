"""Which failed steps are reported as `step-fails`, and which a finding explains. The rehearsals are written by hand."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.engine import SeenByCluster
from seatrial.engines.helm.errors import failure_of
from seatrial.evidence.failures import failures
from seatrial.model.engine import EngineId
from seatrial.model.finding import Certainty, Damage, Finding, Reviewed, agreed
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Origin, Ref
from seatrial.model.timeline import SCHEDULES, Event, Rehearsal, Schedule, StepResult
from seatrial.rules.invariants.step_fails import INVARIANT

HELM = EngineId("helm", "4.2.3")
JOB = Ref("Job", "default", "migrate", "batch")
GATE = Ref("Gate", "default", "north", "canal.example")
CRD = Ref("CustomResourceDefinition", "", "gates.canal.example", "apiextensions.k8s.io")
WEB = Ref("Deployment", "default", "web", "apps")
CONFIG = Ref("ConfigMap", "default", "web")
RECORD = Ref("Secret", "default", "sh.helm.release.v1.shop.v1")

FAILED_JOB = (
    "failed pre-install: resource Job/default/migrate not ready. status: Failed, message: Job Failed. failed: 1/1"
)
FORBIDDEN = 'gates.canal.example "north" is forbidden: quota'
REFUSED = f"server-side apply failed for object default/north canal.example/v1, Kind=Gate: {FORBIDDEN}"
NOT_DEPLOYED = '"shop" has no deployed releases'
UNSERVED = (
    'resource mapping not found for name: "north" namespace: "" from "": no matches for kind "Gate" in version '
    '"canal.example/v1"\nensure CRDs are installed first'
)


def test_a_failed_step_that_no_finding_explains_is_reported() -> None:
    assert _reported(_trial(_failed(FAILED_JOB))) == [
        ("will", "helm install fails: Job/default/migrate not ready. status: Failed, message: Job Failed. failed: 1/1")
    ]


def test_a_hang_says_what_is_waited_for() -> None:
    waits = "waits for Deployment/default/web: no image. Helm times out after 5m0s (--timeout)"
    hung = replace(_ok(), outcome="hung", error=waits, waits_for=(WEB,))
    assert _reported(_trial(hung)) == [("will", "helm install hangs waiting for Deployment/default/web: no image")]


def test_a_step_that_fails_in_one_schedule_may_fail() -> None:
    trial = [_reviewed("lazy", _failed(FAILED_JOB)), _reviewed("eager", _ok())]
    assert [certainty for certainty, _ in _reported(trial)] == ["may"]


def test_a_finding_about_the_refused_write_explains_the_step() -> None:
    refused = Event(0, 0, "helm", "apply", GATE, "refused", FORBIDDEN)
    about = _finding(evidence=(0,))
    failed = _failed(REFUSED, "install", refused)
    assert _reported(_trial(failed, events=(refused,))) == [
        ("will", f"helm install fails at Gate/default/north: {FORBIDDEN}")
    ]
    assert _reported(_trial(failed, events=(refused,), findings=(about,))) == []


def test_a_finding_about_what_is_waited_for_or_lacking_explains_the_hang() -> None:
    hung = replace(_ok(), outcome="hung", error="waits. Helm would fail", waits_for=(WEB,), lacking=(CONFIG,))
    for ref in (WEB, CONFIG):
        assert _reported(_trial(hung, findings=(_finding(ref),))) == []
    assert len(_reported(_trial(hung, findings=(_finding(GATE),)))) == 1


def test_a_finding_about_another_step_or_a_nuisance_explains_nothing() -> None:
    for finding in (_finding(JOB, step=1), _finding(JOB, damage="nuisance"), _finding(CONFIG)):
        assert len(_reported(_trial(_failed(FAILED_JOB), _ok(), findings=(finding,)))) == 1


def test_what_the_other_helm_does_explains_nothing() -> None:
    finding = replace(_finding(JOB, certainty="may"), rule="helm-version-differs")
    assert [certainty for certainty, _ in _reported(_trial(_failed(FAILED_JOB), findings=(finding,)))] == ["will"]


def test_what_may_happen_does_not_cover_a_step_that_always_fails() -> None:
    assert len(_reported(_trial(_failed(FAILED_JOB), findings=(_finding(JOB, certainty="may"),)))) == 1
    only_slow = [_reviewed("lazy", _failed(FAILED_JOB), findings=(_finding(JOB),)), _reviewed("eager", _ok())]
    assert _reported(only_slow) == []


def test_two_reasons_in_two_schedules_are_one_certain_failure() -> None:
    refused = Event(0, 0, "helm", "apply", GATE, "refused", FORBIDDEN)
    trial = [
        _reviewed("lazy", _failed(FAILED_JOB), findings=(_finding(JOB),)),
        _reviewed(
            "eager",
            _failed(REFUSED, "install", refused),
            events=(refused,),
            findings=(_finding(GATE, rule="gate-refused"),),
        ),
    ]
    (found,) = _findings(trial)
    assert found.certainty == "will"
    assert found.message == "helm install fails on every cluster, for different reasons"
    assert found.details == (
        "On a slow cluster it fails: Job/default/migrate not ready. status: Failed, message: Job Failed. failed: 1/1 "
        "(some-rule)",
        f"On a fast cluster it fails at Gate/default/north: {FORBIDDEN} (gate-refused)",
    )


def test_steps_that_fail_for_one_reason_are_one_finding() -> None:
    upgrade = _failed(FAILED_JOB.replace("failed pre-install", "pre-upgrade hooks failed"), "upgrade")
    (found,) = _findings(_trial(_failed(FAILED_JOB), upgrade, upgrade))
    assert found.message.startswith("helm install and helm upgrade fail: Job/migrate not ready.")
    assert found.details[0] == "Steps 1, 2 and 3 fail for this reason."


def test_a_consequence_of_an_earlier_failure_is_not_reported_again() -> None:
    upgrade = _failed(NOT_DEPLOYED, "upgrade")
    assert [words for _, words in _reported(_trial(_failed(FAILED_JOB), upgrade))] == [
        "helm install fails: Job/default/migrate not ready. status: Failed, message: Job Failed. failed: 1/1"
    ]
    assert _reported(_trial(_failed(FAILED_JOB), upgrade, findings=(_finding(JOB),))) == []


def test_without_an_earlier_failure_the_same_error_is_reported() -> None:
    upgrade = _failed(NOT_DEPLOYED, "upgrade")
    assert _reported(_trial(_ok(), upgrade)) == [("will", f"helm upgrade fails: {NOT_DEPLOYED}")]


def test_a_finding_about_the_deleted_release_record_explains_a_release_that_is_not_there() -> None:
    deleted = Event(0, 0, "namespace-controller", "delete", RECORD, "deleted")
    upgrade = _failed(NOT_DEPLOYED, "upgrade")
    trial = _trial(_ok(), upgrade, events=(deleted,), findings=(_finding(CONFIG, evidence=(0,), damage="data-loss"),))
    assert _reported(trial) == []


def test_a_finding_about_the_deleted_crd_explains_that_its_kind_is_not_served() -> None:
    body = {"kind": "CustomResourceDefinition", "spec": {"group": "canal.example", "names": {"kind": "Gate"}}}
    deleted = (
        Event(0, 0, "helm", "delete", CRD, "deleting", after=body),
        Event(1, 0, "crd-controller", "delete", CRD, "deleted"),
    )
    release = Release("shop", "default", "chart", (Resource(GATE, {"kind": "Gate"}, Origin("gate.yaml")),))
    case = Case("", (release, release))
    upgrade = _failed(UNSERVED, "upgrade")
    lost = _finding(CRD, evidence=(0,), damage="data-loss")
    trial = _trial(_ok(), upgrade, events=deleted, findings=(lost,), case=case)
    (failure,) = failures(trial[0].rehearsal, case)
    assert failure.cause == 'no matches for kind "Gate" in version "canal.example/v1"'
    assert (failure.objects, failure.lacking) == ((GATE,), (CRD,))
    assert _reported(trial) == []


def _failed(error: str, action: str = "install", *refused: Event) -> StepResult:
    """A step of Helm that ends with an error, and its reasons as the engine reads them from it."""
    failure = failure_of(error, SeenByCluster(refused=refused))
    return StepResult(action, "shop", "default", "chart", "failed", error, failure=failure)


def _ok() -> StepResult:
    return StepResult("install", "shop", "default", "chart", "ok")


def _finding(
    *objects: Ref,
    evidence: tuple[int, ...] = (),
    step: int = 0,
    damage: Damage = "failed-deploy",
    certainty: Certainty = "will",
    rule: str = "some-rule",
) -> Finding:
    return Finding(rule, "ST999", certainty, damage, (HELM,), "install", objects, "", evidence=evidence, step=step)


def _reviewed(
    schedule: Schedule,
    *steps: StepResult,
    events: tuple[Event, ...] = (),
    findings: tuple[Finding, ...] = (),
    case: Case | None = None,
) -> Reviewed:
    of_case = case or Case("", (Release("shop", "default", "chart", (_resource(JOB), _resource(GATE))),) * len(steps))
    own = tuple(replace(finding, schedules=(schedule,)) for finding in findings)
    called = tuple(replace(step, by="Helm", act=f"helm {step.action}") for step in steps)
    return Reviewed(Rehearsal(HELM, schedule, called, events, label="Helm", actors=("helm",)), of_case, own)


def _resource(ref: Ref) -> Resource:
    return Resource(ref, {"kind": ref.kind}, Origin("chart.yaml"))


def _trial(
    *steps: StepResult,
    events: tuple[Event, ...] = (),
    findings: tuple[Finding, ...] = (),
    case: Case | None = None,
) -> list[Reviewed]:
    return [_reviewed(one, *steps, events=events, findings=findings, case=case) for one in SCHEDULES]


def _findings(trial: list[Reviewed]) -> list[Finding]:
    return agreed(INVARIANT.check(trial), {one.rehearsal.schedule for one in trial})


def _reported(trial: list[Reviewed]) -> list[tuple[str, str]]:
    return [(finding.certainty, finding.message) for finding in _findings(trial)]
