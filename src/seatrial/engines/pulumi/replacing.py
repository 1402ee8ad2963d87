"""Which changes Pulumi answers by replacing an object, and whether the old one goes first.

Upstream: `Diff` in `provider/pkg/provider/provider.go` of pulumi-kubernetes 4.32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from seatrial.forcenew import at, forced
from seatrial.registration import Registration
from seatrial.resource import Body, dig

STEP = re.compile(r'\.?([^.\[\]"]+)|\[(\d+)\]|\["([^"]+)"\]')
"""A part of a property path: `spec`, `[0]`, `["app.kubernetes.io/name"]`."""


def replaces(old: Registration, new: Registration) -> tuple[str, ...]:
    """The fields whose change makes a new object of this one; empty where it is changed in place."""
    assert old.ref is not None and old.object is not None and new.object is not None
    if (old.ref.kind, old.ref.group) != (new.ref.kind if new.ref else "", new.ref.group if new.ref else ""):
        return ("kind",)
    return tuple(_changed(old.object, new.object, forced(old.ref, new.options.replace_on_changes)))


def without_ignored(old: Registration, new: Registration) -> Registration:
    """The new one as the provider gets it: what `ignoreChanges` names stays as it was."""
    if old.object is None or new.object is None:
        return new
    body = new.object
    for path in map(_steps, new.options.ignore_changes):
        body = _put(body, path, dig(old.object, *path))
    return replace(new, object=body)


def deletes_first(old: Registration, new: Registration) -> bool:
    """Whether the old object goes before the new one is made: two cannot have one name."""
    if new.options.delete_before_replace is not None:
        return new.options.delete_before_replace
    return not new.auto_named and old.ref == new.ref


def _changed(old: Body, new: Body, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == "*" or at(old, path) != at(new, path):
            yield path


def _put(body: Any, path: list[str | int], value: Any) -> Any:
    """A copy with this value at a path, as far as there is a way to it; None takes it out."""
    if not path:
        return value
    first, *rest = path
    if isinstance(body, list) and isinstance(first, int) and first < len(body):
        return [_put(one, rest, value) if index == first else one for index, one in enumerate(body)]
    if not isinstance(body, dict) or isinstance(first, int):
        return body
    inner = _put(body.get(first, {} if rest else None), rest, value)
    return {**body, first: inner} if inner is not None else {key: one for key, one in body.items() if key != first}


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else name or quoted for name, index, quoted in STEP.findall(path)]
