"""Validation of ConfigMaps, Secrets, PVCs, PersistentVolumes and StorageClasses."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import (
    each,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from seatrial.cluster.validation.scalars import one_of, selector
from seatrial.cluster.validation.volumes import SOURCES
from seatrial.kinds.core.quantities import amount, canonical
from seatrial.model.resource import Body, annotations_of

DATA_BYTES_MAX = 1024 * 1024

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")

# The required keys of typed Secrets.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_KEYS = (".dockercfg", ".dockerconfigjson")


def claim_problems(at: str, spec: Body) -> Iterator[str]:
    """The problems of a PVC's spec, or of a template of one."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{at}.accessModes", "at least 1 access mode is required")
    yield from selector(f"{at}.selector", spec.get("selector") or {})
    for mode in modes:
        yield from one_of(f"{at}.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and set(modes) & set(_ACCESS_MODES[:3]):
        yield forbidden(f"{at}.accessModes", "may not use ReadWriteOncePod with other access modes")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(f"{at}.resources[storage]")
    elif amount(size) <= 0:
        yield invalid(f"{at}.resources[storage]", canonical(size), "must be greater than zero")
    if name := spec.get("storageClassName"):
        yield from each(f"{at}.storageClassName", name, names.subdomain(name))
    yield from one_of(f"{at}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


def _claim(body: Body) -> Iterator[str]:
    yield from claim_problems("spec", body.get("spec") or {})


def _config_map(body: Body) -> Iterator[str]:
    data, binary = body.get("data") or {}, body.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        yield from each(f"data[{key}]", key, names.config_key(key))
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value or "")
    for key, value in binary.items():
        yield from each(f"binaryData[{key}]", key, names.config_key(key))
        size += len(value or "") * 3 // 4
    if size * 4 > DATA_BYTES_MAX and _bytes(data, binary) > DATA_BYTES_MAX:
        yield too_long("[]", DATA_BYTES_MAX)


def _bytes(texts: dict[str, str | None], encoded: dict[str, str | None]) -> int:
    plain = sum(len((value or "").encode()) for value in texts.values())
    return plain + sum(len(b64decode(value or "")) for value in encoded.values())


def _secret(body: Body) -> Iterator[str]:
    data = {**(body.get("data") or {}), **dict.fromkeys(body.get("stringData") or ())}
    size = 0
    for key, value in data.items():
        yield from each(f"data[{key}]", key, names.config_key(key))
        size += len(value or "")
    if size > DATA_BYTES_MAX and _bytes(body.get("stringData") or {}, body.get("data") or {}) > DATA_BYTES_MAX:
        yield too_long("data", DATA_BYTES_MAX)
    kind = body.get("type") or "Opaque"
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key in _JSON_KEYS and (fault := _json_fault(_plain(body, key))):
            yield invalid(f"data[{key}]", "<secret contents redacted>", fault)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield required("data[username]")
        yield required("data[password]")
    account = "kubernetes.io/service-account.name"
    if kind == "kubernetes.io/service-account-token" and not annotations_of(body).get(account):
        yield required(f"metadata.annotations[{account}]")


def _plain(body: Body, key: str) -> bytes:
    text = (body.get("stringData") or {}).get(key)
    return b64decode((body.get("data") or {}).get(key) or "") if text is None else str(text).encode()


def _json_fault(text: bytes) -> str:
    """Go's error for the most common problem: unexpected end of JSON input. Other errors name the character."""
    try:
        json.loads(text)
    except json.JSONDecodeError as fault:
        if fault.pos >= len(text):
            return "unexpected end of JSON input"
        return f"invalid character '{fault.doc[fault.pos]}' looking for beginning of value"
    return ""


def _volume(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity")
    if not modes:
        yield required("spec.accessModes")
    for mode in modes:
        yield from one_of("spec.accessModes", mode, _ACCESS_MODES)
    if not capacity:
        yield required("spec.capacity")
    if "storage" not in (capacity or {}):
        yield unsupported("spec.capacity", capacity, ("storage",))
    elif amount(spec["capacity"]["storage"]) <= 0:
        yield invalid("spec.capacity[storage]", canonical(spec["capacity"]["storage"]), "must be greater than zero")
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))
    if not any(spec.get(source) is not None for source in (*SOURCES, "local")):
        yield required("spec", "must specify a volume type")


def _storage_class(body: Body) -> Iterator[str]:
    provisioner = body.get("provisioner") or ""
    if not provisioner:
        yield required("provisioner")
    else:
        yield from each("provisioner", provisioner.lower(), names.qualified_name(provisioner.lower()))
    if "" in (body.get("parameters") or {}):
        yield invalid("parameters", "", "field can not be empty.")
    yield from one_of("reclaimPolicy", body.get("reclaimPolicy"), ("Delete", "Retain"))
    yield from one_of("volumeBindingMode", body.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))


RULES: Rules = {
    ("", "ConfigMap"): _config_map,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Secret"): _secret,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
