"""The JSON Schema of trial files, from the types that read them and the actions of all engines."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from seatrial.engines.engine import load, names
from seatrial.model.engine import Takes
from seatrial.model.trial import ANYONES, Assumptions, StepOptions, TrialFile

NOTHING = ({"type": "null"}, {"type": "object", "maxProperties": 0})
TAKES: dict[Takes, Any] = {
    "source": {"type": "string", "minLength": 1},
    "optional source": {"anyOf": [{"type": "string"}, *NOTHING]},
    "revision": {"anyOf": [{"type": "integer", "minimum": 0}, *NOTHING]},
    "nothing": {"anyOf": [*NOTHING]},
}


def schema() -> str:
    """The JSON Schema of trial files, as published in docs/trial.schema.json."""
    types = (TrialFile, Assumptions, StepOptions)
    (_, assume, _), shapes = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    own = shapes.pop("TrialFile")
    steps = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Step"}}
    own["properties"] |= {"steps": steps, "assume": assume}
    operator = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Operator"}]}
    shapes["Assumptions"]["properties"]["operators"]["items"] = operator
    shapes["Step"] = _step(shapes.pop("StepOptions"))
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **own,
        "title": "A trial file of seatrial",
        "$defs": dict(sorted(shapes.items())),
    }
    return json.dumps(document, indent=2) + "\n"


def _step(beside: dict[str, Any]) -> dict[str, Any]:
    """One action, alone or with its options."""
    actions: dict[str, list[Any]] = {name: [TAKES["source"]] for name in ANYONES if name != "rebuild"}
    for engine in names():
        for action in load(engine).actions:
            actions.setdefault(action.name, []).append(TAKES[action.takes])
    actions["rebuild"] = [{"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Step"}}]
    alone = sorted(name for name in actions if name != "rebuild")
    properties = {name: _any(found) for name, found in sorted(actions.items())}
    full = {
        **beside,
        "properties": {**properties, **beside["properties"]},
        "oneOf": [{"required": [name]} for name in sorted(actions)],
    }
    return {"anyOf": [{"enum": alone}, full]}


def _any(found: list[Any]) -> Any:
    distinct = [one for number, one in enumerate(found) if one not in found[:number]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
