"""Objects of other owners that a step deletes, takes over or changes. Owners are releases, apps, and people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from seatrial.evidence.breaches import traced
from seatrial.evidence.crds import losses as lost_of_crd
from seatrial.evidence.history import GOING, is_from_people
from seatrial.evidence.moment import Moment
from seatrial.evidence.users import live_at, running_users
from seatrial.evidence.volumes import CLAIM
from seatrial.evidence.writers import BESIDE
from seatrial.helm.argocd_hooks import TRACKING_ID
from seatrial.helm.ownership import RELEASE_NAME, RELEASE_NAMESPACE
from seatrial.helm.records import NAME as RECORD
from seatrial.model.finding import Damage
from seatrial.model.resource import Body, Ref, annotations_of, labels_of
from seatrial.model.timeline import Event, StepResult

KUSTOMIZE = "kustomize.toolkit.fluxcd.io"
ANOTHER_USER = "another user"
DEFINITION = "CustomResourceDefinition"
HOLDS = ("Namespace", DEFINITION)
BOOKKEEPING = ("metadata", "status", "apiVersion", "kind")
TAKES = "--take-ownership"


class Touch(Struct, frozen=True):
    """What a step did to an object of another owner."""

    moment: Moment
    object: Ref
    owner: str
    """`release web in shop`, `Application shop`, `another user`."""
    verb: str
    """deletes, takes over, downgrades, changes"""
    chain: tuple[Event, ...]
    """The event and its causes, back to the request."""
    damage: Damage
    adopted: bool = False
    """Whether the user asked to take it over."""


def touches(moment: Moment) -> Iterator[Touch]:
    """The objects of others that the engine touches in a step, each with the first event."""
    seen: set[tuple[Ref, bool]] = set()
    for event in moment.events():
        goes = event.effect in GOING
        if not (goes or event.effect == "changed") or (event.object, goes) in seen:
            continue
        if RECORD.fullmatch(event.object.name) or (goes and not is_from_people(event)):
            continue
        chain = tuple(traced(moment.rehearsal, event))
        if chain[-1].actor not in moment.rehearsal.actors or (not goes and len(chain) > 1):
            continue
        owner = _other_owner(moment, event)
        if owner:
            seen.add((event.object, goes))
            adopted = TAKES in moment.ended.flags and not goes
            yield Touch(moment, event.object, owner, _verb(event), chain, _damage(moment, event, chain), adopted)


def _other_owner(moment: Moment, event: Event) -> str:
    """Who owns the object, if it is another owner than the one that acts; otherwise empty."""
    was, now = marks(event.before), marks(event.after)
    if event.effect == "changed":
        if moved := [was[kind] for kind in was if kind in now and was[kind] != now[kind]]:
            return moved[0]
        if any(was[kind] == now[kind] for kind in was if kind in now) or _content(event.before) == _content(
            event.after
        ):
            return ""
    made = _creation(moment, event)
    if made is None or _is_adopted(moment, event.object):
        return ""
    if made.step < 0:
        if moment.ended.role == "remove" and moment.case.is_assumed(event.object):
            return ""  # It is only assumed to be there.
        return "" if _is_own_already(moment, event) else next(iter(was.values()), ANOTHER_USER)
    maker, here = moment.rehearsal.steps[made.step], moment.ended
    if maker.by != here.by or made.actor in BESIDE:
        return ANOTHER_USER
    if not here.release or _is_folder(here):
        return ""
    same = (maker.release, maker.namespace) == (here.release, here.namespace)
    return "" if same else f"release {maker.release} in {maker.namespace}"


def _is_folder(ended: StepResult) -> bool:
    """Whether a step is named after the folder that it applies: another folder is not another owner."""
    return PurePath(ended.source).name == ended.release


def _creation(moment: Moment, event: Event) -> Event | None:
    """Who created the object in an earlier step, if that was an engine or a person."""
    created = [e for e in moment.rehearsal.of_object(event.object) if e.effect == "created" and e.index < event.index]
    made = created[-1] if created else None
    if made is None or made.step == moment.index:
        return None
    return made if made.actor in (*moment.rehearsal.actors, *BESIDE) else None


def _is_adopted(moment: Moment, ref: Ref) -> bool:
    """Whether a Pulumi program imports the object, or only patches it, as its author asks."""
    programs = (release.program for release in moment.case.releases if release and release.program)
    registered = (one for program in programs for one in program.registrations if one.ref == ref)
    return any(one.options.imports or one.patches or one.manner.upserts for one in registered)


def _is_own_already(moment: Moment, event: Event) -> bool:
    """Whether what existed before the trial belongs to the release, or only to the assumptions about it."""
    before = moment.case.before
    if before is not None and before.find(event.object) is not None:
        return True
    if found := marks(event.before):
        return f"release {moment.ended.release} in {moment.ended.namespace}" in found.values()
    return event.effect == "changed" and moment.case.is_assumed(event.object)


def marks(body: Body | None) -> dict[str, str]:
    """The owners that an object is marked with, by the engine that marks it."""
    notes, labels = annotations_of(body or {}), labels_of(body or {})
    found = {}
    if name := notes.get(RELEASE_NAME):
        found["helm"] = f"release {name} in {notes.get(RELEASE_NAMESPACE, '')}"
    if name := labels.get(f"{KUSTOMIZE}/name"):
        found["flux"] = f"Kustomization {labels.get(f'{KUSTOMIZE}/namespace', '')}/{name}"
    if tracked := notes.get(TRACKING_ID):
        found["argocd"] = f"Application {str(tracked).partition(':')[0]}"
    return found


def _verb(event: Event) -> str:
    if event.effect in GOING:
        return "deletes"
    if event.object.kind == DEFINITION and event.before and event.after and lost_of_crd(event.before, event.after):
        return "downgrades"
    return "takes over" if marks(event.before) != marks(event.after) else "changes"


def _damage(moment: Moment, event: Event, chain: tuple[Event, ...]) -> Damage:
    if event.effect in GOING:
        if event.object.kind in (CLAIM, *HOLDS) or any(cause.object.kind in HOLDS for cause in chain):
            return "data-loss"
        return "outage" if running_users(live_at(moment.rehearsal, event.index), event.object) else "nuisance"
    if _verb(event) == "takes over" and _spec(event.before) == _spec(event.after):
        return "nuisance"
    used = running_users(live_at(moment.rehearsal, event.index), event.object)
    return "outage" if used or _verb(event) == "downgrades" else "nuisance"


def _content(body: Body | None) -> Body:
    """What people write of an object."""
    return {**_spec(body), "labels": labels_of(body or {}), "annotations": annotations_of(body or {})}


def _spec(body: Body | None) -> Body:
    return {key: value for key, value in (body or {}).items() if key not in BOOKKEEPING}
