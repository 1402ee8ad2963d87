"""Whether custom kinds have a namespace, from the CRDs of others: engines ask the cluster, not the source.

Upstream for Argo CD: `IsNamespaced` in gitops-engine/pkg/cache/cluster.go, `NormalizeTargetObjects` in
controller/state.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from seatrial.kinds.operators.generated_crds import crds_of
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, dig

Scopes = Mapping[tuple[str, str], bool]
"""By group and kind: whether it is cluster-scoped."""


def scopes_of(bodies: Iterable[Body]) -> Scopes:
    """The kinds that these objects define, directly or through an operator."""
    crds = (crd for body in bodies for crd in (body, *crds_of(body)) if crd.get("kind") == "CustomResourceDefinition")
    specs = [crd.get("spec") for crd in crds]
    return {(str(dig(s, "group")), str(dig(s, "names", "kind"))): dig(s, "scope") == "Cluster" for s in specs}


def scoped(release: Release, scopes: Scopes) -> Release:
    """A release whose objects have the names that the cluster gives them."""
    return replace(release, resources=tuple(_scoped(one, release.namespace, scopes) for one in release.resources))


def _scoped(resource: Resource, namespace: str, scopes: Scopes) -> Resource:
    ref = resource.ref
    clustered = scopes.get((ref.group, ref.kind))
    if clustered is None or clustered is not bool(ref.namespace):
        return resource
    return replace(resource, ref=replace(ref, namespace="" if clustered else namespace))
