"""Kinds that the API server does not serve, and the CRDs of a release that would define them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.moment import Moment, moments
from seatrial.kinds.operators.generated_crds import crds_of
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, version_of
from seatrial.model.timeline import Rehearsal, StepResult

DEFINITION = "CustomResourceDefinition"
DEFINITIONS = "apiextensions.k8s.io"
UNMAPPED = re.compile(
    r'(?:name: "(?P<name>[^"]*)" namespace: "(?P<namespace>[^"]*)" from "[^"]*": )?'
    r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<version>[^"]+)"'
)

IN_THE_OLD_ONE = "from current release manifest"
"""Helm also maps the deployed manifest; a kind missing there was removed by an earlier step."""


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
        if moment.ended.outcome != "failed" or release is None or IN_THE_OLD_ONE in moment.ended.error:
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


def generated_by(resources: Iterable[Resource], missing: Unserved) -> Resource | None:
    """The object among these from which an operator would create the missing CRD."""
    version = version_of(missing.api_version)
    for resource in resources:
        made = [body for body in crds_of(resource.body) if defines(body, missing)]
        if any(version in served_versions(body) for body in made):
            return resource
    return None


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
    found: dict[tuple[str, str], set[Ref]] = {}
    for match in UNMAPPED.finditer(ended.error):
        users = _registered(match, release, ended) or {_user(match, release, ended)}
        found.setdefault((match["kind"], match["version"]), set()).update(users)
    for (kind, api_version), users in found.items():
        written = (resource for resource in (*release.crds, *release.resources) if resource.ref in users)
        yield Unserved(kind, api_version, tuple(sorted(users)), tuple(written))


def _registered(match: re.Match[str], release: Release, ended: StepResult) -> set[Ref]:
    """The objects of a program that failed because of this kind, which Pulumi names by URN."""
    failed = (one for one in release.program.registrations if f'"{one.urn}"' in ended.error) if release.program else ()
    refs = {one.ref for one in failed if one.ref is not None}
    return {ref for ref in refs if (ref.kind, ref.group) == (match["kind"], group_of(match["version"]))}


def _user(match: re.Match[str], release: Release, ended: StepResult) -> Ref:
    """The object that Helm names, or else one of its kind."""
    group = group_of(match["version"])
    brought = (*release.crds, *release.resources)
    of_kind = [r for r in brought if (r.ref.kind, r.ref.group) == (match["kind"], group)]
    namespaces = (match["namespace"] or ended.namespace, "")
    anywhere = bool(ended.reconciled)  # Each HelmRelease has a namespace of its own.
    named = (r.ref for r in of_kind if r.ref.name == match["name"] and (anywhere or r.ref.namespace in namespaces))
    if anywhere and match["name"] is None and of_kind:
        return of_kind[0].ref
    return next(named, Ref(match["kind"], namespaces[0], match["name"] or "", group))


def _key(missing: Unserved) -> tuple[str, str]:
    return missing.kind, group_of(missing.api_version)
