"""The nesting limit of a body: deeper than any kind, and shallow enough for a recursive walk."""

from __future__ import annotations

from typing import Any

from seatrial.cluster.refusal import Refused, bad_request

NESTING_MAX = 200


def refuse_deep(body: Any) -> None:
    level = [body]
    for _ in range(NESTING_MAX + 1):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise too_deep()


def too_deep() -> Refused:
    return bad_request("couldn't get version/kind; json parse error: exceeded max depth")


def _children(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in children if isinstance(child, dict | list)]
