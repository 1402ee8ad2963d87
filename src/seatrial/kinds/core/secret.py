"""Secret and ConfigMap: data that other objects read. With `immutable: true` it cannot change."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from seatrial.kinds import Kind
from seatrial.kinds.core.immutable import NEWEST, forbidden, immutable_field
from seatrial.kinds.network.mentions import mentioned_in_data
from seatrial.model.resource import Body

IMMUTABLE = "field is immutable when `immutable` is set"


def immutable_secret(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "type", minor)
    yield from _immutable_data(old, new, ("data",))


def immutable_config_map(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from _immutable_data(old, new, ("data", "binaryData"))


def default_secret(secret: Body) -> Body:
    """`stringData` is write-only: the API server merges it into `data`."""
    filled = {key: value for key, value in secret.items() if key != "stringData"}
    filled.setdefault("type", "Opaque")
    texts = secret.get("stringData")
    if isinstance(texts, dict):
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        filled["data"] = {**(secret.get("data") or {}), **encoded}
    return filled


def _immutable_data(old: Body, new: Body, fields: tuple[str, ...]) -> Iterator[str]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", IMMUTABLE)
    for field in fields:
        if (old.get(field) or {}) != (new.get(field) or {}):
            yield forbidden(field, IMMUTABLE)


KINDS = (
    Kind("Secret", immutable=immutable_secret, default=default_secret),
    Kind("ConfigMap", needs=mentioned_in_data, immutable=immutable_config_map),
)
