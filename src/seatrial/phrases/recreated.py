"""Objects that a step deletes and makes anew, in words: what went with one, how it came back, and how bad that is."""

from __future__ import annotations

from seatrial.evidence.acts import engine_in_words
from seatrial.evidence.history import live_after, live_before
from seatrial.model.finding import Damage
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal

CONTENT_ONLY = ("ConfigMap", "Secret")
CONTENT = ("data", "binaryData")
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
"""Kinds with which data go."""
LOST_MAX = 6


def damage_of(rehearsal: Rehearsal, step: int, ref: Ref, lost: list[Event]) -> Damage:
    if lost or ref.kind == "PersistentVolumeClaim":
        return "data-loss"
    return "nuisance" if _is_back_as_it_was(rehearsal, step, ref) else "outage"


def with_it(lost: list[Event]) -> str:
    """` with 4 objects in it`"""
    return f" with {len(lost)} objects in it" if len(lost) > 1 else " with what is in it" if lost else ""


def lost_sentence(rehearsal: Rehearsal, step: int, lost: list[Ref]) -> str:
    """What was deleted with an object, and whether the step made it anew."""
    if not lost:
        return ""
    ended = rehearsal.steps[step]
    gone = [ref for ref in lost if ref in ended.deleted or ref in ended.missing]
    named = ", ".join(map(str, lost[:LOST_MAX])) + (f" and {len(lost) - LOST_MAX} more" if len(lost) > LOST_MAX else "")
    many = "None of them is" if len(gone) == len(lost) else f"{len(gone)} of them are not"
    back = f" {many} there when it ends." if gone else f" {engine_in_words(rehearsal)} makes them anew, empty."
    return f"Deleted with it: {named}.{back}"


def back_sentence(rehearsal: Rehearsal, step: int, ref: Ref) -> str:
    if not _is_back_as_it_was(rehearsal, step, ref):
        return ""
    return "It is back a moment later with the same content: what runs does not notice, what starts in between does."


def _is_back_as_it_was(rehearsal: Rehearsal, step: int, ref: Ref) -> bool:
    """Whether pods that run read the same as before. Of other kinds it matters that it is another object."""
    was, now = live_before(rehearsal, step, ref), live_after(rehearsal, step, ref)
    return ref.kind in CONTENT_ONLY and now is not None and all((was or {}).get(key) == now.get(key) for key in CONTENT)
