"""Ways out after a Helm that died: its record stays pending, and every later command stops at it.

There is no command to unlock a release. `helm rollback` does not look at the status of the last record
(`prepareRollback` in pkg/action/rollback.go of Helm 4.2); nor does `helm uninstall`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.engines.act import Apply, HelmAct, Manifest
from seatrial.engines.engine import PlannedStep, WayOut
from seatrial.engines.helm.sdk import DEPLOYS
from seatrial.helm.records import NAME, record_name
from seatrial.model.resource import Ref
from seatrial.model.trial import Step

BY_HAND = "kubectl"
RUNS_ONCE = ("Job", "Pod")
"""Kinds of hooks that may be deleted by hand: they are created again."""


def ways_out(steps: Sequence[PlannedStep[Any]], index: int, wrote: Ref) -> Iterator[WayOut]:
    """Best first. Each ends with the same command again."""
    died = steps[index]
    again = as_typed(died)
    if died.step.action == "uninstall":
        yield WayOut((f"{again} --no-hooks",), (_with_flag(died, "--no-hooks"),))
        return
    back = _rollback(steps, index) if died.step.action != "install" else _uninstall(died)
    if back is None:
        return
    pending = 1 + (back.step.revision if back.step.action == "rollback" else 0)
    forgotten = deleted_by_hand(Ref("Secret", died.namespace, record_name(died.name, pending)))
    ways: list[tuple[PlannedStep[Any], ...]] = [(back,), (forgotten,)]
    if wrote.kind in RUNS_ONCE and not NAME.fullmatch(wrote.name):
        ways += [(deleted_by_hand(wrote), back)]
    for first in ways:
        yield WayOut((*map(as_typed, first), again), (*first, died))


def _rollback(steps: Sequence[PlannedStep[Any]], index: int) -> PlannedStep[HelmAct] | None:
    """To the last revision; None if it is not known which one that is."""
    died = steps[index]
    before = [one for one in steps[:index] if _is_same(one, died) and one.step.action != "uninstall"]
    later = (one for one in steps[index:] if _is_same(one, died) and one.step.action == "rollback")
    if not before:
        return next(later, None)  # To what was deployed before the trial.
    revision = _revisions(steps[:index], died)
    act = replace(died.act, action="rollback", revision=revision, chart=None, flags=(), archive=b"")
    step = Step("rollback", revision=revision)
    return PlannedStep(step, died.by, died.name, died.namespace, act, before[-1].release)


def _uninstall(died: PlannedStep[HelmAct]) -> PlannedStep[HelmAct]:
    act = replace(died.act, action="uninstall", chart=None, flags=(), archive=b"")
    return PlannedStep(Step("uninstall"), died.by, died.name, died.namespace, act)


def _with_flag(died: PlannedStep[HelmAct], flag: str) -> PlannedStep[HelmAct]:
    flags = (*died.step.flags, flag)
    return replace(died, step=replace(died.step, flags=flags), act=replace(died.act, flags=flags))


def deleted_by_hand(ref: Ref) -> PlannedStep[Apply]:
    version = f"{ref.group}/v1" if ref.group else "v1"
    body = {"apiVersion": version, "kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace}}
    step = Step("delete", str(ref), flags=("--ignore-not-found",))
    return PlannedStep(step, BY_HAND, "", ref.namespace, Apply((Manifest(body, ""),)))


def _revisions(before: Sequence[PlannedStep[Any]], died: PlannedStep[Any]) -> int:
    """The number of the last revision before a step."""
    number = 0
    for one in before:
        if _is_same(one, died):
            number = 0 if one.step.action == "uninstall" else number + (one.step.action in (*DEPLOYS, "rollback"))
    return number


def _is_same(one: PlannedStep[Any], other: PlannedStep[Any]) -> bool:
    return isinstance(one.act, HelmAct) and (one.name, one.namespace) == (other.name, other.namespace)


def as_typed(planned: PlannedStep[Any]) -> str:
    """As a user types it. A chart and its values are not repeated."""
    step, namespace = planned.step, f"-n {planned.namespace}"
    if planned.by == BY_HAND:
        kind, _, name = step.source.partition("/")
        return f"kubectl delete {kind.lower()} {name.rpartition('/')[2]} {namespace}"
    match step.action:
        case "rollback":
            return f"helm rollback {planned.name} {step.revision} {namespace}"
        case "uninstall":
            return f"helm uninstall {planned.name} {namespace}"
    return f"helm {step.action} {planned.name} ... {namespace}"
