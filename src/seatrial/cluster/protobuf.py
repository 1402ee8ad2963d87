"""The protobuf that typed Go clients send: `k8s\\0`, then `runtime.Unknown`. Reads what they write, writes nothing.

Field numbers are those of the published `generated.proto` files of k8s.io/api and k8s.io/apimachinery, 1.34.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from seatrial.cluster.refusal import Refused, bad_request
from seatrial.resource import Body

MAGIC = b"k8s\x00"
DEPTH_MAX = 32

# name -> {field number: (JSON name, type)}. A type is a scalar, a message, `[x]` for repeated, `{x}` for map<string,x>.
MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Unknown": {
        1: ("typeMeta", "TypeMeta"),
        2: ("raw", "raw"),
        3: ("contentEncoding", "string"),
        4: ("contentType", "string"),
    },
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Time": {1: ("seconds", "int"), 2: ("nanos", "int")},
    "OwnerReference": {
        5: ("apiVersion", "string"),
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        4: ("selfLink", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        11: ("labels", "{string}"),
        12: ("annotations", "{string}"),
        13: ("ownerReferences", "[OwnerReference]"),
        14: ("finalizers", "[string]"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{bytes}"),
        3: ("type", "string"),
        4: ("stringData", "{string}"),
        5: ("immutable", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{string}"),
        3: ("binaryData", "{bytes}"),
        4: ("immutable", "bool"),
    },
    "NamespaceSpec": {1: ("finalizers", "[string]")},
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta"), 4: ("automountServiceAccountToken", "bool")},
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[string]"),
    },
    "PolicyRule": {
        1: ("verbs", "[string]"),
        2: ("apiGroups", "[string]"),
        3: ("resources", "[string]"),
        4: ("resourceNames", "[string]"),
        5: ("nonResourceURLs", "[string]"),
    },
    "Subject": {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")},
    "RoleRef": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "[string]")},
    "LabelSelector": {1: ("matchLabels", "{string}"), 2: ("matchExpressions", "[LabelSelectorRequirement]")},
    "AggregationRule": {1: ("clusterRoleSelectors", "[LabelSelector]")},
    "Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "[PolicyRule]")},
    "ClusterRole": {
        1: ("metadata", "ObjectMeta"),
        2: ("rules", "[PolicyRule]"),
        3: ("aggregationRule", "AggregationRule"),
    },
    "RoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "[Subject]"), 3: ("roleRef", "RoleRef")},
    "ClusterRoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "[Subject]"), 3: ("roleRef", "RoleRef")},
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "SubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
        3: ("user", "string"),
        4: ("groups", "[string]"),
        6: ("uid", "string"),
    },
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessReviewSpec")},
    "LocalSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessReviewSpec")},
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectRulesReviewSpec")},
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "TokenReviewSpec": {1: ("token", "string"), 2: ("audiences", "[string]")},
    "TokenReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenReviewSpec")},
    "BoundObjectReference": {
        1: ("kind", "string"),
        2: ("apiVersion", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
    },
    "TokenRequestSpec": {
        1: ("audiences", "[string]"),
        3: ("boundObjectRef", "BoundObjectReference"),
        4: ("expirationSeconds", "int"),
    },
    "TokenRequest": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenRequestSpec")},
}


def decode(data: bytes) -> Body:
    """The object in a protobuf request body, as JSON would have it."""
    if not data.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _message("Unknown", data[len(MAGIC) :], 0)
    type_meta = envelope.get("typeMeta") or {}
    kind = type_meta.get("kind", "")
    if kind not in MESSAGES:
        raise Refused(
            415, "UnsupportedMediaType", f"seatrial does not read {kind or 'this kind'} as protobuf; send JSON"
        )
    return {**type_meta, **_message(kind, envelope.get("raw", b""), 0)}


def _message(name: str, data: bytes, depth: int) -> Body:
    if depth > DEPTH_MAX:
        raise bad_request("unable to decode protobuf: message nested too deeply")
    fields = MESSAGES[name]
    found: Body = {}
    for number, value in _wire(data):
        if number not in fields:
            continue
        key, type_ = fields[number]
        if type_[0] == "[":
            found.setdefault(key, []).append(_value(type_[1:-1], value, depth))
        elif type_[0] == "{":
            entry_key, entry_value = _entry(type_[1:-1], value, depth)
            found.setdefault(key, {})[entry_key] = entry_value
        else:
            found[key] = _value(type_, value, depth)
    return found


def _entry(type_: str, data: Any, depth: int) -> tuple[str, Any]:
    pair = dict(_wire(_bytes(data)))
    empty: Any = b""
    return _value("string", pair.get(1, empty), depth), _value(type_, pair.get(2, empty), depth)


def _value(type_: str, value: Any, depth: int) -> Any:
    match type_:
        case "string":
            try:
                return _bytes(value).decode()
            except UnicodeDecodeError as wrong:
                raise bad_request(f"unable to decode protobuf: {wrong}") from wrong
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "raw":
            return _bytes(value)
        case "int":
            return value if value < 1 << 63 else value - (1 << 64)
        case "bool":
            return bool(value)
        case _:
            return _message(type_, _bytes(value), depth + 1)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise bad_request("unable to decode protobuf: wrong wire type")
    return value


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
