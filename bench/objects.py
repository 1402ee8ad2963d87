"""The objects and requests that the figures are taken with."""

from __future__ import annotations

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import PatchType, Request, Verb
from seatrial.model.resource import Body

GROUPS = {
    "configmaps": ("", "v1"),
    "namespaces": ("", "v1"),
    "persistentvolumeclaims": ("", "v1"),
    "pods": ("", "v1"),
    "deployments": ("apps", "v1"),
    "storageclasses": ("storage.k8s.io", "v1"),
}


def configmap(name: str) -> Body:
    meta: Body = {"name": name, "labels": {"app.kubernetes.io/name": "bench", "app.kubernetes.io/instance": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"colour": "blue", "size": "large"}}


def namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(name: str, replicas: int = 1) -> Body:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def storage_class() -> Body:
    meta = {"name": "disks"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "example.com/d"}


def claim(name: str) -> Body:
    spec = {
        "storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def pod_with(claim: str) -> Body:
    spec = {
        "containers": [{"name": "app", "image": "registry.example/app:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": claim}, "spec": spec}


def ask(
    cluster: Cluster,
    verb: Verb,
    plural: str,
    namespace: str,
    name: str = "",
    body: Body | None = None,
    patch_type: PatchType | None = None,
) -> None:
    """One request in process; it must succeed, or the figure would be one of refusals."""
    group, version = GROUPS[plural]
    manager = "bench" if patch_type else ""
    request = Request(
        verb, group, version, plural, namespace, name, body=body, patch_type=patch_type, field_manager=manager
    )
    reply = cluster.request(request)
    if reply.code >= 300:
        raise SystemExit(f"{verb} {plural} {name}: {reply.body['message']}")
