"""Kinds that the API server does not serve, and the CRDs of a release that would define them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.described import generated
from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, moments
from seatrial.model.refusal import Fault, GroupVersionKind
from seatrial.model.release import Brought, Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, version_of
from seatrial.model.timeline import Rehearsal, StepResult

DEFINITION = "CustomResourceDefinition"
DEFINITIONS = "apiextensions.k8s.io"


class Unserved(Struct, frozen=True):
    """A group/version/kind the API server does not serve, and the release objects that use it."""

    kind: str
    api_version: str
    users: tuple[Ref, ...]
    written: tuple[Resource, ...]
    """The users whose source is known; objects that only render with a cluster have none."""


def unserved(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[int, Release, list[Unserved]]]:
    """The steps that failed because of unserved kinds, with those kinds."""
    if is_argocd(rehearsal):
        return
    for moment in moments(rehearsal, case):
        release = moment.release
        looked_up = list(faults(moment.ended.failure, "unserved"))
        # Helm also looks up what is deployed. Where a kind of that is gone, an earlier step deleted it.
        if release is None or any(fault.during == "current-manifest" for fault in looked_up):
            continue
        if missing := list(_unserved(moment.ended, release)):
            yield moment.index, release, missing


def defined_by(resources: Iterable[Resource], missing: Unserved) -> Resource | None:
    """The CRD among these objects that serves the missing kind and version."""
    for resource in resources:
        if defines(resource.body, missing) and version_of(missing.api_version) in served_versions(resource.body):
            return resource
    return None


def defines(body: Body, missing: Unserved) -> bool:
    """Whether an object is the CRD of this kind, in any version."""
    spec = body.get("spec") or {}
    return body.get("kind") == DEFINITION and (dig(spec, "names", "kind"), spec.get("group")) == _key(missing)


def generated_by(case: Case, missing: Unserved) -> Resource | None:
    """The object of the trial from which an operator would create the missing CRD."""
    version = version_of(missing.api_version)
    for resource in case.all_resources():
        made = [body for body in generated(case, resource.body) if defines(body, missing)]
        if any(version in served_versions(body) for body in made):
            return resource
    return None


def brought_late(case: Case, missing: Unserved) -> Brought | None:
    """What brings the missing CRD without containing it, such as a dependency of the chart that is not at hand."""
    return next((one for one in case.brought if defines(one.resource.body, missing)), None)


def definition_in_cluster(moment: Moment, missing: Unserved) -> Body | None:
    """The live CRD of this kind when the step had ended."""
    names = {
        e.object for e in moment.rehearsal.timeline if e.step <= moment.index and e.after and defines(e.after, missing)
    }
    return next((live for ref in sorted(names) if (live := moment.live(ref))), None)


def is_served_at_last(moment: Moment, missing: Unserved, definition: Ref) -> bool:
    """Whether the CRD existed when the step had ended: Helm looked too early."""
    live = moment.live(definition)
    return live is not None and version_of(missing.api_version) in served_versions(live)


def came_from_crds(moment: Moment, ref: Ref) -> Resource | None:
    """The `crds/` source of an object that Helm created in this step or before."""
    made = any(
        e.object == ref and e.effect == "created" and e.actor == "helm" and e.step <= moment.index
        for e in moment.rehearsal.timeline
    )
    releases = (release for release in reversed(moment.case.releases[: moment.index + 1]) if release is not None)
    return next((crd for release in releases for crd in release.crds if made and crd.ref == ref), None)


def served_versions(definition: Body) -> list[str]:
    return [str(v.get("name")) for v in listed(definition, "spec", "versions") if v.get("served")]


def _unserved(ended: StepResult, release: Release) -> Iterator[Unserved]:
    found: dict[GroupVersionKind, set[Ref]] = {}
    for fault in faults(ended.failure, "unserved"):
        if fault.kind is not None:
            users = _registered(fault.kind, ended) or {_user(fault, fault.kind, release, ended)}
            found.setdefault(fault.kind, set()).update(users)
    for kind, users in found.items():
        written = (resource for resource in (*release.crds, *release.resources) if resource.ref in users)
        yield Unserved(kind.kind, kind.api_version, tuple(sorted(users)), tuple(written))


def _registered(kind: GroupVersionKind, ended: StepResult) -> set[Ref]:
    """The objects of a program that failed for this kind."""
    refs = {fault.object for fault in faults(ended.failure, "not-deployed") if fault.object}
    return {ref for ref in refs if (ref.kind, ref.group) == (kind.kind, kind.group)}


def _user(fault: Fault, kind: GroupVersionKind, release: Release, ended: StepResult) -> Ref:
    """The object that was looked up, or at least one of its kind."""
    asked = fault.object or Ref(kind.kind, "", "", kind.group)
    brought = (*release.crds, *release.resources)
    of_kind = [r for r in brought if (r.ref.kind, r.ref.group) == (kind.kind, kind.group)]
    namespaces = (asked.namespace or ended.namespace, "")
    anywhere = bool(ended.reconciled)  # Each HelmRelease has a namespace of its own.
    named = (r.ref for r in of_kind if r.ref.name == asked.name and (anywhere or r.ref.namespace in namespaces))
    if anywhere and fault.object is None and of_kind:
        return of_kind[0].ref
    return next(named, Ref(kind.kind, namespaces[0], asked.name, kind.group))


def _key(missing: Unserved) -> tuple[str, str]:
    return missing.kind, group_of(missing.api_version)
