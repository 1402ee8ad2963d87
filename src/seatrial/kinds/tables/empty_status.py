"""The status of a new object: a struct in Go, so that it is never absent, with the fields that Go does not omit.

From the types of k8s.io/api 0.34. Kinds with other values at the start (Pod, Service, PVC...) set them by themselves.
"""

from __future__ import annotations

from seatrial.model.resource import Body

EMPTY_STATUS: dict[tuple[str, str], Body] = {
    ("", "Node"): {},
    ("", "ReplicationController"): {"replicas": 0},
    ("", "ResourceQuota"): {},
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {},
    ("apiregistration.k8s.io", "APIService"): {},
    ("apps", "DaemonSet"): {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    ("apps", "Deployment"): {},
    ("apps", "ReplicaSet"): {"replicas": 0},
    ("apps", "StatefulSet"): {"replicas": 0, "availableReplicas": 0},
    ("autoscaling", "HorizontalPodAutoscaler"): {"desiredReplicas": 0, "currentMetrics": None},
    ("batch", "CronJob"): {},
    ("batch", "Job"): {},
    ("certificates.k8s.io", "CertificateSigningRequest"): {},
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {},
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): {},
    ("networking.k8s.io", "ServiceCIDR"): {},
    ("policy", "PodDisruptionBudget"): {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    ("resource.k8s.io", "ResourceClaim"): {},
    ("storage.k8s.io", "VolumeAttachment"): {"attached": False},
}
