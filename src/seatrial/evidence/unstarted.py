"""Workloads whose pods cannot start once the cluster has settled, each with the reason that the rehearsal knows.

Knows no engine: what is deployed and cannot start counts whether the engine waits for it or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.breaches import Breach
from seatrial.evidence.deviations import DEPLOYS, deviations
from seatrial.evidence.history import owner_of
from seatrial.evidence.losses import is_hook, losses
from seatrial.evidence.moment import Moment, moments
from seatrial.evidence.producers import chain
from seatrial.evidence.rotated import same_input
from seatrial.evidence.volumes import VOLUME
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import PRINTED
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.workloads.pods import is_active, is_ready
from seatrial.model.finding import Damage
from seatrial.model.release import Case, Resource, once
from seatrial.model.resource import Body, Path, Ref, dig
from seatrial.model.timeline import Event, Rehearsal

POD: Path = ("spec", "template", "spec")
CREATES_PODS = ("FailedCreate", "ReplicaSetCreateError")
"""Reasons of the events of controllers whose pods or ReplicaSets the API server refuses."""
CRASHES = "BackOff"
STOPS_PODS = ("FailedMount", "FailedAttachVolume", "FailedScheduling", "Failed", CRASHES)
"""Reasons of the events of pods that do not start. A pull secret that is missing is only a warning."""
STARTS_WITH = ("admit", "schedule", "start")
"""Stages at which a pod needs an object in order to start."""
IMAGE = "ImageStreamTag"
ENDS = "Job"
"""A Job may fail by design; without its pod it does not even begin."""


class Unstarted(Struct, frozen=True):
    """A workload of a release that cannot start its pods when a step has ended."""

    moment: Moment
    written: Resource
    said: Event | None
    """The last message about its pods; None if the pods of before run on."""
    missing: tuple[Ref, ...]
    key: str
    """The missing key of an existing object."""
    deletion: Event | None
    """The deletion of a missing object."""
    ready: int
    """How many of its pods are ready, all of an earlier revision or start."""
    was_ready: int
    """How many were when the step began."""

    @property
    def object(self) -> Ref:
        return self.written.ref

    @property
    def cause(self) -> str:
        """What does not depend on the names of pods, and so is alike in every rehearsal."""
        if self.missing:
            return " ".join((*map(str, self.missing), self.key)).strip()
        refusal = self.said.refusal if self.said else None
        if refusal is not None:
            return refusal.by or refusal.reason
        return self.said.reason if self.said else ""


def breaches(rehearsal: Rehearsal, case: Case) -> Iterator[Breach]:
    """Every workload that cannot start, as a breach of the invariant."""
    for one in unstarted(rehearsal, case):
        events = tuple(event for event in (one.said, one.deletion) if event is not None)
        yield Breach(
            one.moment,
            one.object,
            _damage(one),
            one.cause,
            events,
            _why(one),
            _path(one),
            lasts=True,
            lacking=tuple(_lacking(one)),
            stops=True,
        )


def _lacking(one: Unstarted) -> Iterator[Ref]:
    """What is missing, what it would be produced from, and whose pods hold a volume."""
    for ref in one.missing:
        for link in chain(one.moment, ref) if not one.key else ():
            yield from (link.missing, *((link.producer,) if link.producer else ()))
        yield ref
    for pod in one.said.held_by if one.said else ():
        yield from (owner for owner in (owner_of(one.moment, pod),) if owner is not None)


def _damage(one: Unstarted) -> Damage:
    return "outage" if one.was_ready and not one.ready else "failed-deploy"


def _why(one: Unstarted) -> str:
    """What still runs of the workload."""
    if one.said is None:
        return f"The pods of {one.object} run on until they are replaced: by a rollout, an eviction or a lost node."
    if one.ready:
        pods, runs = ("1 pod", "runs") if one.ready == 1 else (f"{one.ready} pods", "run")
        return f"{pods} of {one.object} {'from before still ' if one.was_ready else ''}{runs}."
    return f"No pod of {one.object} runs any more." if one.was_ready else ""


def _path(one: Unstarted) -> Path:
    """The field that names what is missing."""
    named = (need for need in needs_of(one.written) if need.object in one.missing and not need.guess)
    return next((need.field for need in named if one.key in ("", need.key)), POD)


def unstarted(rehearsal: Rehearsal, case: Case) -> tuple[Unstarted, ...]:
    """Every workload that cannot start, after every step that deploys something.

    Left out is what a later revision or another release of the trial repairs. After a repair that is only assumed,
    nothing is known.
    """
    return once(rehearsal, "unstarted", lambda: tuple(_lasting(rehearsal, case)) if not rehearsal.repaired else ())


def _lasting(rehearsal: Rehearsal, case: Case) -> Iterator[Unstarted]:
    judged = [moment for moment in moments(rehearsal, case) if _is_judged(moment)]
    by_step = {moment.index: {(one.object, one.cause): one for one in _after(moment)} for moment in judged}
    told: set[tuple[Ref, str]] = set()
    repaired: set[tuple[Ref, str, int]] = set()
    for moment in judged:
        first = _first_with(moment)
        for key, one in by_step[moment.index].items():
            later = (other for other in judged if other.index > moment.index and key not in by_step[other.index])
            if key in told or _is_told(one):
                told.add(key)
            elif any(_first_with(other) > moment.index for other in later) or (*key, first) in repaired:
                repaired.add((*key, first))
            else:
                yield one


def _first_with(moment: Moment) -> int:
    """The first step that deploys the input of this one: a rollback deploys an earlier one again."""
    releases = moment.case.releases[: moment.index]
    return next((step for step, other in enumerate(releases) if same_input(other, moment.release)), moment.index)


def _is_judged(moment: Moment) -> bool:
    """Whether the cluster has come to rest after a step that applied its whole source."""
    ended = moment.ended
    if ended.role not in DEPLOYS or not ended.settled or ended.killed:
        return False
    if ended.outcome == "ok":
        return True
    regular = [one for one in moment.release.resources if not hooks.is_hook(one.body)] if moment.release else []
    return bool(regular) and all(moment.live(one.ref) is not None for one in regular)


def _after(moment: Moment) -> Iterator[Unstarted]:
    reported: set[Ref] = set()
    for said in _messages(moment):
        owner = said.object if _is_top(moment, said.object) else owner_of(moment, said.object)
        written = moment.case.written(moment.index, owner) if owner is not None else None
        if written is None or written.ref in reported or _is_hook(moment, written):
            continue
        if (said.reason == CRASHES and written.ref.kind == ENDS) or _comes_from_outside(moment, said):
            continue
        reported.add(written.ref)
        yield _unstarted(moment, written, said, said.missing, said.key)
    yield from (one for one in _without_needs(moment) if one.object not in reported)


def _messages(moment: Moment) -> Iterator[Event]:
    """The last message about each pod that is not ready, and about each owner that gets no pods."""
    last: dict[Ref, Event] = {}
    for event in moment.rehearsal.timeline:
        if event.step > moment.index:
            break
        if event.effect in ("created", "deleted"):
            last.pop(event.object, None)
        elif event.effect == "said" and _stops(event):
            last[event.object] = event
    for ref, event in last.items():
        body = moment.live(ref)
        if body is None or is_terminating(body):
            continue
        if ref.kind == "Pod":
            if is_active(body) and not is_ready(body):
                yield event
        elif not _got_one(moment, event):
            yield event


def _stops(event: Event) -> bool:
    if event.object.kind != "Pod":
        return event.reason in CREATES_PODS
    return event.reason in STOPS_PODS or (event.reason == PRINTED and bool(event.missing))


def _got_one(moment: Moment, refused: Event) -> bool:
    """Whether the same owner got a pod or a ReplicaSet later, or wants none any more."""
    body = moment.live(refused.object)
    if dig(body, "spec", "replicas") == 0:
        return True
    for event in moment.rehearsal.timeline[refused.index + 1 :]:
        if event.step > moment.index:
            break
        for owner in (dig(event.after, "metadata", "ownerReferences") or ()) if event.effect == "created" else ():
            if (owner.get("kind"), owner.get("name")) == (refused.object.kind, refused.object.name):
                return True
    return False


def _comes_from_outside(moment: Moment, said: Event) -> bool:
    """Whether a volume or an image is missing that no release brings: then it is assumed to come from outside."""
    if said.reason == "FailedScheduling" and not (said.missing or said.held_by):
        return not any(one.ref.kind == VOLUME for one in moment.case.all_resources())
    return any(ref.kind == IMAGE and chain(moment, ref)[0].producer is None for ref in said.missing)


def _is_top(moment: Moment, ref: Ref) -> bool:
    return not dig(moment.live(ref), "metadata", "ownerReferences")


def _without_needs(moment: Moment) -> Iterator[Unstarted]:
    """Workloads whose pods run, but could not start again: their live template names what was deleted."""
    gone = {event.object for event in moment.events() if event.effect == "deleted"}
    missing = {ref for ref in gone if moment.live(ref) is None}
    for resource in moment.release.resources if moment.release and missing else ():
        live = moment.live(resource.ref)
        if live is None or is_terminating(live) or _is_hook(moment, resource) or not _starts_pods(live):
            continue
        for need in needs_of(Resource(resource.ref, live, resource.origin)):
            known = not (need.optional or need.guess or need.program)
            if known and need.object in missing and need.stage in STARTS_WITH:
                yield _unstarted(moment, resource, None, (need.object,), "")
                break


def _starts_pods(live: Body) -> bool:
    """Whether an object starts pods again when one is lost."""
    return live.get("kind") != ENDS and bool(dig(live, *POD)) and dig(live, "spec", "replicas") != 0


def _is_hook(moment: Moment, written: Resource) -> bool:
    """Whether the engine waits for the object by itself; Flux and Pulumi may have a Helm in them."""
    by_helm = "helm" in moment.rehearsal.actors and hooks.is_hook(written.body)
    return by_helm or is_hook(written, moment.engine.name)


def _unstarted(moment: Moment, written: Resource, said: Event | None, missing: tuple[Ref, ...], key: str) -> Unstarted:
    deletions = (event for ref in missing for event in moment.rehearsal.of_object(ref) if event.effect == "deleted")
    deletion = next((event for event in reversed([*deletions]) if event.step <= moment.index and not key), None)
    now, before = _ready_pods(moment, written.ref, moment.index), _ready_pods(moment, written.ref, moment.index - 1)
    return Unstarted(moment, written, said, missing, key, deletion, now, before)


def _ready_pods(moment: Moment, workload: Ref, step: int) -> int:
    """How many pods of a workload are ready at the end of a step."""
    if step < 0:
        return 0
    at = moment.at(step)
    pods = {event.object for event in moment.rehearsal.timeline if event.object.kind == "Pod" and event.step <= step}
    live = ((ref, body) for ref in pods if (body := at.live(ref)) is not None and is_active(body) and is_ready(body))
    return sum(owner_of(at, ref) == workload for ref, _ in live)


def _is_told(one: Unstarted) -> bool:
    """Whether a lost or missing object of the source is the cause: that is reported by itself."""
    if not one.missing:
        return False
    moment = one.moment
    lost = {loss.object for loss in losses(moment) if loss.damage != "nuisance" or not moment.ended.explicit}
    absent = {deviation.object for deviation in deviations(moment) if not deviation.fields}
    return not (lost | absent).isdisjoint(one.missing)
