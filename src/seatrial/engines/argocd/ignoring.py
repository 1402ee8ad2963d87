"""Which differences do not count: `ignoreDifferences` of Applications and of Argo CD's own settings.

Upstream: util/argo/normalizers and util/argo/managedfields, `normalizeTargetResources` in controller/sync.go, 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.jqpaths import NotUnderstood, Path, parsed, paths
from seatrial.model.resource import Body, Ref, metadata

_ABSENT = object()


def ignored(ref: Ref, body: Body, live: Body, app: App, settings: Settings) -> list[Path]:
    """The places in a body that do not count; `live` says what other managers own."""
    found: list[Path] = []
    for entry in _entries(ref, app, settings):
        found += [_pointer(str(pointer)) for pointer in entry.get("jsonPointers") or ()]
        for expression in entry.get("jqPathExpressions") or ():
            found += _of_jq(str(expression), body)
        for manager in entry.get("managedFieldsManagers") or ():
            found += _owned(str(manager), body, live)
    return found


def not_understood(entries: tuple[Body, ...]) -> Iterator[str]:
    """The expressions that are not evaluated: what they would ignore counts."""
    for entry in entries:
        for expression in entry.get("jqPathExpressions") or ():
            try:
                parsed(str(expression))
            except NotUnderstood:
                yield str(expression)


def without(body: Any, places: list[Path]) -> Any:
    """The body without these; of a list the last first, so that each is where it was."""
    for path in sorted(set(places), key=lambda path: [str(part).rjust(12) for part in path], reverse=True):
        body = _removed(body, path)
    return body


def carried(target: Any, live: Any, path: Path) -> Any:
    """The target with what is live at a place; entries of lists are the same where their names are."""
    if not path:
        return target if live is _ABSENT else live
    key, rest = path[0], path[1:]
    if isinstance(target, list) and isinstance(live, list) and isinstance(_index(key), int):
        return _carried_in_list(target, live, int(key), rest)
    if not isinstance(target, dict) or not isinstance(live, dict) or not isinstance(key, str):
        return target
    if key not in live:
        return target if rest else {name: value for name, value in target.items() if name != key}
    if key not in target and rest and isinstance(live[key], list):
        return target
    return {**target, key: carried(target.get(key, {} if rest else None), live[key], rest)}


def _carried_in_list(target: list[Any], live: list[Any], index: int, rest: Path) -> list[Any]:
    if not -len(live) <= index < len(live):
        return target
    entry = live[index]
    name = entry.get("name") if isinstance(entry, dict) else None
    if name is None:
        at = index if index < len(target) else None
    else:
        at = next((i for i, one in enumerate(target) if isinstance(one, dict) and one.get("name") == name), None)
    if at is None:
        return target if rest else [*target, entry]
    return [carried(one, entry, rest) if i == at else one for i, one in enumerate(target)]


def _entries(ref: Ref, app: App, settings: Settings) -> Iterator[Body]:
    for entry in (*app.ignore_differences, *settings.ignore_differences):
        named = entry.get("name") in (None, "", ref.name)
        placed = entry.get("namespace") in (None, "", ref.namespace)
        kinds = fnmatchcase(ref.group, str(entry.get("group") or "")) and fnmatchcase(ref.kind, str(entry.get("kind")))
        if named and placed and kinds:
            yield entry


def _pointer(text: str) -> Path:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _of_jq(expression: str, body: Body) -> list[Path]:
    try:
        return paths(expression, body)
    except NotUnderstood:
        return []


def _owned(manager: str, body: Body, live: Body) -> list[Path]:
    """What a manager owns of the live object, as places in this body."""
    fields = [m.get("fieldsV1") or {} for m in metadata(live).get("managedFields") or () if m.get("manager") == manager]
    return [path for one in fields for path in _leaves(one, body, ())]


def _leaves(fields: Body, body: Any, path: Path) -> Iterator[Path]:
    inner = {key: value for key, value in fields.items() if key != "."}
    if not inner:
        yield path
    for key, value in inner.items():
        kind, _, name = key.partition(":")
        if kind == "f" and isinstance(body, dict) and name in body:
            yield from _leaves(value, body[name], (*path, name))
        elif kind in ("k", "v") and isinstance(body, list):
            wanted = msgspec.json.decode(name)
            at = next((i for i, entry in enumerate(body) if _is_entry(entry, wanted)), None)
            if at is not None:
                yield from _leaves(value, body[at], (*path, at))


def _is_entry(entry: Any, wanted: Any) -> bool:
    if isinstance(entry, dict) and isinstance(wanted, dict):
        return all(entry.get(key) == value for key, value in wanted.items())
    return bool(entry == wanted)


def _index(key: str | int) -> str | int:
    return int(key) if isinstance(key, str) and key.isdecimal() else key


def _removed(body: Any, path: Path) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(body, list):
        at = _index(key)
        if not isinstance(at, int) or not -len(body) <= at < len(body):
            return body
        at %= len(body)
        return [_removed(entry, rest) if i == at else entry for i, entry in enumerate(body) if rest or i != at]
    if not isinstance(body, dict) or key not in body:
        return body
    if not rest:
        return {name: value for name, value in body.items() if name != key}
    return {**body, key: _removed(body[key], rest)}
