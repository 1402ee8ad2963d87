"""The order of kinds in which Helm creates the regular resources of a release.

From `InstallOrder` in pkg/release/v1/util/kind_sorter.go of Helm 4.2. Helm 3 does not list the two webhook
configuration kinds; before 3.13 it did not list PriorityClass. Unlisted kinds come last, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.model.release import Resource

INSTALL_ORDER = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy"),
    *("PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod"),
    *("ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob"),
    *("IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)


def is_known(kind: str) -> bool:
    """Whether Helm lists a kind. Unlisted kinds come last."""
    return kind in INSTALL_ORDER


def by_kind(resources: Iterable[Resource], order: Sequence[str] = INSTALL_ORDER) -> list[Resource]:
    """Known kinds in their order, then all others by name; within a kind as they were written."""
    ranks = {kind: rank for rank, kind in enumerate(order)}
    return sorted(
        resources, key=lambda r: (ranks.get(r.ref.kind, len(ranks)), "" if r.ref.kind in ranks else r.ref.kind)
    )
