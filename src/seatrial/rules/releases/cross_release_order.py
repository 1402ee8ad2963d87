"""A release is installed before another release of the same trial that has what it needs.

## What happens
Helm knows one release at a time. It does not know that one chart uses the CRDs of another, mounts a Secret that another
creates, or installs into the namespace of another. Whatever installs several releases (a script, helmfile, Terraform,
Flux) decides the order, or leaves it to chance by installing all at once. On an existing cluster every order works; on
a new one only the right order does.

A kind that is not served stops Helm before it creates anything: `no matches for kind`. Objects in a missing namespace
are rejected. A missing Secret, ConfigMap or ServiceAccount only makes pods wait, and Kubernetes recovers by itself,
unless Helm waits for them (`--wait`, a hook).

Flux reconciles all Kustomizations and HelmReleases concurrently. A Kustomization that needs an object of another and
does not depend on it fails, and is retried after its `retryInterval`, which defaults to the whole `interval`. A
HelmRelease that fails before Helm has recorded a revision is retried with increasing pauses.

## Example
```yaml
# trial.yaml
steps:
  - {install: ./dashboards, release: dashboards}    # has a ServiceMonitor
  - {install: ./monitoring, release: monitoring}    # has the CRD of ServiceMonitor
```

## Instead
Declare the order where the releases are declared: `needs` in helmfile, `depends_on` in Terraform, `dependsOn` in Flux.
And wait for the first release (`--wait`): without that, "after" means little.

## Fix safety
The order does not matter for clusters that already have all the releases.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.faults import failure_of, missing_namespaces, unserved_kinds
from seatrial.evidence.flux.order import Early, too_early
from seatrial.evidence.flux.reconciliations import interval_of, is_flux
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import outcome_of, state_after
from seatrial.graph import needs_of
from seatrial.kinds.core.crd import is_held_by_its_ca
from seatrial.model.finding import Finding, Rule
from seatrial.model.refusal import GroupVersionKind, joined
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal, StepResult


class Missing(Struct, frozen=True):
    """An object that a release needs in a step and that another release has."""

    what: Ref
    provider: Resource
    step: int
    """The step that deploys the other release."""
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
        reported: set[Ref] = set()
        for missing in _missing(moment, release):
            if missing.what not in reported:
                reported.add(missing.what)
                yield _finding(moment, release, missing)


def _missing(moment: Moment, release: Release) -> Iterator[Missing]:
    ended = moment.ended
    for kind in _unserved(ended):
        users = [r for r in release.resources if (r.ref.group, r.ref.kind) == (kind.group, kind.kind)]
        for other, provider in _others(moment.case, moment.index, release):
            held = is_held_by_its_ca(state_after(moment).get(provider.ref) or {})  # conversion-webhook-order reports it
            if _defines(provider, kind) and release.find(provider.ref) is None and not held:
                yield Missing(provider.ref, provider, other, next(iter(users), None), ("kind",))
    for event in moment.events() if not is_argocd(moment.rehearsal) else ():  # There namespace-before-content tells it.
        for wanted in missing_namespaces(moment.rehearsal, failure_of(event)) if event.effect == "refused" else ():
            yield from _brought(
                moment.case, moment.index, release, wanted, release.find(event.object), ("metadata",), event
            )
    for wanted in ended.lacking:
        user, path = _user(release, wanted)
        yield from _brought(moment.case, moment.index, release, wanted, user, path, None)


def _unserved(ended: StepResult) -> list[GroupVersionKind]:
    """The kinds that were looked up to apply an object. What a sync finds before it begins, other rules report."""
    ran = (task.failure for operation in ended.operations for task in operation.tasks if task.state)
    return unserved_kinds(joined(*ran) if ended.operations else ended.failure)


def _defines(resource: Resource, kind: GroupVersionKind) -> bool:
    spec = resource.body.get("spec") or {}
    served = [version.get("name") for version in listed(spec, "versions") if version.get("served")]
    named = (spec.get("group"), dig(spec, "names", "kind"))
    return named == (kind.group, kind.kind) and kind.version in served


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
    """The objects of other releases; those deployed after this step first."""
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
    engine, unit = moment.rehearsal.label, "Application" if is_argocd(moment.rehearsal) else "release"
    who = missing.user.ref if missing.user else f"{unit} {release.name}"
    return found(
        RULE,
        moment,
        objects=[missing.what],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: {who} needs {missing.what} of {unit} {other.name}, "
        f"{'deployed later' if later else 'not ready yet'}",
        details=(
            f'{engine} reports for {unit} {release.name}: "{moment.ended.error.strip()}"',
            _no_order(moment.rehearsal, unit) if later else f"Nothing waited for {unit} {other.name}.",
            "On a cluster that already has both, any order works, which hides the problem.",
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
        return "Flux does not order them, unless dependsOn names the first and waits for it."
    return f"{rehearsal.label} handles one {unit} at a time: whatever installs them decides the order."


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
        message=f"{ref} fails its first attempt without {early.what.ref} of {early.holder}",
        details=(
            f"No dependsOn of it waits for {early.holder}.",
            f'Flux reports: "{early.event.message}"',
            f"Flux retries after {_pause(own)} and then succeeds; everything that depends on it waits as long.",
            "On a cluster that already has both, any order works, which hides the problem.",
        ),
        places=[own.place("spec"), early.what.place("metadata", "name")],
        evidence=[early.event],
        confirm=f"flux get {ref.kind.lower()}s {ref.name} -n {ref.namespace}",
    )


def _pause(own: Resource) -> str:
    if own.ref.kind == "HelmRelease":
        return "a pause that grows with every attempt, up to 15 minutes"
    return interval_of(own)


RULE = Rule("ST701", "cross-release-order", check)
