"""Why a client waits forever: all controllers are idle and an awaited object lacks something. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating
from seatrial.kinds.scripts.containers import RUNS_AT_LEAST, runs_seconds
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.resource import Body, Ref, listed
from seatrial.text.durations import written

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

REASONS_MAX = 3


def stuck_on(
    cluster: Cluster, targets: Iterable[Ref], is_ready: Callable[[Body], bool | None], *, certain: bool
) -> list[Ref]:
    """The objects that the client waits for forever; empty if the wait may still end. `is_ready` ends the wait.

    It is None where the object alone does not tell. `certain`: the client has been silent for so long that it waits
    even if every object is ready.
    """
    with cluster.lock:
        waited = sorted(targets)
        cluster.awaits(_unready(cluster, waited, is_ready))
        if _unready(cluster, waited, is_ready):
            # A client that waits this long gives all other objects time too: a PVC may wait for a Deployment's pod.
            cluster.settle()
        unready = _unready(cluster, waited, lambda body: is_ready(body) is not False)
        return _without_owned(cluster, unready or (waited if certain else []))


def wait_out(
    cluster: Cluster, refs: list[Ref], patience_seconds: float, is_ready: Callable[[Body], bool | None]
) -> tuple[float, bool]:
    """Let deadlines of these pass. Returns how many seconds passed, and whether the client makes something of it."""
    passed = 0.0
    while late := cluster.outwait(refs, patience_seconds - passed):
        passed += max(late.values())
        cluster.settle()
        bodies = [cluster.store.get(ref) for ref in refs]
        if any(body is None or is_ready(body) for body in bodies):
            return passed, True
    return passed, False


def unserved(cluster: Cluster) -> list[Ref]:
    """Objects that clients wrote in this step and whose CRD was deleted since: they cannot be watched."""
    with cluster.lock:
        step = cluster.recorder.step
        written = (e for e in cluster.timeline() if e.step == step and e.cause is None and e.after is not None)
        refs = sorted({event.object for event in written})
        return [ref for ref in refs if cluster.discovery.of_kind(ref.group, ref.kind) is None]


def vanished(cluster: Cluster) -> list[Ref]:
    """Objects that clients created in this step and that something else deleted, of kinds that are being watched."""
    with cluster.lock:
        step = cluster.recorder.step
        watched = {(opened.kind.group, opened.kind.kind) for opened in cluster.watches.waiting()}
        if not watched:
            return []
        events = [e for e in cluster.timeline() if e.step == step and (e.object.group, e.object.kind) in watched]
        created = {e.object for e in events if e.cause is None and e.after is not None}
        deleted = {e.object for e in events if e.cause is not None and e.effect == "deleted"}
        return sorted(ref for ref in created & deleted if cluster.store.get(ref) is None)


def why(cluster: Cluster, refs: Iterable[Ref]) -> str:
    """What is waited for and the last message about it, in one sentence."""
    with cluster.lock:
        return "; ".join(_sentence(cluster, ref) for ref in refs)


def lacking(cluster: Cluster, refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """Objects that controllers looked for on behalf of these and that are missing."""
    with cluster.lock:
        return tuple(sorted({other for ref in refs for other in cluster.controllers.missing_for(ref) if other != ref}))


def _unready(cluster: Cluster, refs: Iterable[Ref], is_ready: Callable[[Body], bool | None]) -> list[Ref]:
    return [ref for ref in refs if (body := cluster.store.get(ref)) is None or not is_ready(body)]


def _without_owned(cluster: Cluster, refs: list[Ref]) -> list[Ref]:
    """Objects that no other of them owns: a client that waits for a Deployment may also watch its ReplicaSets."""
    owned = {other for ref in refs for other in cluster.controllers.family(ref) - {ref}}
    return [ref for ref in refs if ref not in owned]


def _sentence(cluster: Cluster, ref: Ref) -> str:
    if cluster.discovery.of_kind(ref.group, ref.kind) is None:
        return f"waits for {ref}, whose kind is no longer served"
    live = cluster.store.get(ref)
    if live is not None and is_terminating(live):
        return f"waits for {ref}, which is being deleted{_held(live)}"
    message = _last_message(cluster, ref)
    if message:
        return f"waits for {ref}: {message}"
    if live is None:
        return f"waits for {ref}, which does not exist"
    lacks = sorted(cluster.controllers.missing_for(ref) - {ref})
    missing = f" ({', '.join(map(str, lacks[:REASONS_MAX]))} is missing)" if lacks else ""
    return f"waits for {ref}{_outlasted(cluster, ref) or missing}"


def _held(terminating: Body) -> str:
    """What blocks a deletion: finalizers, or the conditions of a namespace."""
    if names := finalizers_of(terminating):
        return f" and has the finalizer {', '.join(names)}"
    problems = [c for c in listed(terminating, "status", "conditions") if c.get("status") == "True" and "message" in c]
    return f": {'; '.join(str(c['message']) for c in problems)}" if problems else ""


def _last_message(cluster: Cluster, ref: Ref) -> str:
    """The last message of a controller or kubelet about the object or about what it owns."""
    family = cluster.controllers.family(ref)
    events = [event for event in cluster.recorder.said() if event.object in family]
    return events[-1].message if events else ""


def _outlasted(cluster: Cluster, ref: Ref) -> str:
    """How long a script takes that outlasts the wait, as far as the script shows it."""
    pods = (cluster.store.get(member) for member in cluster.controllers.family(ref) if member.kind == "Pod")
    lengths = (runs_seconds(pod, cluster.view()) for pod in pods if pod is not None and not is_finished(pod))
    longest = max((length for length in lengths if length is not None), default=None)
    return "" if longest is None else f": {RUNS_AT_LEAST}{written(longest)}"
