"""What Helm requests with `--wait`, from what it requested without: the same, and some waits in between.

The watcher of `--wait` and the one that is used without it (`hookOnlyWaiter` in pkg/kube/statuswait.go of Helm 4.2)
differ in two calls alone. `Wait` follows the CRDs of crds/ and the regular resources (pkg/action/install.go and
upgrade.go), `WaitForDelete` follows each deletion of a hook (pkg/action/hooks.go). Where such a wait does not end well
and at once in the rehearsal, the replay ends and Helm itself runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.cluster.server.transcript import AddedWait, Answered, TranscriptLine, Watched
from seatrial.engines import Ended
from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.helm.waiting import waited_for
from seatrial.helm import hooks, records
from seatrial.helm import sdk as helmsdk
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard, Recorded
from seatrial.readiness.kstatus import is_content_with, is_ready_for_wait

WAIT = "--wait"
ANNOTATED = f'"{hooks.HOOK}"'.encode()


def without_wait(plan: Plan, others: Sequence[Plan]) -> int | None:
    """The first of the other plans that has the same steps, without `--wait`."""
    if not any(WAIT in planned.step.flags for planned in plan.steps) or any(_flips(plan.steps)):
        return None
    return next((index for index, other in enumerate(others) if other is not plan and _begins_alike(other, plan)), None)


def add_waits(heard: Heard, plan: Plan, base: Heard) -> None:
    """Add what Helm requests in `plan`, by what it requested in `base` without `--wait`, to what was heard."""
    for place, acts in base.first().acts.items():
        index = place[0]
        if place in heard.acts or index >= len(plan.steps):
            continue
        act = plan.steps[index].act
        if isinstance(act, HelmAct) and (waiting := [one for recorded in acts for one in _waiting(recorded, act)]):
            heard.acts[place] = waiting


def _begins_alike(other: Plan, plan: Plan) -> bool:
    """Whether a plan begins with the steps of another one, without `--wait`."""
    acts = [(mine.act, theirs.act) for mine, theirs in zip(plan.steps, other.steps, strict=False)]
    same = all(isinstance(mine, HelmAct) and theirs == _without_flag(mine) for mine, theirs in acts)
    return same and other.engine == plan.engine and len(other.steps) >= len(plan.steps)


def _without_flag(act: HelmAct) -> HelmAct:
    return replace(act, flags=tuple(flag for flag in act.flags if flag != WAIT))


def _flips(steps: Sequence[PlannedStep[Any]]) -> Iterator[bool]:
    """By step: whether it makes hooks of regular resources, or is not known well enough to tell.

    Then it is not clear which of the two a request deletes.
    """
    before: Release | None = None
    for step in steps:
        regular = {one.ref for release in (before, step.release) for one in _regular(release)}
        hooked = (one.ref for one in step.release.resources if hooks.is_hook(one.body)) if step.release else ()
        yield step.release is None or any(ref in regular for ref in hooked)
        before = step.release


def _regular(release: Release | None) -> Iterator[Any]:
    return (one for one in release.resources if not hooks.is_hook(one.body)) if release else iter(())


def _waiting(recorded: Recorded, act: HelmAct) -> Iterator[Recorded]:
    """The recording with the waits of `--wait`, where it is certain at which points they are."""
    if recorded.act == act:
        yield recorded
    if recorded.act != _without_flag(act) or act.flags != (WAIT,) or recorded.ended != Ended("ok"):
        return
    if act.binary or helmsdk.missing or act.as_version:
        return  # Not the version that this was read from.
    lines = list(_with_waits(recorded.transcript.lines, act.action))
    if lines:
        yield Recorded(act, recorded.transcript.with_lines(lines), recorded.ended)


def _with_waits(lines: Sequence[TranscriptLine], action: str) -> Iterator[TranscriptLine]:
    """All lines and the waits between them; none where that is not certain."""
    regular = {index for index, line in enumerate(lines) if _applies(line) and not _is_of_hook(line)}
    removed = {index for index, (before, line) in enumerate(pairwise(lines), start=1) if _removes(before, line)}
    created = next((index for index, line in enumerate(lines) if _creates_record(line)), None)
    plain = all(isinstance(line, Answered | Watched) for line in lines)
    if not plain or created is None or not any(index > created for index in regular):
        return
    of_crds = max((index for index in regular if index < created), default=None)
    of_all = max(index for index in regular | removed if index > created)
    all_ready = AddedWait(_is_content, is_ready_for_wait, partial(waited_for, action))
    for index, line in enumerate(lines):
        yield replace(line, is_ready=is_ready_for_wait) if isinstance(line, Watched) else line
        if index in (of_crds, of_all):
            yield all_ready
        elif index not in removed and (path := _deleted(line)):
            yield replace(all_ready, is_content=_is_gone, path=path)


def _is_content(body: Body | None) -> bool:
    return body is not None and is_content_with(body)


def _is_gone(body: Body | None) -> bool:
    return body is None


def _applies(line: TranscriptLine) -> bool:
    return isinstance(line, Answered) and line.request.method == "PATCH"


def _deleted(line: TranscriptLine) -> str:
    """The path of the object that a line deletes; records of Helm do not count."""
    if not isinstance(line, Answered) or line.request.method != "DELETE" or records.NAME.search(line.request.path):
        return ""
    return line.request.path


def _removes(before: TranscriptLine, line: TranscriptLine) -> bool:
    """Whether a line deletes a regular resource, which Helm reads first; it does not read hooks."""
    if not isinstance(before, Answered) or before.request.method != "GET":
        return False
    return before.request.path == _deleted(line)


def _creates_record(line: TranscriptLine) -> bool:
    return isinstance(line, Answered) and line.request.method == "POST"


def _is_of_hook(line: TranscriptLine) -> bool:
    if not isinstance(line, Answered) or ANNOTATED not in line.request.body:
        return False
    return hooks.is_hook(msgspec.json.decode(line.request.body))
