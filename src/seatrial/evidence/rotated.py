"""Secrets whose content changes although the same chart and values are deployed again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, moments
from seatrial.evidence.secret_data import decoded, is_salted, same_content, secret_data
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal, StepResult

DEPLOYS = ("install", "upgrade", "sync", "up")
DEPLOYS_AGAIN = ("upgrade", "sync", "up")


class RotatedSecret(Struct, frozen=True):
    """A Secret whose content changed in an upgrade, sync or up with the same chart and values."""

    step: int
    secret: Resource
    event: Event
    keys: tuple[str, ...]

    def content(self, key: str) -> str:
        return decoded(secret_data(self.event.after).get(key, ""))


def same_again(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[int, int]]:
    """(earlier, step) for each upgrade or sync to the chart and values that are already deployed."""
    for moment in moments(rehearsal, case):
        earlier = _step_before(moment) if moment.ended.action in DEPLOYS_AGAIN else None
        if earlier is None or rehearsal.steps[earlier].action not in DEPLOYS:
            continue
        ended = rehearsal.steps[earlier]
        if "ok" in (ended.outcome, ended.again) and same_input(case.releases[earlier], moment.release):
            yield earlier, moment.index


def same_input(one: Release | None, other: Release | None) -> bool:
    """Whether two releases have the same chart and values."""
    if one is None or other is None:
        return False
    return (one.source, one.values, one.next_version) == (other.source, other.values, other.next_version)


def written_otherwise(case: Case, step: int, ref: Ref) -> Resource | None:
    """The same object in another render of the step's chart: at install, or without a cluster.

    An object that only some renders contain depends on `.Release.IsInstall`, `lookup` or `.Capabilities`.
    """
    releases = (release for release in case.releases if release and same_input(release, case.releases[step]))
    found = (resource for release in releases for resource in release.resources if resource.ref == ref)
    return next((resource for resource in found if not hooks.is_hook(resource.body)), None)


def rotated_secrets(rehearsal: Rehearsal, case: Case) -> Iterator[RotatedSecret]:
    """Each Secret once, with the keys whose values its template generates."""
    seen: set[Ref] = set()
    for earlier, step in same_again(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        for event in _changes(moment):
            secret = _plain_secret(moment, event)
            if secret is None or secret.ref in seen:
                continue
            keys = tuple(_made_up(moment, earlier, event))
            if keys:
                seen.add(secret.ref)
                yield RotatedSecret(step, secret, event, keys)


def released_secrets(rehearsal: Rehearsal, case: Case) -> Iterator[RotatedSecret]:
    """The same for a `helm.v3.Release` of Pulumi that Helm upgrades because other values of it change."""
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        program = moment.release.program if moment.release and moment.ended.action == "up" else None
        every = (of for one in (program.registrations if program else ()) for of in one.generated)
        keys = {of.object: of.keys for of in every if not of.looked_up}
        for event in moment.events():
            secret = _plain_secret(moment, event) if event.object in keys and event.object not in seen else None
            was, now = secret_data(event.before), secret_data(event.after)
            new = tuple(key for key in keys.get(event.object, ()) if key in was and was[key] != now.get(key))
            if secret is not None and new:
                seen.add(secret.ref)
                yield RotatedSecret(moment.index, secret, event, new)


def _changes(moment: Moment) -> Iterator[Event]:
    """The events of a step; a recreation by Pulumi counts as a change."""
    gone: dict[Ref, Event] = {}
    for event in moment.events():
        if event.actor == "pulumi" and event.effect in GOING:
            gone[event.object] = event
        if event.actor == "pulumi" and event.effect == "created" and event.object in gone:
            yield replace(event, effect="changed", before=gone[event.object].before)
        else:
            yield event


def _step_before(moment: Moment) -> int | None:
    """The last step about the same release."""
    begun = moment.ended
    found = (i for i in range(moment.index - 1, -1, -1) if _named(moment.rehearsal.steps[i]) == _named(begun))
    return next(found, None)


def _named(ended: StepResult) -> tuple[str, str]:
    return ended.release, ended.namespace


def _plain_secret(moment: Moment, event: Event) -> Resource | None:
    release = moment.release
    if (
        event.actor not in moment.rehearsal.actors
        or event.object.kind != "Secret"
        or event.effect != "changed"
        or release is None
    ):
        return None
    found = release.find(event.object)
    is_hook = argocd_hooks.is_hook if event.actor == "argocd" else hooks.is_hook
    return None if found is None or is_hook(found.body) else found


def _made_up(moment: Moment, earlier: int, event: Event) -> Iterator[str]:
    """Keys that changed, and that differ between two renders of the same input.

    A value that only depends on `.Release.IsInstall` or the revision number does not differ.
    """
    was, now = secret_data(event.before), secret_data(event.after)
    first = _rendered(moment.case.releases[earlier], event.object)
    alike = moment.rehearsal.steps[earlier].action == moment.ended.action
    second = _rendered(moment.release, event.object) if alike else was
    for key in sorted(was.keys() & now.keys()):
        if same_content(was[key], now[key]) or is_salted(now[key]):
            continue
        if first.get(key) != second.get(key):
            yield key


def _rendered(release: Release | None, ref: Ref) -> dict[str, str]:
    found = release.find(ref) if release else None
    return secret_data(found.body if found else None)
