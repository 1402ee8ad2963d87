"""API versions that Kubernetes no longer serves, and their replacements. Knows nothing of what a cluster serves.

Read from the deprecated API migration guide of Kubernetes (reference/using-api/deprecation-guide).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct


class Removal(Struct, frozen=True):
    """The first minor that does not serve it, and the version to use instead, or an empty string."""

    minor: str
    replacement: str


# API version, first minor without it, replacement, kinds.
_TABLE = """
admissionregistration.k8s.io/v1beta1  1.22  admissionregistration.k8s.io/v1  MutatingWebhookConfiguration,
                                                                             ValidatingWebhookConfiguration
admissionregistration.k8s.io/v1beta1  1.34  admissionregistration.k8s.io/v1  ValidatingAdmissionPolicy,
                                                                             ValidatingAdmissionPolicyBinding
apiextensions.k8s.io/v1beta1          1.22  apiextensions.k8s.io/v1          CustomResourceDefinition
apiregistration.k8s.io/v1beta1        1.22  apiregistration.k8s.io/v1        APIService
apps/v1beta1                          1.16  apps/v1                          ControllerRevision, Deployment,
                                                                             StatefulSet
apps/v1beta2                          1.16  apps/v1                          ControllerRevision, DaemonSet, Deployment,
                                                                             ReplicaSet, StatefulSet
authentication.k8s.io/v1beta1         1.22  authentication.k8s.io/v1         TokenReview
authentication.k8s.io/v1beta1         1.33  authentication.k8s.io/v1         SelfSubjectReview
authorization.k8s.io/v1beta1          1.22  authorization.k8s.io/v1          LocalSubjectAccessReview,
                                                                             SelfSubjectAccessReview,
                                                                             SelfSubjectRulesReview,
                                                                             SubjectAccessReview
autoscaling/v2beta1                   1.25  autoscaling/v2                   HorizontalPodAutoscaler
autoscaling/v2beta2                   1.26  autoscaling/v2                   HorizontalPodAutoscaler
batch/v1beta1                         1.25  batch/v1                         CronJob
batch/v2alpha1                        1.21  batch/v1                         CronJob
certificates.k8s.io/v1beta1           1.22  certificates.k8s.io/v1           CertificateSigningRequest
coordination.k8s.io/v1beta1           1.22  coordination.k8s.io/v1           Lease
discovery.k8s.io/v1beta1              1.25  discovery.k8s.io/v1              EndpointSlice
events.k8s.io/v1beta1                 1.25  events.k8s.io/v1                 Event
extensions/v1beta1                    1.16  apps/v1                          DaemonSet, Deployment, ReplicaSet
extensions/v1beta1                    1.16  networking.k8s.io/v1             NetworkPolicy
extensions/v1beta1                    1.16  -                                PodSecurityPolicy
extensions/v1beta1                    1.22  networking.k8s.io/v1             Ingress
flowcontrol.apiserver.k8s.io/v1beta1  1.26  flowcontrol.apiserver.k8s.io/v1  FlowSchema, PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta2  1.29  flowcontrol.apiserver.k8s.io/v1  FlowSchema, PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta3  1.32  flowcontrol.apiserver.k8s.io/v1  FlowSchema, PriorityLevelConfiguration
networking.k8s.io/v1beta1             1.22  networking.k8s.io/v1             Ingress, IngressClass
networking.k8s.io/v1beta1             1.37  networking.k8s.io/v1             IPAddress, ServiceCIDR
node.k8s.io/v1alpha1                  1.24  node.k8s.io/v1                   RuntimeClass
node.k8s.io/v1beta1                   1.25  node.k8s.io/v1                   RuntimeClass
policy/v1beta1                        1.25  policy/v1                        Eviction, PodDisruptionBudget
policy/v1beta1                        1.25  -                                PodSecurityPolicy
rbac.authorization.k8s.io/v1alpha1    1.23  rbac.authorization.k8s.io/v1     ClusterRole, ClusterRoleBinding, Role,
                                                                             RoleBinding
rbac.authorization.k8s.io/v1beta1     1.22  rbac.authorization.k8s.io/v1     ClusterRole, ClusterRoleBinding, Role,
                                                                             RoleBinding
scheduling.k8s.io/v1alpha1            1.23  scheduling.k8s.io/v1             PriorityClass
scheduling.k8s.io/v1beta1             1.22  scheduling.k8s.io/v1             PriorityClass
settings.k8s.io/v1alpha1              1.20  -                                PodPreset
storage.k8s.io/v1beta1                1.22  storage.k8s.io/v1                CSIDriver, CSINode, StorageClass,
                                                                             VolumeAttachment
storage.k8s.io/v1beta1                1.27  storage.k8s.io/v1                CSIStorageCapacity
storage.k8s.io/v1beta1                1.37  storage.k8s.io/v1                VolumeAttributesClass
"""


def _removals() -> Iterator[tuple[tuple[str, str, str], Removal]]:
    for line in re.sub(r",\s+", ",", _TABLE).strip().splitlines():
        api_version, minor, replacement, kinds = line.split()
        group, _, version = api_version.rpartition("/")
        for kind in kinds.split(","):
            yield (group, version, kind), Removal(minor, "" if replacement == "-" else replacement)


REMOVED = dict(_removals())
"""By (group, version, kind)."""
