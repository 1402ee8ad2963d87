"""Sentences about recreated objects: what is lost with one, how it comes back, and the damage."""

from __future__ import annotations

from seatrial.evidence.moment import Moment
from seatrial.model.finding import Damage
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event

CONTENT_ONLY = ("ConfigMap", "Secret")
CONTENT = ("data", "binaryData")
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
"""Kinds whose deletion loses data."""
LOST_MAX = 6


def damage_of(moment: Moment, ref: Ref, lost: list[Event]) -> Damage:
    if lost or ref.kind == "PersistentVolumeClaim":
        return "data-loss"
    return "nuisance" if _is_back_as_it_was(moment, ref) else "outage"


def with_it(lost: list[Event]) -> str:
    """` with 4 objects in it`"""
    return f" with {len(lost)} object{'s' if len(lost) > 1 else ''} in it" if lost else ""


def lost_sentence(moment: Moment, lost: list[Ref]) -> str:
    """What is deleted with an object, and whether the step recreates it."""
    if not lost:
        return ""
    ended = moment.ended
    gone = [ref for ref in lost if ref in ended.deleted or ref in ended.missing]
    named = ", ".join(map(str, lost[:LOST_MAX])) + (f" and {len(lost) - LOST_MAX} more" if len(lost) > LOST_MAX else "")
    many = "None of them exists" if len(gone) == len(lost) else f"{len(gone)} of them do not exist"
    back = f" {many} when the step ends." if gone else f" {moment.rehearsal.label} recreates them, empty."
    return f"Deleted with it: {named}.{back}"


def back_sentence(moment: Moment, ref: Ref) -> str:
    if not _is_back_as_it_was(moment, ref):
        return ""
    return (
        "It is recreated at once with the same content. Running pods are not affected; a pod that starts in between "
        "does not find it."
    )


def _is_back_as_it_was(moment: Moment, ref: Ref) -> bool:
    """Whether running pods read the same content as before. For other kinds a new object is a change in itself."""
    was, now = moment.was(ref), moment.live(ref)
    return ref.kind in CONTENT_ONLY and now is not None and all((was or {}).get(key) == now.get(key) for key in CONTENT)
