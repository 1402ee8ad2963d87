"""Why an object is not usable: the chain from what the user sees down to the object at the root.

The links are those of the rehearsal: what an object needs (`graph`), what it owns, what makes a missing object, which
webhook an error names, and what is behind a Service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial import kinds
from seatrial.graph import needs_of, products_of
from seatrial.kinds.core.objectmeta import controller_of, is_terminating
from seatrial.kinds.network.reach import WORKLOADS
from seatrial.kinds.workloads.pods import is_finished, is_ready
from seatrial.live import words
from seatrial.live.fetching import Fetching
from seatrial.live.seen import Seen
from seatrial.live.usable import Verdict, object_usable, service_usable, webhook_usable
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Origin, Ref, annotations_of, dig, labels_of, ref_of, uid_of

DEPTH_MAX = 12
READ_SECONDS = 10.0
"""For reading what explains a failure."""
OWNED = {
    ("apps", "Deployment"): ("ReplicaSet", "apps"),
    ("apps", "ReplicaSet"): ("Pod", ""),
    ("apps", "StatefulSet"): ("Pod", ""),
    ("apps", "DaemonSet"): ("Pod", ""),
    ("batch", "Job"): ("Pod", ""),
    ("batch", "CronJob"): ("Job", "batch"),
}
"""What each controller creates, which tells more than the object itself."""
MAKERS = (
    ("ExternalSecret", "external-secrets.io"),
    ("Certificate", "cert-manager.io"),
    ("SealedSecret", "bitnami.com"),
)
"""Kinds whose controllers create Secrets."""
WITHOUT_OPTIONS = ("default", "kube-root-ca.crt")
"""Names that the control plane fills in by itself."""
REVISION = "deployment.kubernetes.io/revision"

_WEBHOOK = lazy_re.compile(r'(?:failed calling|admission) webhook "(?P<name>[^"]+)"')


class ChainLink(Struct, frozen=True):
    """One object of a chain, and what it says."""

    object: Ref | None
    says: str


def chain(ref: Ref, seen: Seen, visited: frozenset[Ref] = frozenset()) -> tuple[ChainLink, ...]:
    """From this object to the one at the root, each with its own words; empty if the object is usable."""
    if ref in visited or len(visited) > DEPTH_MAX:
        return ()
    is_service = (ref.group, ref.kind) == ("", "Service")
    verdict = service_usable(ref, seen) if is_service else object_usable(ref, seen)
    if verdict.usable:
        return ()
    visited |= {ref}
    body = seen.get(ref)
    here = ChainLink(ref, _says(ref, body, verdict, seen))
    if body is not None and is_terminating(body):
        return (here,)
    candidates = _below(ref, body, verdict, here.says, seen)
    return (here, *next((found for one in candidates if (found := chain(one, seen, visited))), ()))


def explained(ref: Ref | None, fetching: Fetching) -> tuple[ChainLink, ...]:
    """The chain below an object, after what has to be read for it has been read."""
    if ref is None:
        return ()
    fetching.allow(READ_SECONDS)
    fetching.fetch(lambda seen: chain(ref, seen))
    return chain(ref, fetching.seen)


def root_of(chains: Iterable[tuple[ChainLink, ...]]) -> tuple[ChainLink, ...]:
    """The chain whose root most chains share; of several, the longest."""
    given = [one for one in chains if one]
    if not given:
        return ()
    roots = [one[-1].object for one in given]
    return max(given, key=lambda one: (roots.count(one[-1].object), len(one)))


def _says(ref: Ref, body: Body | None, verdict: Verdict, seen: Seen) -> str:
    """The object's own words; where it has none, the last warning about it."""
    said = verdict.missing.removeprefix(f"{ref}: ").removeprefix(f"{ref} ")
    if body is None or (words.message(body) and ref.kind != "PersistentVolumeClaim"):
        return said
    warning = last_warning(body, seen)
    return f"{said}; {warning}" if warning else said


def last_warning(body: Body, seen: Seen) -> str:
    """The newest Warning event about an object, if events may be read."""
    ref = ref_of(body)
    found = [
        event
        for event in seen.all("Event", ref.namespace)
        if event.get("type") == "Warning"
        and dig(event, "involvedObject", "name") == ref.name
        and dig(event, "involvedObject", "kind") == ref.kind
        and dig(event, "involvedObject", "uid") in (None, "", uid_of(body))
    ]
    if not found:
        return ""
    newest = max(found, key=_when)
    return words.shortened(f"{newest.get('reason')}: {newest.get('message')}")


def _when(event: Body) -> str:
    times = (dig(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((time for time in times if time), dig(event, "metadata", "creationTimestamp") or ""))


def _below(ref: Ref, body: Body | None, verdict: Verdict, said: str, seen: Seen) -> Iterator[Ref]:
    """Objects that may be why this one is not usable, the most telling first."""
    if named := _WEBHOOK.search(said):
        blocked = webhook_usable(named["name"], seen)
        if blocked.object is not None:
            yield blocked.object
    if verdict.object not in (None, ref):
        assert verdict.object is not None
        yield verdict.object
    if body is None:
        yield from _makers(ref, seen)
        return
    yield from _owned(ref, body, seen)
    yield from _needed(ref, body)
    if (ref.group, ref.kind) == ("", "Service"):
        yield from _behind(body, seen)


def _owned(ref: Ref, body: Body, seen: Seen) -> Iterator[Ref]:
    """The newest of what a controller has created: the ReplicaSet of the newest revision, pods that are not ready."""
    kind = OWNED.get((ref.group, ref.kind))
    if kind is None:
        return
    owned = seen.owned(body, *kind)
    if kind[0] == "ReplicaSet":
        owned = sorted(owned, key=lambda one: -int(annotations_of(one).get(REVISION) or 0))[:1]
    if kind[0] == "Pod":
        owned = [pod for pod in owned if not is_ready(pod) and (ref.kind == "Job" or not is_finished(pod))]
    yield from (ref_of(one) for one in owned)


def _needed(ref: Ref, body: Body) -> Iterator[Ref]:
    for need in needs_of(Resource(ref, body, Origin(""))):
        if not need.optional and not need.guess and need.stage != "delete" and need.object.name not in WITHOUT_OPTIONS:
            yield need.object


def _makers(ref: Ref, seen: Seen) -> Iterator[Ref]:
    """The object whose controller creates a missing one."""
    if ref.kind != "Secret":
        return
    for kind, group in MAKERS:
        if (group, kind) not in kinds.known():
            continue
        for body in seen.all(kind, ref.namespace, group):
            if ref in products_of(Resource(ref_of(body), body, Origin(""))):
                yield ref_of(body)


def _behind(service: Body, seen: Seen) -> Iterator[Ref]:
    """The workloads whose pods a Service selects."""
    selector = dig(service, "spec", "selector") or {}
    namespace = str(dig(service, "metadata", "namespace") or "")
    for kind, group in WORKLOADS if selector else ():
        for body in seen.all(kind, namespace, group):
            labels = labels_of(dig(body, "spec", "template") or {})
            if controller_of(body) is None and selector.items() <= labels.items():
                yield ref_of(body)
