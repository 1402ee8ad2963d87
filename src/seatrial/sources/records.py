"""Decoding of Helm's release records: base64, gzip, JSON. Knows nothing of the objects in them."""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec
from msgspec import Struct

from seatrial.helm import records
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Place, dig, labels_of, name_of

BYTES_MAX = 100 * 1024 * 1024
"""For all records of a file, decoded. A Secret holds one megabyte, which may unzip to a thousand."""

_BASE64 = lazy_re.compile(rb"[A-Za-z0-9+/=]+")
_GZIP = b"\x1f\x8b\x08"
_LAYERS_MAX = 2
"""A Secret is base64-encoded twice, by Helm and by the API; a ConfigMap once."""


class _Shape(Struct, frozen=True):
    """The fields that Helm itself requires."""

    name: str
    version: int
    namespace: str = ""
    manifest: str = ""
    info: Body | None = None
    chart: Body | None = None
    config: Body | None = None
    hooks: list[Body] | None = None


def is_record(body: Body) -> bool:
    """Whether an object is a Helm release record, of the Secret or the ConfigMap driver."""
    if body.get("kind") == "Secret":
        return body.get("type") == records.TYPE
    return body.get("kind") == "ConfigMap" and labels_of(body).get("owner") == "helm" and "release" in _data(body)


def record_in(body: Body, place: Place, left: int = BYTES_MAX) -> tuple[Body, int]:
    """The record in a Secret or ConfigMap, and its size; at most `left` bytes."""
    doing = f"{place}: read the stored release {name_of(body)}"
    coded = _data(body).get("release")
    if not isinstance(coded, str) or not coded:
        raise CannotContinue(f"{doing}: it has no data.release")
    raw = _unzipped(_decoded(coded, doing), doing, left)
    return checked(raw, doing), len(raw)


def checked(raw: bytes, doing: str) -> Body:
    """A record, if these bytes are one."""
    try:
        record = msgspec.json.decode(raw)
        msgspec.convert(record, _Shape)
    except msgspec.ValidationError as wrong:
        raise CannotContinue(f"{doing}: not a Helm release: {_plain(wrong)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise CannotContinue(f"{doing}: the data is not JSON: {wrong}") from None
    found: Body = record
    return found


def _data(body: Body) -> Body:
    data = dig(body, "data")
    return data if isinstance(data, dict) else {}


def _decoded(coded: str, doing: str) -> bytes:
    raw = "".join(coded.split()).encode(errors="surrogateescape")
    for layer in range(_LAYERS_MAX):
        if layer and not _BASE64.fullmatch(raw):
            break
        try:
            raw = base64.b64decode(raw, validate=True)
        except binascii.Error as wrong:
            raise CannotContinue(f"{doing}: the data is truncated or not base64: {wrong}") from None
        if raw.startswith((_GZIP, b"{")):
            break
    return raw


def _unzipped(raw: bytes, doing: str, left: int) -> bytes:
    if raw.startswith(b"{"):
        return raw  # Helm reads this too: old versions did not compress their records.
    if not raw.startswith(_GZIP):
        raise CannotContinue(f"{doing}: the data is not gzip")
    unzip = zlib.decompressobj(wbits=31)
    try:
        found = unzip.decompress(raw, left + 1)
    except zlib.error as wrong:
        raise CannotContinue(f"{doing}: the gzip data is damaged: {wrong}") from None
    if len(found) > left:
        raise CannotContinue(f"{doing}: unzipped, the data is larger than the maximum of {BYTES_MAX} bytes")
    if not unzip.eof:
        raise CannotContinue(f"{doing}: the gzip data is truncated")
    return found


def _plain(wrong: msgspec.ValidationError) -> str:
    sentence, _, path = str(wrong).partition(" - at `$")
    at = path.rstrip("`").lstrip(".")
    return f"{at}: {sentence}" if at else sentence
