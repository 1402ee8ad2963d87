"""A step triggers a known bug that only some versions of the engine have.

## What happens
Three bugs change which objects exist, or how long Helm waits, and a rehearsal shows whether a chart triggers them:

- **Helm 4.0.0 to 4.1.0** treats an object with another API version as another object
  ([31768](https://github.com/helm/helm/issues/31768)). An upgrade from `autoscaling/v1` to `autoscaling/v2` updates the
  object, and then deletes it as removed from the chart. Helm reports success. Fixed in 4.1.1.
- **Helm 3 up to 3.17.0** treats objects of one kind and name as the same even if their API groups differ
  ([12578](https://github.com/helm/helm/issues/12578)). When an `ExternalSecret` moves from one operator's group to
  another's, Helm creates the new one and leaves the old one behind. Fixed in 3.17.1 and in 4.
- **Helm 4.2.1** with `--wait` waits until `--timeout` for the deletion of a previous hook object, even if there is none
  or it is deleted at once ([32214](https://github.com/helm/helm/issues/32214)). Then it continues. Fixed in 4.2.2.

One bug of Flux is still in helm-controller 1.6:

- **helm-controller** cannot recover a release whose uninstall was interrupted
  ([4614](https://github.com/fluxcd/flux2/issues/4614)). The release has status `uninstalling`. Flux recovers from
  `pending-*` and `uninstalled`, but treats this status as a foreign release and tries to upgrade it. Helm then fails
  with `has no deployed releases`, on every attempt. Recreating the HelmRelease does not help.

A chart does not say which version deploys it. If `--helm-binary` is one of these versions, it *will* happen; otherwise
the first two only *may*, and the third, which nearly every chart with hooks triggers, is not reported. Fixed bugs of
Argo CD and Flux are not reported: their models do not have them. helm-controller 1.6 contains Helm 4.2.1, but does its
own waiting, so it has none of the three bugs above.

## Example
```yaml
apiVersion: autoscaling/v2        # autoscaling/v1 in the revision before
kind: HorizontalPodAutoscaler
```

## Instead
Use a version with the fix, also in pipelines and controllers that contain their own Helm.

## Fix safety
A newer patch version of Helm does not change what is deployed. A deleted object is recreated by the next upgrade that
does not change its API version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.evidence.faults import has_fault
from seatrial.evidence.flux.reconciliations import failed_release, flux_says, is_flux
from seatrial.evidence.hooks.runs import acted_on, done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import Record, last_record
from seatrial.helm import hooks
from seatrial.helm.versions import API_VERSION_IS_IDENTITY, GROUP_IS_NO_IDENTITY, HOOK_DELETION_TIMES_OUT, Versions
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Pointer, Ref, annotations_of, version_of
from seatrial.model.timeline import Reconciled, Rehearsal
from seatrial.model.trial import waits

REPLACES = ("upgrade", "rollback")


class Met(Struct, frozen=True):
    """An object that a bug affects in a step, and how."""

    ref: Ref
    happens: str
    places: tuple[Pointer, ...]


class Bug(Struct, frozen=True):
    """A bug, the versions that have it, and how a step triggers it."""

    number: int
    """The issue number in helm/helm."""
    versions: Versions
    fixed: str
    damage: Damage
    met: Callable[[Moment], Iterator[Met]]
    left: str
    rare: bool = True
    """Whether to report it if the rehearsal used another version."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_flux(rehearsal):
        yield from _interrupted(rehearsal, case)
    if rehearsal.engine.name != "helm":
        return
    version = rehearsal.engine.numbers
    seen: set[tuple[int, Ref]] = set()
    for moment in moments(rehearsal, case):
        for bug in BUGS if moment.ended.outcome != "failed" else ():
            plays = version in bug.versions
            for met in bug.met(moment) if plays or bug.rare else ():
                if (bug.number, met.ref) not in seen:
                    seen.add((bug.number, met.ref))
                    yield _finding(moment, bug, met, plays)


def _interrupted(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """HelmReleases whose upgrade fails because the release has status `uninstalling`."""
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        one = failed_release(moment.ended)
        if one is None or not has_fault(one.failure, "no-deployed-release") or one.object in reported:
            continue
        record = last_record(rehearsal, one.release, one.namespace, before_step=moment.index)
        if record is not None and record.status == "uninstalling":
            reported.add(one.object)
            yield _of_flux(moment, one, record)


def _of_flux(moment: Moment, one: Reconciled, record: Record) -> Finding:
    own = moment.case.written(moment.index, one.object)
    name, namespace = record.release, record.ref.namespace
    return found(
        RULE,
        moment,
        objects=[one.object],
        damage="failed-deploy",
        message=f"the upgrade of {one.object} fails: Flux cannot recover from an interrupted uninstall",
        details=(
            flux_says(one),
            f"{record.ref} has status `uninstalling`. Flux recovers from `pending-*` and `uninstalled`, but treats "
            "this status as a foreign release and tries to upgrade it (fluxcd/flux2#4614).",
            "Recreating the HelmRelease does not help.",
        ),
        way_out=(
            f"Delete Helm's release Secrets of {one.object}, which leaves the workloads running: kubectl delete secret "
            f"-n {namespace} -l owner=helm,name={name}",
        ),
        places=[own.place("metadata", "name")] if own else [],
        evidence=[record.written],
        confirm=f"helm history {name} -n {namespace}",
    )


def _finding(moment: Moment, bug: Bug, met: Met, plays: bool) -> Finding:
    ended = moment.ended
    act = " ".join(("helm", ended.action, *ended.flags))
    return found(
        RULE,
        moment,
        objects=[met.ref],
        damage=bug.damage,
        certainty="will" if plays else "may",
        message=f"{act} with {bug.versions} {met.happens}",
        details=(
            f"This is a bug of {bug.versions} (helm/helm#{bug.number}), fixed in {bug.fixed}.",
            bug.left,
            "" if plays else f"This trial was rehearsed with {moment.engine}, which does not have the bug.",
        ),
        way_out=(f"Deploy {met.ref} with a version of Helm that has the fix: {bug.fixed}.",),
        places=met.places,
        evidence=list(done_by_helm(moment, met.ref))[:3],
        confirm="helm version --short  # where this release is deployed from",
    )


def _written_in_another_version(moment: Moment) -> Iterator[Met]:
    for old, new in _replaced(moment):
        was, now = (str(resource.body.get("apiVersion")) for resource in (old, new))
        live = moment.was(new.ref) or {}
        if old.ref == new.ref and was != now and annotations_of(live).get(hooks.RESOURCE_POLICY) != "keep":
            what = f"from {version_of(was)} to {version_of(now)}"
            yield Met(
                new.ref,
                f"deletes {new.ref} right after updating it {what}",
                (new.place("apiVersion"),),
            )


def _written_in_another_group(moment: Moment) -> Iterator[Met]:
    for old, new in _replaced(moment):
        if old.ref.group != new.ref.group:
            yield Met(
                old.ref,
                f"leaves {old.ref} of {old.ref.group or 'the core group'} behind and creates that of {new.ref.group}",
                (new.place("apiVersion"), old.place("apiVersion")),
            )


def _replaced(moment: Moment) -> Iterator[tuple[Resource, Resource]]:
    """Pairs with one kind and name in two revisions, where the second no longer has the first object."""
    if moment.ended.action not in REPLACES:
        return
    old, new = moment.before, moment.release
    now = {_kind_and_name(resource.ref): resource for resource in _plain(new)}
    kept = {resource.ref for resource in _plain(new)}
    for resource in _plain(old):
        later = now.get(_kind_and_name(resource.ref))
        if later is not None and (later.ref == resource.ref or resource.ref not in kept):
            yield resource, later


def _plain(release: Release | None) -> list[Resource]:
    return [r for r in release.resources if not hooks.is_hook(r.body)] if release else []


def _kind_and_name(ref: Ref) -> tuple[str, str, str]:
    return ref.kind, ref.namespace, ref.name


def _waits_for_missing_hook(moment: Moment) -> Iterator[Met]:
    release, ended = acted_on(moment.case, moment.index), moment.ended
    if release is None or not waits(ended.flags):
        return
    for hook in release.resources:
        deletes = hooks.BEFORE_CREATION in hooks.delete_policies(hook.body)
        if hooks.runs_at(hook.body, ended.action) and deletes and moment.was(hook.ref) is None:
            place = hook.place("metadata", "annotations", hooks.HOOK)
            yield Met(hook.ref, f"waits until --timeout for the deletion of {hook.ref}, which does not exist", (place,))


BUGS = (
    Bug(
        number=31768,
        versions=API_VERSION_IS_IDENTITY,
        fixed="4.1.1",
        damage="outage",
        met=_written_in_another_version,
        left="Helm reports success, and its revision lists the object. The next upgrade recreates it.",
    ),
    Bug(
        number=12578,
        versions=GROUP_IS_NO_IDENTITY,
        fixed="3.17.1 and in Helm 4",
        damage="nuisance",
        met=_written_in_another_group,
        left="No revision lists it any more, so nothing deletes it, not even an uninstall. Its controller keeps "
        "reconciling it.",
    ),
    Bug(
        number=32214,
        versions=HOOK_DELETION_TIMES_OUT,
        fixed="4.2.2",
        damage="nuisance",
        met=_waits_for_missing_hook,
        left="Helm then continues normally. Every such hook adds another full --timeout.",
        rare=False,
    ),
)
"""Read from pkg/kube/resource.go (`isMatchingInfo`) and pkg/kube/statuswait.go of the versions around each."""

RULE = Rule("ST704", "engine-bug", check)
