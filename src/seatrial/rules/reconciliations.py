"""What rules read of Flux: what depends on what, which kinds were missing, and who brings them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.case import Release, Resource
from seatrial.resource import Body, Ref, dig, listed
from seatrial.timeline import Reconciled, StepResult

GROUP = "kustomize.toolkit.fluxcd.io"
_NO_MATCH = re.compile(r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<group>[^"]*?)/?[^"/]+"')


def kustomizations(ended: StepResult) -> Iterator[Reconciled]:
    return (one for one in ended.reconciled if one.object.kind == "Kustomization")


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
