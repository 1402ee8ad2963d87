"""The definitions in `crds/` changed, and helm upgrade leaves the old ones in the cluster.

## What happens
Helm reads `crds/` when it installs a chart and never again: upgrade, rollback and uninstall do not look into it, and a
subchart that is switched on by an upgrade brings its definitions in vain. What the new revision says in a new version
or with a new field then meets the old definition. An object in a version that is not served ends the upgrade before
anything is changed (`no matches for kind`). A field that the old schema does not know is refused by Helm 4
(`field not declared in schema`); Helm 3 prints `unknown field` as a warning, the API server drops the field, and the
upgrade is a success. What the controller writes (a new status field) is dropped without any word at all.

A fresh install has the new definitions, which is why a test that only installs does not see it. On a cluster that
already has them, `helm install` of Helm 4 updates them and that of Helm 3 does not.

Flux sees to `crds/` itself, for installs and for upgrades, by `install.crds` and `upgrade.crds`. The default of both is
`Create`, although the API reference says `Skip` of upgrades: definitions that are not there yet are made, and those
that are stay as they are. (helm-controller 1.5.0 to 1.6.3 updated them by mistake where server-side apply was used.)

Whether a controller can live with the old definition cannot be known here: where nothing of the release is refused, the
finding is a `may`, unless a role of the release names a kind that is not there at all.

## Example
```
crds/lock.yaml              spec.width is new in this revision
templates/lock.yaml         uses spec.width
```

## Instead
Apply the definitions before the upgrade: `kubectl apply --server-side -f crds/`. Or give them a chart of their own, or
put them into `templates/` with `helm.sh/resource-policy: keep` (existing releases must adopt them first: see
crd-moves-crds-to-templates). With Flux, set `upgrade.crds: CreateReplace`, and `install.crds` likewise where older
definitions may be left from before; Argo CD applies `crds/` on every sync.

## Fix safety
A definition that gains fields or versions harms no object that is there. One that loses a version or a field does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.crds import gains, shape
from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import defined_by, unserved
from seatrial.evidence.writers import is_written, writer_of
from seatrial.model.finding import Certainty, Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Reconciled, Rehearsal, StepResult
from seatrial.phrases.outcome import after_failure, helm_says, named, named_is

UNDECLARED = re.compile(r"(?P<path>(?:\.[A-Za-z0-9_-]+)+): field not declared in schema")
GAINS_MAX = 6


class Stale(Struct, frozen=True):
    """A definition that the new revision has otherwise than the cluster."""

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
    """Whether Flux did nothing about a definition for a HelmRelease that it had Helm install or upgrade."""
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
    definitions = [one.written.ref for one in stale]
    certainty, damage = _how_bad(new, stale, broken=bool(users))
    return found(
        RULE,
        moment,
        objects=[*definitions, *users],
        damage=damage,
        certainty=certainty,
        message=f"{_leaves(ended, stale)}, and {named_is(users)} refused under the definition of the revision before "
        f"({named(definitions)})"
        if users
        else f"{_leaves(ended, stale)}: {_what_is_there(stale)}",
        details=(
            helm_says(ended) if users else "",
            f"New, and not in the cluster: {_gains(stale)}.",
            after_failure(moment) if users else "",
            "Helm 3 would report success: the API server drops a field that it does not know, with a warning."
            if UNDECLARED.search(ended.error) and not is_flux(moment.rehearsal)
            else "",
            _fresh(moment),
            _instead(ended, stale),
        ),
        places=[*_places(new, refused), *(one.written.place("metadata", "name") for one in stale)],
        evidence=refused,
        confirm=f"kubectl diff --server-side -f {stale[0].written.file}  # what the cluster lacks",
    )


def _leaves(ended: StepResult, stale: list[Stale]) -> str:
    one = _acting(ended, stale[0].written.ref)
    if one is None:
        return "helm upgrade does not read crds/"
    left = "" if any(one.live is None for one in stale) else " that are there already"
    return f"the {_last(one)} of {one.object} leaves definitions of crds/ alone{left}"


def _instead(ended: StepResult, stale: list[Stale]) -> str:
    file, one = stale[0].written.file, _acting(ended, stale[0].written.ref)
    if one is None:
        return f"Before the upgrade: kubectl apply --server-side -f {file}"
    return (
        f"{_last(one)}.crds: CreateReplace has Flux update them; the default, Create, makes new ones alone, whatever "
        "the API reference says of Skip (helm-controller 1.5.0 to 1.6.3 updated them nevertheless)."
    )


def _last(one: Reconciled) -> str:
    """The act for which definitions were looked at last."""
    return next(act for act in reversed(one.acts) if act in ("install", "upgrade"))


def _is_stale(moment: Moment, one: Stale) -> bool:
    if one.live is None:
        return True
    return shape(one.live) != shape(one.written.body) and not _is_of_another(moment, one.written.ref)


def _is_of_another(moment: Moment, ref: Ref) -> bool:
    """Whether another release has put its own text in place: crd-shared-ownership-downgrade tells that."""
    begun = moment.ended
    writes = [e for e in moment.rehearsal.of_object(ref) if 0 <= e.step < moment.index and is_written(e)]
    owners = [writer_of(moment.rehearsal, event) for event in writes]
    ours = (begun.release, begun.namespace, "")
    return ours in owners and owners[-1] != ours


def _refused(moment: Moment, stale: list[Stale]) -> list[Event]:
    """What the API server refused of the kinds whose definitions stayed behind."""
    kinds = {(dig(one.written.body, "spec", "group"), dig(one.written.body, "spec", "names", "kind")) for one in stale}
    events = (e for e in moment.events() if e.actor == "helm" and e.effect == "refused" and e.verb != "delete")
    return [event for event in events if (event.object.group, event.object.kind) in kinds]


def _unmapped(moment: Moment, stale: list[Stale]) -> Iterator[Ref]:
    """What Helm could not look up, and the new definitions would have served."""
    for failed, _, kinds in unserved(moment.rehearsal, moment.case):
        if failed == moment.index:
            definitions = [one.written for one in stale]
            yield from (user for missing in kinds if defined_by(definitions, missing) for user in missing.users)


def _how_bad(new: Release, stale: list[Stale], *, broken: bool) -> tuple[Certainty, Damage]:
    if broken:
        return "will", "failed-deploy"
    if any(one.live is None and _is_worked_with(new, one.written.body) for one in stale):
        return "will", "outage"
    return "may", "failed-deploy"


def _is_worked_with(new: Release, definition: Body) -> bool:
    """Whether a role of the release lets someone work with the kind."""
    group, plural = dig(definition, "spec", "group"), dig(definition, "spec", "names", "plural")
    roles = (r.body for r in new.resources if r.ref.kind in ("ClusterRole", "Role"))
    rules = (rule for role in roles for rule in listed(role, "rules"))
    return any(group in listed(rule, "apiGroups") and plural in listed(rule, "resources") for rule in rules)


def _what_is_there(stale: list[Stale]) -> str:
    absent = [one.written.ref for one in stale if one.live is None]
    old = [one.written.ref for one in stale if one.live is not None]
    said = (
        f"{named_is(absent)} not there afterwards" if absent else "",
        f"{named_is(old)} as the revision before defined {'it' if len(old) == 1 else 'them'}" if old else "",
    )
    return ", and ".join(filter(None, said))


def _fresh(moment: Moment) -> str:
    """Whether a later install of the same chart went well."""
    source = moment.ended.source
    later = (e for e in moment.rehearsal.steps[moment.index + 1 :] if e.action == "install" and e.source == source)
    if all(ended.outcome != "ok" for ended in later):
        return ""
    return "A fresh install of the same chart succeeds: tests that only install do not see this."


def _places(new: Release, refused: list[Event]) -> Iterator[Pointer]:
    """Where the fields stand that the old definition does not know."""
    for event in refused:
        written, match = new.find(event.object), UNDECLARED.search(event.message)
        if written is not None:
            yield written.place(*(match["path"].split(".")[1:] if match else ("apiVersion",)))


def _gains(stale: list[Stale]) -> str:
    """What the new definitions have beyond those in the cluster: kinds, versions, fields."""
    found = [gain for one in stale for gain in gains(one.written.body, one.live)]
    more = f" and {len(found) - GAINS_MAX} more" if len(found) > GAINS_MAX else ""
    return ", ".join(found[:GAINS_MAX]) + more


RULE = Rule("ST102", "crds-dir-not-upgraded", check)
