"""Whether a real cluster has what releases need, one by one. Pure functions of a snapshot and releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.graph import edges
from seatrial.kinds.operators.table import workload_of
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.live.point import Point, State
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Place, Ref, annotations_of, dig, group_of, listed, metadata, version_of
from seatrial.model.result import Prerequisite
from seatrial.model.snapshot import Snapshot
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.found import STORAGE_CLASSES
from seatrial.sources.places import place_of

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def prerequisites(
    releases: list[Release], namespaces: Iterable[str], created: frozenset[str], snapshot: Snapshot
) -> Iterator[Point]:
    """Everything that the releases need and do not contain; `created` are namespaces that a step creates."""
    yield from _unserved(releases, snapshot)
    skipped = [crd for release in releases for crd in release.skipped_crds]
    crds = needed.crds(releases, skipped)
    objects = needed.objects(releases, [body for body, _ in crds])
    wanted = [*crds, *needed.namespaces(releases, namespaces), *needed.operators(releases), *objects]
    seen: set[str] = set()
    for body, prerequisite in wanted:
        ref = needed.ref_in_cluster(body)
        if prerequisite.object not in seen and not (ref.kind == "Namespace" and ref.name in created):
            seen.add(prerequisite.object)
            yield _judged(ref, body, prerequisite, releases, snapshot)
    yield from _default_class(releases, snapshot)


def _judged(ref: Ref, body: Body, one: Prerequisite, releases: list[Release], snapshot: Snapshot) -> Point:
    place = _place(ref, releases)
    if one.operator:
        runs = workload_of(body) in map(workload_of, snapshot.objects)
        state: State = "ok" if runs else "fails" if snapshot.operators else "unknown"
        return Point(state, f"operator {one.operator}", one.why if runs else f"{one.why}; it does not run", place)
    found = snapshot.refs.get(ref)
    if found is None:
        if not snapshot.knows(ref):
            return Point("unknown", str(ref), f"{one.why}; it may not be read", place)
        return Point("fails", str(ref), f"{one.why}; it does not exist", place, _get(ref))
    if metadata(found).get("deletionTimestamp"):
        return Point("fails", str(ref), f"{one.why}; it is being deleted", place, _get(ref))
    if fault := _unready(found):
        return Point("fails", str(ref), f"{one.why}; {fault}", place, _get(ref))
    lacking = sorted(set(body.get("data") or {}) - set(found.get("data") or {}))
    if lacking and ANY_KEY not in annotations_of(found):
        place = _place(ref, releases, lacking[0])
        return Point("fails", str(ref), f"{one.why}; it does not have the key {', '.join(lacking)}", place, _get(ref))
    return Point("ok", str(ref), one.why, place)


def _unready(found: Body) -> str:
    """Why an object that others rely on cannot do its work yet; empty if it can, or if its status is not known."""
    for type_ in ("Established", "Ready"):
        condition = next((one for one in listed(found, "status", "conditions") if one.get("type") == type_), None)
        if condition and condition.get("status") != "True":
            said = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return f"it is not {type_}" + (f" ({said})" if said else "")
    return ""


def _unserved(releases: list[Release], snapshot: Snapshot) -> Iterator[Point]:
    """Objects whose API version the cluster does not serve, although it or a release has the kind."""
    served = set(snapshot.served)
    defined = {_group_kind(crd) for release in releases for crd in (*release.resources, *release.crds)}
    kinds = {_without_version(entry) for entry in served}
    seen = set()
    for resource in (resource for release in releases for resource in release.resources):
        api_version, ref = str(resource.body.get("apiVersion") or ""), resource.ref
        name = f"{api_version}/{ref.kind}"
        if name in served or name in seen or (ref.group, ref.kind) in defined:
            continue
        seen.add(name)
        if (ref.group, ref.kind) in kinds:
            others = sorted(
                version_of(e.rpartition("/")[0]) for e in served if _without_version(e) == (ref.group, ref.kind)
            )
            why = f"{ref} is in this version; the cluster serves {', '.join(others)}"
            yield Point("fails", name, why, place_of(resource.place("apiVersion")))
        elif _is_of_kubernetes(ref.group):
            yield Point(
                "fails", name, f"{ref} is of this kind; the cluster does not serve it", place_of(resource.place())
            )


def _default_class(releases: list[Release], snapshot: Snapshot) -> Iterator[Point]:
    wanted = next(iter(needed.default_storage(releases)), None)
    if wanted is None or STORAGE_CLASSES not in snapshot.whole:
        return
    classes = [body for ref, body in snapshot.refs.items() if ref.kind == "StorageClass"]
    has = any(annotations_of(body).get(DEFAULT_CLASS) == "true" for body in classes)
    why = wanted.why if has else f"{wanted.why}; no class is the default"
    yield Point("ok" if has else "fails", wanted.object, why, command="" if has else "kubectl get storageclass")


def _place(ref: Ref, releases: list[Release], key: str = "") -> Place | None:
    """Where a release names an object, or this key of it, or the first object of a kind that a CRD defines."""
    resources = [resource for release in releases for resource in release.resources]
    for edge in edges(resources):
        if edge.need.object == ref and not edge.need.guess and key in ("", edge.need.key):
            return place_of(edge.user.place(*edge.need.field))
    plural, _, group = ref.name.partition(".")
    if ref.kind == "CustomResourceDefinition":
        of_kind = (
            r for r in resources if r.ref.group == group and r.ref.kind.lower() in (plural, plural[:-1], plural[:-2])
        )
        return next((place_of(resource.place("kind")) for resource in of_kind), None)
    return None


def _group_kind(resource: Resource) -> tuple[str, str]:
    """The kind that a CRD defines; of other objects, none."""
    spec = resource.body.get("spec") if resource.ref.kind == "CustomResourceDefinition" else None
    return str(dig(spec, "group") or ""), str(dig(spec, "names", "kind") or "")


def _without_version(served: str) -> tuple[str, str]:
    api_version, _, kind = served.rpartition("/")
    return group_of(api_version), kind


def _is_of_kubernetes(group: str) -> bool:
    return group in needed.KUBERNETES_GROUPS


def _get(ref: Ref) -> str:
    home = f" -n {ref.namespace}" if ref.namespace else ""
    resource = f"{ref.kind.lower()}.{ref.group}" if ref.group else ref.kind.lower()
    return f"kubectl get {resource} {ref.name}{home}"
