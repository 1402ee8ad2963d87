"""Objects that a step deletes and makes anew, in words: what went with one, how it came back, and how bad that is."""

from __future__ import annotations

from seatrial.evidence.acts import label_of
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Damage
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event

CONTENT_ONLY = ("ConfigMap", "Secret")
CONTENT = ("data", "binaryData")
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
"""Kinds with which data go."""
LOST_MAX = 6


def damage_of(moment: Moment, ref: Ref, lost: list[Event]) -> Damage:
    if lost or ref.kind == "PersistentVolumeClaim":
        return "data-loss"
    return "nuisance" if _is_back_as_it_was(moment, ref) else "outage"


def with_it(lost: list[Event]) -> str:
    """` with 4 objects in it`"""
    return f" with {len(lost)} objects in it" if len(lost) > 1 else " with what is in it" if lost else ""


def lost_sentence(moment: Moment, lost: list[Ref]) -> str:
    """What was deleted with an object, and whether the step made it anew."""
    if not lost:
        return ""
    ended = moment.ended
    gone = [ref for ref in lost if ref in ended.deleted or ref in ended.missing]
    named = ", ".join(map(str, lost[:LOST_MAX])) + (f" and {len(lost) - LOST_MAX} more" if len(lost) > LOST_MAX else "")
    many = "None of them is" if len(gone) == len(lost) else f"{len(gone)} of them are not"
    back = f" {many} there when it ends." if gone else f" {label_of(moment.engine)} makes them anew, empty."
    return f"Deleted with it: {named}.{back}"


def back_sentence(moment: Moment, ref: Ref) -> str:
    if not _is_back_as_it_was(moment, ref):
        return ""
    return "It is back a moment later with the same content: what runs does not notice, what starts in between does."


def _is_back_as_it_was(moment: Moment, ref: Ref) -> bool:
    """Whether pods that run read the same as before. Of other kinds it matters that it is another object."""
    was, now = moment.was(ref), moment.live(ref)
    return ref.kind in CONTENT_ONLY and now is not None and all((was or {}).get(key) == now.get(key) for key in CONTENT)
