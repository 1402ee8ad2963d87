"""An object changed in a field that may not change once it is there: every upgrade fails.

## What happens
Many kinds have such fields: `data` of a ConfigMap or Secret with `immutable: true`, the type of a Secret, `roleRef` of
a binding, the `clusterIP` of a Service, the provisioner and parameters of a StorageClass, the value of a PriorityClass,
almost all of a Pod, and whatever an operator's definition protects (`self == oldSelf`). The API server refuses the
change. Helm changes the other objects all the same and deletes nothing: the new revision is `failed`, the old one stays
`deployed`.

Rules of definitions in CEL other than `self == oldSelf` are not evaluated here.

## Example
```yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: app
roleRef:
  kind: ClusterRole               # was Role
  name: app
```

## Instead
Let the name change with what may not change: a hash of the data in the name of an immutable ConfigMap, another name for
the binding. Helm then makes the new one before it deletes the old one.

## Fix safety
Deleting the object before the upgrade works as well, at the price of a moment without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import differences, dotted, in_cluster, refusals, refused, try_again
from seatrial.phrases.objects import in_kubectl

TOLD_ELSEWHERE = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "PersistentVolumeClaim")
METADATA = "metadata"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for refusal in refusals(rehearsal, case):
        if refusal.ref.kind in TOLD_ELSEWHERE:
            continue
        changed = [difference for difference in differences(refusal) if difference.path[0] != METADATA]
        what = dotted(changed[0].path) if len(changed) == 1 else "what may not change"
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} changed in {what}: {Moment(rehearsal, case, refusal.step).act} is refused",
            changed=changed,
            way_out=f"Way out: kubectl delete {in_kubectl(refusal.ref)} and {try_again(rehearsal, refusal)}, or "
            "another name for it.",
            confirm=in_cluster(refusal.ref, f".{dotted(changed[0].path)}" if changed else ""),
        )


RULE = Rule("ST305", "other-immutable-field", check)
