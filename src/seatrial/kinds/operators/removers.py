"""Operators that a release contains and that are not in the table: the Deployments that remove finalizers of manifests.

A manifest that sets a finalizer relies on a controller: it is assumed to be the Deployment of the same release whose
ServiceAccount has rights to the group of the object. Knows nothing of operators that are described or assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds.core.objectmeta import finalizers_of
from seatrial.kinds.operators.table import operator_kinds
from seatrial.model.release import Release, Resource
from seatrial.model.resource import dig, listed
from seatrial.model.trial import Operator

BINDINGS = ("RoleBinding", "ClusterRoleBinding")
OF_KUBERNETES = ("kubernetes.io/", "foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io")
"""Finalizers that Kubernetes itself removes."""
OF_ENGINES = (
    *("resources-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd", "post-delete-finalizer.argocd"),
    "finalizers.fluxcd.io",
)
"""Finalizers that Argo CD and Flux remove from their own objects: if one stays, it has another cause."""


def removers(releases: Iterable[Release]) -> Iterator[Operator]:
    """The Deployments of releases that remove finalizers of the custom resources beside them."""
    seen: set[tuple[str, str, str]] = set()
    for release in releases:
        for resource, finalizer in _finalizers(release):
            kind = f"{resource.ref.kind}.{resource.ref.group}"
            workload = _workload(release, resource.ref.group)
            if workload is None or (kind, finalizer, str(workload.ref)) in seen:
                continue
            seen.add((kind, finalizer, str(workload.ref)))
            place = f"{workload.ref.namespace}/{workload.ref.name}"
            name = f"{place}-{kind}-{len(seen)}".replace("/", "-").lower()
            yield Operator(name, deployment=place, kinds=(kind,), removes=(finalizer,))


def has_rights(release: Release, workload: Resource, group: str) -> bool:
    """Whether a role of the release grants the workload's ServiceAccount rights in an API group by name."""
    account = str(dig(workload.body, "spec", "template", "spec", "serviceAccountName") or "default")
    bound = {
        str(dig(resource.body, "roleRef", "name"))
        for resource in release.resources
        if resource.ref.kind in BINDINGS and any(s.get("name") == account for s in listed(resource.body, "subjects"))
    }
    roles = (r for r in release.resources if r.ref.kind in ("Role", "ClusterRole") and r.ref.name in bound)
    return any(group in (rule.get("apiGroups") or ()) for role in roles for rule in listed(role.body, "rules"))


def _finalizers(release: Release) -> Iterator[tuple[Resource, str]]:
    """The finalizers that manifests of custom resources set, and that no known operator removes."""
    for resource in release.resources:
        if not resource.ref.group or (resource.ref.group, resource.ref.kind) in operator_kinds():
            continue
        for finalizer in finalizers_of(resource.body):
            if resource.ref.group in finalizer and not finalizer.startswith((*OF_KUBERNETES, *OF_ENGINES)):
                yield resource, finalizer


def _workload(release: Release, group: str) -> Resource | None:
    deployments = (resource for resource in release.resources if resource.ref.kind == "Deployment")
    return next((one for one in deployments if has_rights(release, one, group)), None)
