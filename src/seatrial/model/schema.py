"""The JSON Schema of a file that users write, from its types."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def schema_of(shape: type[Any], title: str) -> str:
    """As published in docs/, for editors."""
    (own,), shapes = msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}")
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **own, "$defs": shapes}
    return json.dumps(document, indent=2) + "\n"
