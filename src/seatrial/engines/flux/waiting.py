"""When Flux is content with objects: kstatus, with its own word on Jobs and on its own kinds, and the user's in CEL.

Upstream: `ssa/manager_wait.go` of fluxcd/pkg; `internal/statusreaders/job.go` of kustomize-controller.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.durations import seconds_in
from seatrial.engines.flux.objects import HELM_GROUP, KUSTOMIZE_GROUP, Memory
from seatrial.engines.script import Outwait, Part, Survey, Wait
from seatrial.model.resource import Body, Ref, dig, listed, metadata, ref_of
from seatrial.readiness import flux, kstatus
from seatrial.readiness.flux import HealthCheck, Verdict

OWN_GROUPS = (KUSTOMIZE_GROUP, HELM_GROUP)
TIMEOUT_SECONDS = 300.0
"""Where nothing is said of it."""
ROUNDS_MAX = 10_000
NOT_FOUND = Verdict("NotFound")


class Waited(Struct, frozen=True):
    """How a wait ended; `words` are empty where all became current."""

    words: str = ""
    stuck: Stuck | None = None


def wait_for(refs: Iterable[Ref], memory: Memory, timeout: str, health: tuple[HealthCheck, ...] = ()) -> Part[Waited]:
    """Wait until all are current, one has failed, or nothing changes any more before the timeout."""
    patience_seconds = seconds_in(timeout) or TIMEOUT_SECONDS
    waited = tuple(dict.fromkeys(refs))
    for _ in range(ROUNDS_MAX):
        found = yield Survey()
        live = {_ref(body): body for body in found.body["items"]}
        statuses = {ref: _status(live.get(ref), ref, memory, health) for ref in waited}
        open_ones = tuple(ref for ref, verdict in statuses.items() if verdict.status != "Current")
        failed = [ref for ref in open_ones if statuses[ref].status == "Failed"]
        if not open_ones:
            return Waited()
        if failed:
            return Waited(f"failed early due to stalled resources: [{_listed(failed, statuses)}]")
        answer = yield Wait(open_ones)
        if answer.stuck is None:
            continue
        late: dict[Ref, int] = (yield Outwait(open_ones, patience_seconds)).body["late"]
        patience_seconds -= max(late.values(), default=0)
        if not late:
            return Waited(f"timeout waiting for: [{_listed(open_ones, statuses)}]", answer.stuck)
    return Waited(f"more than {ROUNDS_MAX} looks at {len(waited)} objects")


def in_vain(refs: Iterable[Ref], memory: Memory, health: tuple[HealthCheck, ...]) -> Part[str]:
    """What is said when time is up for objects that are not current by then."""
    statuses = yield from statuses_of(refs, memory, health)
    return f"timeout waiting for: [{_listed(statuses, statuses)}]"


def statuses_of(refs: Iterable[Ref], memory: Memory, health: tuple[HealthCheck, ...]) -> Part[dict[Ref, Verdict]]:
    found = yield Survey()
    live = {_ref(body): body for body in found.body["items"]}
    return {ref: _status(live.get(ref), ref, memory, health) for ref in refs}


def _status(body: Body | None, ref: Ref, memory: Memory, health: tuple[HealthCheck, ...]) -> Verdict:
    if body is None:
        return NOT_FOUND
    if ref.group in OWN_GROUPS:
        # Their definitions begin with `status.observedGeneration: -1`: what nobody has looked at is in progress.
        return Verdict("Current" if memory.ready.get(ref) else "InProgress")
    if (ref.group, ref.kind) == ("batch", "Job"):
        return Verdict(_job(body))
    return flux.verdict(health, ref, body) or Verdict(kstatus.status(body))


def _job(body: Body) -> str:
    if metadata(body).get("deletionTimestamp"):
        return "Terminating"
    conditions = {c.get("type"): c.get("status") for c in listed(body, "status", "conditions")}
    if conditions.get("Failed") == "True":
        return "Failed"
    done = conditions.get("Complete") == "True" or dig(body, "spec", "suspend") is True
    return "Current" if done else "InProgress"


def _listed(refs: Iterable[Ref], statuses: dict[Ref, Verdict]) -> str:
    found = ((ref, statuses[ref]) for ref in refs)
    return ", ".join(f"{ref} status: '{one.status}'{one.error and f': {one.error}'}" for ref, one in found)


def _ref(body: Body) -> Ref:
    return ref_of(body, namespaced=bool(metadata(body).get("namespace")))
