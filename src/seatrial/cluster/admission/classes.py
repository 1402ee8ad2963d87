"""Default classes of PVCs and Ingresses, and PVC expansion.

From plugin/pkg/admission (storage, network) of Kubernetes 1.34.
"""

from __future__ import annotations

from fractions import Fraction

from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import created_at
from seatrial.kinds.core.quantities import amount
from seatrial.model.resource import Body, Ref, annotations_of, dig, name_of

DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
OLD_INGRESS_CLASS = "kubernetes.io/ingress.class"


def default_storage(request: AdmissionRequest, world: World) -> Body:
    if request.operation != "CREATE" or OLD_STORAGE_CLASS in annotations_of(request.body):
        return request.body
    return _with_default(
        request.body, "storageClassName", _default("StorageClass", "storage.k8s.io", DEFAULT_STORAGE, world)
    )


def default_ingress(request: AdmissionRequest, world: World) -> Body:
    if request.operation != "CREATE" or OLD_INGRESS_CLASS in annotations_of(request.body):
        return request.body
    chosen = _default("IngressClass", "networking.k8s.io", DEFAULT_INGRESS, world)
    return _with_default(request.body, "ingressClassName", chosen)


def resize(request: AdmissionRequest, world: World) -> None:
    """A PVC can be expanded only if it is bound and its class allows it."""
    if request.old is None or _size(request.body) <= _size(request.old):
        return
    if dig(request.old, "status", "phase") != "Bound":
        raise request.refusal("Only bound persistent volume claims can be expanded")
    name = str(dig(request.body, "spec", "storageClassName") or "")
    found = world.get(Ref("StorageClass", "", name, "storage.k8s.io")) if name else None
    if found is None or not found.get("allowVolumeExpansion"):
        message = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        raise request.refusal(f"{message}support resize", by="unchangeable")


def _with_default(body: Body, field: str, chosen: str) -> Body:
    if not chosen or dig(body, "spec", field) is not None:
        return body
    return {**body, "spec": {**(body.get("spec") or {}), field: chosen}}


def _default(kind: str, group: str, mark: str, world: World) -> str:
    """The newest default class, then the first by name."""
    marked = [body for body in world.all(kind, group=group) if annotations_of(body).get(mark) == "true"]
    newest = max((created_at(body) for body in marked), default="")
    return min((name_of(body) for body in marked if created_at(body) == newest), default="")


def _size(claim: Body) -> Fraction:
    return amount(dig(claim, "spec", "resources", "requests", "storage"))
