"""What is kept of an object of a real cluster: enough for a rehearsal, without values of Secrets. Pure functions."""

from __future__ import annotations

from typing import Any

from seatrial.kinds.operators.table import is_available
from seatrial.model.resource import Body, dig, listed, metadata

METADATA = (
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
)
WITH_STATUS = frozenset(
    (
        *("APIService", "CustomResourceDefinition", "Namespace"),
        *("ClusterSecretStore", "SecretStore", "ClusterIssuer", "Issuer"),
    )
)
"""Kinds whose status decides what the API serves, or whether others can work. That of the rest is what controllers make
of the object."""
NODE_SPEC = ("taints", "unschedulable")
STILL_THERE = "seatrial.dev/content"
"""Holds a Terminating namespace whose content is not kept."""
CONTAINER = ("name", "image", "command", "args", "ports")


def kept(body: Body) -> Body:
    """An object without what the rehearsal's own controllers set."""
    meta = {key: value for key, value in metadata(body).items() if key in METADATA and value not in (None, {}, [])}
    if body.get("kind") == "Namespace" and "deletionTimestamp" in meta:
        meta.setdefault("finalizers", [STILL_THERE])
    rest = {key: value for key, value in body.items() if key not in ("metadata", "status")}
    if body.get("kind") == "Node":
        meta = {key: meta[key] for key in ("name", "uid", "labels") if key in meta}
        rest["spec"] = {key: value for key, value in (body.get("spec") or {}).items() if key in NODE_SPEC}
    if body.get("kind") in WITH_STATUS and "status" in body:
        rest["status"] = body["status"]
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": meta, **rest}


def without_lost_owners(body: Body, uids: set[str]) -> Body:
    """An object without owners that are not kept: the garbage collector would delete it."""
    owners = listed(body, "metadata", "ownerReferences")
    left = [owner for owner in owners if owner.get("uid") in uids]
    if len(left) == len(owners):
        return body
    meta = {key: value for key, value in metadata(body).items() if key != "ownerReferences"}
    return {**body, "metadata": {**meta, "ownerReferences": left} if left else meta}


def is_running(workload: Body) -> bool:
    return is_available(workload)


def stand_in(workload: Body) -> Body:
    """A workload of another release that runs: its pods are ready without the volumes and Secrets that they use."""
    spec = workload.get("spec") or {}
    template = spec.get("template") or {}
    containers = [_container(one) for one in listed(template, "spec", "containers")]
    shape: dict[str, Any] = {
        "selector": spec.get("selector"),
        "template": {
            "metadata": {"labels": dig(template, "metadata", "labels") or {}},
            "spec": {"containers": containers},
        },
    }
    if workload.get("kind") != "DaemonSet":
        shape["replicas"] = spec.get("replicas", 1)
    if workload.get("kind") == "StatefulSet":
        shape["serviceName"] = spec.get("serviceName", "")
    body = kept(workload)
    meta = {key: value for key, value in body["metadata"].items() if key not in ("managedFields", "ownerReferences")}
    return {**body, "metadata": meta, "spec": shape}


def _container(container: Body) -> Body:
    return {key: container[key] for key in CONTAINER if key in container}
