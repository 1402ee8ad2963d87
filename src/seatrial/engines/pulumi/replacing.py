"""Which changes Pulumi answers by replacing an object, and whether the old one goes first.

Upstream: `provider/pkg/provider/diff.go` (`forceNew`) and `Diff` in provider.go of pulumi-kubernetes 4.32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from seatrial.registration import Registration
from seatrial.resource import Body, Ref, dig

ALWAYS = ("metadata.name", "metadata.namespace")
BY_KIND: dict[tuple[str, str], tuple[str, ...]] = {
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


def replaces(old: Registration, new: Registration) -> tuple[str, ...]:
    """The fields whose change makes a new object of this one; empty where it is changed in place."""
    assert old.ref is not None and old.object is not None and new.object is not None
    if (old.ref.kind, old.ref.group) != (new.ref.kind if new.ref else "", new.ref.group if new.ref else ""):
        return ("kind",)
    wanted = (*ALWAYS, *BY_KIND.get(_key(old.ref), ()), *new.options.replace_on_changes)
    ignored = set(new.options.ignore_changes)
    return tuple(_changed(old.object, new.object, (path for path in wanted if path not in ignored)))


def deletes_first(old: Registration, new: Registration) -> bool:
    """Whether the old object goes before the new one is made: two cannot have one name."""
    if new.options.delete_before_replace is not None:
        return new.options.delete_before_replace
    return not new.auto_named and old.ref == new.ref


def _key(ref: Ref) -> tuple[str, str]:
    return ref.group, ref.kind


def _changed(old: Body, new: Body, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == "*" or _at(old, path) != _at(new, path):
            yield path


def _at(body: Body, path: str) -> Any:
    return dig(body, *path.split("."))
