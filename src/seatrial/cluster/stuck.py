"""Why a client waits for ever: the cluster rests, and what is waited for lacks something. Reads, never moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating
from seatrial.model.resource import Body, Ref, listed

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

REASONS_MAX = 3


def stuck_on(cluster: Cluster, targets: Iterable[Ref], content: Callable[[Body], bool], *, certain: bool) -> list[Ref]:
    """What is waited for in vain; empty where the wait may still end. `content` is when the client stops waiting.

    `certain`: the client has been silent so long that it waits even if it should be content.
    """
    with cluster.lock:
        waited = sorted(targets)
        cluster.awaits("", _unhappy(cluster, waited, content))
        if _unhappy(cluster, waited, content):
            cluster.settle()  # Who waits so long gives all others time, too: a claim may want a pod of a Deployment.
        unhappy = _unhappy(cluster, waited, content)
        return _without_owned(cluster, unhappy or (waited if certain else []))


def unserved(cluster: Cluster) -> list[Ref]:
    """What clients wrote in this step and what went with the definition of its kind: nobody can watch that."""
    with cluster.lock:
        step = cluster.recorder.step
        wrote = (e for e in cluster.timeline() if e.step == step and e.cause is None and e.after is not None)
        refs = sorted({event.object for event in wrote})
        return [ref for ref in refs if cluster.discovery.of_kind(ref.group, ref.kind) is None]


def vanished(cluster: Cluster) -> list[Ref]:
    """What clients made in this step and what went without their doing, of kinds that somebody watches."""
    with cluster.lock:
        step = cluster.recorder.step
        watched = {(opened.kind.group, opened.kind.kind) for opened in cluster.watches.waiting()}
        events = [e for e in cluster.timeline() if e.step == step and (e.object.group, e.object.kind) in watched]
        made = {e.object for e in events if e.cause is None and e.after is not None}
        went = {e.object for e in events if e.cause is not None and e.effect == "deleted"}
        return sorted(ref for ref in made & went if cluster.store.get(ref) is None)


def why(cluster: Cluster, refs: Iterable[Ref]) -> str:
    """In one sentence, what is waited for and what was last said of it."""
    with cluster.lock:
        return "; ".join(_sentence(cluster, ref) for ref in refs)


def lacking(cluster: Cluster, refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """What was looked for on behalf of these objects and is not there."""
    with cluster.lock:
        return tuple(sorted({other for ref in refs for other in cluster.controllers.lacks(ref) if other != ref}))


def _unhappy(cluster: Cluster, refs: Iterable[Ref], content: Callable[[Body], bool]) -> list[Ref]:
    return [ref for ref in refs if (body := cluster.store.get(ref)) is None or not content(body)]


def _without_owned(cluster: Cluster, refs: list[Ref]) -> list[Ref]:
    """Those that no other of them owns: who waits for a Deployment may look at its ReplicaSets as well."""
    owned = {other for ref in refs for other in cluster.controllers.family(ref) - {ref}}
    return [ref for ref in refs if ref not in owned]


def _sentence(cluster: Cluster, ref: Ref) -> str:
    if cluster.discovery.of_kind(ref.group, ref.kind) is None:
        return f"waits for {ref}, whose kind is no longer served"
    live = cluster.store.get(ref)
    if live is not None and is_terminating(live):
        return f"waits for {ref}, which is going{_held(live)}"
    words = _last_words(cluster, ref)
    if words:
        return f"waits for {ref}: {words}"
    if live is None:
        return f"waits for {ref}, which is not there"
    lacks = sorted(cluster.controllers.lacks(ref) - {ref})
    missing = f" ({', '.join(map(str, lacks[:REASONS_MAX]))} is not there)" if lacks else ""
    return f"waits for {ref}{missing}"


def _held(going: Body) -> str:
    """What holds an object that is to go: its finalizers, or of a namespace what its conditions say."""
    if names := finalizers_of(going):
        return f" and has the finalizer {', '.join(names)}"
    troubles = [c for c in listed(going, "status", "conditions") if c.get("status") == "True" and "message" in c]
    return f": {'; '.join(str(c['message']) for c in troubles)}" if troubles else ""


def _last_words(cluster: Cluster, ref: Ref) -> str:
    """What a controller or kubelet last said of the object, or of what it owns."""
    family = cluster.controllers.family(ref)
    said = [event for event in cluster.recorder.said() if event.object in family]
    return said[-1].message if said else ""
