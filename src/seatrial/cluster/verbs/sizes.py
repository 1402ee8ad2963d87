"""The size of an object in etcd, and etcd's error if it is too large. Stores nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.cluster.refusal import Refused
from seatrial.model.resource import Body

STORED_BYTES_MAX = 3 * 512 * 1024
"""etcd's limit for one request."""
FIELD_BYTES = 3
"""The approximate overhead of a protobuf field."""


def refuse_large(body: Body, *, custom: bool) -> None:
    """Custom resources are stored as JSON, all others as protobuf, which is never larger."""
    if len(msgspec.json.encode(body)) > STORED_BYTES_MAX and (custom or _protobuf_size(body) > STORED_BYTES_MAX):
        raise Refused(500, "", "etcdserver: request is too large")


def _protobuf_size(value: Any) -> int:
    """The size in protobuf, where field names are numbers. Bytes count as text."""
    match value:
        case str():
            return FIELD_BYTES + len(value.encode())
        case dict():
            return FIELD_BYTES + sum(map(_protobuf_size, value.values()))
        case list():
            return sum(map(_protobuf_size, value))
    return FIELD_BYTES
