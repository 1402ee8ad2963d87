"""What runs in the process of `sandbox.service`: libjq, which cannot be interrupted from Python."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

OUTPUTS_MAX = 2
"""Further ones are not computed."""


@lru_cache(maxsize=256)
def compiled(program: str) -> Any:
    import jq

    return jq.compile(program)


def answer(request: dict[str, Any] | None) -> dict[str, Any]:
    if request is None:
        compiled(".")
        return {}
    try:
        program = compiled(request["program"])
    except ValueError as error:
        return {"illegal": str(error)}
    if "input" not in request:
        return {"outputs": []}
    try:
        return {"outputs": list(islice(iter(program.input_value(request["input"])), OUTPUTS_MAX))}
    except ValueError as error:
        return {"error": str(error)}
