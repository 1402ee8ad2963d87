"""A resource with data gets another name, so Helm deletes the old one and the app starts empty.

## What happens
Helm identifies objects by name. A PVC with another name in the new chart (another `fullname` helper, a renamed chart, a
changed default of `fullnameOverride`) is one object removed and another added. Helm deletes the old PVC at the end of
the upgrade, and with it its volume if the reclaim policy is `Delete`, the default of dynamically provisioned volumes.
Helm reports success. A rollback creates a PVC with the old name and a new, empty volume.

A StatefulSet is deleted the same way, but the PVCs from its `volumeClaimTemplates` stay. They are named after it, so
the new StatefulSet creates others and starts empty, while the data is in PVCs that nothing uses.

A chart that no longer contains the object does the same. So does a Pulumi program: what it no longer registers is
deleted at the end of the `up`. `kubectl apply --prune` deletes a PVC that is no longer in the files, if it matches the
selector; without `--prune` kubectl deletes nothing.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .Release.Name }}-storage      # was {{ .Release.Name }}-data
```

## Instead
Keep the name: let the new chart read it from values, and set `fullnameOverride` or `existingClaim` to the old one. Add
`helm.sh/resource-policy: keep` to the PVC in a release before the one that drops it. For Pulumi, set `retainOnDelete:
true` (or `protect: true`, which makes the deletion fail) in an earlier `up`; for kubectl, remove the label that the
selector matches from the live PVC.

## Fix safety
Setting the old name is safe before anyone has upgraded. After that the new object has data as well: copy it before you
go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from msgspec import Struct

from seatrial.evidence.flux.reconciliations import is_uninstalled
from seatrial.evidence.history import pruned
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_input, written_otherwise
from seatrial.evidence.volumes import CLAIM, claims_of, gone, volume_of
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl, users_sentence

FORWARD = ("sync", "apply", "up")
"""Actions of engines that have no separate rollback."""
KEPT_BY = {
    "Pulumi": "retainOnDelete: true on the resource, set in an earlier up, leaves it in the cluster.",
    "kubectl": "kubectl prunes what an earlier apply created and the files no longer contain. Objects that do not "
    "match the selector are left alone, and without --prune nothing is deleted.",
}


class LostData(Struct, frozen=True):
    """What happened to the data of a deleted object."""

    deletion: Event
    was: Resource
    successor: Resource | None
    lost: tuple[Event, ...]
    """Volumes and PVCs that were deleted with it."""
    stranded: tuple[Ref, ...]
    """Volumes and PVCs that nothing uses any more."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        forward = moment.ended.action == "upgrade" or (
            moment.ended.action in FORWARD and not _goes_back(case, moment.index)
        )
        for deletion, was in pruned(moment) if forward else ():
            if written_otherwise(case, moment.index, was.ref) is not None:
                continue  # self-pruning-template-guard reports it.
            loss = _loss(moment, deletion, was)
            if loss is None or _is_called_so_by_pulumi(case, moment.index, loss):
                continue
            if loss.lost or (loss.stranded and not is_uninstalled(moment.ended, was.ref)):
                yield _finding(moment, loss)


def _goes_back(case: Case, step: int) -> bool:
    """Whether a step deploys an earlier input again: what it drops was added in between."""
    return any(same_input(earlier, case.releases[step]) for earlier in case.releases[:step])


def _loss(moment: Moment, deletion: Event, was: Resource) -> LostData | None:
    successor = _successor(moment.before, moment.release, was)
    match was.ref.kind:
        case "PersistentVolumeClaim":
            held = [volume_of(moment, was.ref)]
        case "StatefulSet":
            held = list(claims_of(moment, was))
        case "PersistentVolume":
            held = [was.ref] if dig(moment.was(was.ref), "spec", "claimRef") else []
        case _:
            return None
    there = [ref for ref in held if ref is not None]
    lost = gone(moment, there)
    left = set(there) - {event.object for event in lost}
    return LostData(deletion, was, successor, tuple(lost), tuple(sorted(left)))


def _is_called_so_by_pulumi(case: Case, step: int, loss: LostData) -> bool:
    """Whether Pulumi named both after their resource: then pulumi-rename-without-alias reports it."""
    programs = (r.program for r in case.releases[: step + 1] if r is not None and r.program is not None)
    refs = {loss.was.ref, loss.successor.ref if loss.successor else None}
    named = {one.ref for program in programs for one in program.registrations if one.auto_named and one.ref in refs}
    return loss.successor is not None and named == refs


def _successor(old: Release | None, new: Release | None, was: Resource) -> Resource | None:
    """The new object of the same kind with the most similar name."""
    if old is None or new is None:
        return None
    alike = [r for r in new.resources if (r.ref.kind, r.ref.namespace) == (was.ref.kind, was.ref.namespace)]
    fresh = {r.ref.name: r for r in alike if old.find(r.ref) is None}
    nearest = get_close_matches(was.ref.name, fresh, n=1, cutoff=0)
    return fresh[nearest[0]] if nearest else None


def _finding(moment: Moment, loss: LostData) -> Finding:
    ref, old = loss.was.ref, moment.before
    assert old is not None
    who = moment.speaker
    none = "the new chart has none" if who not in KEPT_BY else "nothing replaces it"
    there = f"an empty {loss.successor.ref} replaces it" if loss.successor else none
    act = moment.act if who in KEPT_BY or moment.ended.next_version else f"the {moment.ended.action}"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=_damage(loss),
        message=f"{act} deletes {ref}: {there}",
        details=(
            _fate(loss),
            users_sentence(old, ref),
            _rolled_back(moment, ref),
            KEPT_BY.get(who, ""),
            f"{who} reports success." if moment.ended.outcome == "ok" else "",
        ),
        places=[
            *([loss.successor.place("metadata", "name")] if loss.successor else []),
            loss.was.place("metadata", "name"),
        ],
        evidence=[loss.deletion, *loss.lost],
        confirm=f"kubectl get {in_kubectl(ref)}  # before and after the {moment.ended.action}",
    )


def _damage(loss: LostData) -> Damage:
    if loss.lost:
        return "data-loss"
    return "outage" if loss.successor else "nuisance"


def _fate(loss: LostData) -> str:
    """What happens to the data."""
    lost = ", ".join(str(event.object) for event in loss.lost)
    stranded = ", ".join(map(str, loss.stranded))
    sentences = [f"The data is deleted with {lost}." if lost else ""]
    if stranded:
        kept = "is Released: only an administrator can access its data" if loss.was.ref.kind == CLAIM else "stays"
        sentences.append(f"{stranded} {kept}, and nothing uses it any more.")
    return " ".join(filter(None, sentences))


def _rolled_back(moment: Moment, ref: Ref) -> str:
    for later, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        if ended.action == "rollback" and ref in ended.created and moment.at(later).live(ref):
            if ref.kind == "StatefulSet":
                return "helm rollback recreates it, which then uses its old PVCs again."
            return "helm rollback creates a PVC of the same name with a new, empty volume."
    return ""


RULE = Rule("ST401", "stateful-resource-renamed-or-dropped", check)
