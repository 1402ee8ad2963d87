"""Sentences about recreated objects: what is deleted with one, how it comes back, and the damage."""

from __future__ import annotations

from msgspec import Struct

from seatrial.evidence.history import held_up, products
from seatrial.evidence.moment import Moment
from seatrial.evidence.users import live_at, running_users
from seatrial.model.finding import Certainty, Damage
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event
from seatrial.phrases.objects import BUILT_IN_GROUPS

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
SERVES = ("Pod", "Service", "Deployment", "StatefulSet", "DaemonSet", "PersistentVolumeClaim")
"""Kinds whose absence stops something, whether the release names them or not."""
CONTENT_ONLY = ("ConfigMap", "Secret")
CONTENT = ("data", "binaryData")
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
"""Kinds whose deletion loses data."""
LOST_MAX = 6


class EndsWithObject(Struct, frozen=True):
    """What ends with an object that a controller or an operator acts on."""

    certainty: Certainty
    damage: Damage
    words: str
    """` and its pods`"""
    sentence: str
    events: tuple[Event, ...] = ()


def ended_with(moment: Moment, ref: Ref, deletion: Event) -> EndsWithObject | None:
    """What a controller created for a deleted object and loses with it. `may` for a kind that is not modelled."""
    if held_up(moment, ref):
        return None  # hook-recreate-races-finalizer reports an object that is applied while it is deleted.
    made = [event for event in products(moment.rehearsal, deletion) if event.object.kind != "ReplicaSet"]
    if ref.kind in WORKLOADS:
        pods = tuple(event for event in made if event.object.kind == "Pod")
        sentence = "Its pods are deleted with it, and nothing runs until the new ones are ready."
        return EndsWithObject("will", "outage", " and its pods", sentence, pods) if pods else None
    if f"{ref.kind}.{ref.group}" in moment.rehearsal.not_modelled:
        sentence = f"{ref.kind} is not modelled: an operator deletes what it created for it, such as pods and volumes."
        return EndsWithObject("may", "outage", "", sentence)
    if not made or ref.group in BUILT_IN_GROUPS:
        return None
    stops = any(_stops_something(moment, event.object, deletion) for event in made)
    named = ", ".join(str(event.object) for event in made[:LOST_MAX])
    words = f" and {made[0].object}" if len(made) == 1 else f" and {len(made)} objects that it owns"
    sentence = f"Deleted with it, and created again later by its controller: {named}."
    return EndsWithObject("will", "outage" if stops else "nuisance", words, sentence, tuple(made))


def _stops_something(moment: Moment, ref: Ref, deletion: Event) -> bool:
    """Whether something running lacks what is deleted here and created again later."""
    if ref.kind in SERVES:
        return True
    if _is_back_as_it_was(moment, ref):
        return any(event.effect == "said" and ref in event.missing for event in moment.events())
    return bool(running_users(live_at(moment.rehearsal, deletion.index), ref))


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
    if changed := _changed_keys(moment, ref):
        return f"It is recreated with other content: {', '.join(map(repr, changed[:LOST_MAX]))}."
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


def _changed_keys(moment: Moment, ref: Ref) -> list[str]:
    """The keys of a Secret or ConfigMap that have another value after the step, or are new."""
    was, now = moment.was(ref), moment.live(ref)
    if ref.kind not in CONTENT_ONLY or was is None or now is None:
        return []
    pairs = [(was.get(field) or {}, now.get(field) or {}) for field in CONTENT]
    return sorted(key for old, new in pairs for key, value in new.items() if old.get(key) != value)
