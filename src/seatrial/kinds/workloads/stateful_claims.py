"""The PVCs of a StatefulSet's pods: created before the pod, kept after it unless the retention policy deletes them.

From pkg/controller/statefulset (stateful_pod_control.go, stateful_set_utils.go) of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from seatrial.kinds import Act, Acts, Create, Emit, Update, World
from seatrial.kinds.core.objectmeta import controller_reference, is_terminating, namespace_of, with_metadata
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, metadata, name_of, uid_of


def claim_names(owner: Body, ordinal: int) -> Iterator[tuple[Body, str]]:
    """(template, name of the PVC) for one pod."""
    for template in listed(owner, "spec", "volumeClaimTemplates"):
        yield template, f"{name_of(template)}-{name_of(owner)}-{ordinal}"


def with_claims(spec: Body, owner: Body, ordinal: int) -> Body:
    """A pod's spec with the PVCs of the volumeClaimTemplates as volumes."""
    own = [
        {"name": name_of(template), "persistentVolumeClaim": {"claimName": name}}
        for template, name in claim_names(owner, ordinal)
    ]
    names = {volume["name"] for volume in own}
    rest = [volume for volume in listed(spec, "volumes") if volume.get("name") not in names]
    return {**spec, "volumes": [*own, *rest]} if own or rest else spec


def make_claims(owner: Body, ordinal: int, world: World) -> Generator[Act, Refusal | None, tuple[str, Refusal | None]]:
    """Create missing PVCs. Returns why the pod cannot be created yet, and the refusal if there is one."""
    pod = f"{name_of(owner)}-{ordinal}"
    errors: list[str] = []
    refused: Refusal | None = None
    for template, name in claim_names(owner, ordinal):
        found = world.get(Ref("PersistentVolumeClaim", namespace_of(owner), name))
        if found is not None:
            errors += [f"pvc {name} is being deleted"] if is_terminating(found) else []
            continue
        refusal = yield Create(_claim(owner, template, name))
        if refusal:
            refused, said = refusal, refusal.message
            message = f"create Claim {name} for Pod {pod} in StatefulSet {name_of(owner)} failed error: {said}"
            yield Emit(owner, "FailedCreate", message, refusal=refusal)
            errors.append(f"failed to create PVC {name}: {said}")
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else "", refused


def keep_owners(owner: Body, ordinal: int, pod: Body | None, world: World, *, condemned: bool) -> Acts:
    """Make the StatefulSet, or a pod that is scaled down, own the PVCs that are deleted with it."""
    policy = dig(owner, "spec", "persistentVolumeClaimRetentionPolicy") or {}
    holders = []
    if condemned and policy.get("whenScaled") == "Delete" and pod is not None:
        holders.append(pod)
    elif not condemned and policy.get("whenDeleted") == "Delete":
        holders.append(owner)
    ours = {uid_of(owner), uid_of(pod or {})}
    for _, name in claim_names(owner, ordinal):
        claim = world.get(Ref("PersistentVolumeClaim", namespace_of(owner), name))
        if claim is None:
            continue
        others = [ref for ref in metadata(claim).get("ownerReferences") or () if ref.get("uid") not in ours]
        owners = [*others, *(controller_reference(holder) for holder in holders)]
        if owners != list(metadata(claim).get("ownerReferences") or ()):
            yield Update(with_metadata(claim, ownerReferences=owners or None))


def _claim(owner: Body, template: Body, name: str) -> Body:
    labels = {**labels_of(template), **(dig(owner, "spec", "selector", "matchLabels") or {})}
    meta = {**metadata(template), "name": name, "namespace": namespace_of(owner), "labels": labels}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template.get("spec") or {}}
