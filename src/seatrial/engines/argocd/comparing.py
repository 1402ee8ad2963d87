"""Whether a live object is as it is wanted: what makes an Application OutOfSync, and which differences do not count.

A stand-in for `gitops-engine/pkg/diff`: what is wanted must be there, and what was wanted before and no longer is must
not. Defaults that the API server adds are no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from seatrial.engines.argocd.app import App, Settings, Target
from seatrial.engines.kubectl import LAST_APPLIED
from seatrial.resource import Body, annotations_of, metadata

_ABSENT = object()
_OF_THE_SERVER = ("status", "apiVersion", "kind")


def is_modified(target: Target, live: Body, app: App, settings: Settings) -> bool:
    """Whether a sync would change the live object."""
    pointers = list(_ignored(target, app, settings))
    wanted = _without(_compared(target.body), pointers)
    there = _without(_compared(live), pointers)
    text = annotations_of(live).get(LAST_APPLIED)
    before = _without(_compared(msgspec.json.decode(text)), pointers) if text else {}
    return not _holds(there, wanted) or _kept(before, wanted, there)


def respecting(target: Target, live: Body | None, app: App, settings: Settings) -> Target:
    """The target with the live values of the fields whose differences are ignored: `RespectIgnoreDifferences`."""
    if live is None:
        return target
    body = target.body
    for pointer in _ignored(target, app, settings):
        value = _at(live, pointer)
        if pointer[:1] != ["status"]:
            body = _put(body, pointer, value)
    return Target(target.ref, body)


def _ignored(target: Target, app: App, settings: Settings) -> Iterator[list[str]]:
    """The `jsonPointers` of the entries that speak of this object."""
    ref = target.ref
    for entry in (*app.ignore_differences, *settings.ignore_differences):
        named = entry.get("name") in (None, "", ref.name)
        placed = entry.get("namespace") in (None, "", ref.namespace)
        kinds = fnmatchcase(ref.group, str(entry.get("group") or "")) and fnmatchcase(ref.kind, str(entry.get("kind")))
        if named and placed and kinds:
            for pointer in entry.get("jsonPointers") or ():
                yield [part.replace("~1", "/").replace("~0", "~") for part in str(pointer).split("/")[1:]]


def _compared(body: Body) -> Body:
    meta = metadata(body)
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k != LAST_APPLIED}
    kept = {key: value for key, value in body.items() if key not in _OF_THE_SERVER}
    return {**kept, "metadata": {"labels": meta.get("labels") or {}, "annotations": annotations}}


def _holds(there: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there."""
    if isinstance(wanted, dict):
        if not isinstance(there, dict):
            return not wanted and there is None
        return all(_holds(there.get(key), value) for key, value in wanted.items() if value is not None)
    if isinstance(wanted, list):
        if not isinstance(there, list):
            return not wanted and there is None
        return len(there) == len(wanted) and all(_holds(t, w) for t, w in zip(there, wanted, strict=True))
    return bool(there == wanted) or (there is None and wanted in ("", 0, False)) or str(there) == str(wanted)


def _kept(before: Any, wanted: Any, there: Any) -> bool:
    """Whether something that was wanted and no longer is is still there."""
    if not (isinstance(before, dict) and isinstance(wanted, dict) and isinstance(there, dict)):
        return False
    dropped = (key for key in before if key not in wanted and before[key] not in (None, {}, []))
    if any(key in there for key in dropped):
        return True
    return any(_kept(before[key], wanted[key], there.get(key)) for key in before if key in wanted)


def _at(body: Any, pointer: list[str]) -> Any:
    for part in pointer:
        if isinstance(body, dict) and part in body:
            body = body[part]
        elif isinstance(body, list) and part.isdecimal() and int(part) < len(body):
            body = body[int(part)]
        else:
            return _ABSENT
    return body


def _put(body: Any, pointer: list[str], value: Any) -> Any:
    """A copy with this value at this place; without one, where the value is absent."""
    if not pointer:
        return body if value is _ABSENT else value
    part, rest = pointer[0], pointer[1:]
    if isinstance(body, list):
        if not part.isdecimal() or int(part) >= len(body):
            return body
        return [_put(entry, rest, value) if i == int(part) else entry for i, entry in enumerate(body)]
    if not isinstance(body, dict):
        return body
    if not rest and value is _ABSENT:
        return {key: entry for key, entry in body.items() if key != part}
    if part not in body and value is _ABSENT:
        return body
    return {**body, part: _put(body.get(part, {}), rest, value)}


def _without(body: Any, pointers: list[list[str]]) -> Any:
    for pointer in pointers:
        body = _put(body, pointer, _ABSENT)
    return body
