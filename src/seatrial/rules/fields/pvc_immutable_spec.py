"""An immutable field of a PVC changed: its access mode, storage class or volume, or its size was reduced.

## What happens
Once a PersistentVolumeClaim exists, only its requested size may change: only upwards, only if it is bound, and only if
its StorageClass has `allowVolumeExpansion`. Any other change is rejected with `spec is immutable after creation`. Helm
still updates the other objects and deletes nothing.

Whether a larger size is accepted depends on the StorageClass in the cluster, which the chart does not contain: it
**may** be rejected. Pass the class you have with `--assume FILE`.

## Example
```yaml
kind: PersistentVolumeClaim
spec:
  accessModes: [ReadWriteMany]    # was ReadWriteOnce
```

## Instead
Leave the PVC unchanged, or create a second one under another name and copy the data. If users can set the size,
document that it can only grow.

## Fix safety
Deleting the PVC avoids the error but deletes its data, unless its volume has the reclaim policy Retain.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.kinds.core.quantities import amount
from seatrial.kinds.storage.volumes import GUESSED
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, annotations_of, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import Difference, RejectedChange, differences, dotted, in_cluster, refusals, refused
from seatrial.phrases.objects import in_kubectl

SIZE = ("spec", "resources", "requests", "storage")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        yield from _growing(moment)
    for refusal in refusals(rehearsal, case, ("PersistentVolumeClaim",)):
        moment = Moment(rehearsal, case, refusal.step)
        nulls = list(_nulls(moment, refusal))
        at = [one.path for one in nulls]
        changed = [*nulls, *(one for one in differences(refusal, ("spec",)) if one.path not in at)]
        message, way_out = _words(refusal.ref, changed, nulls)
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{message}: {moment.act} fails",
            changed=changed,
            way_out=(way_out,),
            confirm=in_cluster(refusal.ref, ".spec"),
        )


def _growing(moment: Moment) -> Iterator[Finding]:
    """PVCs that grow in a StorageClass of which only the name is known."""
    release = moment.release
    for event in moment.events():
        ref, was = event.object, moment.was(event.object)
        if ref.kind != "PersistentVolumeClaim" or event.effect != "changed" or release is None or was is None:
            continue
        written, old, new = release.find(ref), dig(was, *SIZE), dig(event.after, *SIZE)
        storage_class = str(dig(was, "spec", "storageClassName") or "")
        known = moment.was(Ref("StorageClass", "", storage_class, "storage.k8s.io")) or {}
        if written is None or GUESSED not in annotations_of(known) or amount(new) <= amount(old):
            continue
        message, way_out = _words(ref, [Difference(SIZE, old, new)], [])
        yield found(
            RULE,
            moment,
            objects=[ref],
            damage="failed-deploy",
            certainty="may",
            message=f"{message}: {moment.act} may fail",
            details=(
                f"Changed: {dotted(SIZE)} from {old} to {new}.",
                f"StorageClass/{storage_class} is not in the release; it is assumed to have allowVolumeExpansion. "
                "Without it, the API server rejects the change.",
            ),
            way_out=(way_out,),
            places=[written.place(*SIZE)],
            evidence=[event],
            confirm=f"kubectl get storageclass {storage_class} -o jsonpath='{{.allowVolumeExpansion}}'",
        )


def _nulls(moment: Moment, refusal: RejectedChange) -> Iterator[Difference]:
    """Fields without a value in the source that have one in the cluster, such as the default class."""
    spec = dig(refusal.written.body, "spec") if refusal.written else None
    for field, value in spec.items() if isinstance(spec, dict) else ():
        live = dig(moment.was(refusal.ref), "spec", field)
        if value is None and live is not None:
            yield Difference(("spec", field), live, None)


def _words(ref: Ref, changed: list[Difference], nulls: list[Difference]) -> tuple[str, str]:
    """The message without its end, and the way out."""
    if _only_grows(changed) and not nulls:
        return (
            f"{ref} requests more storage, which not every cluster allows",
            f"Use a StorageClass with allowVolumeExpansion for {ref}; the size of a bound PVC can then grow. Pass the "
            "class that your cluster has with --assume FILE.",
        )
    if nulls and all(one in nulls or _only_grows([one]) for one in changed):
        field = nulls[0].path[-1]
        return (
            f"{ref} sets {field} to null, which the cluster has set",
            f"Leave {field} of {ref} out if it has no value (`{{{{- with }}}}` around the line): written as null it "
            "asks to remove what the cluster has set.",
        )
    return (
        f"{ref} changed immutable fields",
        f"Leave {ref} as it is, or add a second PVC under another name and copy the data. kubectl delete "
        f"{in_kubectl(ref)} would avoid the error, but deletes the data.",
    )


def _only_grows(changed: list[Difference]) -> bool:
    return bool(changed) and all(d.path == SIZE and amount(d.now) > amount(d.was) for d in changed)


RULE = Rule("ST304", "pvc-immutable-spec", check, before=("object-is-invalid",), timeless=True)
