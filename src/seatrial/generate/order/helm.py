"""The order for Helm: hook weights, and which objects must be hooks at all.

Helm creates regular resources by kind and waits for none of them before the next. It runs the hooks of an event one at
a time, by weight and then by name (`rules/hooks/same_weight_hook_kind_order.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.generate.order.ordering import GAP, WORKLOADS, Mark, Ordering, after, annotation
from seatrial.generate.order.requirements import OrderRequirement, requirements, without_cycles
from seatrial.graph.linking import Graph
from seatrial.helm import hooks
from seatrial.helm.kindorder import INSTALL_ORDER
from seatrial.model.resource import Ref, listed

LABEL = "Helm"
POST = "post-install,post-upgrade"
BEFORE, AFTER = ("pre-install", "pre-upgrade"), ("post-install", "post-upgrade")
RANKS = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}
FOR_HOOKS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Secret")
"""Kinds that hold no data of their own: as hooks they can be created again."""
ROUNDS_MAX = 1000
ROOM = "Helm itself waits for nothing: a gate Job of a lower weight does (seatrial generate wait)"


class _Helm:
    """The objects of a release as Helm sorts them, while weights are chosen."""

    def __init__(self, graph: Graph, crds: frozenset[Ref]) -> None:
        bodies = {ref: resource.body for ref, resource in graph.resources.items()}
        self.graph, self.crds = graph, crds
        self.events = {ref: hooks.events_of(body) for ref, body in bodies.items()}
        self.weights = {ref: hooks.weight_of(body) for ref, body in bodies.items()}
        self.reasons: dict[Ref, list[OrderRequirement]] = {}
        self.new_hooks: dict[Ref, str] = {}
        self.given: dict[str, None] = {}
        self.left: dict[str, None] = {}

    def phase(self, ref: Ref) -> int:
        """0 before the regular resources, 1 one of them, 2 after them; 3 for hooks of other events."""
        if ref in self.crds:
            return -1
        events = self.events[ref]
        if not events:
            return 1
        return 0 if any(e in BEFORE for e in events) else 2 if any(e in AFTER for e in events) else 3


def ordering(graph: Graph, crds: frozenset[Ref]) -> Ordering:
    """`crds` are the objects of crds/, which Helm installs first and waits for."""
    helm = _Helm(graph, crds)
    found, cycles = without_cycles(requirements(graph))
    for one in found:
        _place(one, helm, found)
    _weights(helm, found)
    helm.left.update((f"these need one another: {', '.join(map(str, cycle))}", None) for cycle in cycles)
    return Ordering(LABEL, len(graph.resources), tuple(_marks(helm)), tuple(helm.given), tuple(helm.left))


def _place(one: OrderRequirement, helm: _Helm, found: list[OrderRequirement]) -> None:
    """Decide for one requirement whether Helm gives it, a hook does, or nothing can."""
    user, needed = helm.phase(one.user), helm.phase(one.object)
    if 3 in (user, needed) or needed == -1:
        return
    if needed == 1 and user == 0:
        _needed_by_a_pre_hook(one, helm, found)
    elif needed == 1 and user == 1 and one.hard:
        _between_regular_resources(one, helm)
    elif needed == 1 and user == 2 and one.ready and one.hard:
        _behind_a_gate(one, helm, found)


def _behind_a_gate(one: OrderRequirement, helm: _Helm, found: list[OrderRequirement]) -> None:
    """A post-install hook runs when everything is created, not when it is ready."""
    if one.webhook and one.object.kind not in WORKLOADS:
        return
    waiters = (other.user for other in found if other.object == one.object and other.user.kind in ("Job", "Pod"))
    if any(helm.phase(ref) == 2 and _key(helm, ref) < _key(helm, one.user) for ref in waiters):
        return
    gate = "a gate Job of a lower weight does (seatrial generate wait)"
    helm.left[f"{one.user}: Helm does not wait for {one.object} before post-install hooks run; {gate}"] = None


def _between_regular_resources(one: OrderRequirement, helm: _Helm) -> None:
    if one.object.kind == "CustomResourceDefinition":
        rule = "Helm looks up every kind before it creates the first object"
        helm.left[f"{one.object}: move it to crds/ or to a chart that is installed before; {rule}"] = None
        return
    comes_first = RANKS.get(one.object.kind, len(RANKS)) < RANKS.get(one.user.kind, len(RANKS))
    if one.webhook:
        if RANKS.get(one.user.kind, len(RANKS)) <= RANKS[one.webhook.kind]:
            helm.given[f"{one.user}: Helm creates it before {one.webhook}, so an install does not call the webhook"] = (
                None
            )
            return
    elif comes_first and not one.ready:
        return
    helm.new_hooks[one.user] = POST
    helm.weights[one.user] = max(helm.weights[one.user], GAP)
    helm.reasons.setdefault(one.user, []).append(one)


def _needed_by_a_pre_hook(one: OrderRequirement, helm: _Helm, found: list[OrderRequirement]) -> None:
    """An object that only hooks use becomes one of them. Any other keeps its place, because a hook is recreated."""
    events = ",".join(event for event in helm.events[one.user] if event in BEFORE)
    group = [one.object, *_rights_of(one.object, helm.graph)]
    others = [
        other.user
        for other in found
        if other.object in group and helm.phase(other.user) != 0 and other.user not in group
    ]
    if others or any(ref.kind not in FOR_HOOKS for ref in group):
        shared = f"{others[0]} uses it as well" if others else f"a {one.object.kind} must not be recreated as a hook"
        way = f"give {one.user} a copy under a name of its own as a hook, or make it a post-install hook"
        if one.hard or one.user.kind in ("Job", "Pod"):
            helm.left[f"{one.user} runs before {one.object} is created, and {shared}: {way}"] = None
        return
    for ref in group:
        helm.new_hooks[ref] = events
        helm.weights[ref] = min(helm.weights[ref], helm.weights[one.user] - GAP)
        helm.reasons.setdefault(ref, []).append(one)


def _rights_of(account: Ref, graph: Graph) -> Iterator[Ref]:
    """The bindings of a ServiceAccount and their roles: without them its pod may do nothing."""
    if account.kind != "ServiceAccount":
        return
    for ref, resource in sorted(graph.resources.items()):
        named = [(s.get("kind"), s.get("name")) for s in listed(resource.body, "subjects") if isinstance(s, dict)]
        if ref.kind in ("RoleBinding", "ClusterRoleBinding") and ("ServiceAccount", account.name) in named:
            yield ref
            yield from (
                link.object
                for link in graph.links
                if link.user == ref and link.object.kind in ("Role", "ClusterRole") and link.object in graph.resources
            )


def _weights(helm: _Helm, found: list[OrderRequirement]) -> None:
    """Lower what hooks of the same event need, until the order of weights and names is right."""
    shared = [one for one in found if _phase_of(helm, one.user) == _phase_of(helm, one.object) in (0, 2)]
    for _ in range(ROUNDS_MAX):
        changed = False
        for one in shared:
            if _key(helm, one.object) < _key(helm, one.user):
                continue
            helm.weights[one.object] = helm.weights[one.user] - GAP
            helm.reasons.setdefault(one.object, []).append(one)
            changed = True
        if not changed:
            return


def _phase_of(helm: _Helm, ref: Ref) -> int:
    new = helm.new_hooks.get(ref)
    return helm.phase(ref) if new is None else 2 if new == POST else 0


def _key(helm: _Helm, ref: Ref) -> tuple[int, str, str]:
    return helm.weights[ref], ref.name, ref.kind


def _marks(helm: _Helm) -> Iterator[Mark]:
    for ref, why in sorted(helm.reasons.items()):
        reasons = after(one for one in why if one.user == ref)
        reasons += tuple(dict.fromkeys(f"before {one.user}: {one.because}" for one in why if one.user != ref))
        events = helm.new_hooks.get(ref)
        if events:
            again = "runs" if ref.kind == "Job" else "is recreated"
            cost = f"as a hook it {again} with every upgrade and stays after uninstall"
            yield annotation(ref, hooks.HOOK, events, (*reasons, cost))
            reasons = (ROOM,) if events == POST else ()
        yield annotation(ref, hooks.WEIGHT, str(helm.weights[ref]), reasons)
