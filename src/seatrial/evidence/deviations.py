"""Objects of a source that are missing, or not as written, after a step that reports success."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.as_written import differences, value_at
from seatrial.evidence.breaches import traced
from seatrial.evidence.history import GOING
from seatrial.evidence.losses import RUNS_TO_ITS_END, is_hook, losses
from seatrial.evidence.moment import Moment
from seatrial.evidence.rendered import applied
from seatrial.evidence.rotated import same_input
from seatrial.evidence.writers import BESIDE, writer_of
from seatrial.graph import users_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Path, Ref, annotations_of, dig, listed
from seatrial.model.timeline import Event

DEPLOYS = ("install", "replace", "back")
LEFT_ALONE = (
    ("kustomize.toolkit.fluxcd.io/ssa", ("ifnotpresent", "ignore", "merge")),
    ("kustomize.toolkit.fluxcd.io/reconcile", ("disabled",)),
)
"""Annotations with which a user asks Flux not to change an object."""
HAPPENED = ("created", "changed", "deleting", "deleted", "refused")
ARGOCD_GROUP = "argoproj.io"
STOPS_WITHOUT = ("admit", "schedule", "start")
SERVES = ("Deployment", "StatefulSet", "DaemonSet", "Service", "Ingress")


class Deviation(Struct, frozen=True):
    """An object that is not what the source says."""

    moment: Moment
    written: Resource
    fields: tuple[Path, ...]
    """The fields that differ; empty if the object is missing."""
    events: tuple[Event, ...]
    """What the engine last did to the object, then what caused that."""
    users: tuple[Ref, ...] = ()
    """For a missing object: the workloads of the source that cannot start without it."""

    @property
    def object(self) -> Ref:
        return self.written.ref


def deviations(moment: Moment) -> Iterator[Deviation]:
    """Every object of the source that a successful step leaves missing or different."""
    release = moment.release
    if release is None or moment.ended.outcome != "ok" or moment.ended.role not in DEPLOYS:
        return
    lost = {loss.object for loss in losses(moment)}
    for resource in (*release.resources, *release.crds):
        ref = resource.ref
        if ref in lost or ref.kind in RUNS_TO_ITS_END or _is_left_alone(moment, resource):
            continue
        live = moment.live(ref)
        if live is None or is_terminating(live):
            if _is_missing(moment, resource):
                yield Deviation(moment, resource, (), tuple(_last_events(moment, ref)), tuple(_users(release, ref)))
        elif not _is_of_another(moment, resource) and (fields := _different(moment, resource, live)):
            yield Deviation(moment, resource, fields, tuple(_last_events(moment, ref)))


def _is_missing(moment: Moment, resource: Resource) -> bool:
    """Whether the engine ought to have created the object. People delete what they want gone.

    Hooks come and go: one is missing only if something that stays cannot start without it.
    """
    ref, release = resource.ref, moment.release
    actor = moment.engine.name
    hook = is_hook(resource, actor) or ("helm" in moment.rehearsal.actors and hooks.is_hook(resource.body))
    if hook and (release is None or not any(_users(release, ref))):
        return False
    if actor == "argocd" and (argocd_hooks.is_skipped(resource.body) or ref.group == ARGOCD_GROUP):
        return False  # Applications and projects are its input; what one of them contains is synced by another.
    if moment.release is not None and resource in moment.release.crds and ref not in moment.ended.missing:
        return False
    gone = [event for event in moment.rehearsal.of_object(ref) if event.effect in GOING and event.step <= moment.index]
    if gone and gone[-1].actor in BESIDE:
        return False
    return applied(moment, resource) is not None


def _is_of_another(moment: Moment, resource: Resource) -> bool:
    """Whether a CRD in crds/ is there already and came from another release: Helm leaves it to that one."""
    if moment.release is None or resource not in moment.release.crds:
        return False
    made = [e for e in moment.rehearsal.of_object(resource.ref) if e.effect == "created" and e.step <= moment.index]
    here = moment.ended.release, moment.ended.namespace
    return bool(made) and writer_of(moment.rehearsal, made[-1])[:2] != here


def _different(moment: Moment, resource: Resource, live: Body) -> tuple[Path, ...]:
    candidates = list(differences(resource.body, live))
    if not candidates:
        return ()
    body = applied(moment, resource)
    if body is None or (hooks.is_hook(body) and not _is_rendered_alike(moment, resource)):
        return ()
    fields = differences(body, live) if body is not resource.body else candidates
    generated = _generated(moment, resource.ref)
    return tuple(path for path in fields if path not in generated and _is_by_engine(moment, resource.ref, path))


def _generated(moment: Moment, ref: Ref) -> set[Path]:
    """Fields whose values the chart of a Release of Pulumi generates: the source has one of many."""
    program = moment.release.program if moment.release else None
    every = (of for one in (program.registrations if program else ()) for of in one.generated)
    return {("data", key) for of in every if of.object == ref for key in of.keys}


def _is_by_engine(moment: Moment, ref: Ref, path: Path) -> bool:
    """Whether the engine wrote the field last; what a controller or a person wrote is theirs."""
    writer = ""
    before: object = None
    for event in moment.rehearsal.of_object(ref):
        if event.step > moment.index or event.after is None or event.effect in ("said", "refused"):
            continue
        value = value_at(event.after, path)
        if not writer or value != before:
            writer, before = event.actor, value
    return writer in moment.rehearsal.actors


def _is_rendered_alike(moment: Moment, resource: Resource) -> bool:
    """Whether a second rendering of the same source gives the same object: otherwise it generates its content."""
    here, releases = moment.release, moment.case.releases
    others = (r for i, r in enumerate(releases) if i != moment.index and r is not None and same_input(r, here))
    found = [other for release in others if (other := release.find(resource.ref))]
    return bool(found) and all(other.body == resource.body for other in found)


def _is_left_alone(moment: Moment, resource: Resource) -> bool:
    """Whether the user asks the engine not to change the object, or some of its fields."""
    marks = annotations_of(resource.body)
    if any(str(marks.get(key, "")).lower() in values for key, values in LEFT_ALONE):
        return True
    release = moment.release
    if release is not None and release.program is not None:
        own = (one for one in release.program.registrations if one.ref == resource.ref)
        if any(one.options.ignore_changes or one.reads or one.patches for one in own):
            return True
    return moment.engine.name == "argocd" and _is_ignored(moment, resource.ref)


def _is_ignored(moment: Moment, ref: Ref) -> bool:
    """Whether an Application of the trial ignores differences of this kind."""
    for resource in moment.case.all_resources():
        for one in listed(resource.body, "spec", "ignoreDifferences") if resource.ref.kind == "Application" else ():
            if dig(one, "kind") in (ref.kind, "*") or str(dig(one, "group") or "") == "*":
                return True
    return False


def _users(release: Release, ref: Ref) -> Iterator[Ref]:
    """The objects of the source, without hooks, that cannot start without another one."""
    for edge in users_of(release, ref):
        hook = hooks.is_hook(edge.user.body) or argocd_hooks.is_hook(edge.user.body)
        if edge.need.stage in STOPS_WITHOUT and not edge.need.optional and not hook:
            yield edge.user.ref


def _last_events(moment: Moment, ref: Ref) -> Iterator[Event]:
    """What the engine last did to the object, or what else last happened to it, and what caused that."""
    about = [e for e in moment.rehearsal.of_object(ref) if e.step <= moment.index and e.effect in HAPPENED]
    own = [event for event in about if event.actor in moment.rehearsal.actors]
    if about:
        yield from traced(moment.rehearsal, (own or about)[-1])
