"""Table columns: the cell of each, for one object at one time. Knows no kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from seatrial.cluster.tables.age import since
from seatrial.model.resource import Body, dig

Cell = Callable[[Body, str], Any]
"""From an object and the current time to the cell."""

NONE = "<none>"


class Column(Struct, frozen=True):
    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    wide: bool = False
    """Shown only by `-o wide`."""


Columns = dict[tuple[str, str], tuple[Column, ...]]
"""By (group, kind)."""


def at(*path: str | int, default: Any = "") -> Cell:
    """The value at a path, or the default."""

    def cell(body: Body, now: str) -> Any:
        found = dig(body, *path)
        return default if found is None or found == "" else found

    return cell


def count(*paths: tuple[str, ...]) -> Cell:
    return lambda body, now: sum(len(dig(body, *path) or ()) for path in paths)


def ago(*path: str, default: str = "<unknown>") -> Cell:
    def cell(body: Body, now: str) -> str:
        moment = dig(body, *path)
        return since(moment, now) if moment else default

    return cell


def share(ready: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    return lambda body, now: f"{dig(body, *ready) or 0}/{dig(body, *wanted) or 0}"


def number(name: str, *path: str) -> Column:
    return Column(name, at(*path, default=0), "integer")


NAME = Column("Name", at("metadata", "name"), format="name")
AGE = Column("Age", ago("metadata", "creationTimestamp"))
CREATED = Column("Created At", at("metadata", "creationTimestamp", default=None), "date")


def joined(values: Iterable[Any], empty: str = NONE) -> str:
    return ",".join(str(value) for value in values) or empty


def labels_shown(labels: dict[str, str] | None) -> str:
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector(*path: str) -> Cell:
    def cell(body: Body, now: str) -> str:
        chosen = dig(body, *path) or {}
        terms = [(key, f"{key}={value}") for key, value in (chosen.get("matchLabels") or {}).items()]
        terms += [(term.get("key", ""), _term(term)) for term in chosen.get("matchExpressions") or ()]
        return joined(text for _, text in sorted(terms))

    return cell


def _term(expression: Body) -> str:
    key, values = expression.get("key", ""), ",".join(sorted(expression.get("values") or ()))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
    return str(key)
