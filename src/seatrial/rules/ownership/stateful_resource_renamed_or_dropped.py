"""Something that holds data gets another name, so Helm deletes the old one and the app starts with an empty one.

## What happens
Helm knows objects by their names. A claim that is called otherwise in the new chart (another `fullname` helper, the
chart renamed, a default of `fullnameOverride` changed) is one object removed and another one added. The old claim is
deleted at the end of the upgrade, and its volume with it where the reclaim policy is `Delete`, which is the default of
volumes that a StorageClass made. Helm reports success. Rolling back makes a claim of the old name, with a new and empty
volume.

A StatefulSet is deleted likewise, but the claims that it made from `volumeClaimTemplates` stay. They are called after
it, so the new StatefulSet makes others and starts empty, while the data lies in claims that nobody uses.

A chart that simply no longer has the object does the same. So does a Pulumi program: what it no longer registers is
deleted at the end of the `up`. `kubectl apply --prune` deletes a claim that left the files, if it fits the selector;
without `--prune` kubectl deletes nothing.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .Release.Name }}-storage      # was {{ .Release.Name }}-data
```

## Instead
Keep the name: let the new chart take it from values, and set `fullnameOverride` or `existingClaim` to the old one. Add
`helm.sh/resource-policy: keep` to the claim in a release before the one that drops it. To Pulumi say `retainOnDelete:
true` (or `protect: true`, which refuses it) in an `up` before; from kubectl, hide it by taking the label that the
selector asks for off the live claim.

## Fix safety
Setting the old name is safe as long as nobody has upgraded yet. After that the new object holds data as well: copy it
before going back.
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
"""Acts of engines to which going back is an act like any other."""
KEPT_BY = {
    "Pulumi": "retainOnDelete: true on the resource, in an up before this one, leaves it in the cluster.",
    "kubectl": "kubectl prunes what an earlier apply made and the files no longer hold. What does not fit the selector "
    "is left alone, and without --prune nothing is deleted.",
}


class Loss(Struct, frozen=True):
    """What became of the data of an object that was deleted."""

    deletion: Event
    was: Resource
    successor: Resource | None
    lost: tuple[Event, ...]
    """Volumes and claims that went with it."""
    stranded: tuple[Ref, ...]
    """Volumes and claims that nobody uses any more."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        forward = moment.ended.action == "upgrade" or (
            moment.ended.action in FORWARD and not _goes_back(case, moment.index)
        )
        for deletion, was in pruned(moment) if forward else ():
            if written_otherwise(case, moment.index, was.ref) is not None:
                continue  # self-pruning-template-guard says why.
            loss = _loss(moment, deletion, was)
            if loss is None or _is_called_so_by_pulumi(case, moment.index, loss):
                continue
            if loss.lost or (loss.stranded and not is_uninstalled(moment.ended, was.ref)):
                yield _finding(moment, loss)


def _goes_back(case: Case, step: int) -> bool:
    """Whether a step deploys what an earlier one has deployed: what that drops came with the one between."""
    return any(same_input(earlier, case.releases[step]) for earlier in case.releases[:step])


def _loss(moment: Moment, deletion: Event, was: Resource) -> Loss | None:
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
    return Loss(deletion, was, successor, tuple(lost), tuple(sorted(left)))


def _is_called_so_by_pulumi(case: Case, step: int, loss: Loss) -> bool:
    """Whether Pulumi has named both after their resource: then pulumi-rename-without-alias tells of it."""
    programs = (r.program for r in case.releases[: step + 1] if r is not None and r.program is not None)
    refs = {loss.was.ref, loss.successor.ref if loss.successor else None}
    named = {one.ref for program in programs for one in program.registrations if one.auto_named and one.ref in refs}
    return loss.successor is not None and named == refs


def _successor(old: Release | None, new: Release | None, was: Resource) -> Resource | None:
    """The new object of the same kind whose name is most like the old one."""
    if old is None or new is None:
        return None
    alike = [r for r in new.resources if (r.ref.kind, r.ref.namespace) == (was.ref.kind, was.ref.namespace)]
    fresh = {r.ref.name: r for r in alike if old.find(r.ref) is None}
    nearest = get_close_matches(was.ref.name, fresh, n=1, cutoff=0)
    return fresh[nearest[0]] if nearest else None


def _finding(moment: Moment, loss: Loss) -> Finding:
    ref, old = loss.was.ref, moment.before
    assert old is not None
    who = moment.speaker
    none = "the new chart has none" if who not in KEPT_BY else "nothing takes its place"
    there = f"{loss.successor.ref} takes its place and starts empty" if loss.successor else none
    act = moment.act if who in KEPT_BY else f"the {moment.ended.action}"
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
            f"{who} reported success." if moment.ended.outcome == "ok" else "",
        ),
        places=[
            *([loss.successor.place("metadata", "name")] if loss.successor else []),
            loss.was.place("metadata", "name"),
        ],
        evidence=[loss.deletion, *loss.lost],
        confirm=f"kubectl get {in_kubectl(ref)}  # before and after the {moment.ended.action}",
    )


def _damage(loss: Loss) -> Damage:
    if loss.lost:
        return "data-loss"
    return "outage" if loss.successor else "nuisance"


def _fate(loss: Loss) -> str:
    """What becomes of the data."""
    lost = ", ".join(str(event.object) for event in loss.lost)
    stranded = ", ".join(map(str, loss.stranded))
    sentences = [f"{lost} goes with it, and the data that is on it." if lost else ""]
    if stranded:
        kept = "is Released: only an administrator can get at its data" if loss.was.ref.kind == CLAIM else "stays"
        sentences.append(f"{stranded} {kept}, and nobody uses it any more.")
    return " ".join(filter(None, sentences))


def _rolled_back(moment: Moment, ref: Ref) -> str:
    for later, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        if ended.action == "rollback" and ref in ended.created and moment.at(later).live(ref):
            if ref.kind == "StatefulSet":
                return "helm rollback makes it anew; only then its old claims are used again."
            return "helm rollback makes one of the same name, with a new and empty volume."
    return ""


RULE = Rule("ST401", "stateful-resource-renamed-or-dropped", check)
