"""NamespaceLifecycle: nothing is made in a namespace that is not there or is going; three of them stay for ever."""

from __future__ import annotations

from seatrial.cluster.admission.asked import Asked
from seatrial.cluster.refusal import forbidden, missing_namespace, terminating
from seatrial.kinds import World
from seatrial.model.resource import Ref, metadata

IMMORTAL = ("default", "kube-public", "kube-system")


def lifecycle(asked: Asked, world: World) -> None:
    if asked.of == ("", "Namespace"):
        if asked.operation == "DELETE" and asked.ref.name in IMMORTAL:
            raise forbidden("namespaces", "", asked.ref.name, "this namespace may not be deleted")
        return
    if not asked.kind.namespaced or asked.operation == "DELETE":
        return
    namespace = world.get(Ref("Namespace", "", asked.namespace))
    if namespace is None:
        raise missing_namespace(asked.namespace)
    if asked.operation == "CREATE" and metadata(namespace).get("deletionTimestamp"):
        raise terminating(asked.kind.plural, asked.kind.group, asked.early_name, asked.namespace)
