"""What rules read of a failure: kinds, namespaces and webhooks, from data alone. The words say nothing here."""

from __future__ import annotations

from seatrial.evidence.faults import (
    failed_webhook,
    failure_of,
    has_fault,
    missing_namespaces,
    unserved_kinds,
)
from seatrial.model.engine import EngineId
from seatrial.model.refusal import NO_FAILURE, FailedCall, Failure, Fault, GroupVersionKind, Refusal, joined
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal

HOME = Ref("Namespace", "", "harbour")
CONFIG = Ref("ConfigMap", "harbour", "tide")
APP = Ref("Application", "argocd", "shop", "argoproj.io")
GATES = GroupVersionKind("canal.example", "v1", "Gate")
LOOKED_UP = Failure(faults=(Fault("unserved", Ref("Gate", "", "north", "canal.example"), GATES),))

LOST = Event(0, 0, "helm", "create", CONFIG, "refused", refusal=Refusal(404, "NotFound", ""), missing=(HOME,))
CALLED = Event(
    1, 0, "helm", "create", CONFIG, "refused", refusal=Refusal(500, "", "", call=FailedCall("check.example"))
)
SAID = Event(2, 0, "argocd", "say", APP, "said", failure=Failure((0,)))
REHEARSAL = Rehearsal(EngineId("helm"), "eager", (), (LOST, CALLED, SAID))


def test_a_refused_request_is_a_failure_of_its_own() -> None:
    assert failure_of(LOST) == Failure((0,))
    assert failure_of(SAID) == Failure((0,))


def test_a_missing_namespace_is_found_through_the_refused_request() -> None:
    assert missing_namespaces(REHEARSAL, failure_of(SAID)) == [HOME]
    assert missing_namespaces(REHEARSAL, failure_of(CALLED)) == []


def test_a_missing_namespace_that_the_engine_itself_looked_for_counts() -> None:
    assert missing_namespaces(REHEARSAL, Failure(faults=(Fault("not-found", HOME),))) == [HOME]
    assert missing_namespaces(REHEARSAL, Failure(faults=(Fault("not-found", APP),))) == []


def test_the_webhook_that_did_not_answer_is_named() -> None:
    assert failed_webhook(REHEARSAL, joined(failure_of(LOST), failure_of(CALLED))) == "check.example"
    assert failed_webhook(REHEARSAL, failure_of(LOST)) == ""


def test_each_kind_that_is_not_served_is_named_once() -> None:
    twice = joined(LOOKED_UP, Failure(faults=(Fault("unserved", CONFIG, GATES),)))
    assert unserved_kinds(twice) == [GATES]
    assert has_fault(twice, "unserved") and not has_fault(twice, "not-owned")


def test_failures_that_are_joined_have_each_reason_once() -> None:
    assert joined(LOOKED_UP, failure_of(LOST), LOOKED_UP, failure_of(LOST)) == Failure((0,), LOOKED_UP.faults)
    assert joined(NO_FAILURE, NO_FAILURE) is NO_FAILURE
