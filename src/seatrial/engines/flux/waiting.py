"""When Flux counts objects as ready: kstatus, with its own rules for Jobs and its own kinds, and the user's in CEL.

Upstream: `ssa/manager_wait.go` of fluxcd/pkg; `internal/statusreaders/job.go` of kustomize-controller.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.flux.objects import HELM_GROUP, KUSTOMIZE_GROUP, FluxMemory
from seatrial.engines.script import Part, Survey, wait_until
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import Body, Ref, dig, listed, metadata, ref_of
from seatrial.readiness import flux, kstatus
from seatrial.readiness.flux import ExpressionVerdict, HealthExpression
from seatrial.text.durations import seconds_in

OWN_GROUPS = (KUSTOMIZE_GROUP, HELM_GROUP)
TIMEOUT_SECONDS = 300.0
"""The default."""
NOT_FOUND = ExpressionVerdict("NotFound")


class Waited(Struct, frozen=True):
    """How a wait ended; `words` are empty if all became current."""

    words: str = ""
    stuck: Stuck | None = None
    failure: Failure = NO_FAILURE


def wait_for(
    refs: Iterable[Ref], memory: FluxMemory, timeout: str, health: tuple[HealthExpression, ...] = ()
) -> Part[Waited]:
    """Wait until all are current, one has failed, or nothing changes any more before the timeout."""
    waited = tuple(dict.fromkeys(refs))
    statuses: dict[Ref, ExpressionVerdict] = {}

    def look() -> Part[tuple[Ref, ...] | None]:
        statuses.update((yield from statuses_of(waited, memory, health)))
        return None if _failed(statuses) else _unready(statuses) or None

    stuck = yield from wait_until(look, seconds_in(timeout) or TIMEOUT_SECONDS)
    if stuck is not None:
        unready = _unready(statuses)
        words = f"timeout waiting for: [{_listed(unready, statuses)}]"
        return Waited(words, stuck, _not_ready(unready, statuses))
    failed = _failed(statuses)
    if not failed:
        return Waited()
    words = f"failed early due to stalled resources: [{_listed(failed, statuses)}]"
    return Waited(words, failure=_not_ready(failed, statuses))


def timed_out(refs: Iterable[Ref], memory: FluxMemory, health: tuple[HealthExpression, ...]) -> Part[Waited]:
    """The error when the timeout passes for objects that are not current by then."""
    statuses = yield from statuses_of(refs, memory, health)
    failure = _not_ready(statuses, statuses)
    return Waited(f"timeout waiting for: [{_listed(statuses, statuses)}]", failure=failure)


def statuses_of(
    refs: Iterable[Ref], memory: FluxMemory, health: tuple[HealthExpression, ...]
) -> Part[dict[Ref, ExpressionVerdict]]:
    found = yield Survey()
    live = {ref_of(body): body for body in found.body["items"]}
    return {ref: _status(live.get(ref), ref, memory, health) for ref in refs}


def _failed(statuses: dict[Ref, ExpressionVerdict]) -> tuple[Ref, ...]:
    return tuple(ref for ref, verdict in statuses.items() if verdict.status == "Failed")


def _unready(statuses: dict[Ref, ExpressionVerdict]) -> tuple[Ref, ...]:
    return tuple(ref for ref, verdict in statuses.items() if verdict.status != "Current")


def _status(body: Body | None, ref: Ref, memory: FluxMemory, health: tuple[HealthExpression, ...]) -> ExpressionVerdict:
    if body is None:
        return NOT_FOUND
    if ref.group in OWN_GROUPS:
        # Their CRDs default to `status.observedGeneration: -1`: an object not yet reconciled is in progress.
        return ExpressionVerdict("Current" if memory.ready.get(ref) else "InProgress")
    if (ref.group, ref.kind) == ("batch", "Job"):
        return ExpressionVerdict(job_status(body))
    return flux.verdict(health, ref, body) or ExpressionVerdict(kstatus.status(body))


def job_status(body: Body) -> str:
    """The status of a Job: it must complete, unlike with kstatus alone."""
    if metadata(body).get("deletionTimestamp"):
        return "Terminating"
    conditions = {c.get("type"): c.get("status") for c in listed(body, "status", "conditions")}
    if conditions.get("Failed") == "True":
        return "Failed"
    done = conditions.get("Complete") == "True" or dig(body, "spec", "suspend") is True
    return "Current" if done else "InProgress"


def _not_ready(refs: Iterable[Ref], statuses: dict[Ref, ExpressionVerdict]) -> Failure:
    return Failure(faults=tuple(Fault("not-ready", ref, status=statuses[ref].status) for ref in refs))


def _listed(refs: Iterable[Ref], statuses: dict[Ref, ExpressionVerdict]) -> str:
    found = ((ref, statuses[ref]) for ref in refs)
    return ", ".join(f"{ref} status: '{one.status}'{one.error and f': {one.error}'}" for ref, one in found)
