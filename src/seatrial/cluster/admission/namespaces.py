"""NamespaceLifecycle: nothing is created in a missing or terminating namespace; three namespaces cannot be deleted."""

from __future__ import annotations

from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.cluster.refusal import forbidden, missing_namespace, terminating
from seatrial.kinds import World
from seatrial.model.resource import Ref, metadata

IMMORTAL = ("default", "kube-public", "kube-system")


def lifecycle(request: AdmissionRequest, world: World) -> None:
    if request.group_kind == ("", "Namespace"):
        if request.operation == "DELETE" and request.ref.name in IMMORTAL:
            raise forbidden("namespaces", "", request.ref.name, "this namespace may not be deleted")
        return
    if not request.kind.namespaced or request.operation == "DELETE":
        return
    namespace = world.get(Ref("Namespace", "", request.namespace))
    if namespace is None:
        raise missing_namespace(request.namespace)
    if request.operation == "CREATE" and metadata(namespace).get("deletionTimestamp"):
        raise terminating(request.kind.plural, request.kind.group, request.early_name, request.namespace)
