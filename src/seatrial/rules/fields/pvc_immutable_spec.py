"""A claim changed in what may not change: its access mode, its class, its volume, or its size downwards.

## What happens
Once a PersistentVolumeClaim is made, only the size that it asks for may change, only upwards, only when it is bound,
and only where its StorageClass has `allowVolumeExpansion`. All else is refused with `spec is immutable after creation`.
Helm changes the other objects all the same and deletes nothing.

Whether a bigger claim is taken depends on the class of the cluster, which a chart does not tell: that is a `may`.

## Example
```yaml
kind: PersistentVolumeClaim
spec:
  accessModes: [ReadWriteMany]    # was ReadWriteOnce
```

## Instead
Leave the claim as it is, or make a second one under another name and copy the data. Where users may choose the size,
tell them that it can only grow.

## Fix safety
Deleting the claim to get past the refusal deletes its data, unless its volume has the reclaim policy Retain.
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
            certainty="may" if grows else "will",
            message=f"{refusal.ref} asks for more, which not every cluster grants: {act} is refused"
            if grows
            else f"{refusal.ref} changed in what may not change: {act} is refused",
            changed=changed,
            way_out="It goes through where the claim is bound and its StorageClass has allowVolumeExpansion."
            if grows
            else f"To delete {in_kubectl(refusal.ref)} would get past this, and delete the data on it.",
            confirm=in_cluster(refusal.ref, ".spec"),
        )


def _only_grows(changed: list[Difference]) -> bool:
    return bool(changed) and all(d.path == SIZE and amount(d.now) > amount(d.was) for d in changed)


RULE = Rule("ST304", "pvc-immutable-spec", check)
