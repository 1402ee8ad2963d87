"""`jq` in scripts, evaluated by libjq in its own process within limits (`seatrial.jq`)."""

from __future__ import annotations

import json
from typing import Any

from seatrial import jq
from seatrial.kinds.scripts.text_tools import Output, Read, arguments
from seatrial.model import lazy_re

INPUTS_MAX = 50
_ELSEWHERE = lazy_re.compile(
    r"\benv\b|\$ENV|\binputs?\b|\bnow\b|input_filename|\$__|\bhalt|\bdebug\b|\bimport\b|\binclude\b"
)
"""What depends on more than the input."""


def jq_tool(given: list[str], read: Read) -> Output | None:
    words, variables = list[str](), dict[str, Any]()
    rest = list(given)
    while rest:
        word = rest.pop(0)
        if word in ("--arg", "--argjson"):
            if len(rest) < 2:
                return None
            name, value = rest.pop(0), rest.pop(0)
            try:
                variables[name] = value if word == "--arg" else json.loads(value)
            except ValueError:
                return None
        else:
            words.append(word)
    found = arguments(
        words, "rcesnjS", "", {"raw-output": "r", "compact-output": "c", "exit-status": "e", "slurp": "s"}
    )
    if found is None or not found.operands or _ELSEWHERE.search(found.operands[0]):
        return None
    text = "" if "n" in found.flags else read(found.operands[1:])
    inputs = _inputs(text, found.flags) if text is not None else None
    if inputs is None:
        return None
    bound = "".join(f"{json.dumps(value)} as ${name} | " for name, value in variables.items())
    outputs = list[Any]()
    for one in inputs:
        answer = jq.run(f"{bound}[{found.operands[0]}\n]", one)
        if isinstance(answer, jq.JqFault) or len(answer) != 1:
            return None
        outputs += answer[0]
    shown = [_shown(one, found.flags) for one in outputs]
    if any(one is None for one in shown):
        return None
    code = 0
    if "e" in found.flags:
        code = 4 if not outputs else int(outputs[-1] in (None, False) and outputs[-1] != 0)
    return code, ("" if "j" in found.flags else "\n").join([*map(str, shown), ""])


def _inputs(text: str, flags: frozenset[str]) -> list[Any] | None:
    """The values of a text, one after the other."""
    if "n" in flags:
        return [None]
    decoder, at, found = json.JSONDecoder(), 0, list[Any]()
    while at < len(text):
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        found.append(value)
        if len(found) > INPUTS_MAX:
            return None
    return [found] if "s" in flags else found


def _shown(value: Any, flags: frozenset[str]) -> str | None:
    """As jq prints it; None for numbers whose form differs between versions."""
    if isinstance(value, str) and flags & {"r", "j"}:
        return value
    if _has_float(value):
        return None
    compact = (
        {"separators": (",", ":")}
        if flags & {"c"} or not isinstance(value, dict | list) or not value
        else {"indent": 2}
    )
    return json.dumps(value, ensure_ascii=False, sort_keys="S" in flags, **compact)


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_float(one) for one in value.values())
    if isinstance(value, list):
        return any(_has_float(one) for one in value)
    return isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**53)
