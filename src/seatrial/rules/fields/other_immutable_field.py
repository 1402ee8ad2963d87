"""An immutable field of an existing object changed, so every upgrade fails.

## What happens
Many kinds have immutable fields: `data` of a ConfigMap or Secret with `immutable: true`, the type of a Secret,
`roleRef` of a binding, the `clusterIP` of a Service, the provisioner and parameters of a StorageClass, the value of a
PriorityClass, almost all of a Pod, and fields that an operator's CRD protects (`self == oldSelf`). The API server
rejects the change. Helm still updates the other objects and deletes nothing: the new revision is `failed`, and the old
one stays `deployed`.

CEL rules of CRDs other than `self == oldSelf` are not evaluated.

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
Let the name change with the immutable field: a hash of the data in the name of an immutable ConfigMap, another name for
the binding. Helm then creates the new object before it deletes the old one.

## Fix safety
Deleting the object before the upgrade works too, but it is missing until the upgrade recreates it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import differences, dotted, in_cluster, refusals, refused, try_again
from seatrial.phrases.objects import in_kubectl

HAVE_THEIR_OWN_RULE = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "PersistentVolumeClaim")
METADATA = "metadata"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for refusal in refusals(rehearsal, case):
        if refusal.ref.kind in HAVE_THEIR_OWN_RULE:
            continue
        changed = [difference for difference in differences(refusal) if difference.path[0] != METADATA]
        what = f"{dotted(changed[0].path)}, which is immutable" if len(changed) == 1 else "immutable fields"
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} changed {what}: {Moment(rehearsal, case, refusal.step).act} fails",
            changed=changed,
            way_out=(
                f"Give {refusal.ref} another name, or run kubectl delete {in_kubectl(refusal.ref)} and "
                f"{try_again(rehearsal, refusal)}: then it is missing in between.",
            ),
            confirm=in_cluster(refusal.ref, f".{dotted(changed[0].path)}" if changed else ""),
        )


RULE = Rule("ST305", "other-immutable-field", check, before=("object-is-invalid",), timeless=True)
