"""Hooks as Helm ran them: at which event, and what they lacked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.evidence.faults import faults
from seatrial.evidence.flux.reconciliations import failed_act, failed_release
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, moments
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import Event, Rehearsal, StepResult

Why = Literal["dropped", "regular", "later", "same-weight", "deleted", "never", "earlier", "missing"]


class Lack(Struct, frozen=True):
    """A hook that could not run in a step, and one object that it lacked."""

    step: int
    action: str
    event: str
    """`pre-install`: when Helm ran the hook."""
    hook: Resource
    need: Need
    key: str
    """The missing key, if the object exists without it."""
    why: Why
    brought: Resource | None
    """The release's resource with the name of the missing object."""
    hung: bool
    """Whether Helm waited forever; otherwise the hook was rejected."""


def lacks(rehearsal: Rehearsal, case: Case) -> Iterator[Lack]:
    """Every hook that could not run, with each object that it lacked."""
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        if moment.ended.outcome == "ok" or release is None:
            continue
        refused = {e.object for e in done_by_helm(moment) if e.effect == "refused" and e.verb != "delete"}
        for hook in release.resources:
            if hook.ref in (*moment.ended.waits_for, *refused) and runs_in(moment, hook):
                yield from _lacks_of(moment, release, hook)


def acted_on(case: Case, step: int) -> Release | None:
    """The release whose hooks a step runs: its own, or for an uninstall the newest before it."""
    return next((release for release in reversed(case.releases[: step + 1]) if release is not None), None)


def acts_of(moment: Moment) -> tuple[str, ...]:
    """Helm's actions in a step: the step itself, or what Flux ran for its HelmReleases."""
    ended = moment.ended
    inside = tuple(dict.fromkeys(act for one in ended.reconciled for act in one.acts))
    return inside or (ended.action,)


def helm_act(moment: Moment, ref: Ref | None = None) -> str:
    """`helm upgrade`, or under Flux `the upgrade of HelmRelease/shop/shop`; `ref` picks the HelmRelease."""
    ended = moment.ended
    acting = (one for one in ended.reconciled if one.acts and (ref is None or ref in one.objects))
    one = failed_release(ended, ref) or next(acting, None)
    if one is not None:
        return f"the {failed_act(one) if one.message else one.acts[0]} of {one.object}"
    return moment.act


def runs_in(moment: Moment, hook: Resource) -> bool:
    """Whether Helm runs this object as a hook in the step."""
    return any(hooks.runs_at(hook.body, act) for act in acts_of(moment))


def done_by_helm(moment: Moment, ref: Ref | None = None) -> Iterator[Event]:
    """Helm's events in a step, for one object or for all."""
    events = moment.events() if ref is None else moment.rehearsal.of_object(ref)
    return (event for event in events if event.actor == "helm" and event.step == moment.index)


def event_of(moment: Moment, hook: Resource) -> str:
    """The event at which Helm last ran a hook in a step; the n-th if it created the hook n times."""
    events = (event for act in acts_of(moment) for event in hooks.EVENTS_OF.get(act, ()))
    own = [event for event in events if event in hooks.events_of(hook.body)]
    made = sum(e.verb != "delete" for e in done_by_helm(moment, hook.ref))
    return own[min(made, len(own)) - 1] if own else ""


def act_at(event: str) -> str:
    """The Helm action of an event: `upgrade` for `pre-upgrade`."""
    return next((act for act, events in hooks.EVENTS_OF.items() if event in events), "")


def left_over(moment: Moment, hook: Resource) -> Event | None:
    """Helm's write of a hook that found the object of an earlier run."""
    if not runs_in(moment, hook):
        return None
    deed = next(done_by_helm(moment, hook.ref), None)
    if deed is None or deed.verb == "delete" or deed.effect == "created":
        return None
    return deed if moment.was(hook.ref) is not None else None


def pod_of(moment: Moment, hook: Resource) -> Event | None:
    """The creation of the first pod of a hook in a step: of its Job, or the hook itself."""
    if not event_of(moment, hook):
        return None
    pods = (e for e in moment.events() if e.object.kind == "Pod" and e.effect == "created")
    return next((e for e in pods if e.after is not None and is_of(e.object, e.after, hook.ref)), None)


def is_of(pod: Ref, body: Body, hook: Ref) -> bool:
    """Whether a pod belongs to a hook: created by its Job, or the hook itself."""
    owners = listed(body, "metadata", "ownerReferences")
    return pod == hook or any((owner.get("kind"), owner.get("name")) == (hook.kind, hook.name) for owner in owners)


def _lacks_of(moment: Moment, release: Release, hook: Resource) -> Iterator[Lack]:
    ended = moment.ended
    event = event_of(moment, hook)
    seen: set[tuple[Ref, str]] = set()
    for need in needs_of(hook):
        if need.optional or need.guess:
            continue
        there = moment.live(need.object)
        key = _missing_key(need, there)
        if (there is not None and not key) or (need.object, key) in seen:
            continue
        seen.add((need.object, key))
        why, brought = _why(moment, release, hook, need.object, event)
        hung = ended.outcome == "hung" or _timed_out(ended)
        yield Lack(moment.index, act_at(event), event, hook, need, key, why, brought, hung=hung)


def _timed_out(ended: StepResult) -> bool:
    """Whether Flux gave up on objects that were not ready in time; those that failed it does not wait for."""
    return any(fault.status != "Failed" for fault in faults(ended.failure, "not-ready") if ended.reconciled)


def _missing_key(need: Need, found: Body | None) -> str:
    if found is None or not need.key:
        return ""
    keys = {key for field in ("data", "binaryData", "stringData") for key in found.get(field) or ()}
    return "" if need.key in keys else need.key


def _why(moment: Moment, release: Release, hook: Resource, ref: Ref, event: str) -> tuple[Why, Resource | None]:
    """Why the needed object does not exist when the hook runs."""
    candidates = [resource for resource in release.resources if resource.ref == ref]
    for resource in candidates:
        if not hooks.is_hook(resource.body):
            return "regular", resource
    if not candidates:
        return "missing", None
    other = candidates[0]
    if hooks.unknown_events(other.body):
        return "dropped", other
    if event in hooks.events_of(other.body):
        weights = hooks.weight_of(other.body), hooks.weight_of(hook.body)
        return ("later" if weights[0] > weights[1] else "same-weight" if weights[0] == weights[1] else "earlier"), other
    after = hooks.EVENTS_OF.get(act_at(event), ())[1:]
    if event not in after and any(e in hooks.events_of(other.body) for e in after):
        return "later", other
    was_deleted = any(
        e.object == ref and e.actor == "helm" and e.effect in GOING
        for e in moment.rehearsal.timeline
        if e.step <= moment.index
    )
    return "deleted" if was_deleted and hooks.SUCCEEDED in hooks.delete_policies(other.body) else "never", other
