"""Which fields Pulumi never changes in place: another value means another object.

Upstream: `provider/pkg/provider/diff.go` (`forceNew`) of pulumi-kubernetes 4.32. Knows neither programs nor the engine.
"""

from __future__ import annotations

from typing import Any

from seatrial.resource import Body, Ref, dig

ALWAYS = ("metadata.name", "metadata.namespace")
_BY_KIND: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "ConfigMap"): ("data", "binaryData"),
    ("", "Secret"): ("type", "data", "stringData"),
    ("", "Service"): ("spec.clusterIP",),
    ("", "PersistentVolumeClaim"): (
        *("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    ),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "Pod"): ("spec",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "StatefulSet"): (
        *("spec.podManagementPolicy", "spec.revisionHistoryLimit", "spec.selector", "spec.serviceName"),
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
}
"""ConfigMaps and Secrets unless the provider is told that they are mutable, which it is not by default."""


def forced(ref: Ref, also: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The fields of an object whose change makes another one of it; `also` is what its resource option names."""
    return (*ALWAYS, *_BY_KIND.get((ref.group, ref.kind), ()), *also)


def at(body: Body, path: str) -> Any:
    """What an object says at `spec.selector`, or None."""
    return dig(body, *path.split("."))
