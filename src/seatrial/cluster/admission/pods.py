"""ServiceAccount, Priority and RuntimeClass admission: objects that a pod names must exist, and set some of its fields.

From plugin/pkg/admission of Kubernetes 1.34. Tokens are not mounted into the pod.
"""

from __future__ import annotations

from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.kinds import World
from seatrial.model.resource import Body, Ref, dig, listed, name_of

SCHEDULING = "scheduling.k8s.io"
PREEMPTS = "PreemptLowerPriority"

# Every API server creates these; they need not be in the store.
SYSTEM_PRIORITIES: dict[str, Body] = {
    "system-cluster-critical": {"value": 2_000_000_000, "preemptionPolicy": PREEMPTS},
    "system-node-critical": {"value": 2_000_001_000, "preemptionPolicy": PREEMPTS},
}
NO_CLASS: Body = {"value": 0, "preemptionPolicy": PREEMPTS}
KEPT = ("priority", "preemptionPolicy")


def service_account(request: AdmissionRequest, world: World) -> Body:
    """A pod without pull secrets gets those of its ServiceAccount."""
    if request.operation != "CREATE":
        return request.body
    spec = request.body.get("spec") or {}
    account = str(spec.get("serviceAccountName") or "default")
    ref = Ref("ServiceAccount", request.namespace, account)
    found = world.get(ref)
    if found is None:
        why = f'error looking up service account {request.namespace}/{account}: serviceaccount "{account}" not found'
        raise request.refusal_before_naming(why, ref)
    secrets = [{"name": secret.get("name")} for secret in listed(found, "imagePullSecrets")]
    if not secrets or spec.get("imagePullSecrets"):
        return request.body
    return {**request.body, "spec": {**spec, "imagePullSecrets": secrets}}


def priority(request: AdmissionRequest, world: World) -> Body:
    """The priority of a class. A pod without a class gets the default class, or zero."""
    spec = request.body.get("spec") or {}
    if request.operation == "UPDATE":
        before = (request.old or {}).get("spec") or {}
        kept = {key: before[key] for key in KEPT if key in before and spec.get(key) is None}
        return {**request.body, "spec": {**spec, **kept}} if kept else request.body
    name = str(spec.get("priorityClassName") or "")
    found = _priority_class(name, world) if name else _default_class(world)
    if found is None and name:
        ref = Ref("PriorityClass", "", name, SCHEDULING)
        raise request.refusal_before_naming(f"no PriorityClass with name {name} was found", ref)
    chosen = found or NO_CLASS
    filled = {"priority": int(chosen.get("value") or 0), "preemptionPolicy": chosen.get("preemptionPolicy") or PREEMPTS}
    for key, what in (
        ("priority", "integer value of priority"),
        ("preemptionPolicy", "string value of PreemptionPolicy"),
    ):
        if spec.get(key) not in (None, filled[key]):
            raise request.refusal_before_naming(
                f"the {what} ({spec[key]}) must not be provided in pod spec; priority admission controller computed "
                f"{filled[key]} from the given PriorityClass name"
            )
    named = {"priorityClassName": name_of(chosen)} if not name and found is not None else {}
    return {**request.body, "spec": {**spec, **named, **filled}}


def one_default_priority(request: AdmissionRequest, world: World) -> None:
    """Only one PriorityClass may be the global default."""
    other = _default_class(world) if request.body.get("globalDefault") else None
    if other is not None and (request.operation == "CREATE" or name_of(other) != request.ref.name):
        message = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
        raise request.refusal(message)


def runtime_class(request: AdmissionRequest, world: World) -> Body:
    """The overhead, node selector and tolerations of a RuntimeClass."""
    spec = request.body.get("spec") or {}
    name = spec.get("runtimeClassName")
    if request.operation != "CREATE" or name is None:
        return request.body
    ref = Ref("RuntimeClass", "", str(name), "node.k8s.io")
    found = world.get(ref)
    if found is None:
        raise request.refusal_before_naming(f'pod rejected: RuntimeClass "{name}" not found', ref)
    filled = dict(spec)
    if overhead := dig(found, "overhead", "podFixed"):
        if spec.get("overhead") not in (None, {}, overhead):
            raise request.refusal_before_naming(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            )
        filled["overhead"] = overhead
    if nodes := dig(found, "scheduling", "nodeSelector"):
        filled["nodeSelector"] = _both(request, spec.get("nodeSelector") or {}, nodes)
    if tolerations := dig(found, "scheduling", "tolerations"):
        own = spec.get("tolerations") or []
        filled["tolerations"] = [*own, *(other for other in tolerations if other not in own)]
    return {**request.body, "spec": filled}


def _priority_class(name: str, world: World) -> Body | None:
    return SYSTEM_PRIORITIES.get(name) or world.get(Ref("PriorityClass", "", name, SCHEDULING))


def _default_class(world: World) -> Body | None:
    """The lowest, if there are several."""
    marked = [body for body in world.all("PriorityClass", group=SCHEDULING) if body.get("globalDefault")]
    return min(marked, key=lambda body: int(body.get("value") or 0), default=None)


def _both(request: AdmissionRequest, own: dict[str, str], of_class: dict[str, str]) -> dict[str, str]:
    for key, value in sorted(of_class.items()):
        if own.get(key, value) != value:
            raise request.refusal_before_naming(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    return {**own, **of_class}
