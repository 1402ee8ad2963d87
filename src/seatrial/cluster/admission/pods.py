"""ServiceAccount, Priority and RuntimeClass: what a pod names must be there, and gives it fields of its own.

From plugin/pkg/admission of Kubernetes 1.34. Tokens are not put into the pod.
"""

from __future__ import annotations

from seatrial.cluster.admission.asked import Asked
from seatrial.kinds import World
from seatrial.model.resource import Body, Ref, dig, listed, name_of

SCHEDULING = "scheduling.k8s.io"
PREEMPTS = "PreemptLowerPriority"

# Made by every API server for itself; they need not be in the store.
SYSTEM_PRIORITIES: dict[str, Body] = {
    "system-cluster-critical": {"value": 2_000_000_000, "preemptionPolicy": PREEMPTS},
    "system-node-critical": {"value": 2_000_001_000, "preemptionPolicy": PREEMPTS},
}
NO_CLASS: Body = {"value": 0, "preemptionPolicy": PREEMPTS}
KEPT = ("priority", "preemptionPolicy")


def service_account(asked: Asked, world: World) -> Body:
    """A pod that names no pull secrets gets those of its account."""
    if asked.operation != "CREATE":
        return asked.body
    spec = asked.body.get("spec") or {}
    account = str(spec.get("serviceAccountName") or "default")
    ref = Ref("ServiceAccount", asked.namespace, account)
    found = world.get(ref)
    if found is None:
        why = f'error looking up service account {asked.namespace}/{account}: serviceaccount "{account}" not found'
        raise asked.refused_early(why, ref)
    secrets = [{"name": secret.get("name")} for secret in listed(found, "imagePullSecrets")]
    if not secrets or spec.get("imagePullSecrets"):
        return asked.body
    return {**asked.body, "spec": {**spec, "imagePullSecrets": secrets}}


def priority(asked: Asked, world: World) -> Body:
    """The number behind a class; a pod that names none gets the default class, or zero."""
    spec = asked.body.get("spec") or {}
    if asked.operation == "UPDATE":
        before = (asked.old or {}).get("spec") or {}
        kept = {key: before[key] for key in KEPT if key in before and spec.get(key) is None}
        return {**asked.body, "spec": {**spec, **kept}} if kept else asked.body
    name = str(spec.get("priorityClassName") or "")
    found = _priority_class(name, world) if name else _default_class(world)
    if found is None and name:
        ref = Ref("PriorityClass", "", name, SCHEDULING)
        raise asked.refused_early(f"no PriorityClass with name {name} was found", ref)
    chosen = found or NO_CLASS
    filled = {"priority": int(chosen.get("value") or 0), "preemptionPolicy": chosen.get("preemptionPolicy") or PREEMPTS}
    for key, what in (
        ("priority", "integer value of priority"),
        ("preemptionPolicy", "string value of PreemptionPolicy"),
    ):
        if spec.get(key) not in (None, filled[key]):
            raise asked.refused_early(
                f"the {what} ({spec[key]}) must not be provided in pod spec; priority admission controller computed "
                f"{filled[key]} from the given PriorityClass name"
            )
    named = {"priorityClassName": name_of(chosen)} if not name and found is not None else {}
    return {**asked.body, "spec": {**spec, **named, **filled}}


def one_default_priority(asked: Asked, world: World) -> None:
    """Of PriorityClasses, one may be what pods get that name none."""
    other = _default_class(world) if asked.body.get("globalDefault") else None
    if other is not None and (asked.operation == "CREATE" or name_of(other) != asked.ref.name):
        words = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
        raise asked.refused(words)


def runtime_class(asked: Asked, world: World) -> Body:
    """What the class adds to a pod: overhead and a choice of nodes."""
    spec = asked.body.get("spec") or {}
    name = spec.get("runtimeClassName")
    if asked.operation != "CREATE" or name is None:
        return asked.body
    ref = Ref("RuntimeClass", "", str(name), "node.k8s.io")
    found = world.get(ref)
    if found is None:
        raise asked.refused_early(f'pod rejected: RuntimeClass "{name}" not found', ref)
    filled = dict(spec)
    if overhead := dig(found, "overhead", "podFixed"):
        if spec.get("overhead") not in (None, {}, overhead):
            raise asked.refused_early("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        filled["overhead"] = overhead
    if nodes := dig(found, "scheduling", "nodeSelector"):
        filled["nodeSelector"] = _both(asked, spec.get("nodeSelector") or {}, nodes)
    if tolerations := dig(found, "scheduling", "tolerations"):
        own = spec.get("tolerations") or []
        filled["tolerations"] = [*own, *(other for other in tolerations if other not in own)]
    return {**asked.body, "spec": filled}


def _priority_class(name: str, world: World) -> Body | None:
    return SYSTEM_PRIORITIES.get(name) or world.get(Ref("PriorityClass", "", name, SCHEDULING))


def _default_class(world: World) -> Body | None:
    """Where several are marked, the lowest."""
    marked = [body for body in world.all("PriorityClass", group=SCHEDULING) if body.get("globalDefault")]
    return min(marked, key=lambda body: int(body.get("value") or 0), default=None)


def _both(asked: Asked, own: dict[str, str], of_class: dict[str, str]) -> dict[str, str]:
    for key, value in sorted(of_class.items()):
        if own.get(key, value) != value:
            raise asked.refused_early(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    return {**own, **of_class}
