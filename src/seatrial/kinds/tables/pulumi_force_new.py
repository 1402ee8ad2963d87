"""Fields that Pulumi cannot update in place: a change replaces the object.

Upstream: `provider/pkg/provider/diff.go` (`forceNew`) of pulumi-kubernetes 4.32, and `Diff` of `helm_release.go`. Knows
nothing of the engine.
"""

from __future__ import annotations

from typing import Any

from seatrial.model.program import Manner
from seatrial.model.resource import Body, Ref, dig

ALWAYS = ("metadata.name", "metadata.namespace")
RELEASE_INPUTS = ("name", "namespace")
"""Inputs of a `helm.v3.Release` that replace it when changed."""
EACH = "[*]"
_OF_CONTAINER = (
    *("args", "command", "env", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "ports", "readinessProbe"),
    *("resources", "securityContext", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy"),
    *("tty", "volumeDevices", "volumeMounts", "workingDir"),
)
_OF_POD = (
    *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases"),
    *("hostIPC", "hostNetwork", "hostPID", "hostname", "imagePullSecrets", "nodeName", "nodeSelector", "overhead"),
    *("preemptionPolicy", "priority", "priorityClassName", "readinessGates", "restartPolicy", "runtimeClassName"),
    *("schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "shareProcessNamespace"),
    *("subdomain", "terminationGracePeriodSeconds", "volumes"),
    *(f"{which}{EACH}.{field}" for which in ("containers", "initContainers") for field in _OF_CONTAINER),
)
_OF_VOLUME = (
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker"),
    *("gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)
_BY_KIND: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "ConfigMap"): ("data", "binaryData"),
    ("", "Secret"): ("type", "data", "stringData"),
    ("", "Service"): ("spec.clusterIP",),
    ("", "PersistentVolumeClaim"): (
        *("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    ),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "PersistentVolume"): tuple(f"spec.{source}" for source in _OF_VOLUME),
    ("", "Pod"): tuple(f"spec.{field}" for field in _OF_POD),
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
_WHERE_MUTABLE: dict[str, tuple[str, ...]] = {"ConfigMap": (), "Secret": ("type",)}


def force_new_fields(ref: Ref, manner: Manner | None = None, body: Body | None = None) -> tuple[str, ...]:
    """The fields of an object that replace it when changed.

    They include the data of ConfigMaps and Secrets, unless the provider enables mutable ones and the object is not
    immutable.
    """
    given = manner or Manner()
    mutable = {"ConfigMap": given.mutable_configs, "Secret": given.mutable_secrets}.get(ref.kind, False)
    if ref.group == "" and mutable and not (body or {}).get("immutable"):
        return (*ALWAYS, *_WHERE_MUTABLE[ref.kind])
    return (*ALWAYS, *_BY_KIND.get((ref.group, ref.kind), ()))


def at(body: Body, path: str) -> Any:
    """The value at `spec.selector`, or at `spec.containers[*].image` of each item; None if it is not set."""
    before, each, after = path.partition(EACH + ".")
    found = dig(body, *before.split("."))
    if not each:
        return found
    return [dig(one, *after.split(".")) for one in found] if isinstance(found, list) else None
