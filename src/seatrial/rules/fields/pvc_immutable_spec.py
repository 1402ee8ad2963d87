"""An immutable field of a PVC changed: its access mode, storage class or volume, or its size was reduced.

## What happens
Once a PersistentVolumeClaim exists, only its requested size may change: only upwards, only if it is bound, and only if
its StorageClass has `allowVolumeExpansion`. Any other change is rejected with `spec is immutable after creation`. Helm
still updates the other objects and deletes nothing.

Whether a larger size is accepted depends on the StorageClass in the cluster, which the chart does not contain. The
class that is assumed where none is given cannot grow. Pass the one you have with `--assume FILE`.

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

from seatrial.evidence.moment import Moment
from seatrial.kinds.core.quantities import amount
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import Difference, differences, in_cluster, refusals, refused
from seatrial.phrases.objects import in_kubectl

SIZE = ("spec", "resources", "requests", "storage")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for refusal in refusals(rehearsal, case, ("PersistentVolumeClaim",)):
        changed = differences(refusal, ("spec",))
        act = Moment(rehearsal, case, refusal.step).act
        grows = _only_grows(changed)
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} requests more storage, which not every cluster allows: {act} fails"
            if grows
            else f"{refusal.ref} changed immutable fields: {act} fails",
            changed=changed,
            way_out="It succeeds if the PVC is bound and its StorageClass has allowVolumeExpansion."
            if grows
            else f"kubectl delete {in_kubectl(refusal.ref)} would avoid the error, but deletes the data.",
            confirm=in_cluster(refusal.ref, ".spec"),
        )


def _only_grows(changed: list[Difference]) -> bool:
    return bool(changed) and all(d.path == SIZE and amount(d.now) > amount(d.was) for d in changed)


RULE = Rule("ST304", "pvc-immutable-spec", check, timeless=True)
