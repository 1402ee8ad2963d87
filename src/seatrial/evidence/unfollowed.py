"""Lines of scripts that a rehearsal does not follow, and the findings that rest on them: these are never certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.model.finding import Finding
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, NotFollowed, Rehearsal

NAMES_MAX = 3
OVERWRITES = ("changed", "refused")
"""Effects of a write that depend on the value that was there before. A creation never does."""


def lowered(finding: Finding, rehearsal: Rehearsal) -> Finding:
    """A finding that rests on a line that is not followed may happen, and names the line."""
    if finding.certainty == "may":
        return finding
    note = next(_rests_on(finding, rehearsal), None)
    if note is None:
        return finding
    return replace(finding, certainty="may", details=(*finding.details, _sentence(note, finding, rehearsal)))


def unfollowed_notes(rehearsals: Iterable[Rehearsal]) -> Iterator[str]:
    """Each line that is not followed and may change objects, once."""
    seen: set[tuple[Ref, object]] = set()
    for rehearsal in rehearsals:
        for note in (event.not_followed for event in rehearsal.timeline if event.not_followed):
            if note.may_change and (note.owner, note.line) not in seen:
                seen.add((note.owner, note.line))
                names = ", ".join(map(_named, note.may_change[:NAMES_MAX]))
                more = ", ..." if len(note.may_change) > NAMES_MAX else ""
                yield f"{_line(note)} is not followed. It is assumed to succeed; it may change {names}{more}"


def _rests_on(finding: Finding, rehearsal: Rehearsal) -> Iterator[NotFollowed]:
    about = set(_about(finding, rehearsal))
    last = max(finding.evidence, default=len(rehearsal.timeline))
    shown = (rehearsal.timeline[index] for index in finding.evidence)
    overwritten = {event.object for event in shown if event.effect in OVERWRITES and event.verb != "create"}
    for event in rehearsal.timeline:
        if event.not_followed is None or event.step > finding.step or event.index > last:
            continue
        if _touches(event, event.not_followed, about, overwritten):
            yield event.not_followed


def _about(finding: Finding, rehearsal: Rehearsal) -> Iterator[Ref]:
    """What a finding depends on: its objects, and those that its events name or miss."""
    yield from finding.objects
    for index in finding.evidence:
        event = rehearsal.timeline[index]
        yield from (event.object, *event.missing, *event.held_by)
    ended = rehearsal.steps[finding.step]
    if finding.damage == "failed-deploy" and ended.outcome != "ok":
        yield from (*ended.waits_for, *ended.lacking)


def _touches(event: Event, note: NotFollowed, about: set[Ref], overwritten: set[Ref]) -> bool:
    if note.made_up:
        return event.object in overwritten
    if note.fails and (event.object in about or note.owner in about):
        return True
    return any(_is(changed, ref) for changed in note.may_change for ref in about)


def _is(changed: Ref, ref: Ref) -> bool:
    same_kind = (changed.kind, changed.group, changed.namespace) == (ref.kind, ref.group, ref.namespace)
    return same_kind and changed.name in ("", ref.name)


def _sentence(note: NotFollowed, finding: Finding, rehearsal: Rehearsal) -> str:
    if note.made_up:
        return f"{_line(note)} is not followed: the value that the script writes is not known."
    about = set(_about(finding, rehearsal))
    changed = next((ref for ref in sorted(about) if any(_is(one, ref) for one in note.may_change)), None)
    if changed is None:
        return f"{_line(note)} is not followed: the script may end otherwise."
    return f"{_line(note)} is not followed: the script may change {changed} there, or behind it."


def _line(note: NotFollowed) -> str:
    return f"{note.owner}: {note.line} of its script" if note.line.number else f"{note.owner}: the {note.line}"


def _named(ref: Ref) -> str:
    return str(ref) if ref.name else f"any {ref.kind}" + (f" in {ref.namespace}" if ref.namespace else "")
