"""Objects that stay Terminating: the operator that removes their finalizer was deleted first, or there is none."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.described import deployments
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment
from seatrial.evidence.unserved import DEFINITION
from seatrial.helm import hooks
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating
from seatrial.kinds.operators.removers import OF_ENGINES, OF_KUBERNETES, has_rights
from seatrial.kinds.operators.table import operator_kinds, workload_of
from seatrial.kinds.scripts.commands import needed
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
RIGHTS = ("ServiceAccount", "RoleBinding", "ClusterRoleBinding")


class Held(Struct, frozen=True):
    """An object that stays Terminating, and the finalizer that holds it."""

    deletion: Event
    finalizer: str
    operator: Event
    """The deletion of the workload that removes the finalizer, or probably does."""
    known: bool
    """Whether the workload was seen setting it."""
    probable: bool = False
    """Whether the workload has rights to the kind, and the finalizer is named after its group."""


class Unremoved(Struct, frozen=True):
    """An object that stays Terminating because of a finalizer of its manifest that nothing in the rehearsal removes."""

    deletion: Event
    finalizer: str
    written: Resource


def held_by_gone_operators(moment: Moment) -> Iterator[Held]:
    """Objects that stay Terminating because this step, or one before it, deleted their operator."""
    for deletion, finalizer in _held(moment):
        setter = _setter(moment.rehearsal, deletion.object, finalizer)
        if not setter and (held := _likely(moment, deletion, finalizer)):
            yield held
        elif setter and (operator := _went(moment, setter)):
            yield Held(deletion, finalizer, operator, known=True)


def held_by_nothing(moment: Moment) -> Iterator[Unremoved]:
    """Objects that stay Terminating because of a finalizer that only their manifest sets, and no operator is known."""
    for deletion, finalizer in _held(moment):
        ref, release = deletion.object, moment.before
        written = release.find(ref) if release else None
        by_manifest = written is not None and finalizer in finalizers_of(written.body)
        if written is None or not by_manifest or finalizer.startswith((*OF_KUBERNETES, *OF_ENGINES)):
            continue
        setter = _setter(moment.rehearsal, ref, finalizer)
        removed_later = (
            _runs(moment, setter) or _went(moment, setter) if setter else _likely(moment, deletion, finalizer)
        )
        if not removed_later:
            yield Unremoved(deletion, finalizer, written)


def _held(moment: Moment) -> Iterator[tuple[Event, str]]:
    """Deletions of objects that are still Terminating when the step has ended, and the first finalizer of each."""
    for deletion in moment.events():
        live = moment.live(deletion.object) if deletion.effect == "deleting" else None
        if live is None or not is_terminating(live) or _is_deleted_by_hook(moment, deletion.object):
            continue
        yield from ((deletion, finalizer) for finalizer in finalizers_of(live)[:1])


def rights_gone(rehearsal: Rehearsal, held: Held) -> list[Ref]:
    """The operator's ServiceAccount and role bindings that the step deleted before the object."""
    workload = held.operator.before or {}
    home = held.operator.object.namespace
    account = str(dig(workload, "spec", "template", "spec", "serviceAccountName") or "default")
    gone = []
    for event in rehearsal.timeline[: held.deletion.index]:
        if event.step == held.deletion.step and event.effect in GOING and event.object.kind in RIGHTS:
            is_account = event.object == Ref("ServiceAccount", home, account)
            subjects = listed(event.before or {}, "subjects")
            named_in = any((s.get("name"), s.get("namespace") or home) == (account, home) for s in subjects)
            if is_account or named_in:
                gone.append(event.object)
    return sorted(gone)


def programs_before(case: Case, step: int) -> Iterator[Resource]:
    """The pre-delete hooks of a release."""
    release = next((r for r in reversed(case.releases[: step + 1]) if r is not None), None)
    for resource in release.resources if release else ():
        if "pre-delete" in hooks.events_of(resource.body) and resource.ref.kind in ("Job", "Pod"):
            yield resource


def _setter(rehearsal: Rehearsal, ref: Ref, finalizer: str) -> str:
    """The controller that added a finalizer, or the known operator whose finalizer the manifest already sets."""
    for event in rehearsal.timeline:
        was, now = (finalizers_of(body or {}) for body in (event.before, event.after))
        if event.object == ref and event.verb not in ("create", "apply") and finalizer in now and finalizer not in was:
            return event.actor
    known = operator_kinds().get((ref.group, ref.kind))
    return known[0].name if known and finalizer and known[1].finalizer == finalizer else ""


def _went(moment: Moment, operator: str) -> Event | None:
    """The deletion of an operator that no longer exists when the step has ended."""
    described = deployments(moment.case)
    for event in moment.rehearsal.timeline:
        if event.step > moment.index or event.effect not in GOING or event.object.kind not in WORKLOADS:
            continue
        owner = workload_of(event.before or {})
        is_its = (owner is not None and owner[0].name == operator) or (
            event.object in described and described[event.object].name == operator
        )
        if is_its and moment.live(event.object) is None:
            return event
    return None


def _runs(moment: Moment, operator: str) -> bool:
    """Whether a workload of a known operator exists when the step has ended."""
    made = (e for e in moment.rehearsal.timeline if e.object.kind in WORKLOADS and e.effect == "created" and e.after)
    owners = ((event.object, workload_of(event.after or {})) for event in made)
    return any(owner and owner[0].name == operator and moment.live(ref) is not None for ref, owner in owners)


def _likely(moment: Moment, deletion: Event, finalizer: str) -> Held | None:
    """The workload of the same release that probably removes a finalizer which the manifest sets, if it is deleted too.

    It has rights to the kind, or the release brings the CRD.
    """
    release = moment.before
    if release is None or release.find(deletion.object) is None or finalizer.startswith((*OF_KUBERNETES, *OF_ENGINES)):
        return None
    gone = [event for event in moment.events() if event.effect in GOING and event.object.kind in WORKLOADS]
    written = [(event, found) for event in gone if (found := release.find(event.object))]
    for event, workload in written:
        if has_rights(release, workload, deletion.object.group):
            probable = deletion.object.group in finalizer and event.index < deletion.index
            return Held(deletion, finalizer, event, known=False, probable=probable)
    definitions = (r.body for r in (*release.crds, *release.resources) if r.ref.kind == DEFINITION)
    if not written or not any(_defines(body, deletion.object) for body in definitions):
        return None
    return Held(deletion, finalizer, written[0][0], known=False)


def _defines(definition: Body, ref: Ref) -> bool:
    return (dig(definition, "spec", "group"), dig(definition, "spec", "names", "kind")) == (ref.group, ref.kind)


def _is_deleted_by_hook(moment: Moment, ref: Ref) -> bool:
    """Whether the command line of a pre-delete hook deletes objects of this kind."""
    known = {e.object: e.after for e in moment.rehearsal.timeline if e.object.kind == DEFINITION and e.after}
    plural = next((dig(body, "spec", "names", "plural") for body in known.values() if _defines(body, ref)), "")
    for hook in programs_before(moment.case, moment.index):
        spec = hook.body.get("spec") if hook.ref.kind == "Pod" else dig(hook.body, "spec", "template", "spec")
        asked = (need.access for need in needed(spec or {}, hook.ref.namespace, known.values()))
        if any((access.verb, access.group, access.resource) == ("delete", ref.group, plural) for access in asked):
            return True
    return False
