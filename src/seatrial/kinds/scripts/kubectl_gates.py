"""Calls that wait: `kubectl wait` and `kubectl rollout status`. They end when what they ask for is so, or in time.

From pkg/cmd/wait and pkg/polymorphichelpers/rollout_status.go of k8s.io/kubectl 1.34.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from seatrial.kinds import World
from seatrial.kinds.core import jsonpath
from seatrial.kinds.core.objectmeta import generation_of, namespace_of
from seatrial.kinds.network.reach import services_of, workloads_behind
from seatrial.kinds.scripts.kubectl_args import KubectlCall
from seatrial.kinds.scripts.program import ContainerProgram, NamedTarget, is_known_absent, listed_objects, refs_of
from seatrial.kinds.scripts.run_state import CommandReply, RunState
from seatrial.model.resource import Body, Ref, dig, listed, name_of
from seatrial.text import durations

TIMED_OUT = "error: timed out waiting for the condition"
DEFAULT_SECONDS = 30.0
"""Of `kubectl wait`."""
WEEK_SECONDS = 7 * 24 * 3600.0
WORKLOADS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod"))
Test = Callable[[Body | None], bool]


def seconds_in(written: str) -> float:
    """`60s`, `5m` or `90`; 0 where nothing is written."""
    if not written:
        return 0.0
    if written.lstrip("-").isdigit():
        return float(written)
    if written.startswith("-"):
        return -1.0
    return durations.seconds_in(written) or 0.0


def wait(
    call: KubectlCall, targets: list[NamedTarget] | None, program: ContainerProgram, state: RunState
) -> CommandReply:
    """`kubectl wait --for=...`"""
    test = _test_of(call)
    if targets is None or test is None:
        return CommandReply(None)
    world, run = program.world, state.run
    asked = call.flags.get("--for", "").lower()
    awaited: list[NamedTarget] = []
    for target in targets:
        if target.ref.name:
            awaited.append(target)
            continue
        bodies = run.look(partial(listed_objects, target, call.flags.get("-l", ""), world))
        if bodies is None:
            return CommandReply(None)
        awaited += [NamedTarget(ref, target.plural) for ref in refs_of(target, bodies)]
    if not awaited:
        return (
            CommandReply(0)
            if asked == "delete"
            else CommandReply(1, "error: no matching resources found", out="", in_time=True)
        )
    timeout = seconds_in(call.flags.get("--timeout", "")) if "--timeout" in call.flags else DEFAULT_SECONDS
    limit = WEEK_SECONDS if timeout < 0 else timeout
    for target in awaited:
        if asked not in ("delete", "create"):
            missing = run.look(partial(program.peek, target.ref)) is None
            if missing and not is_known_absent(target.ref, world):
                return CommandReply(None)
            if missing:
                words = f'Error from server (NotFound): {target.resource} "{target.ref.name}" not found'
                return CommandReply(1, words, target.ref, out="")
        if not run.until(partial(_holds, test, target.ref, world), limit):
            words = f"error: timed out waiting for the condition on {target.plural}/{target.ref.name}"
            return CommandReply(1, words, target.ref, out="")
    return CommandReply(0)


def _holds(test: Test, ref: Ref, world: World) -> bool:
    return test(seen(ref, world))


def seen(ref: Ref, world: World) -> Body | None:
    """An object as a waiting client sees it, and what that depends on.

    The endpoints of a workload are not later than its conditions.
    """
    if ref.kind == "Endpoints":
        service = world.get(Ref("Service", ref.namespace, ref.name))
        deque(workloads_behind(service or {}, ref.namespace, world), maxlen=0)
    body = world.get(ref)
    if body is not None and ref.kind in WORKLOADS:
        deque(services_of(body, namespace_of(body), world), maxlen=0)
    return body


def _test_of(call: KubectlCall) -> Test | None:
    what, _, rest = call.flags.get("--for", "").partition("=")
    match what.lower():
        case "delete":
            return lambda body: body is None
        case "create":
            return lambda body: body is not None
        case "condition":
            type_, _, value = rest.strip("'\"").partition("=")
            return lambda body: _has_condition(body, type_.lower(), (value or "true").lower())
        case "jsonpath":
            path, equals, value = rest.strip("'\"").rpartition("}=")
            wanted = value.strip("'\"") if equals else None
            inner = (path if equals else rest).strip("'\"{}")
            return lambda body: _has_value(body, f"{{{inner}}}", wanted)
    return None


def _has_condition(body: Body | None, type_: str, value: str) -> bool:
    """The condition must be about the current generation, where it says which it is about."""
    for one in listed(body or {}, "status", "conditions"):
        if str(one.get("type")).lower() != type_:
            continue
        about = one.get("observedGeneration") or dig(body, "status", "observedGeneration")
        is_old = about is not None and int(about) < generation_of(body or {})
        return not is_old and str(one.get("status")).lower() == value
    return False


def _has_value(body: Body | None, path: str, wanted: str | None) -> bool:
    found = jsonpath.find(path, body) if body is not None else []
    if wanted is None:
        return bool(found)
    return len(found) == 1 and _text(found[0]) == wanted


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def rollout_status(
    call: KubectlCall, targets: list[NamedTarget] | None, program: ContainerProgram, state: RunState
) -> CommandReply:
    """`kubectl rollout status`: until the workload has rolled out, or its progress deadline passes."""
    if targets is None or len(targets) != 1 or targets[0].ref.kind not in ROLLED_OUT:
        return CommandReply(None)
    target, world = targets[0], program.world
    missing = state.run.look(lambda: program.peek(target.ref) is None)
    if missing:
        if not is_known_absent(target.ref, world):
            return CommandReply(None)
        words = f'Error from server (NotFound): {target.resource} "{target.ref.name}" not found'
        return CommandReply(1, words, target.ref, out="")
    rolled_out = ROLLED_OUT[target.ref.kind]

    def ended() -> bool:
        body = seen(target.ref, world) or {}
        return rolled_out(body) or is_late(body)

    limit = seconds_in(call.flags.get("--timeout", "")) or None
    if not state.run.until(ended, limit):
        return CommandReply(1, TIMED_OUT, target.ref, out="")
    if state.run.look(lambda: is_late(world.get(target.ref) or {})):
        return CommandReply(
            1, f'error: deployment "{target.ref.name}" exceeded its progress deadline', target.ref, out=""
        )
    return CommandReply(0)


def is_rolled_out(body: Body) -> bool | None:
    """Whether `kubectl rollout status` ends with success; None for kinds that it refuses."""
    ended = ROLLED_OUT.get(str(body.get("kind")))
    return ended(body) if ended else None


def is_late(body: Body) -> bool:
    """Whether `kubectl rollout status` gives up."""
    found = listed(body, "status", "conditions")
    return any(one.get("reason") == "ProgressDeadlineExceeded" for one in found if one.get("type") == "Progressing")


def _count(body: Body, field: str) -> int:
    return int(dig(body, "status", field) or 0)


def _is_observed(body: Body) -> bool:
    return bool(name_of(body)) and _count(body, "observedGeneration") >= generation_of(body)


def _deployment(body: Body) -> bool:
    wanted = dig(body, "spec", "replicas")
    updated = _count(body, "updatedReplicas")
    return (
        _is_observed(body)
        and updated >= (1 if wanted is None else int(wanted))
        and _count(body, "replicas") <= updated
        and _count(body, "availableReplicas") >= updated
    )


def _stateful_set(body: Body) -> bool:
    wanted = dig(body, "spec", "replicas")
    ready = _count(body, "readyReplicas") >= (1 if wanted is None else int(wanted))
    same = dig(body, "status", "updateRevision") == dig(body, "status", "currentRevision")
    return _is_observed(body) and ready and same


def _daemon_set(body: Body) -> bool:
    wanted = _count(body, "desiredNumberScheduled")
    numbers = (_count(body, "updatedNumberScheduled"), _count(body, "numberAvailable"))
    return _is_observed(body) and all(number >= wanted for number in numbers)


ROLLED_OUT: dict[str, Callable[[Body], bool]] = {
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
}
