"""Fields of the user's manifests that are in an object and should not be. Knows no engine and no rehearsal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref

Contents = Mapping[Ref, Body]
"""Objects as they are after a step."""


def fields_left(expected: Contents, found: Contents, written: Iterable[Resource]) -> Iterator[tuple[Ref, str]]:
    """What `found` has beside `expected`, of the same objects, if a manifest has it: others write fields as well."""
    paths: dict[Ref, set[str]] = {}
    for resource in written:
        paths.setdefault(resource.ref, set()).update(_paths(resource.body))
    for ref in sorted(found.keys() & expected.keys() & paths.keys()):
        left = (set(_paths(found[ref])) - set(_paths(expected[ref]))) & paths[ref]
        yield from ((ref, path) for path in sorted(left) if not any(path.startswith(_inside(one)) for one in left))


def _inside(path: str) -> tuple[str, str]:
    return f"{path}.", f"{path}["


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """The path of every field below: `spec.containers[0].args`."""
    match value:
        case dict():
            for key, below in value.items():
                yield (at := f"{path}.{key}" if path else str(key))
                yield from _paths(below, at)
        case list():
            for index, below in enumerate(value):
                yield (at := f"{path}[{index}]")
                yield from _paths(below, at)
