"""A step meets a known defect of its engine: with some versions it goes wrong, with others it does not.

## What happens
Three defects change which objects there are, or for how long one waits, and a trial shows whether a chart meets them:

- **Helm 4.0.0 to 4.1.0** takes an object that is written in another version of its API for another object
  ([31768](https://github.com/helm/helm/issues/31768)). An upgrade from `autoscaling/v1` to `autoscaling/v2` changes the
  object, and then deletes it as one that is no longer in the chart. It reports success. Fixed in 4.1.1.
- **Helm 3 until 3.17.0** takes objects of one kind and name for the same even if their groups differ
  ([12578](https://github.com/helm/helm/issues/12578)). Where an `ExternalSecret` moves from one operator's group to
  another's, the new one is made and the old one stays behind for ever. Fixed in 3.17.1 and in 4.
- **Helm 4.2.1** with `--wait` waits for the deletion of a hook until `--timeout` is over, if there is nothing to delete
  or it is gone at once ([32214](https://github.com/helm/helm/issues/32214)). Then it goes on. Fixed in 4.2.2.

And one of Flux, which helm-controller 1.6 still has:

- **helm-controller** does not know what to do with a release whose uninstall was interrupted
  ([4614](https://github.com/fluxcd/flux2/issues/4614)). Helm's records say `uninstalling`; what is pending it declares
  failed, what is uninstalled it installs, but this it takes for a release of somebody else, and upgrades it. Helm then
  says `has no deployed releases`, for ever. To delete the HelmRelease and to make it anew does not help.

Which version deploys a chart is not written in it. Where `--helm-binary` names one of these versions, it *will* happen;
otherwise the first two only *may*, and of the third, which nearly every chart with hooks meets, nothing is told.
Defects of Argo CD and Flux that are fixed are not told: their versions are modelled without them. The Helm in
helm-controller 1.6 is 4.2.1, but it waits in its own way: of the three above it meets none.

## Example
```yaml
apiVersion: autoscaling/v2        # autoscaling/v1 in the revision before
kind: HorizontalPodAutoscaler
```

## Instead
Use a version that has the fix, also in the pipelines and controllers that have a Helm of their own.

## Fix safety
A newer patch version of Helm changes nothing in what is deployed. An object that was deleted comes back with the next
upgrade that changes nothing in its version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.evidence.flux.reconciliations import failed_release, flux_says, is_flux
from seatrial.evidence.hooks.runs import acted_on, done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import Record, last_record
from seatrial.helm import hooks
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Pointer, Ref, annotations_of, version_of
from seatrial.model.timeline import Reconciled, Rehearsal

NOT_DEPLOYED = re.compile(
    r'for release (?P<namespace>[^/\s]+)/(?P<release>\S+) with chart .*"(?P=release)" has no deployed releases', re.S
)
Version = tuple[int, ...]
REPLACES = ("upgrade", "rollback")
WAITS = ("--wait", "--atomic", "--rollback-on-failure")


class Met(Struct, frozen=True):
    """An object to which a defect does something in a step, and what."""

    ref: Ref
    happens: str
    places: tuple[Pointer, ...]


class Bug(Struct, frozen=True):
    """A defect, in which versions it is, and how a step meets it."""

    number: int
    """Of the issue at helm/helm."""
    first: Version
    last: Version
    fixed: str
    damage: Damage
    met: Callable[[Moment], Iterator[Met]]
    left: str
    rare: bool = True
    """Whether it is worth telling where another version plays."""

    @property
    def versions(self) -> str:
        first, last = (".".join(map(str, version)) for version in (self.first, self.last))
        return f"Helm {first}" if first == last else f"Helm {first} to {last}"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_flux(rehearsal):
        yield from _interrupted(rehearsal, case)
    if rehearsal.engine.name != "helm":
        return
    version = rehearsal.engine.numbers
    seen: set[tuple[int, Ref]] = set()
    for moment in moments(rehearsal, case):
        for bug in BUGS if moment.ended.outcome != "failed" else ():
            plays = bug.first <= version <= bug.last
            for met in bug.met(moment) if plays or bug.rare else ():
                if (bug.number, met.ref) not in seen:
                    seen.add((bug.number, met.ref))
                    yield _finding(moment, bug, met, plays)


def _interrupted(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """HelmReleases whose upgrade fails since Helm takes them to be on their way out."""
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        one = failed_release(moment.ended)
        said = NOT_DEPLOYED.search(one.message) if one else None
        if one is None or said is None or one.object in told:
            continue
        record = last_record(rehearsal, said["release"], said["namespace"], before_step=moment.index)
        if record is not None and record.status == "uninstalling":
            told.add(one.object)
            yield _of_flux(moment, one, record)


def _of_flux(moment: Moment, one: Reconciled, record: Record) -> Finding:
    own = moment.case.written(moment.index, one.object)
    name, namespace = record.release, record.ref.namespace
    return found(
        RULE,
        moment,
        objects=[one.object],
        damage="failed-deploy",
        message=f"the upgrade of {one.object} fails: an earlier uninstall of the release {name} was interrupted, and "
        "Flux does not know what to do with that",
        details=(
            flux_says(one),
            f"{record.ref} says uninstalling. What is pending Flux declares failed, what is uninstalled it installs; "
            "this it takes for a release of somebody else, and upgrades it (fluxcd/flux2#4614).",
            "To delete the HelmRelease and to make it anew does not help. To delete Helm's records does, and leaves "
            f"the objects where they are: kubectl delete secret -n {namespace} -l owner=helm,name={name}",
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
            f"It is a defect of {bug.versions} (helm/helm#{bug.number}), fixed in {bug.fixed}.",
            bug.left,
            "" if plays else f"This trial was played with {moment.engine}, which does not have it.",
        ),
        places=met.places,
        evidence=list(done_by_helm(moment, met.ref))[:3],
        confirm="helm version --short  # of whatever deploys this",
    )


def _written_in_another_version(moment: Moment) -> Iterator[Met]:
    for old, new in _replaced(moment):
        was, now = (str(resource.body.get("apiVersion")) for resource in (old, new))
        live = moment.was(new.ref) or {}
        if old.ref == new.ref and was != now and annotations_of(live).get(hooks.RESOURCE_POLICY) != "keep":
            what = f"from {version_of(was)} to {version_of(now)}"
            yield Met(
                new.ref,
                f"deletes {new.ref} right after it has changed it {what}",
                (new.place("apiVersion"),),
            )


def _written_in_another_group(moment: Moment) -> Iterator[Met]:
    for old, new in _replaced(moment):
        if old.ref.group != new.ref.group:
            yield Met(
                old.ref,
                f"leaves {old.ref} of {old.ref.group or 'the core group'} behind, beside that of {new.ref.group}",
                (new.place("apiVersion"), old.place("apiVersion")),
            )


def _replaced(moment: Moment) -> Iterator[tuple[Resource, Resource]]:
    """What has one kind and name in two revisions, the second of which lacks the first as it was written."""
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


def _waited_for_in_vain(moment: Moment) -> Iterator[Met]:
    release, ended = acted_on(moment.case, moment.index), moment.ended
    if release is None or not any(flag.partition("=")[0] in WAITS for flag in ended.flags):
        return
    for hook in release.resources:
        deletes = hooks.BEFORE_CREATION in hooks.delete_policies(hook.body)
        if hooks.runs_at(hook.body, ended.action) and deletes and moment.was(hook.ref) is None:
            place = hook.place("metadata", "annotations", hooks.HOOK)
            yield Met(hook.ref, f"waits until --timeout for the deletion of {hook.ref}, which is not there", (place,))


BUGS = (
    Bug(
        number=31768,
        first=(4, 0, 0),
        last=(4, 1, 0),
        fixed="4.1.1",
        damage="outage",
        met=_written_in_another_version,
        left="Helm reports success, and its revision says that the object is there. The next upgrade makes it again.",
    ),
    Bug(
        number=12578,
        first=(3, 0, 0),
        last=(3, 17, 0),
        fixed="3.17.1 and in Helm 4",
        damage="nuisance",
        met=_written_in_another_group,
        left="No revision lists it any more: nothing deletes it, no uninstall either, and its controller works on.",
    ),
    Bug(
        number=32214,
        first=(4, 2, 1),
        last=(4, 2, 1),
        fixed="4.2.2",
        damage="nuisance",
        met=_waited_for_in_vain,
        left="Then it goes on as if nothing were. Each such hook takes as long again.",
        rare=False,
    ),
)
"""Read from pkg/kube/resource.go (`isMatchingInfo`) and pkg/kube/statuswait.go of the versions around each."""

RULE = Rule("ST704", "engine-bug", check)
