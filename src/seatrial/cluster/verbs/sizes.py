"""How much etcd would have to hold of an object, and what it says where that is too much. Stores nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.cluster.refusal import Refused
from seatrial.model.resource import Body

STORED_BYTES_MAX = 3 * 512 * 1024
"""What etcd takes in one request."""
FIELD_BYTES = 3
"""What a field of an object in protobuf takes beside its value, about."""


def refuse_large(body: Body, *, custom: bool) -> None:
    """Custom resources are stored as JSON, all others as protobuf, which never takes more."""
    if len(msgspec.json.encode(body)) > STORED_BYTES_MAX and (custom or _packed(body) > STORED_BYTES_MAX):
        raise Refused(500, "", "etcdserver: request is too large")


def _packed(value: Any) -> int:
    """The size in protobuf, where names of fields are numbers; bytes are not told from text, and count as such."""
    match value:
        case str():
            return FIELD_BYTES + len(value.encode())
        case dict():
            return FIELD_BYTES + sum(map(_packed, value.values()))
        case list():
            return sum(map(_packed, value))
    return FIELD_BYTES
