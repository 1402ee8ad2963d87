"""Steps that apply the same input again, and what the engine changes in them all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import GOING
from seatrial.evidence.losses import RUNS_TO_ITS_END, is_hook, losses
from seatrial.evidence.moment import Moment, moments
from seatrial.evidence.rotated import same_input
from seatrial.evidence.secret_data import secret_data
from seatrial.helm.records import NAME as RECORD
from seatrial.model import lazy_re
from seatrial.model.release import Case
from seatrial.model.resource import Body, Path, Ref, annotations_of, changed_paths, labels_of
from seatrial.model.timeline import Event, Rehearsal

DEPLOYS = ("install", "replace")
BOOKKEEPING = ("metadata", "status", "apiVersion", "kind", "stringData")
WROTE = ("created", "changed", *GOING)
CONTENT = frozenset(("ConfigMap", "Secret"))
CHECKSUM = lazy_re.compile("checksum|hash|sha", re.IGNORECASE)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
FIELDS_MAX = 20


class RepeatedWrite(Struct, frozen=True):
    """What the engine did to an object when the same input was applied again."""

    moment: Moment
    object: Ref
    events: tuple[Event, ...]
    """The engine's first and last write of it."""
    before: Body | None
    after: Body | None

    @property
    def fields(self) -> tuple[Path, ...]:
        """The fields that changed; empty if the object was created or deleted."""
        if self.before is None or self.after is None:
            return ()
        return tuple(changed_paths(_content(self.before), _content(self.after)))[:FIELDS_MAX]


def changes(rehearsal: Rehearsal, case: Case) -> Iterator[RepeatedWrite]:
    """What the engine changes although the input is the same as in the step before."""
    for moment in moments(rehearsal, case):
        if not is_repeat(moment):
            continue
        lost = {loss.object for loss in losses(moment)}
        found = [change for change in _changes(moment) if change.object not in lost]
        kinds = {change.object.kind for change in found}
        yield from (change for change in found if not (kinds & CONTENT and _is_checksum(change)))


def is_repeat(moment: Moment) -> bool:
    """Whether a step succeeds in applying what the step before it, of the same release, has applied."""
    index, steps = moment.index, moment.rehearsal.steps
    if index == 0 or moment.ended.role != "replace" or moment.ended.outcome != "ok":
        return False
    earlier = steps[index - 1]
    if "ok" not in (earlier.outcome, earlier.again) or earlier.role not in DEPLOYS or earlier.by != moment.ended.by:
        return False
    named = [(ended.release, ended.namespace, ended.flags) for ended in (earlier, moment.ended)]
    if (moment.ended.action == earlier.action and named[0] != named[1]) or named[0][:2] != named[1][:2]:
        return False
    return same_input(moment.case.releases[index - 1], moment.release)


def _changes(moment: Moment) -> Iterator[RepeatedWrite]:
    for ref, events in _written(moment).items():
        before, after = events[0].before, events[-1].after if events[-1].effect not in GOING else None
        if _content(before) != _content(after):
            yield RepeatedWrite(moment, ref, (events[0], *events[1:][-1:]), before, after)


def _is_checksum(change: RepeatedWrite) -> bool:
    """Whether only checksums in annotations changed: what they are made of is reported itself."""
    return bool(change.fields) and all(CHECKSUM.search(str(path[-1])) for path in change.fields)


def _written(moment: Moment) -> dict[Ref, list[Event]]:
    """The engine's writes of objects, without Helm's records, and without hooks, Jobs and Pods, which run again."""
    found: dict[Ref, list[Event]] = {}
    for event in moment.events():
        ref = event.object
        if event.actor not in moment.rehearsal.actors or event.effect not in WROTE or ref.kind in RUNS_TO_ITS_END:
            continue
        written = moment.case.written(moment.index, ref)
        if RECORD.fullmatch(ref.name) or (written is not None and is_hook(written, event.actor)):
            continue
        found.setdefault(ref, []).append(event)
    return found


def _content(body: Body | None) -> Body | None:
    """What people write of an object."""
    if body is None:
        return None
    rest = {key: value for key, value in body.items() if key not in BOOKKEEPING}
    if body.get("kind") == "Secret":
        rest["data"] = {key: value for key, value in secret_data(body).items() if value}
    marks = {key: value for key, value in annotations_of(body).items() if key != LAST_APPLIED}
    return {**rest, "metadata": {"labels": labels_of(body), "annotations": marks}}
