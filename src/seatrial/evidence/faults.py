"""Why something failed, read from data: what a refusal or an engine's error names. Knows no words."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.refusal import Failure, Fault, FaultOf, GroupVersionKind
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal


def failure_of(event: Event) -> Failure:
    """Why a request was refused, or why what an engine reports has failed."""
    return Failure((event.index,)) if event.effect == "refused" else event.failure


def faults(failure: Failure, of: FaultOf) -> Iterator[Fault]:
    return (fault for fault in failure.faults if fault.of == of)


def has_fault(failure: Failure, of: FaultOf) -> bool:
    return any(fault.of == of for fault in failure.faults)


def unserved_kinds(failure: Failure) -> list[GroupVersionKind]:
    """The kinds that a client looked up and that are not served, each once."""
    return list(dict.fromkeys(fault.kind for fault in faults(failure, "unserved") if fault.kind))


def missing_namespaces(rehearsal: Rehearsal, failure: Failure) -> list[Ref]:
    """The namespaces that were looked for and do not exist, each once."""
    refused = (ref for event in rehearsal.refusals_of(failure) for ref in event.missing)
    looked_for = (fault.object for fault in faults(failure, "not-found"))
    return list(dict.fromkeys(ref for ref in (*refused, *looked_for) if ref and _is_namespace(ref)))


def failed_webhook(rehearsal: Rehearsal, failure: Failure) -> str:
    """The webhook that was called and did not answer."""
    calls = (event.refusal.call for event in rehearsal.refusals_of(failure) if event.refusal)
    return next((call.webhook for call in calls if call and call.webhook), "")


def _is_namespace(ref: Ref) -> bool:
    return (ref.kind, ref.group) == ("Namespace", "")
