"""The protobuf that typed Go clients send: `k8s\\0`, then `runtime.Unknown`. Reads what they send, writes nothing."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pkgutil import get_data
from typing import Any

import msgspec

from seatrial.cluster.discovery.schema import definition_name, published_versions
from seatrial.cluster.refusal import Refused, bad_request
from seatrial.model.resource import Body, group_of, version_of

MAGIC = b"k8s\x00"
DEPTH_MAX = 64

# From the names of the published schemas to those of the messages.
PACKAGES = (
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
)

# Go writes every field that is not a pointer, even if it is empty; JSON would omit those. These fields are pointers, so
# zero, false and the empty string are significant.
POINTERS = frozenset(
    [
        "activeDeadlineSeconds",
        "allowPrivilegeEscalation",
        "allowVolumeExpansion",
        "allowedToEscalate",
        "appProtocol",
        "automountServiceAccountToken",
        "backoffLimit",
        "blockOwnerDeletion",
        "completions",
        "controller",
        "defaultMode",
        "enableServiceLinks",
        "expirationSeconds",
        "failedJobsHistoryLimit",
        "fsGroup",
        "gracePeriodSeconds",
        "hostUsers",
        "immutable",
        "minReplicas",
        "mode",
        "optional",
        "orphanDependents",
        "parallelism",
        "privileged",
        "progressDeadlineSeconds",
        "readOnlyRootFilesystem",
        "replicas",
        "revisionHistoryLimit",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "storageClassName",
        "successfulJobsHistoryLimit",
        "suspend",
        "terminationGracePeriodSeconds",
        "ttlSecondsAfterFinished",
        "value",
    ]
)


class Field(msgspec.Struct, frozen=True):
    name: str
    """Empty if the message is inlined in JSON."""
    type: str


def decode(data: bytes) -> Body:
    """The object in a protobuf request body, as JSON would have it."""
    if not data.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_wire(data[len(MAGIC) :]))
    type_meta = _message("runtime.TypeMeta", _bytes(envelope.get(1, b"")), 0)
    name = _message_of(type_meta)
    if name not in _lines():
        kind = type_meta.get("kind") or "this kind"
        raise Refused(415, "UnsupportedMediaType", f"seatrial does not read {kind} as protobuf; send JSON")
    return {**type_meta, **_message(name, _bytes(envelope.get(2, b"")), 0)}


def _message_of(type_meta: Body) -> str:
    api_version, kind = str(type_meta.get("apiVersion", "")), str(type_meta.get("kind", ""))
    newest = published_versions()[-1]
    full = definition_name(newest, group_of(api_version), version_of(api_version), kind) or ""
    for start, instead in PACKAGES:
        if full.startswith(start):
            return instead + full.removeprefix(start)
    return full


@cache
def _lines() -> dict[str, str]:
    """The fields of every message, unparsed."""
    text = (get_data(__name__, "protobuf_fields.txt") or b"").decode()
    pairs = (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: fields for name, _, fields in pairs}


@cache
def _fields(message: str) -> dict[int, Field]:
    cells = (cell.split(":") for cell in _lines().get(message, "").split())
    return {int(number): Field(name, type_) for number, name, type_ in cells}


def _message(name: str, data: bytes, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise bad_request("unable to decode protobuf: message nested too deeply")
    fields = _fields(name)
    found: Body = {}
    for number, value in _wire(data):
        field = fields.get(number)
        if field is not None:
            _take(field, value, found, depth)
    return SPECIAL[name](found) if name in SPECIAL else found


def _take(field: Field, value: Any, found: Body, depth: int) -> None:
    """Put one field where JSON would have it."""
    if field.type[0] == "[":
        found.setdefault(field.name, []).append(_value(field.type[1:-1], value, depth))
    elif field.type[0] == "{":
        pair = dict(_wire(_bytes(value)))
        key = _value("string", pair.get(1, b""), depth)
        found.setdefault(field.name, {})[key] = _value(field.type[1:-1], pair.get(2, b""), depth)
    elif not field.name:
        found.update(_value(field.type, value, depth))
    else:
        read = _value(field.type, value, depth)
        if field.name in POINTERS or read not in ("", 0, None):
            found[field.name] = read


def _value(type_: str, value: Any, depth: int) -> Any:
    match type_:
        case "string":
            try:
                return _bytes(value).decode()
            except UnicodeDecodeError as error:
                raise bad_request(f"unable to decode protobuf: {error}") from error
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "int":
            return _int(value)
        case "bool":
            return bool(value)
        case "double":
            return struct.unpack("<d", _int(value).to_bytes(8, "little", signed=True))[0]
        case _:
            return _message(type_, _bytes(value), depth + 1)


def _time(fields: Body) -> str | None:
    seconds = fields.get("seconds", 0)
    if not 0 < seconds < 253402300800:  # Year 10000, the end of the notation.
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(fields: Body) -> int | str:
    return str(fields.get("strVal", "")) if fields.get("type") else int(fields.get("intVal", 0))


def _quantity(fields: Body) -> str:
    return str(fields.get("string") or "0")


def _raw_json(fields: Body) -> Any:
    raw = base64.b64decode(fields.get("raw") or fields.get("Raw") or "")
    try:
        return msgspec.json.decode(raw) if raw else {}
    except msgspec.DecodeError as error:
        raise bad_request(f"unable to decode protobuf: {error}") from error


def _items(fields: Body) -> Any:
    return fields.get("items", [])


def _either(*names: str) -> Callable[[Body], Any]:
    """A message that has one of several shapes in JSON."""
    return lambda fields: next((fields[name] for name in names if name in fields), None)


SPECIAL: dict[str, Callable[[Body], Any]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _time,
    "meta.v1.FieldsV1": _raw_json,
    "meta.v1.Verbs": _items,
    "intstr.IntOrString": _int_or_string,
    "resource.Quantity": _quantity,
    "runtime.RawExtension": _raw_json,
    "authentication.v1.ExtraValue": _items,
    "authorization.v1.ExtraValue": _items,
    "certificates.v1.ExtraValue": _items,
    "apiextensions.v1.JSON": _raw_json,
    "apiextensions.v1.JSONSchemaPropsOrArray": _either("schema", "jSONSchemas"),
    "apiextensions.v1.JSONSchemaPropsOrBool": _either("schema", "allows"),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _either("schema", "property"),
}
"""Messages whose JSON is not a mapping of their fields."""


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise bad_request("unable to decode protobuf: wrong wire type")
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise bad_request("unable to decode protobuf: wrong wire type")
    return value if value < 1 << 63 else value - (1 << 64)


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, value) of each field: an int for varints and fixed widths, bytes for the rest."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == 2:
            size, position = _varint(data, position)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise bad_request(f"unable to decode protobuf: illegal wire type {wire_type}")
        if position + size > len(data):
            raise bad_request("unable to decode protobuf: unexpected EOF")
        chunk = data[position : position + size]
        position += size
        yield number, chunk if wire_type == 2 else int.from_bytes(chunk, "little")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise bad_request("unable to decode protobuf: unexpected EOF")
