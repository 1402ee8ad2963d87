"""`kubectl apply --prune`: what an earlier apply made and this one does not say is deleted, kind by kind.

Upstream: `pkg/cmd/apply/prune.go` and `pkg/util/prune/prune.go` of kubernetes/kubectl. It finds what it may delete by
the annotation of client-side apply: objects that were applied on the server's side are never pruned. Of
`--applyset` see `kubectlapplyset`.
"""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.kubectl.flags import ApplyOptions
from seatrial.engines.script import Command, Part
from seatrial.model.resource import Body, annotations_of, listed, metadata, name_of, uid_of

NAMESPACED = (
    *(("v1", "ConfigMap"), ("v1", "Endpoints"), ("v1", "PersistentVolumeClaim"), ("v1", "Pod")),
    *(("v1", "ReplicationController"), ("v1", "Secret"), ("v1", "Service"), ("batch/v1", "Job")),
    *(("batch/v1", "CronJob"), ("networking.k8s.io/v1", "Ingress"), ("apps/v1", "DaemonSet")),
    *(("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")),
)
CLUSTER_WIDE = (("v1", "Namespace"), ("v1", "PersistentVolume"))


def prune(done: Iterable[Body], options: ApplyOptions) -> Part[None]:
    """Delete what was applied once, fits the selector and was not applied now, in the namespaces that were visited."""
    applied = list(done)
    kept = {uid_of(body) for body in applied}
    visited = dict.fromkeys(str(metadata(body).get("namespace") or "") for body in applied)
    for namespace in filter(None, visited):
        for kind in options.allowlist or NAMESPACED:
            yield from _prune_kind(kind, namespace, kept, options)
    for kind in options.allowlist or CLUSTER_WIDE:
        scope = yield Command("discover", *kind)
        if scope.body.get("namespaced") is False:
            yield from _prune_kind(kind, "", kept, options)


def _prune_kind(kind: tuple[str, str], namespace: str, kept: set[str], options: ApplyOptions) -> Part[None]:
    found = yield Command("list", *kind, namespace)
    for body in listed(found.body, "items"):
        if LAST_APPLIED not in annotations_of(body) or uid_of(body) in kept or not options.selects(body):
            continue
        yield Command("delete", *kind, namespace, name_of(body), propagation="Background")
