"""Which differences are ignored: `ignoreDifferences` of Applications and of Argo CD's own settings.

Upstream: util/argo/normalizers and util/argo/managedfields, `normalizeTargetResources` in controller/sync.go, 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from seatrial.engines.argocd import expressions
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.expressions import MULTIPLE, NO_DATA, TIMED_OUT, Unusable, index_of, without
from seatrial.model.resource import Body, Path, Ref, metadata

_ABSENT = object()


def comparison_error(app: App, settings: Settings) -> str:
    """Why no object of an Application can be compared: an expression does not compile."""
    entries = (*app.ignore_differences, *settings.ignore_differences)
    words = (expressions.illegal(str(one)) for entry in entries for one in entry.get("jqPathExpressions") or ())
    first = next(filter(None, words), "")
    return f"ComparisonError: Failed to compare desired state to live state: {first}" if first else ""


def normalized(ref: Ref, body: Body, live: Body, app: App, settings: Settings) -> Body:
    """The body without what is ignored; `live` has the fields that other managers own."""
    entries = list(_entries(ref, app, settings))
    owned = [path for entry in entries for path in _of_managers(entry, body, live)]
    body = without(body, owned)
    for entry in entries:
        body = without(body, _of_pointers(entry))
        for expression in entry.get("jqPathExpressions") or ():
            with suppress(Unusable):
                body = expressions.applied(str(expression), body)
    return body


def ignored(ref: Ref, live: Body, app: App, settings: Settings) -> list[Path]:
    """The fields of a live object that are ignored."""
    found: list[Path] = []
    for entry in _entries(ref, app, settings):
        found += _of_pointers(entry)
        for expression in entry.get("jqPathExpressions") or ():
            with suppress(Unusable):
                found += expressions.places(str(expression), live)
        found += _of_managers(entry, live, live)
    return found


def given_up(app: App, settings: Settings) -> Iterator[str]:
    """The expressions that Argo CD gives up on (logged at debug level only): their fields are compared."""
    for target in app.targets:
        for entry in _entries(target.ref, app, settings):
            for expression in entry.get("jqPathExpressions") or ():
                try:
                    expressions.applied(str(expression), target.body)
                except Unusable as why:
                    if str(why) in (TIMED_OUT, NO_DATA, MULTIPLE):
                        yield f"Failed to apply normalization: {expression!r} of {target.ref}: {why}"


def carried(target: Any, live: Any, path: Path) -> Any:
    """The target with the live value of a field; entries of lists are matched by name."""
    if not path:
        return target if live is _ABSENT else live
    key, rest = path[0], path[1:]
    if isinstance(target, list) and isinstance(live, list) and isinstance(index_of(key), int):
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


def _of_pointers(entry: Body) -> list[Path]:
    return [_pointer(str(pointer)) for pointer in entry.get("jsonPointers") or ()]


def _of_managers(entry: Body, body: Body, live: Body) -> list[Path]:
    managers = entry.get("managedFieldsManagers") or ()
    return [path for manager in managers for path in _owned(str(manager), body, live)]


def _owned(manager: str, body: Body, live: Body) -> list[Path]:
    """The fields that a manager owns, as paths in this body."""
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
