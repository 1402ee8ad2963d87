"""What each engine does with an object in each of its states: asks `readiness/` and prints nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from seatrial.kinds import known
from seatrial.kinds.scripts.kubectl_gates import is_late, is_rolled_out
from seatrial.model.resource import Body, dig, group_of
from seatrial.readiness import argocd, helm3, kstatus, pulumi

CONTINUES, WAITS, FAILS = "continues", "waits", "fails"
NOT_AWAITED = "does not wait"
PARTS: tuple[str, ...] = ("metadata", "spec", "status")
BY_STATUS = {"Current": CONTINUES, "Failed": FAILS}


class ExplainedState(Struct, frozen=True):
    """A state, and what each engine makes of it."""

    when: str
    verdicts: dict[str, str]


def states_of(body: Body, states: Iterable[Body]) -> tuple[ExplainedState, ...]:
    return tuple(
        ExplainedState(state["when"], dict(_verdicts(merged(body, state), state.get("related")))) for state in states
    )


def merged(body: Body, state: Body) -> Body:
    """An object in a state."""
    parts = {part: {**(body.get(part) or {}), **state[part]} for part in PARTS if part in state}
    return {**body, **parts}


def _verdicts(body: Body, related: Any) -> Iterable[tuple[str, str]]:
    from seatrial.engines.argocd.versions import NEWEST
    from seatrial.engines.flux.waiting import job_status

    kind = str(body.get("kind"))
    is_job = kind == "Job"
    truth = known().get((group_of(str(body["apiVersion"])), kind))
    if truth is not None and truth.ready is not None:
        yield "is it ready?", "yes" if truth.ready(body) else "no"
    if kind in ("Job", "Pod"):
        yield "Helm, as a hook", _ended(body)
    yield "Helm 3 --wait", NOT_AWAITED if is_job else CONTINUES if helm3.is_ready_for_wait(body) else WAITS
    yield "Helm 4 --wait", BY_STATUS.get(kstatus.status(body), WAITS)
    if is_job:
        yield "Helm --wait-for-jobs", _ended(body)
    health = argocd.health(body, {}, NEWEST)
    yield "Argo CD", NOT_AWAITED if health is None else health.status
    yield "Flux wait", BY_STATUS.get(job_status(body) if is_job else kstatus.status(body), WAITS)
    yield "Pulumi", _pulumi(body, related or {})
    rolled_out = is_rolled_out(body)
    if rolled_out is not None:
        yield "kubectl rollout status", FAILS if is_late(body) else CONTINUES if rolled_out else WAITS


def _ended(body: Body) -> str:
    """For Helm: a Job or Pod that must end."""
    failed = kstatus.status(body) == "Failed" or dig(body, "status", "phase") == "Failed"
    return WAITS if not kstatus.is_hook_done(body) else FAILS if failed else CONTINUES


def _pulumi(body: Body, related: Body) -> str:
    if not pulumi.is_awaited(body):
        return NOT_AWAITED
    if pulumi.failure(body):
        return FAILS
    return CONTINUES if pulumi.is_ready(body, related) else WAITS
