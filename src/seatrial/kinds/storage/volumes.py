"""StorageClass, PersistentVolume and PVC: a PVC is bound to an existing volume, or one is provisioned.

From pkg/controller/volume (persistentvolume, pvcprotection, pvprotection) and pkg/apis/{core,storage}/validation of
Kubernetes 1.34. Every provisioner works; volumes are attached without delay.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Delete, Emit, Kind, Need, Status, Update, World, always
from seatrial.kinds.core.immutable import NEWEST, difference, forbidden, immutable_field, invalid, scalar
from seatrial.kinds.core.objectmeta import (
    created_at,
    finalizers_of,
    is_terminating,
    namespace_of,
    with_finalizer,
    with_metadata,
    without_finalizer,
)
from seatrial.kinds.core.quantities import amount
from seatrial.kinds.core.selection import fits
from seatrial.kinds.workloads import scheduler
from seatrial.kinds.workloads.pod_template import claims_of
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    dig,
    group_of,
    labels_of,
    listed,
    name_of,
    uid_of,
)

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
GUESSED = "seatrial.dev/guessed"
"""Annotation of a StorageClass of which only the name is known. PVCs of most classes can grow."""
CLASSES_SINCE = 29
"""The minor since which errors mention volumeAttributesClassName."""

VOLUME_SPEC = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
"""Fields of a volume's spec other than its source."""


def claim_needs(claim: Body) -> Iterator[Need]:
    if name := dig(claim, "spec", "storageClassName"):
        ref = Ref("StorageClass", "", str(name), "storage.k8s.io")
        yield Need(ref, "ready", ("spec", "storageClassName"))
    if name := dig(claim, "spec", "volumeName"):
        yield Need(Ref("PersistentVolume", "", str(name)), "ready", ("spec", "volumeName"))
    for field in ("dataSource", "dataSourceRef"):
        source = dig(claim, "spec", field) or {}
        if source.get("name"):
            namespace = source.get("namespace") or namespace_of(claim)
            group = source.get("apiGroup") or group_of(str(source.get("apiVersion") or ""))
            ref = Ref(str(source.get("kind")), str(namespace), str(source["name"]), group)
            yield Need(ref, "ready", ("spec", field, "name"))
            return


def behave_claim(claim: Body, world: World) -> Acts:
    if is_terminating(claim):
        if CLAIM_FINALIZER in finalizers_of(claim) and not _users(claim, world):
            yield Update(without_finalizer(claim, CLAIM_FINALIZER))
    elif scheduler.is_bound(claim):
        yield from _keep(claim, world)
    elif dig(claim, "spec", "storageClassName") is None and (chosen := _default_class(world)):
        yield Update({**claim, "spec": {**claim["spec"], "storageClassName": chosen}})
    else:
        yield from _find_volume(claim, world)


def behave_volume(volume: Body, world: World) -> Acts:
    ref = dig(volume, "spec", "claimRef")
    claim = world.get(Ref("PersistentVolumeClaim", ref["namespace"], ref["name"])) if ref else None
    bound = claim is not None and ref.get("uid") in (None, "", uid_of(claim))
    if is_terminating(volume):
        if VOLUME_FINALIZER in finalizers_of(volume) and not bound:
            yield Update(without_finalizer(volume, VOLUME_FINALIZER))
        return
    if not ref or not ref.get("uid"):
        yield Status(volume, {"phase": "Available", "lastPhaseTransitionTime": created_at(volume)})
        return
    yield Status(volume, {"phase": "Bound" if bound else "Released", "lastPhaseTransitionTime": created_at(volume)})
    if not bound and dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete":
        yield Delete(volume, why="its PVC is gone and its reclaim policy is Delete")


def immutable_claim(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    was, wanted = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    before, after = dict(was), dict(wanted)
    if not was.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if was.get("storageClassName") is None and wanted.get("storageClassName") is not None:
        after.pop("storageClassName")
        before.pop("storageClassName", None)
    if scheduler.is_bound(old):
        after = _with_old_size(before, after)
    if before != after:
        message = "spec is immutable after creation except resources.requests"
        message += " and volumeAttributesClassName" if minor >= CLASSES_SINCE else ""
        shown = difference(before, after, "PersistentVolumeClaimSpec", minor)
        yield forbidden("spec", f"{message} for bound claims\n{shown}")
    yield from _shrunk(old, new)
    if was.get("volumeMode") != wanted.get("volumeMode"):
        yield invalid("volumeMode", scalar(wanted.get("volumeMode"), minor))


def immutable_volume(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    before, after = (
        {key: value for key, value in (body.get("spec") or {}).items() if key not in VOLUME_SPEC} for body in (old, new)
    )
    if before != after:
        shown = difference(before, after, "PersistentVolumeSource", minor)
        message = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", f"{message}\n{shown}")
    was, wanted = (dig(body, "spec", "volumeMode") for body in (old, new))
    if was != wanted:
        yield invalid("volumeMode", scalar(wanted, minor))


def immutable_class(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (old.get(field) or None) != (new.get(field) or None):
            yield forbidden(field, f"updates to {field} are forbidden.")
    yield from immutable_field(old, new, "volumeBindingMode", minor)


def is_quick(claim: Body) -> bool:
    """Provisioning a volume takes seconds."""
    return scheduler.is_bound(claim) or is_terminating(claim)


def default_claim(claim: Body) -> Body:
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    return {**claim, "spec": spec, "status": {"phase": "Pending", **(claim.get("status") or {})}}


def default_volume(volume: Body) -> Body:
    spec = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", **(volume.get("spec") or {})}
    return {**volume, "spec": spec, "status": {"phase": "Pending", **(volume.get("status") or {})}}


def default_class(body: Body) -> Body:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **body}


def prepare_claim(claim: Body, old: Body | None) -> Body:
    return claim if old else with_finalizer(claim, CLAIM_FINALIZER)


def prepare_volume(volume: Body, old: Body | None) -> Body:
    return volume if old else with_finalizer(volume, VOLUME_FINALIZER)


def _users(claim: Body, world: World) -> list[Body]:
    """Pods on a node that use a PVC. A finished pod holds it until it is deleted, except for ephemeral PVCs."""
    on_nodes = [pod for pod in _using(claim, world) if dig(pod, "spec", "nodeName")]
    return [pod for pod in on_nodes if not is_finished(pod) or _names(pod, claim)]


def _consumers(claim: Body, world: World) -> list[Body]:
    return [pod for pod in _using(claim, world) if not is_finished(pod)]


def _using(claim: Body, world: World) -> list[Body]:
    return world.using(Ref("PersistentVolumeClaim", namespace_of(claim), name_of(claim)))


def _names(pod: Body, claim: Body) -> bool:
    return name_of(claim) in (name for _, name in claims_of(pod.get("spec") or {}))


def _keep(claim: Body, world: World) -> Acts:
    """A bound PVC becomes Lost with its volume, and grows with its request."""
    ref = Ref("PersistentVolume", "", str(dig(claim, "spec", "volumeName")))
    volume = world.get(ref)
    if volume is None:
        message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        yield Status(claim, {**claim["status"], "phase": "Lost"})
        yield Emit(claim, "ClaimLost", message, missing=(ref,))
        return
    requested = dig(claim, "spec", "resources", "requests", "storage")
    if amount(requested) > amount(dig(volume, "spec", "capacity", "storage")):
        capacity = {**(dig(volume, "spec", "capacity") or {}), "storage": requested}
        yield Update({**volume, "spec": {**volume["spec"], "capacity": capacity}})
        yield Status(claim, {**claim["status"], "capacity": capacity})


def _default_class(world: World) -> str:
    """The newest default class, then by name."""
    marked = [
        found
        for found in world.all("StorageClass", group="storage.k8s.io")
        if annotations_of(found).get(DEFAULT_CLASS) == "true"
    ]
    return name_of(max(marked, key=lambda found: (created_at(found), name_of(found)))) if marked else ""


def _find_volume(claim: Body, world: World) -> Acts:
    name = dig(claim, "spec", "storageClassName") or ""
    ref = Ref("StorageClass", "", name, "storage.k8s.io")
    storage_class = world.get(ref) if name else None
    if (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer" and not _schedulable(claim, world):
        message = "waiting for first consumer to be created before binding"
        yield Emit(claim, "WaitForFirstConsumer", message, warning=False)
        return
    if volume := _matching(claim, world):
        yield from _bind(claim, volume)
    elif dig(claim, "spec", "volumeName"):
        return
    elif not name:
        message = "no persistent volumes available for this claim and no storage class is set"
        yield Emit(claim, "FailedBinding", message, warning=False)
    elif storage_class is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        yield Emit(claim, "ProvisioningFailed", message, missing=(ref,))
    elif storage_class.get("provisioner") == NO_PROVISIONER:
        yield Emit(claim, "ProvisioningFailed", f"no volume plugin matched name: {NO_PROVISIONER}")
    else:
        yield from _provision(claim, storage_class, world)


def _schedulable(claim: Body, world: World) -> bool:
    """Whether a pod waits for this PVC and for nothing else that the scheduler knows."""
    return any(scheduler.blocked(pod, world) is None for pod in _consumers(claim, world))


def _matching(claim: Body, world: World) -> Body | None:
    """The volume that the PVC names, or the smallest that fits."""
    if name := dig(claim, "spec", "volumeName"):
        named = world.get(Ref("PersistentVolume", "", str(name)))
        return named if named is not None and _is_free(named, claim) else None
    available = world.volumes_for(Ref("PersistentVolumeClaim", namespace_of(claim), name_of(claim)))
    fitting = [volume for volume in available if _is_free(volume, claim) and _suits(volume, claim)]
    return min(fitting, key=lambda v: (amount(dig(v, "spec", "capacity", "storage")), name_of(v)), default=None)


def _is_free(volume: Body, claim: Body) -> bool:
    ref = dig(volume, "spec", "claimRef")
    if is_terminating(volume):
        return False
    if not ref:
        return True
    ours = (ref.get("namespace"), ref.get("name")) == (namespace_of(claim), name_of(claim))
    return ours and ref.get("uid") in (None, "", uid_of(claim))


def _suits(volume: Body, claim: Body) -> bool:
    spec, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    return (
        (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
        and set(listed(wanted, "accessModes")) <= set(listed(spec, "accessModes"))
        and amount(dig(spec, "capacity", "storage")) >= amount(dig(wanted, "resources", "requests", "storage"))
        and fits(labels_of(volume), wanted.get("selector") or {})
    )


def _bind(claim: Body, volume: Body) -> Acts:
    """The volume names the PVC, then the PVC names the volume, as the binder does."""
    spec = {**volume["spec"], "claimRef": _claim_ref(claim)}
    bound_volume = {**volume, "spec": spec}
    if spec != volume["spec"]:
        marks = {**annotations_of(volume), "pv.kubernetes.io/bound-by-controller": "yes"}
        bound_volume = with_metadata(bound_volume, annotations=marks)
    yield Update({**bound_volume, "status": {"phase": "Bound", "lastPhaseTransitionTime": created_at(volume)}})
    marks = {**annotations_of(claim), "pv.kubernetes.io/bind-completed": "yes"}
    if not dig(claim, "spec", "volumeName"):
        marks["pv.kubernetes.io/bound-by-controller"] = "yes"
    status = {
        "phase": "Bound",
        "accessModes": listed(volume, "spec", "accessModes"),
        "capacity": dig(volume, "spec", "capacity") or {},
    }
    body = {**claim, "spec": {**claim["spec"], "volumeName": name_of(volume)}, "status": status}
    yield Update(with_metadata(body, annotations=marks))


def _provision(claim: Body, storage_class: Body, world: World) -> Acts:
    driver = str(storage_class.get("provisioner"))
    spec = claim["spec"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{uid_of(claim)}",
            "annotations": {"pv.kubernetes.io/provisioned-by": driver},
        },
        "spec": {
            "accessModes": listed(spec, "accessModes"),
            "capacity": {"storage": dig(spec, "resources", "requests", "storage")},
            "claimRef": _claim_ref(claim),
            "csi": {"driver": driver, "volumeHandle": f"pvc-{uid_of(claim)}"},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(storage_class),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
        },
    }
    refusal = yield Create(volume)
    made = world.get(Ref("PersistentVolume", "", name_of(volume)))
    if refusal is None and made is not None:
        yield from _bind(claim, made)


def _claim_ref(claim: Body) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": name_of(claim),
        "namespace": namespace_of(claim),
        "uid": uid_of(claim),
    }


def _with_old_size(before: Body, after: Body) -> Body:
    """In a bound PVC the requested size and the volumeAttributesClassName may change."""
    mixed = {key: value for key, value in after.items() if key != "volumeAttributesClassName"}
    if "volumeAttributesClassName" in before:
        mixed["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    requests = dict(dig(after, "resources", "requests") or {})
    old_size = dig(before, "resources", "requests", "storage")
    if requests and old_size is not None:
        mixed["resources"] = {**(after.get("resources") or {}), "requests": {**requests, "storage": old_size}}
    return mixed


def _shrunk(old: Body, new: Body) -> Iterator[str]:
    was, wanted = (amount(dig(body, "spec", "resources", "requests", "storage")) for body in (old, new))
    if wanted < was and wanted <= amount(dig(old, "status", "capacity", "storage")):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


KINDS = (
    Kind("StorageClass", "storage.k8s.io", default=default_class, immutable=immutable_class),
    Kind(
        "PersistentVolume",
        actor="persistentvolume-controller",
        behave=behave_volume,
        quick=always,
        default=default_volume,
        prepare=prepare_volume,
        immutable=immutable_volume,
    ),
    Kind(
        "PersistentVolumeClaim",
        actor="persistentvolume-controller",
        needs=claim_needs,
        behave=behave_claim,
        quick=is_quick,
        default=default_claim,
        prepare=prepare_claim,
        immutable=immutable_claim,
        ready=scheduler.is_bound,
    ),
)
