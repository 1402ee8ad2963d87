"""The JSONPath of a CRD's printer columns: `.status.conditions[?(@.type=="Ready")].status`. Simple paths only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.resource import dig

Step = Callable[[Any], Iterator[Any]]

_TOKENS = lazy_re.compile(
    r"""
    \.?\[\?\(\s*@\.(?P<field>[^=!<>\s]+)\s*(?P<operator>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
    | \.?\[(?P<index>-?\d+)\]
    | \.?\[(?P<all>\*)\]
    | \.?\[['"](?P<quoted>[^'"]+)['"]\]
    | \.(?P<key>(?:\\.|[^.\[\\])+)
    """,
    re.VERBOSE,
)


def find(path: str, body: Any) -> list[Any]:
    """Everything at a path; empty if the path cannot be parsed."""
    steps = _steps(path)
    found = [] if steps is None else [body]
    for step in steps or ():
        found = [after for before in found for after in step(before)]
    return found


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...] | None:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps = []
    at = 0
    while at < len(text):
        token = _TOKENS.match(text, at)
        if token is None:
            return None
        steps.append(_step(token))
        at = token.end()
    return tuple(steps)


def _step(token: re.Match[str]) -> Step:
    if token["field"] is not None:
        return _filter(token["field"].split("."), token["operator"] == "==", token["value"].strip("\"'"))
    if token["index"] is not None:
        return _item(int(token["index"]))
    if token["all"] is not None:
        return _every
    return _field(token["quoted"] or re.sub(r"\\(.)", r"\1", token["key"]))


def _filter(field: list[str], equal: bool, value: str) -> Step:
    def step(body: Any) -> Iterator[Any]:
        for item in body if isinstance(body, list) else ():
            if (str(dig(item, *field)) == value) is equal:
                yield item

    return step


def _item(index: int) -> Step:
    def step(body: Any) -> Iterator[Any]:
        if isinstance(body, list) and -len(body) <= index < len(body):
            yield body[index]

    return step


def _every(body: Any) -> Iterator[Any]:
    yield from body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()


def _field(key: str) -> Step:
    def step(body: Any) -> Iterator[Any]:
        if isinstance(body, dict) and key in body:
            yield body[key]

    return step
