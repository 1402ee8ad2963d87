"""Pod: bound to a node, started, run to its end, removed by its kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Deadline, Delete, Kind, Need, World
from seatrial.kinds.core.immutable import NEWEST, difference, forbidden
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.operators import starting
from seatrial.kinds.scripts import chart_crds, programs
from seatrial.kinds.scripts.containers import wakes_in_seconds
from seatrial.kinds.webhooks import cabundle
from seatrial.kinds.workloads import kubelet, scheduler
from seatrial.kinds.workloads.pod_template import default_pod_spec, pod_needs
from seatrial.kinds.workloads.pods import is_finished, is_ready, phase_of
from seatrial.model.resource import Body, dig, listed

MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
UNCHECKED = ("activeDeadlineSeconds", "tolerations", "nodeName")


def needs(pod: Body) -> Iterator[Need]:
    return pod_needs(pod.get("spec") or {}, namespace_of(pod), ("spec",))


def behave(pod: Body, world: World) -> Acts:
    """One step in the life of a pod. Others see each step before the next."""
    if is_terminating(pod):
        yield Delete(pod, why="its containers have stopped", now=True)
    elif is_finished(pod):
        return
    elif not dig(pod, "spec", "nodeName"):
        yield from scheduler.schedule(pod, world)
    elif phase_of(pod) == "Pending":
        yield from kubelet.start(pod, world)
    else:
        if is_ready(pod):
            yield from cabundle.write_ca(pod, world)
            yield from chart_crds.apply_crds(pod, world)
            yield from programs.make_secrets(pod, world, "containers")
            yield from starting.start(pod, world)
        yield from kubelet.continue_running(pod, world)


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    was, wanted = (_without_mutable(body.get("spec") or {}) for body in (old, new))
    if was != wanted:
        # The old images are put into the new spec for the diff, so that it shows only immutable fields.
        shown = difference(old["spec"], _with_old_mutable(old["spec"], new["spec"]), "PodSpec", minor)
        yield forbidden("spec", f"{MUTABLE}\n{shown}")


def default(pod: Body) -> Body:
    spec = default_pod_spec(pod.get("spec") or {})
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_with_requests(container) for container in spec[field]]
    status = {"phase": "Pending", "qosClass": qos_class(spec), **(pod.get("status") or {})}
    return {**pod, "spec": spec, "status": status}


def qos_class(spec: Body) -> str:
    """The QoS class: Guaranteed if every container requests exactly its limits."""
    all_resources = [container.get("resources") or {} for container in listed(spec, "containers")]
    all_resources += [container.get("resources") or {} for container in listed(spec, "initContainers")]
    if not any(resources.get("requests") or resources.get("limits") for resources in all_resources):
        return "BestEffort"
    exact = all(
        {"cpu", "memory"} <= (resources.get("limits") or {}).keys() and resources["requests"] == resources["limits"]
        for resources in all_resources
    )
    return "Guaranteed" if exact else "Burstable"


def deadline(pod: Body, world: World) -> Deadline | None:
    """When a script in it goes on by itself."""
    seconds = wakes_in_seconds(pod, world) if not is_finished(pod) and not is_terminating(pod) else None
    return None if seconds is None else Deadline(seconds, _go_on(), since="now", says="{} seconds pass for its script")


def _go_on() -> Acts:
    """Its kubelet runs anyway when a deadline has passed."""
    yield from ()


def ready(pod: Body) -> bool:
    return is_ready(pod) or phase_of(pod) == "Succeeded"


def _with_requests(container: Body) -> Body:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _without_mutable(spec: Body) -> Body:
    rest = {key: value for key, value in spec.items() if key not in UNCHECKED}
    for field in ("containers", "initContainers"):
        if field in rest:
            rest[field] = [{k: v for k, v in container.items() if k != "image"} for container in listed(spec, field)]
    return rest


def _with_old_mutable(old: Body, new: Body) -> Body:
    mixed = {**new}
    mixed.update((key, old[key]) for key in UNCHECKED if key in old)
    for field in ("containers", "initContainers"):
        images = {container.get("name"): container.get("image") for container in listed(old, field)}
        if field in new:
            mixed[field] = [
                {**container, "image": images.get(container.get("name"), container.get("image"))}
                for container in listed(new, field)
            ]
    return mixed


produces = programs.template_products()

KINDS = (
    Kind(
        "Pod",
        actor="kubelet",
        needs=needs,
        produces=produces,
        behave=behave,
        immutable=immutable,
        default=default,
        deadline=deadline,
        ready=ready,
    ),
)
