"""Property values in Pulumi's wire format: secrets, references and unknowns."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
ASSETS = ("c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7")
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def plain(value: Any) -> Any:
    """A value without Pulumi's wrappers. Protocol Buffers only have floats: whole numbers become integers again."""
    match value:
        case dict() if SIGNATURE in value:
            return _unwrapped(value)
        case dict():
            return {key: plain(one) for key, one in value.items() if one is not None}
        case list():
            return [plain(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _unwrapped(value: dict[str, Any]) -> Any:
    if value[SIGNATURE] == RESOURCE:
        return value.get("urn")
    if value[SIGNATURE] == OUTPUT and "value" not in value:
        return UNKNOWN
    if value[SIGNATURE] in ASSETS:
        return {key: plain(one) for key, one in value.items() if key != SIGNATURE}
    if "plaintext" in value:  # `pulumi stack export --show-secrets`
        with suppress(ValueError, TypeError):  # Pulumi writes it as JSON.
            return plain(json.loads(value["plaintext"]))
    return plain(value.get("value", "[secret]"))
