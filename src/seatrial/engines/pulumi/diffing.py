"""The differences of an object, field by field, as pulumi-kubernetes reports them.

Upstream: `convertPatchToDiff` in `provider/pkg/provider/provider.go` of pulumi-kubernetes 4.32, and `PropertyPath` in
`sdk/go/common/resource/properties_path.go` of Pulumi 3.259.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.resource import Body

Path = tuple[str | int, ...]
EACH = "*"
_STEP = lazy_re.compile(r'\.?([^.\[\]"]+)|\[(\d+|\*)\]|\["([^"]+)"\]')


class FieldChange(Struct, frozen=True):
    """One field that is new, another one, or gone; then its value is None."""

    path: Path
    value: Any = None


def changes(old: Any, new: Any, at: Path = ()) -> Iterator[FieldChange]:
    """How one value differs from another, member by member."""
    match old, new:
        case dict(), dict():
            for key in [*old, *(key for key in new if key not in old)]:
                yield from changes(old.get(key), new.get(key), (*at, key))
        case list(), list():
            for index in range(max(len(old), len(new))):
                yield from changes(_member(old, index), _member(new, index), (*at, index))
        case _ if old != new:
            yield FieldChange(at, new)


def lost(old: Body, keys: Iterable[str]) -> Iterator[FieldChange]:
    """How an object differs from one of which these parts are not known: all that is in them is gone."""
    for key in keys:
        value = old.get(key)
        if isinstance(value, dict):
            yield from (FieldChange((key, field)) for field in value)
        elif value is not None:
            yield FieldChange((key,))


def touches(field: Path, change: FieldChange) -> bool:
    """Whether a change is one of this field: in it, or of something that it is part of."""
    if len(field) <= len(change.path):
        return covers(field, change.path)
    return covers(field[: len(change.path)], change.path) and _holds(change.value, field[len(change.path) :])


def covers(field: Path, path: Path) -> bool:
    """Whether a path leads into a field; `*` stands for any name and any index."""
    return len(field) <= len(path) and all(one in (EACH, other) for one, other in zip(field, path, strict=False))


def path_of(text: str) -> Path:
    """`spec.containers[0]["app.kubernetes.io/name"]` in steps."""
    return tuple(
        int(index) if index.isdigit() else index or name or quoted for name, index, quoted in _STEP.findall(text)
    )


def put(body: Any, path: Path, value: Any) -> Any:
    """A copy with this value at a path, as far as there is a way to it; None takes it out."""
    if not path:
        return value
    first, *further = path
    rest = tuple(further)
    if isinstance(body, list) and isinstance(first, int) and first < len(body):
        return [put(one, rest, value) if index == first else one for index, one in enumerate(body)]
    if not isinstance(body, dict) or isinstance(first, int) or (rest and first not in body and value is None):
        return body
    inner = put(body.get(first, {} if rest else None), rest, value)
    return {**body, first: inner} if inner is not None else {key: one for key, one in body.items() if key != first}


def _member(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _holds(value: Any, rest: Path) -> bool:
    """Whether there is something at the rest of a path. In a list that is gone, the provider takes all to be."""
    if not rest:
        return True
    first, *further = rest
    if first == EACH:
        return value is None or (isinstance(value, list) and any(_holds(one, tuple(further)) for one in value))
    return isinstance(value, dict) and first in value and _holds(value[first], tuple(further))
