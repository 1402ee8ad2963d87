"""Custom fields that may not change: the one rule in CEL that is understood here, `self == oldSelf`.

Like the API server, it asks only where the field is set before and after, and follows no lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.cluster.validation.custom import CEL
from seatrial.kinds.immutable import forbidden, invalid
from seatrial.resource import Body

UNCHANGED = "self==oldSelf"


def is_understood(rule: str) -> bool:
    return rule.replace(" ", "") == UNCHANGED


def transition_problems(old: Any, new: Any, node: Body, path: str = "") -> Iterator[str]:
    """The refusals of a change of an object that has been found right in itself."""
    if old is None or new is None:
        return
    for rule in node.get(CEL) or ():
        if old != new and is_understood(str(rule.get("rule", ""))):
            yield _refusal(rule, node, path)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    others = node.get("additionalProperties")
    for key in new:
        child = (node.get("properties") or {}).get(key, others)
        if isinstance(child, dict):
            yield from transition_problems(old.get(key), new[key], child, f"{path}.{key}" if path else key)


def _refusal(rule: Body, node: Body, path: str) -> str:
    words = str(rule.get("message") or f"failed rule: {rule['rule']}")
    if rule.get("reason") == "FieldValueForbidden":
        return forbidden(path, words)
    return invalid(path, f'"{node.get("type", "")}"', words)
