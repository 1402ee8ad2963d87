"""Default classes: what a claim or an Ingress gets that names none; and claims that want to grow.

From plugin/pkg/admission (storage, network) of Kubernetes 1.34.
"""

from __future__ import annotations

from fractions import Fraction

from seatrial.cluster.admission.asked import Asked
from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import created_at
from seatrial.kinds.core.quantities import amount
from seatrial.model.resource import Body, Ref, annotations_of, dig, name_of

DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
OLD_INGRESS_CLASS = "kubernetes.io/ingress.class"


def default_storage(asked: Asked, world: World) -> Body:
    if asked.operation != "CREATE" or OLD_STORAGE_CLASS in annotations_of(asked.body):
        return asked.body
    return _with_default(
        asked.body, "storageClassName", _default("StorageClass", "storage.k8s.io", DEFAULT_STORAGE, world)
    )


def default_ingress(asked: Asked, world: World) -> Body:
    if asked.operation != "CREATE" or OLD_INGRESS_CLASS in annotations_of(asked.body):
        return asked.body
    chosen = _default("IngressClass", "networking.k8s.io", DEFAULT_INGRESS, world)
    return _with_default(asked.body, "ingressClassName", chosen)


def resize(asked: Asked, world: World) -> None:
    """A claim grows only once it is bound, and only where its class says so."""
    if asked.old is None or _size(asked.body) <= _size(asked.old):
        return
    if dig(asked.old, "status", "phase") != "Bound":
        raise asked.refused("Only bound persistent volume claims can be expanded")
    name = str(dig(asked.body, "spec", "storageClassName") or "")
    found = world.get(Ref("StorageClass", "", name, "storage.k8s.io")) if name else None
    if found is None or not found.get("allowVolumeExpansion"):
        words = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        raise asked.refused(f"{words}support resize", by="unchangeable")


def _with_default(body: Body, field: str, chosen: str) -> Body:
    if not chosen or dig(body, "spec", field) is not None:
        return body
    return {**body, "spec": {**(body.get("spec") or {}), field: chosen}}


def _default(kind: str, group: str, mark: str, world: World) -> str:
    """The newest of those that are marked; of two as old, the first by name."""
    marked = [body for body in world.all(kind, group=group) if annotations_of(body).get(mark) == "true"]
    newest = max((created_at(body) for body in marked), default="")
    return min((name_of(body) for body in marked if created_at(body) == newest), default="")


def _size(claim: Body) -> Fraction:
    return amount(dig(claim, "spec", "resources", "requests", "storage"))
