"""The order of kinds in which Helm makes the plain objects of a release. Pure facts.

From `InstallOrder` in pkg/release/v1/util/kind_sorter.go of Helm 4.2. Helm 3 does not know the two kinds of webhook
configurations; before 3.13 it did not know PriorityClass. Kinds that are not listed come last, by name.
"""

from __future__ import annotations

INSTALL_ORDER = (
    *("PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy"),
    *("PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod"),
    *("ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob"),
    *("IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)


def is_known(kind: str) -> bool:
    """Whether Helm gives a kind a place of its own, rather than the end."""
    return kind in INSTALL_ORDER
