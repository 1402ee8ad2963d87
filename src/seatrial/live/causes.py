"""`explain --live`: from a release, an Application, a Kustomization, a HelmRelease or a namespace to what blocks it.

Sends nothing. Each target gives what it says itself, and the objects that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from seatrial.helm import records
from seatrial.helm.history import Revision
from seatrial.helm.hooks import is_hook
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating
from seatrial.live import words
from seatrial.live.delivered import (
    ARGOCD_GROUP,
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    application_usable,
    flux_usable,
    newest_record,
    no_record,
    objects_of,
    records_of,
)
from seatrial.live.seen import KindOf, RecordQuestion, Seen
from seatrial.live.stuck import ChainLink, chain, root_of
from seatrial.live.usable import object_usable
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, listed, name_of, ref_of

ARGOCD_NAMESPACE = "argocd"
FLUX_NAMESPACE = "flux-system"
WORKLOADS = (
    ("Deployment", "apps"),
    ("StatefulSet", "apps"),
    ("DaemonSet", "apps"),
    ("Job", "batch"),
    ("PersistentVolumeClaim", ""),
)
DELIVERERS = (("Application", ARGOCD_GROUP), ("Kustomization", KUSTOMIZE_GROUP), ("HelmRelease", HELM_GROUP))
SOURCE_GROUP = "source.toolkit.fluxcd.io"
ALSO_MAX = 5
DEPTH_MAX = 8

_REMAINING = lazy_re.compile(r"(?P<resource>[a-z0-9.-]+) has (?P<count>\d+) resource instances")
_INVENTORY = lazy_re.compile(r"(?P<namespace>[^_]*)_(?P<name>.+)_(?P<group>[^_]*)_(?P<kind>[^_]+)")


class WaitCause(Struct, frozen=True):
    """What a target waits for."""

    target: str
    links: tuple[ChainLink, ...]
    """From what the user sees to the root; empty if nothing is wrong."""
    also: tuple[ChainLink, ...] = ()
    """Other objects that are not usable, and whose reason is another one."""
    command: str = ""
    """The next command."""
    notes: tuple[str, ...] = ()


Why = Callable[[Seen], WaitCause]


def parse(text: str, namespace: str, *, given: str = "") -> Why:
    """`release/NAME`, `app/NAME`, `kustomization/NAME`, `helmrelease/NAME`, `namespace/NAME`."""
    kind, slash, name = text.partition("/")
    if "/" in name:
        namespace, _, name = name.partition("/")
        given = namespace
    flux = given or FLUX_NAMESPACE
    match kind.lower() if slash and name else "":
        case "release":
            return lambda seen: _stuck(text, _release(namespace, name, seen), seen)
        case "app" | "application":
            ref = Ref("Application", given or ARGOCD_NAMESPACE, name, ARGOCD_GROUP)
            return lambda seen: _stuck(text, _application(ref, seen), seen)
        case "kustomization" | "ks":
            return lambda seen: _stuck(text, _flux(Ref("Kustomization", flux, name, KUSTOMIZE_GROUP), seen), seen)
        case "helmrelease" | "hr":
            return lambda seen: _stuck(text, _flux(Ref("HelmRelease", flux, name, HELM_GROUP), seen), seen)
        case "namespace" | "ns":
            return lambda seen: _stuck(text, _namespace(name, seen), seen)
    raise CannotContinue(
        f"explain --live {text}: not a target; name it as release/NAME, app/NAME, kustomization/NAME, "
        "helmrelease/NAME or namespace/NAME"
    )


class _View(Struct, frozen=True):
    """What a target says, and the objects below it."""

    says: tuple[ChainLink, ...]
    """From the target down to the last object that is not of `objects`."""
    objects: tuple[Ref, ...] = ()
    notes: tuple[str, ...] = ()


def _stuck(text: str, view: _View, seen: Seen) -> WaitCause:
    chains = [found for ref in view.objects if (found := chain(ref, seen))]
    best = root_of(chains)
    links = (*view.says, *best)
    root = best[-1].object if best else None
    others = [one for one in chains if one[-1].object != root]
    also = tuple(dict.fromkeys(one[-1] for one in others))[:ALSO_MAX]
    return WaitCause(text, links, also, next_command(links[-1], seen) if links else "", view.notes)


def _release(namespace: str, name: str, seen: Seen) -> _View:
    newest = newest_record(namespace, name, seen)
    if newest is None:
        return _View((ChainLink(None, no_record(namespace, name, seen)),))
    ref, number, status = newest
    revision: Revision | str | None = seen.answer(RecordQuestion(ref))
    if not isinstance(revision, Revision):
        return _View((ChainLink(ref, f"revision {number} has status {status}"),))
    said = str(dig(revision.record, "info", "description") or "")
    says = f"revision {number} has status {status}" + (f": {words.shortened(said)}" if said else "")
    objects = tuple(objects_of(revision)) if status not in ("uninstalled", "superseded") else ()
    hooks = tuple(resource.ref for resource in revision.release.resources if resource.ref not in objects)
    running = tuple(hook for hook in hooks if seen.get(hook) is not None)
    fine = status == "deployed" and all(object_usable(one, seen).usable for one in objects)
    flipped = tuple(_flipped(namespace, name, revision, seen))
    return _View(() if fine else (ChainLink(ref, says),), (*running, *objects), flipped)


def _flipped(namespace: str, name: str, revision: Revision, seen: Seen) -> Iterator[str]:
    """Objects that became hooks: Helm deletes them as no longer part of the release, right after it created them."""
    lost = [one.ref for one in revision.release.resources if is_hook(one.body) and seen.get(one.ref) is None]
    before = [ref for ref, number, _ in records_of(namespace, name, seen) if number < revision.number]
    if not lost or not before:
        return
    previous: Revision | str | None = seen.answer(RecordQuestion(before[-1]))
    if isinstance(previous, Revision):
        for ref in set(lost) & set(objects_of(previous)):
            yield (
                f"{ref} is a hook since revision {revision.number} and was a regular resource before, so Helm deleted "
                "it at the end of the upgrade; the next upgrade recreates it (seatrial explain release-to-hook-flip)"
            )


def _application(ref: Ref, seen: Seen) -> _View:
    verdict = application_usable(ref.namespace, ref.name, seen)
    body = seen.get(ref)
    if body is None or verdict.usable:
        return _View(() if verdict.usable else (ChainLink(ref, verdict.missing),))
    says = ChainLink(ref, verdict.missing.removeprefix(f"{ref}: "))
    return _View((says,), tuple(_resources(body)))


def _resources(application: Body) -> Iterator[Ref]:
    """What the Application lists and is not in order: first the result of its sync, then health."""
    results = listed(application, "status", "operationState", "syncResult", "resources")
    failed = [
        one for one in results if one.get("status") == "SyncFailed" or one.get("hookPhase") in ("Failed", "Error")
    ]
    running = [one for one in results if one.get("hookPhase") == "Running"]
    unhealthy = [
        one
        for one in listed(application, "status", "resources")
        if dig(one, "health", "status") not in (None, "Healthy") or one.get("status") != "Synced"
    ]
    for one in (*failed, *running, *unhealthy):
        group = str(one.get("group") or "")
        yield Ref(str(one.get("kind")), str(one.get("namespace") or ""), str(one.get("name")), group)


def _flux(ref: Ref, seen: Seen, depth: int = 0) -> _View:
    """A Kustomization or HelmRelease: its source, what it depends on, then what it has applied."""
    verdict = flux_usable(ref, seen)
    body = seen.get(ref)
    if verdict.usable:
        return _View(())
    if body is None or depth > DEPTH_MAX:
        return _View((ChainLink(ref, verdict.missing),))
    says = ChainLink(ref, verdict.missing.removeprefix(f"{ref}: "))
    if (source := _source(ref, body, seen)) is not None:
        return _View((says, source))
    for named in listed(body, "spec", "dependsOn"):
        other = Ref(ref.kind, str(named.get("namespace") or ref.namespace), str(named.get("name")), ref.group)
        below = _flux(other, seen, depth + 1)
        if below.says:
            return _View((says, *below.says), below.objects, below.notes)
    if ref.kind == "Kustomization":
        return _View((says,), tuple(_inventory(body)))
    release = str(dig(body, "spec", "releaseName") or _release_name(body, ref))
    where = str(dig(body, "status", "storageNamespace") or dig(body, "spec", "storageNamespace") or ref.namespace)
    below = _release(where, release, seen)
    return _View((says, *(link for link in below.says if link.object is not None)), below.objects)


def _release_name(body: Body, ref: Ref) -> str:
    target = str(dig(body, "spec", "targetNamespace") or "")
    return f"{target}-{ref.name}" if target else ref.name


def _source(ref: Ref, body: Body, seen: Seen) -> ChainLink | None:
    """The source of a Kustomization or of a chart, if it is not ready."""
    named = (
        dig(body, "spec", "sourceRef")
        or dig(body, "spec", "chart", "spec", "sourceRef")
        or dig(body, "spec", "chartRef")
    )
    if not isinstance(named, dict) or not named.get("name"):
        return None
    source = Ref(str(named.get("kind")), str(named.get("namespace") or ref.namespace), str(named["name"]), SOURCE_GROUP)
    found = seen.get(source)
    if found is None:
        return ChainLink(source, "does not exist")
    if conditions.is_true(found, "Ready"):
        return None
    return ChainLink(source, words.message(found) or "is not ready")


def _inventory(kustomization: Body) -> Iterator[Ref]:
    for entry in listed(kustomization, "status", "inventory", "entries"):
        if found := _INVENTORY.fullmatch(str(entry.get("id") or "")):
            yield Ref(found["kind"], found["namespace"], found["name"], found["group"])


def _namespace(name: str, seen: Seen) -> _View:
    ref = Ref("Namespace", "", name)
    body = seen.get(ref)
    if body is None:
        return _View((ChainLink(ref, "does not exist"),))
    if not is_terminating(body):
        return _active(ref, seen)
    says, remaining = _terminating(ref, body)
    kept = [one for kind in remaining for one in _of_resource(kind, name, seen) if finalizers_of(one)]
    if not kept:
        return _View((says,))
    held = ", ".join(finalizers_of(kept[0]))
    more = f" ({len(kept)} objects like it)" if len(kept) > 1 else ""
    return _View((says, ChainLink(ref_of(kept[0]), f"is being deleted and waits for the finalizer {held}{more}")))


def _active(namespace: Ref, seen: Seen) -> _View:
    """A namespace that stays: its workloads, or else what delivers to this or to other namespaces."""
    unready = tuple(one for one in _in(namespace, WORKLOADS, seen) if not object_usable(one, seen).usable)
    undelivered = {one: view for one in _in(namespace, DELIVERERS, seen) if (view := _delivered(one, seen)).says}
    if not unready and not undelivered:
        return _View(())
    count = len(unready) + len(undelivered)
    says = ChainLink(namespace, f"{count} of its objects {'is' if count == 1 else 'are'} not ready")
    if unready:
        return _View((says,), (*unready, *undelivered))
    below = next(iter(undelivered.values()))
    return _View((says, *below.says), (*below.objects, *list(undelivered)[1:]), below.notes)


def _in(namespace: Ref, kinds: Iterable[tuple[str, str]], seen: Seen) -> Iterator[Ref]:
    return (ref_of(one) for kind, group in kinds for one in seen.all(kind, namespace.name, group))


def _delivered(ref: Ref, seen: Seen) -> _View:
    return _application(ref, seen) if ref.group == ARGOCD_GROUP else _flux(ref, seen)


def _terminating(ref: Ref, body: Body) -> tuple[ChainLink, list[str]]:
    """What the conditions of a terminating namespace say, and the resources that are left."""
    wrong = [one for one in listed(body, "status", "conditions") if one.get("status") == "True"]
    ranked = sorted(wrong, key=lambda one: "Remaining" in str(one.get("type")))
    said = "; ".join(str(one.get("message")) for one in ranked)
    remaining = [found["resource"] for one in wrong for found in _REMAINING.finditer(str(one.get("message") or ""))]
    return ChainLink(ref, words.shortened(f"is being deleted: {said}" if said else "is being deleted")), remaining


def _of_resource(resource: str, namespace: str, seen: Seen) -> Iterable[Body]:
    """Objects of `widgets.example.com` in a namespace."""
    plural, _, group = resource.rstrip(".").partition(".")
    kind: str | None = seen.answer(KindOf(plural, group))
    return seen.all(kind, namespace, group) if kind else ()


def next_command(root: ChainLink, seen: Seen) -> str:
    """What to look at next, for the object at the root."""
    ref = root.object
    if ref is None:
        return "helm list --all-namespaces --all"
    body = seen.get(ref)
    where = f" -n {ref.namespace}" if ref.namespace else ""
    resource = f"{ref.kind.lower()}.{ref.group}" if ref.group else ref.kind.lower()
    if body is None:
        return f"kubectl get {resource}{where}"
    if ref.kind in records.KINDS and dig(body, "metadata", "labels", "owner") == "helm":
        return f"helm history {dig(body, 'metadata', 'labels', 'name')}{where}"
    if ref.kind == "Pod" and (failed := _container_that_ended(body)):
        return f"kubectl logs {ref.name}{where} -c {failed}"
    if is_terminating(body):
        return f"kubectl get {resource} {name_of(body)}{where} -o jsonpath='{{.metadata.finalizers}}'"
    return f"kubectl describe {resource} {ref.name}{where}"


def _container_that_ended(pod: Body) -> str:
    """The container whose log tells why it ended, as `kubectl logs` names it."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in listed(pod, "status", field):
            if dig(container, "state", "waiting", "reason") == "CrashLoopBackOff":
                return f"{container.get('name')} --previous"
            if dig(container, "state", "terminated", "exitCode"):
                return str(container.get("name"))
    return ""
