"""A release is installed before another one of the same trial that brings what it needs.

## What happens
Helm knows of one release at a time. It does not know that one chart uses the kinds that another one defines, mounts
the Secret that another one makes, or lives in the namespace of another one. Whoever installs several releases - a
script, helmfile, Terraform, Flux - decides the order, or leaves it to chance by doing it all at once. On clusters
that have been there for long every order works; on a new one only the right one does.

A kind that is not served stops Helm before anything is made: `no matches for kind`. A missing namespace refuses its
content. A missing Secret, ConfigMap or account only lets pods wait, and Kubernetes makes up for the order by itself,
unless Helm waits for them (`--wait`, a hook).

Flux works on all Kustomizations and HelmReleases at once. A Kustomization that needs what another brings, and does not
depend on it, fails and is tried again after its `retryInterval`, which is the whole `interval` where nobody sets it. A
HelmRelease that fails before Helm has written a revision down is tried again with growing pauses.

## Example
```yaml
# trial.yaml
steps:
  - {install: ./dashboards, release: dashboards}    # has a ServiceMonitor
  - {install: ./monitoring, release: monitoring}    # defines ServiceMonitor
```

## Instead
Say the order where the releases are said: `needs` in helmfile, `depends_on` in Terraform, `dependsOn` in Flux. And
wait: "after" only means something if the first has been waited for (`--wait`).

## Fix safety
Another order changes nothing for clusters that have all the releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.acts import label_of
from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.order import Early, too_early
from seatrial.evidence.flux.reconciliations import interval_of, is_flux
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import outcome_of
from seatrial.graph import needs_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig, group_of, listed, version_of
from seatrial.model.timeline import Event, Rehearsal

NO_MATCH = re.compile(r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<version>[^"]+)"')
NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')


class Missing(Struct, frozen=True):
    """What a release needs in a step and what another release brings."""

    what: Ref
    provider: Resource
    step: int
    """At which the other release is deployed."""
    user: Resource | None
    path: tuple[str | int, ...]
    event: Event | None = None


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for early in too_early(rehearsal, case):
        yield _early(rehearsal, case, early)
    for moment in moments(rehearsal, case):
        release = moment.release
        if moment.ended.outcome == "ok" or release is None or (is_flux(rehearsal) and moment.ended.action == "delete"):
            continue
        told: set[Ref] = set()
        for missing in _missing(moment, release):
            if missing.what not in told:
                told.add(missing.what)
                yield _finding(moment, release, missing)


def _missing(moment: Moment, release: Release) -> Iterator[Missing]:
    ended = moment.ended
    for said in NO_MATCH.finditer(ended.error):
        group = group_of(said["version"])
        users = [r for r in release.resources if (r.ref.group, r.ref.kind) == (group, said["kind"])]
        for other, provider in _others(moment.case, moment.index, release):
            if _defines(provider, said["version"], said["kind"]) and release.find(provider.ref) is None:
                yield Missing(provider.ref, provider, other, next(iter(users), None), ("kind",))
    for event in moment.events():
        said_namespace = NO_NAMESPACE.search(event.message) if event.effect == "refused" else None
        if said_namespace and not is_argocd(moment.rehearsal):  # There namespace-before-content tells it.
            wanted = Ref("Namespace", "", said_namespace["name"])
            yield from _brought(
                moment.case, moment.index, release, wanted, release.find(event.object), ("metadata",), event
            )
    for wanted in ended.lacking:
        user, path = _user(release, wanted)
        yield from _brought(moment.case, moment.index, release, wanted, user, path, None)


def _defines(resource: Resource, api_version: str, kind: str) -> bool:
    spec = resource.body.get("spec") or {}
    served = [version.get("name") for version in listed(spec, "versions") if version.get("served")]
    named = (spec.get("group"), dig(spec, "names", "kind"))
    return named == (group_of(api_version), kind) and version_of(api_version) in served


def _brought(
    case: Case,
    step: int,
    release: Release,
    wanted: Ref,
    user: Resource | None,
    path: tuple[str | int, ...],
    event: Event | None,
) -> Iterator[Missing]:
    for other, provider in _others(case, step, release):
        if provider.ref == wanted:
            yield Missing(wanted, provider, other, user, path, event)


def _others(case: Case, step: int, release: Release) -> Iterator[tuple[int, Resource]]:
    """What other releases bring, those that come after this step first."""
    steps = [*range(step + 1, len(case.releases)), *range(step)]
    for index in steps:
        other = case.releases[index]
        if other is not None and (other.name, other.namespace) != (release.name, release.namespace):
            yield from ((index, resource) for resource in (*other.resources, *other.crds))


def _user(release: Release, wanted: Ref) -> tuple[Resource | None, tuple[str | int, ...]]:
    for resource in release.resources:
        for need in needs_of(resource):
            if need.object == wanted and not need.guess:
                return resource, need.field
    return None, ()


def _finding(moment: Moment, release: Release, missing: Missing) -> Finding:
    other = moment.case.releases[missing.step]
    assert other is not None
    later = missing.step > moment.index
    engine, unit = label_of(moment.engine), "Application" if is_argocd(moment.rehearsal) else "release"
    who = missing.user.ref if missing.user else f"{unit} {release.name}"
    return found(
        RULE,
        moment,
        objects=[missing.what],
        damage="failed-deploy",
        message=f"{outcome_of(moment)} for {unit} {release.name}: {who} needs {missing.what}, which {unit} "
        f"{other.name} brings {'in a later step' if later else 'and which is not there yet'}",
        details=(
            f'{engine} says: "{moment.ended.error.strip()}"',
            _no_order(moment.rehearsal, unit)
            if later
            else f"{unit[:1].upper()}{unit[1:]} {other.name} was not waited for.",
            "On a cluster that has had both for long, any order works: that hides it.",
        ),
        places=[
            *([missing.user.place(*missing.path)] if missing.user else ()),
            missing.provider.place("metadata", "name"),
        ],
        evidence=[missing.event] if missing.event else [],
        confirm=_look_at(moment.rehearsal, other, release),
    )


def _no_order(rehearsal: Rehearsal, unit: str) -> str:
    if is_flux(rehearsal):
        return "Flux keeps no order between them, unless dependsOn says so and what it names is waited for."
    return f"{label_of(rehearsal.engine)} knows of one {unit} at a time: their order is up to whoever installs them."


def _look_at(rehearsal: Rehearsal, other: Release, release: Release) -> str:
    if is_argocd(rehearsal):
        return f"argocd app get {other.name}  # before {release.name} is synced"
    if is_flux(rehearsal):
        return f"flux get all -A  # before {release.name} is synced: {other.name}"
    return f"helm status {other.name} --namespace {other.namespace}  # before {release.name} is installed"


def _early(rehearsal: Rehearsal, case: Case, early: Early) -> Finding:
    own, ref = early.own, early.own.ref
    return found(
        RULE,
        Moment(rehearsal, case, early.event.step),
        objects=[early.what.ref],
        damage="nuisance",
        certainty="may",
        message=f"{ref} fails at its first attempt: it needs {early.what.ref}, which {early.bringer} brings, and it "
        "depends on nothing that would wait for it",
        details=(
            f'Flux says of it: "{early.event.message}"',
            f"It is tried again after {_pause(own)}, and ends well then; all that depends on it waits as long.",
            "On a cluster that has had both for long, any order works: that hides it.",
        ),
        places=[own.place("spec"), early.what.place("metadata", "name")],
        evidence=[early.event],
        confirm=f"flux get {ref.kind.lower()}s {ref.name} -n {ref.namespace}",
    )


def _pause(own: Resource) -> str:
    if own.ref.kind == "HelmRelease":
        return "a pause that grows with every try, up to 15 minutes"
    return interval_of(own)


RULE = Rule("ST701", "cross-release-order", check)
