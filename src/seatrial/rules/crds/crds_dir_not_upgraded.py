"""The CRDs in `crds/` changed, and helm upgrade leaves the old ones in the cluster.

## What happens
Helm reads `crds/` only when it installs a chart. Upgrade, rollback and uninstall ignore it, and if an upgrade enables a
subchart, the subchart's CRDs are not installed. A custom resource that uses a new version or a new field is then
checked against the old CRD. If its version is not served, the upgrade fails before it changes anything (`no matches for
kind`). If the old schema lacks a field, the upgrade fails with Helm 4 (`field not declared in schema`); with Helm 3 the
API server drops the field with the warning `unknown field`, and the upgrade succeeds. New status fields that the
controller writes are dropped silently.

A fresh install has the new CRDs, so a test that only installs does not notice. On a cluster that already has the CRDs,
`helm install` updates them with Helm 4 and leaves them unchanged with Helm 3.

Flux handles `crds/` itself, on install and on upgrade, controlled by `install.crds` and `upgrade.crds`. The default of
both is `Create`, although the API reference documents `Skip` for upgrades: missing CRDs are created, existing ones stay
as they are. (helm-controller 1.5.0 to 1.6.3 updated them by mistake when server-side apply was used.)

seatrial cannot know whether a controller works with the old CRD: if no object of the release is rejected, the finding
is a `may`, unless a Role of the release names a kind whose CRD is missing.

## Example
```
crds/lock.yaml              spec.width is new in this revision
templates/lock.yaml         uses spec.width
```

## Instead
Apply the CRDs before the upgrade: `kubectl apply --server-side -f crds/`. Or put them into a separate chart, or into
`templates/` with `helm.sh/resource-policy: keep` (existing releases must adopt them first: see
crd-moves-crds-to-templates). With Flux, set `upgrade.crds: CreateReplace`, and `install.crds` too if older CRDs may be
left in the cluster. Argo CD applies `crds/` on every sync.

## Fix safety
A CRD that gains fields or versions does not affect existing objects. One that loses a version or a field does.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.crds import gains, is_alike
from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import defined_by, unserved
from seatrial.evidence.writers import is_written, writer_of
from seatrial.model.finding import Certainty, Damage, Finding, Rule
from seatrial.model.refusal import FieldCause
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Reconciled, Rehearsal, StepResult
from seatrial.phrases.outcome import after_failure, first_named, helm_says

GAINS_MAX = 6
OF_FLUX = (
    "The default of upgrade.crds is Create, not Skip as in the API reference: Flux creates missing CRDs and does not "
    "update existing ones (helm-controller 1.5.0 to 1.6.3 updated them by mistake)."
)


class Stale(Struct, frozen=True):
    """A CRD of the new revision that differs from the one in the cluster."""

    written: Resource
    live: Body | None


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        new = moment.release
        upgrades = moment.ended.action == "upgrade" and moment.before is not None
        if new is None or not (upgrades or is_flux(rehearsal)):
            continue
        deleted = {
            e.object for e in rehearsal.timeline if e.step <= moment.index and e.actor == "helm" and e.effect in GOING
        }
        own = [crd for crd in new.crds if crd.ref not in deleted and (upgrades or _is_left(moment, crd.ref))]
        lives = [Stale(crd, moment.live(crd.ref)) for crd in own]
        stale = [found for found in lives if _is_stale(moment, found)]
        if stale:
            yield _finding(moment, new, stale)
            return


def _is_left(moment: Moment, ref: Ref) -> bool:
    """Whether Flux did not update a CRD of a HelmRelease that it installed or upgraded."""
    if _acting(moment.ended, ref) is None:
        return False
    before = moment.was(ref)
    if before is None:
        return moment.live(ref) is None
    return any(0 <= event.step < moment.index and event.after for event in moment.rehearsal.of_object(ref))


def _acting(ended: StepResult, ref: Ref) -> Reconciled | None:
    return next((one for one in ended.reconciled if ref in one.objects and one.acts), None)


def _finding(moment: Moment, new: Release, stale: list[Stale]) -> Finding:
    ended = moment.ended
    refused = _refused(moment, stale)
    users = sorted({*_unmapped(moment, stale), *(event.object for event in refused)})
    crds = [one.written.ref for one in stale]
    certainty, damage = _how_bad(new, stale, broken=bool(users))
    return found(
        RULE,
        moment,
        objects=[*crds, *users],
        damage=damage,
        certainty=certainty,
        message=f"{_skips(ended, stale)}, so {first_named(users)} {'is' if len(users) == 1 else 'are'} rejected"
        if users
        else f"{_skips(ended, stale)}: {_what_is_there(stale)}",
        details=(
            f"{first_named(crds)} {'is' if len(crds) == 1 else 'are'} not up to date." if users else "",
            f"Missing in the cluster: {_gains(stale)}.",
            helm_says(ended) if users else "",
            after_failure(moment) if users else "",
            "Helm 3 would report success: the API server drops an unknown field with a warning."
            if any(map(_undeclared, refused)) and not is_flux(moment.rehearsal)
            else "",
            _fresh_install(moment),
            "" if _acting(ended, crds[0]) is None else OF_FLUX,
        ),
        way_out=(_instead(ended, stale),),
        places=[*_places(new, refused), *(one.written.place("metadata", "name") for one in stale)],
        evidence=refused,
        confirm=f"{_kubectl('diff', stale[0].written)}  # shows what the cluster lacks",
    )


def _skips(ended: StepResult, stale: list[Stale]) -> str:
    one = _acting(ended, stale[0].written.ref)
    if one is None:
        return "helm upgrade ignores crds/"
    existing = "" if any(one.live is None for one in stale) else "existing "
    return f"the {_last(one)} of {one.object} skips {existing}CRDs in crds/"


def _instead(ended: StepResult, stale: list[Stale]) -> str:
    first = stale[0].written
    one = _acting(ended, first.ref)
    if one is None and (dropped := next((version for each in stale for version in _dropped(each)), "")):
        blocked = next(each.written for each in stale if dropped in _dropped(each))
        return (
            f"Apply the CRDs before the upgrade, but keep {dropped} in {blocked.ref} ({blocked.file}) until its "
            "objects are stored in another version: the API server rejects the CRD without it."
        )
    if one is None:
        return f"Apply {first.ref} before the upgrade: {_kubectl('apply', first)}"
    return f"Set {_last(one)}.crds: CreateReplace in {one.object}: Flux then updates {first.ref}."


def _kubectl(verb: str, crd: Resource) -> str:
    """A command on the file of a CRD; kubectl reads no archives, but Helm prints their CRDs."""
    archive, inside, _ = crd.file.partition(".tgz:")
    if inside:
        return f"helm show crds {archive}.tgz | kubectl {verb} --server-side -f -"
    return f"kubectl {verb} --server-side -f {crd.file}"


def _dropped(one: Stale) -> list[str]:
    """Versions in which objects may be stored, and which the new CRD does not have."""
    versions = {version.get("name") for version in listed(one.written.body, "spec", "versions")}
    return [str(version) for version in listed(one.live, "status", "storedVersions") if version not in versions]


def _last(one: Reconciled) -> str:
    """The last install or upgrade."""
    return next(act for act in reversed(one.acts) if act in ("install", "upgrade"))


def _is_stale(moment: Moment, one: Stale) -> bool:
    if one.live is None:
        return True
    return not is_alike(one.live, one.written.body) and not _is_of_another(moment, one.written.ref)


def _is_of_another(moment: Moment, ref: Ref) -> bool:
    """Whether another release has applied its own copy: crd-shared-ownership-downgrade reports that."""
    begun = moment.ended
    writes = [
        e for e in moment.rehearsal.of_object(ref) if 0 <= e.step < moment.index and is_written(moment.rehearsal, e)
    ]
    owners = [writer_of(moment.rehearsal, event) for event in writes]
    ours = (begun.release, begun.namespace, "")
    return ours in owners and owners[-1] != ours


def _refused(moment: Moment, stale: list[Stale]) -> list[Event]:
    """Rejected custom resources of the stale CRDs."""
    kinds = {(dig(one.written.body, "spec", "group"), dig(one.written.body, "spec", "names", "kind")) for one in stale}
    events = (e for e in moment.events() if e.actor == "helm" and e.effect == "refused" and e.verb != "delete")
    return [event for event in events if (event.object.group, event.object.kind) in kinds]


def _unmapped(moment: Moment, stale: list[Stale]) -> Iterator[Ref]:
    """Custom resources that Helm could not resolve and that the new CRDs would serve."""
    for failed, _, kinds in unserved(moment.rehearsal, moment.case):
        if failed == moment.index:
            crds = [one.written for one in stale]
            yield from (user for missing in kinds if defined_by(crds, missing) for user in missing.users)


def _how_bad(new: Release, stale: list[Stale], *, broken: bool) -> tuple[Certainty, Damage]:
    if broken:
        return "will", "failed-deploy"
    if any(one.live is None and _is_worked_with(new, one.written.body) for one in stale):
        return "will", "outage"
    return "may", "failed-deploy"


def _is_worked_with(new: Release, crd: Body) -> bool:
    """Whether a role of the release names the kind."""
    group, plural = dig(crd, "spec", "group"), dig(crd, "spec", "names", "plural")
    roles = (r.body for r in new.resources if r.ref.kind in ("ClusterRole", "Role"))
    rules = (rule for role in roles for rule in listed(role, "rules"))
    return any(group in listed(rule, "apiGroups") and plural in listed(rule, "resources") for rule in rules)


def _what_is_there(stale: list[Stale]) -> str:
    absent = [one.written.ref for one in stale if one.live is None]
    old = [one.written.ref for one in stale if one.live is not None]
    said = (
        f"{first_named(absent)} {'is' if len(absent) == 1 else 'are'} missing" if absent else "",
        f"{first_named(old)} {'is' if len(old) == 1 else 'are'} outdated" if old else "",
    )
    return ", ".join(filter(None, said))


def _fresh_install(moment: Moment) -> str:
    """Whether a later install of the same chart succeeds."""
    source = moment.ended.source
    later = (e for e in moment.rehearsal.steps[moment.index + 1 :] if e.action == "install" and e.source == source)
    if all(ended.outcome != "ok" for ended in later):
        return ""
    return "A fresh install of the same chart succeeds, so tests that only install do not notice."


def _places(new: Release, refused: list[Event]) -> Iterator[Pointer]:
    """The fields that the old CRD does not know."""
    for event in refused:
        written, undeclared = new.find(event.object), _undeclared(event)
        if written is not None:
            yield written.place(*(undeclared[0].path if undeclared else ("apiVersion",)))


def _undeclared(event: Event) -> tuple[FieldCause, ...]:
    """The fields that the CRD in the cluster does not have."""
    return event.refusal.causes if event.refusal and event.refusal.by == "unknown-field" else ()


def _gains(stale: list[Stale]) -> str:
    """What the new CRDs add: kinds, versions, fields."""
    found = [gain for one in stale for gain in gains(one.written.body, one.live)]
    more = f" and {len(found) - GAINS_MAX} more" if len(found) > GAINS_MAX else ""
    return ", ".join(found[:GAINS_MAX]) + more


RULE = Rule("ST102", "crds-dir-not-upgraded", check)
