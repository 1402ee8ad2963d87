"""Validation of a pod's volumes. The order follows `ValidateVolumes` in core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import names
from seatrial.cluster.validation.causes import duplicate, each, forbidden, invalid, required
from seatrial.cluster.validation.containers import descending_path, field_path
from seatrial.model.resource import Body

# In the server's order. Only the first one that is set is validated further.
SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos"),
    *("projected", "scaleIO", "csi", "ephemeral", "image"),
)

# Fields that a source must name.
_NAMES = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
}

_MODES = "must be a number between 0 and 0777 (octal), both inclusive"


def volume_problems(at: str, volumes: list[Body], good: set[str]) -> Iterator[str]:
    """`good` gets the names of valid volumes: mounts of an invalid one are reported as not found."""
    for index, volume in enumerate(volumes):
        found = list(_volume(f"{at}[{index}]", volume))
        name = volume.get("name") or ""
        if not name:
            found.append(required(f"{at}[{index}].name"))
        else:
            found += each(f"{at}[{index}].name", name, names.label(name))
        if name in good:
            found.append(duplicate(f"{at}[{index}].name", name))
        if not found:
            good.add(name)
        yield from found


def _volume(at: str, volume: Body) -> Iterator[str]:
    given = [key for key in SOURCES if volume.get(key) is not None]
    for place, key in enumerate(given):
        if place:
            yield forbidden(f"{at}.{key}", "may not specify more than 1 volume type")
        else:
            yield from _source(f"{at}.{key}", key, volume[key])


def _source(at: str, key: str, source: Body) -> Iterator[str]:
    for name in _NAMES.get(key, ()):
        if not source.get(name):
            yield required(f"{at}.{name}")
    if key == "csi":
        driver = (source.get("driver") or "").lower()
        yield from each(f"{at}.driver", driver, names.subdomain(driver))
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(f"{at}.defaultMode", mode, _MODES)
    for index, item in enumerate(source.get("items") or ()):
        yield from _item(f"{at}.items[{index}]" if key != "downwardAPI" else at, key, item)


def _item(at: str, key: str, item: Body) -> Iterator[str]:
    """One key or field and its file."""
    if key == "downwardAPI":
        if field := item.get("fieldRef"):
            yield from field_path(f"{at}.fieldRef.fieldPath", field.get("fieldPath") or "")
        elif not item.get("resourceFieldRef"):
            yield required(at, "one of fieldRef and resourceFieldRef is required")
    elif not item.get("key"):
        yield required(f"{at}.key")
    path = item.get("path") or ""
    if not path:
        yield required(f"{at}.path")
    else:
        yield from descending_path(f"{at}.path", path)
    mode = item.get("mode")
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(f"{at}.mode", mode, _MODES)
