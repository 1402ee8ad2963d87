"""Which traffic NetworkPolicies allow: webhook calls of the API server, hooks of a release. Sends no packets.

From the reference of `networking.k8s.io/v1`: policies are additive, and a pod that no policy selects is open. What only
a running cluster knows (whether an ipBlock contains a pod, the number of a named port) counts as allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.core.selection import fits
from seatrial.model.resource import Body, dig, listed

Direction = Literal["Ingress", "Egress"]
RULES: dict[Direction, tuple[str, str]] = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""The field with the rules, and the field of a rule that names the peers."""


class Peer(Struct, frozen=True):
    """A pod, as policies see it."""

    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str] = {}
    """The labels of its namespace, if known."""


def blocking(
    policies: Iterable[Body], direction: Direction, pod: Peer, other: Peer | None, ports: Iterable[int]
) -> list[Body]:
    """The policies that block a pod from the other end at all of these ports; empty if traffic is allowed.

    Without `other` the other end is not a pod (the API server): only rules for all sources or for IP blocks match it.
    """
    selecting = [policy for policy in policies if _selects(policy, direction, pod)]
    field, end = RULES[direction]
    for policy in selecting:
        for rule in listed(policy, "spec", field):
            if _names(listed(rule, end), other, pod.namespace) and _covers_any(listed(rule, "ports"), ports):
                return []
    return selecting


def _selects(policy: Body, direction: Direction, pod: Peer) -> bool:
    types = listed(policy, "spec", "policyTypes") or ["Ingress", *(["Egress"] if dig(policy, "spec", "egress") else [])]
    same_namespace = namespace_of(policy) == pod.namespace
    return same_namespace and direction in types and fits(pod.labels, dig(policy, "spec", "podSelector") or {})


def _names(peers: list[Body], other: Peer | None, namespace: str) -> bool:
    return not peers or any(
        peer.get("ipBlock") or (other is not None and _is(peer, other, namespace)) for peer in peers
    )


def _is(peer: Body, other: Peer, namespace: str) -> bool:
    selector = peer.get("namespaceSelector")
    labels = {"kubernetes.io/metadata.name": other.namespace, **other.namespace_labels}
    in_namespace = other.namespace == namespace if selector is None else fits(labels, selector)
    return in_namespace and fits(other.labels, peer.get("podSelector") or {})


def _covers_any(entries: list[Body], ports: Iterable[int]) -> bool:
    return not entries or any(_covers(entry, port) for entry in entries for port in ports)


def _covers(entry: Body, port: int) -> bool:
    """A named or omitted port is assumed to match."""
    first = entry.get("port")
    return not isinstance(first, int) or first <= port <= int(entry.get("endPort") or first)
