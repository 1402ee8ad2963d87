"""Status conditions as controllers keep them. Knows no kind and no clock."""

from __future__ import annotations

from seatrial.kinds.core.objectmeta import created_at
from seatrial.model.resource import Body, listed


def condition(body: Body, type_: str, status: str, reason: str = "", message: str = "", **more: object) -> Body:
    """One condition of `body`. Reason and message are omitted if empty."""
    found: Body = {"type": type_, "status": status, **more}
    if reason:
        found["reason"] = reason
    if message:
        found["message"] = message
    return {**found, "lastTransitionTime": created_at(body)}


def find(body: Body, type_: str) -> Body | None:
    return next((found for found in listed(body, "status", "conditions") if found.get("type") == type_), None)


def is_true(body: Body, type_: str) -> bool:
    found = find(body, type_)
    return found is not None and found.get("status") == "True"


def with_condition(conditions: list[Body], new: Body) -> list[Body]:
    """Append `new`. An existing condition with the same status and reason keeps its position and message."""
    for old in conditions:
        if old.get("type") == new["type"] and all(old.get(key) == new.get(key) for key in ("status", "reason")):
            return conditions
    return [*without_condition(conditions, new["type"]), new]


def without_condition(conditions: list[Body], type_: str) -> list[Body]:
    return [found for found in conditions if found.get("type") != type_]


def without_zeros(status: Body) -> Body:
    """A status as the API server shows it: Go's `omitempty` drops zeros and empty lists."""
    return {key: value for key, value in status.items() if value not in (0, None, "", [])}
