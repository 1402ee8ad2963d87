"""What NetworkPolicies let through, whoever asks: webhooks of the API server, hooks of a release. Sends no packet.

From the reference of `networking.k8s.io/v1`: policies add up, and a pod that none selects is open. Where only a running
cluster would tell (whether a block of addresses holds a pod, which number a named port has) the answer is yes.
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
"""Where a policy has its rules, and where a rule names the other end."""


class Peer(Struct, frozen=True):
    """A pod, as policies see it."""

    namespace: str
    labels: dict[str, str]
    housed: dict[str, str] = {}
    """The labels of its namespace, where they are known."""


def in_the_way(
    policies: Iterable[Body], direction: Direction, pod: Peer, other: Peer | None, ports: Iterable[int]
) -> list[Body]:
    """The policies that shut a pod off from the other end, at every one of these ports; none where one lets it through.

    Without a peer the other end is no pod (the API server): only rules for everyone, or for addresses, speak of it.
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
    near = namespace_of(policy) == pod.namespace
    return near and direction in types and fits(pod.labels, dig(policy, "spec", "podSelector") or {})


def _names(peers: list[Body], other: Peer | None, namespace: str) -> bool:
    return not peers or any(
        peer.get("ipBlock") or (other is not None and _is(peer, other, namespace)) for peer in peers
    )


def _is(peer: Body, other: Peer, namespace: str) -> bool:
    housing = peer.get("namespaceSelector")
    housed = {"kubernetes.io/metadata.name": other.namespace, **other.housed}
    near = other.namespace == namespace if housing is None else fits(housed, housing)
    return near and fits(other.labels, peer.get("podSelector") or {})


def _covers_any(entries: list[Body], ports: Iterable[int]) -> bool:
    return not entries or any(_covers(entry, port) for entry in entries for port in ports)


def _covers(entry: Body, port: int) -> bool:
    """A port that is named, or left out, is taken to be the one."""
    first = entry.get("port")
    return not isinstance(first, int) or first <= port <= int(entry.get("endPort") or first)
