"""Who gives LoadBalancer Services and Ingresses their address: the platform, a Deployment, or no one.

A trial says so; it is stored in a ConfigMap of the cluster. Without it the platform gives every address at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import World
from seatrial.model.resource import Body, Ref, dig

NO_GIVER = "none"
SETTINGS = Ref("ConfigMap", "kube-system", "seatrial-addresses")
LOAD_BALANCERS, INGRESSES = "loadBalancers", "ingresses"


def settings(load_balancers: str, ingresses: str) -> Iterator[Body]:
    """The ConfigMap that says who gives addresses: `none`, or `namespace/name` of a Deployment."""
    data = {key: who for key, who in ((LOAD_BALANCERS, load_balancers), (INGRESSES, ingresses)) if who}
    if data:
        meta = {"name": SETTINGS.name, "namespace": SETTINGS.namespace}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def are_given(kind: str, world: World) -> bool:
    """Whether objects of this kind get an address now."""
    who = str(dig(world.get(SETTINGS), "data", kind) or "")
    if not who:
        return True
    namespace, _, name = who.rpartition("/")
    found = world.get(Ref("Deployment", namespace or "default", name, "apps")) if who != NO_GIVER else None
    return bool(dig(found, "status", "availableReplicas"))
