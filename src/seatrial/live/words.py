"""What an object says of itself: its status in one sentence. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import finalizers_of, generation_of, is_terminating
from seatrial.model.resource import Body, dig, listed, ref_of

BAD_IF_TRUE = ("Stalled", "ReplicaFailure", "Failed", "FailureTarget", "NamespaceFinalizersRemaining")
GOOD_IF_TRUE = ("Ready", "Available", "Progressing", "NamesAccepted", "Established", "Synced", "PodScheduled")
WORDS_MAX = 600
"""Characters of a message that are shown: a rendered manifest in an error would fill the screen."""


def state(body: Body) -> str:
    """What is wrong with an object that is not usable, in its own words: `Deployment/a/b: 0 of 2 ...`."""
    ref = ref_of(body)
    if is_terminating(body):
        held = ", ".join(finalizers_of(body))
        return f"{ref} is being deleted" + (f" and waits for the finalizer {held}" if held else "")
    if is_behind(body):
        return f"{ref}: its controller has not seen the last change yet"
    counted = _COUNTS.get((ref.group, ref.kind))
    said = message(body)
    count = counted(body) if counted else ""
    text = "; ".join(part for part in (count, said) if part)
    return f"{ref}: {text}" if text else f"{ref} is not ready"


def message(body: Body) -> str:
    """The reason and message of the condition that says why an object is not ready; for a pod, of its container."""
    if body.get("kind") == "Pod":
        return next(_of_containers(body), "") or _of_conditions(body)
    return _of_conditions(body)


def is_behind(body: Body) -> bool:
    """Whether the controller's status is about an older generation of the object."""
    observed = dig(body, "status", "observedGeneration")
    return isinstance(observed, int) and observed < generation_of(body)


def shortened(text: str) -> str:
    """A message in one line, of bounded length."""
    plain = " ".join(text.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}..."


def _of_conditions(body: Body) -> str:
    for condition in listed(body, "status", "conditions"):
        type_, status = condition.get("type"), condition.get("status")
        if (type_ in BAD_IF_TRUE and status == "True") or (type_ in GOOD_IF_TRUE and status in ("False", "Unknown")):
            said = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            if said:
                return shortened(said)
    return ""


def _of_containers(pod: Body) -> Iterator[str]:
    """Why a container does not run: it waits, or has ended with an error."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in listed(pod, "status", field):
            waiting, ended = dig(container, "state", "waiting"), dig(container, "state", "terminated")
            name = container.get("name")
            if waiting and waiting.get("reason") not in ("PodInitializing", "ContainerCreating"):
                said = ": ".join(str(waiting[key]) for key in ("reason", "message") if waiting.get(key))
                yield shortened(f"container {name}: {said}")
            elif ended and ended.get("exitCode"):
                yield shortened(f"container {name}: {ended.get('reason') or 'Error'} (exit code {ended['exitCode']})")


def _number(body: Body, *path: str, default: int = 0) -> int:
    found = dig(body, *path)
    return found if isinstance(found, int) else default


def _replicas(body: Body) -> str:
    wanted = _number(body, "spec", "replicas", default=1)
    available = _number(body, "status", "availableReplicas")
    updated = _number(body, "status", "updatedReplicas")
    if available >= wanted > updated and body.get("kind") == "Deployment":
        return f"{updated} of {wanted} replicas are updated"
    return f"{available} of {wanted} replicas are available"


def _stateful(body: Body) -> str:
    wanted, ready = _number(body, "spec", "replicas", default=1), _number(body, "status", "readyReplicas")
    if ready >= wanted:
        return f"{_number(body, 'status', 'updatedReplicas')} of {wanted} replicas are updated"
    return f"{ready} of {wanted} replicas are ready"


def _daemons(body: Body) -> str:
    wanted = _number(body, "status", "desiredNumberScheduled")
    return f"{_number(body, 'status', 'numberReady')} of {wanted} pods are ready"


def _job(body: Body) -> str:
    if conditions.is_true(body, "Failed"):
        return "it failed"
    wanted = _number(body, "spec", "completions", default=1)
    return f"{_number(body, 'status', 'succeeded')} of {wanted} completions"


def _pod(body: Body) -> str:
    return f"phase {dig(body, 'status', 'phase') or 'Pending'}"


def _claim(body: Body) -> str:
    return f"phase {dig(body, 'status', 'phase') or 'Pending'}"


def _service(body: Body) -> str:
    waits = dig(body, "spec", "type") == "LoadBalancer"
    return "no load balancer has given it an address" if waits else ""


_COUNTS: dict[tuple[str, str], Callable[[Body], str]] = {
    ("apps", "Deployment"): _replicas,
    ("apps", "ReplicaSet"): _replicas,
    ("apps", "StatefulSet"): _stateful,
    ("apps", "DaemonSet"): _daemons,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
}
