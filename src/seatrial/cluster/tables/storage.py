"""Columns of `kubectl get` for ConfigMaps, Secrets, PersistentVolumes, PVCs and StorageClasses."""

from __future__ import annotations

from seatrial.cluster.tables.column import AGE, NAME, Cell, Column, Columns, at, count, joined
from seatrial.kinds.core.quantities import canonical
from seatrial.model.resource import Body, annotations_of, dig, listed, metadata, name_of

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Cell:
    return lambda body, now: joined((_ACCESS_MODES.get(mode, mode) for mode in listed(body, *path)), "")


def _phase(body: Body, now: str) -> str:
    return "Terminating" if metadata(body).get("deletionTimestamp") else dig(body, "status", "phase") or ""


def _bound(cell: Cell) -> Cell:
    """A cell that is only shown for a bound PVC."""
    return lambda body, now: cell(body, now) if dig(body, "spec", "volumeName") else ""


def _size(*path: str) -> Cell:
    return lambda body, now: canonical(dig(body, *path) or "0")


def _claim(body: Body, now: str) -> str:
    claim = dig(body, "spec", "claimRef")
    return f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else ""


def _storage_name(body: Body, now: str) -> str:
    default = annotations_of(body).get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{name_of(body)} (default)" if default else name_of(body)


_CLASS = at("spec", "storageClassName")
_VOLUME_MODE = Column("VolumeMode", at("spec", "volumeMode", default="<unset>"), wide=True)
_ATTRIBUTES = Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default="<unset>"))

COLUMNS: Columns = {
    ("", "ConfigMap"): (NAME, Column("Data", count(("data",), ("binaryData",))), AGE),
    ("", "PersistentVolume"): (
        NAME,
        Column("Capacity", _size("spec", "capacity", "storage")),
        Column("Access Modes", _modes("spec", "accessModes")),
        Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", _CLASS),
        _ATTRIBUTES,
        Column("Reason", at("status", "reason")),
        AGE,
        _VOLUME_MODE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        Column("Status", _phase),
        Column("Volume", at("spec", "volumeName")),
        Column("Capacity", _bound(_size("status", "capacity", "storage"))),
        Column("Access Modes", _bound(_modes("status", "accessModes"))),
        Column("StorageClass", _CLASS),
        _ATTRIBUTES,
        AGE,
        _VOLUME_MODE,
    ),
    ("", "Secret"): (NAME, Column("Type", at("type")), Column("Data", count(("data",))), AGE),
    ("storage.k8s.io", "StorageClass"): (
        Column("Name", _storage_name, format="name"),
        Column("Provisioner", at("provisioner")),
        Column("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
        Column("VolumeBindingMode", at("volumeBindingMode", default="Immediate")),
        Column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
        AGE,
    ),
}
