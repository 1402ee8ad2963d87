"""Object history: restarts, owners, deletions and what they cascade to."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, moments
from seatrial.helm import hooks
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of
from seatrial.model.timeline import Event, Rehearsal

DEPLOYS = ("install", "upgrade")
GOING = ("deleted", "deleting")
MADE_BY_ITSELF = ("default", "kube-root-ca.crt")
"""Objects that every namespace gets by itself."""
MADE_BY_THE_CLUSTER = ("Endpoints", "PersistentVolume")
"""Kinds that controllers create without an owner reference, for a Service and for a PVC."""


def restarted(moment: Moment, workload: Ref) -> bool:
    """Whether a step changed the pod template of a workload."""
    was, now = moment.was(workload), moment.live(workload)
    return was is not None and now is not None and dig(was, "spec", "template") != dig(now, "spec", "template")


def owner_of(moment: Moment, ref: Ref, seen: Body | None = None) -> Ref | None:
    """The top-level owner of a pod, through its ReplicaSet; `seen` is its body if it no longer exists."""
    owner: Ref | None = None
    body = seen or moment.live(ref)
    while body is not None and (named := next(iter(dig(body, "metadata", "ownerReferences") or ()), None)):
        owner = Ref(str(named["kind"]), ref.namespace, str(named["name"]), group_of(str(named["apiVersion"])))
        body = moment.live(owner)
    return owner


def newest(rehearsal: Rehearsal, case: Case) -> tuple[Moment, Release] | None:
    """The last install or upgrade of the input as it is, and its release."""
    for moment in reversed([*moments(rehearsal, case)]):
        if moment.release is not None and not moment.release.next_version and moment.ended.action in DEPLOYS:
            return moment, moment.release
    return None


def newest_resources(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[Moment, Resource]]:
    """The resources of the last install or upgrade, each with the step."""
    if deployed := newest(rehearsal, case):
        moment, release = deployed
        yield from ((moment, resource) for resource in release.resources)


def pruned(moment: Moment) -> Iterator[tuple[Event, Resource]]:
    """The engine's deletions of resources that the new release drops, with their old source."""
    old, new = moment.before, moment.release
    if old is None or new is None or moment.ended.role not in ("replace", "back"):
        return
    for event in moment.events():
        if event.actor not in moment.rehearsal.actors or event.effect not in GOING:
            continue
        if moment.ended.explicit and new.find(event.object) is not None:
            continue  # It is deleted in order to be recreated.
        was = old.find(event.object)
        if was is not None and not hooks.is_hook(was.body) and as_hook(new, event.object) is None:
            yield event, was


def release_with(case: Case, step: int, ref: Ref) -> Release | None:
    """The last release before a step that contained an object."""
    before = (case.before, *case.releases[:step])
    return next((release for release in reversed(before) if release and release.find(ref)), None)


def as_hook(release: Release, ref: Ref) -> Resource | None:
    """The hook of this name, if the release has one; a regular resource may have the same name."""
    return next((r for r in release.named(ref) if hooks.is_hook(r.body)), None)


def as_regular(release: Release, ref: Ref) -> Resource | None:
    """The regular resource of this name, if the release has one."""
    return next((r for r in release.named(ref) if not hooks.is_hook(r.body)), None)


def cascade(rehearsal: Rehearsal, deletion: Event) -> list[Event]:
    """Deletions that follow from a deletion, without objects that a controller owns."""
    return [event for event in _deleted_with(rehearsal, deletion) if is_from_people(event)]


def products(rehearsal: Rehearsal, deletion: Event) -> list[Event]:
    """Deletions of what controllers created for the deleted object and for what they created for it."""
    return [event for event in _deleted_with(rehearsal, deletion) if dig(event.before, "metadata", "ownerReferences")]


def _deleted_with(rehearsal: Rehearsal, deletion: Event) -> list[Event]:
    """The first deletion of each other object that follows from a deletion. What was terminating before does not."""
    caused = {deletion.index}
    found: list[Event] = []
    for event in rehearsal.timeline[deletion.index + 1 :]:
        if event.cause not in caused:
            continue
        caused.add(event.index)
        if event.effect in GOING and event.object != deletion.object:
            found.append(event)
    firsts = {event.object: event for event in reversed(found)}
    return [event for event in reversed(firsts.values()) if not is_terminating(event.before or {})]


def is_from_people(event: Event) -> bool:
    """Whether the object of an event was written by an engine or a user, not by a controller."""
    ref = event.object
    made = ref.name in MADE_BY_ITSELF or (ref.kind in MADE_BY_THE_CLUSTER and not ref.group)
    return not made and not dig(event.before, "metadata", "ownerReferences")


def held_up(moment: Moment, ref: Ref) -> Event | None:
    """Helm's deletion of an object that was still Terminating when Helm wrote it again, or waited for it."""
    deletion: Event | None = None
    for event in moment.rehearsal.of_object(ref):
        if event.step != moment.index:
            continue
        if event.effect == "deleted":
            deletion = None
        elif event.actor == "helm" and event.effect == "deleting":
            deletion = event
        elif event.actor == "helm" and deletion is not None:
            return deletion
    return deletion if ref in moment.ended.waits_for else None
