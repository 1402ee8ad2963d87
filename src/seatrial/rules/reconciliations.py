"""What rules read of Flux: what depends on what, which kinds were missing, and who brings them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.case import Case, Release, Resource
from seatrial.resource import Body, Ref, dig, listed
from seatrial.timeline import Event, Reconciled, Rehearsal, StepResult

GROUP = "kustomize.toolkit.fluxcd.io"
_NO_MATCH = re.compile(r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<group>[^"]*?)/?[^"/]+"')


def kustomizations(ended: StepResult) -> Iterator[Reconciled]:
    return (one for one in ended.reconciled if one.object.kind == "Kustomization")


class Delayed(Struct, frozen=True):
    """A Kustomization that failed at first and ended well at a later attempt."""

    step: int
    release: Release
    own: Resource
    one: Reconciled
    first: Event
    """What it said when it failed."""


def delayed(rehearsal: Rehearsal, case: Case) -> Iterator[Delayed]:
    for step, ended in enumerate(rehearsal.steps):
        release = case.releases[step]
        for one in kustomizations(ended) if release else ():
            own = release.find(one.object) if release else None
            if release is None or own is None or one.message or one.attempts < 2:
                continue
            said = (e for e in rehearsal.of_step(step) if e.object == one.object and e.effect == "said")
            yield Delayed(step, release, own, one, next(event for event in said if event.message != "Ready"))


def missing_kind(words: str) -> tuple[str, str] | None:
    """The group and the kind that Flux did not find."""
    found = _NO_MATCH.search(words)
    return (found["group"], found["kind"]) if found else None


def dependencies(kustomization: Resource) -> Iterator[tuple[int, Ref]]:
    """What a Kustomization depends on, with its place in the list."""
    for index, entry in enumerate(listed(kustomization.body, "spec", "dependsOn")):
        if isinstance(entry, dict):
            namespace = str(entry.get("namespace") or kustomization.ref.namespace)
            yield index, Ref("Kustomization", namespace, str(entry.get("name")), GROUP)


def is_checked(kustomization: Resource) -> bool:
    """Whether it is Ready only when its objects are."""
    spec: Body = kustomization.body.get("spec") or {}
    return bool(spec.get("wait") or spec.get("healthChecks"))


def definition(release: Release, one: Reconciled, wanted: tuple[str, str]) -> Ref | None:
    """The definition of a kind among what a HelmRelease or Kustomization brings."""
    definitions = (release.find(ref) for ref in one.objects if ref.kind == "CustomResourceDefinition")
    for found in definitions:
        spec = found.body.get("spec") if found else None
        if found and (dig(spec, "group"), dig(spec, "names", "kind")) == wanted:
            return found.ref
    return None


def interval_of(kustomization: Resource) -> str:
    """After what time a failed one is tried again, as far as it says."""
    spec: Body = kustomization.body.get("spec") or {}
    return str(spec.get("retryInterval") or spec.get("interval") or "its interval")
