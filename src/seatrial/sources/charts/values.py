"""Values from Helm's flags. Knows nothing of charts; expressions are parsed by Helm itself.

The order is that of `MergeValues` in pkg/cli/values/options.go of Helm 4.2: files, then `--set-json`, `--set`,
`--set-string`, `--set-file`, `--set-literal`, in any order on the command line; within each, the last one wins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.options import ValueFlags
from seatrial.model.resource import Body
from seatrial.sources.files import as_text, read_bytes, read_text
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

_SPECIAL = lazy_re.compile(r"[\\.,=\[\]{}]")
_KEPT = "\ue000"
"""Prefix of the placeholder for a value that an expression does not touch; also keeps an empty mapping or list."""


def merged_values(flags: ValueFlags) -> Body:
    """The values that Helm would pass to the chart. A null is kept: it deletes the default of the chart."""
    values: Body = {}
    for path in flags.files:
        values = merged(values, read_values(path))
    for name, into in _EXPRESSIONS.items():
        for expression in getattr(flags, name):
            values = _set(name, into, expression, values)
    return values


def read_values(path: str) -> Body:
    return values_in(read_text(path, "read the values file"))


def values_in(text: Text) -> Body:
    """The values in a file, its documents merged."""
    values: Body = {}
    for document in documents(text):
        if not isinstance(document.body, dict):
            raise CannotContinue(f"{document.place()}: read the values file: not a mapping of names to values")
        values = merged(values, document.body)
    return values


def merged(under: Body, over: Body) -> Body:
    """Mappings are merged, everything else is replaced, as in `MergeMaps` of Helm's loader."""
    result = dict(under)
    for key, value in over.items():
        below = under.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def merge_patch(body: Any, patch: Any) -> Any:
    """A JSON merge patch: mappings are merged, null deletes, everything else is replaced."""
    if not isinstance(patch, dict):
        return patch
    changed = dict(body) if isinstance(body, dict) else {}
    for key, value in patch.items():
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = merge_patch(changed.get(key), value)
    return changed


def _set(name: str, into: Callable[[str, Body], Body], expression: str, values: Body) -> Body:
    from seatrial.sources.charts.output import HelmError

    flag = "--" + name.replace("_", "-")
    try:
        return into(expression, values)
    except HelmError as error:
        raise CannotContinue(f"{flag} {expression}: failed parsing {flag} data: {error}") from None


def _parsed(flavour: str, expression: str) -> Body:
    from seatrial.sources.charts.output import parse_set

    return parse_set(flavour, expression)


def _into_json(expression: str, values: Body) -> Body:
    if expression.lstrip().startswith("{"):
        try:
            return merged(values, json.loads(expression))
        except ValueError as error:
            raise CannotContinue(f"--set-json {expression}: failed parsing --set-json data JSON: {error}") from None
    touched = _parsed("json", expression)
    given = "".join(f"{escaped(key)}={json.dumps(values[key])}," for key in touched if key in values)
    return values | _parsed("json", given + expression)


def _into_typed(expression: str, values: Body) -> Body:
    return _into(expression, values, "", lambda value: value)


def _into_string(expression: str, values: Body) -> Body:
    return _into(expression, values, "string", lambda value: value)


def _into_file(expression: str, values: Body) -> Body:
    def read(path: Any) -> str:
        doing = f"read the file of --set-file {expression}"
        return as_text(str(path), read_bytes(str(path), doing), doing).content

    return _into(expression, values, "string", read)


def _into_literal(expression: str, values: Body) -> Body:
    """`--set-literal` sets one value; parsing it alone shows which."""
    path: list[str | int] = []
    found: Any = _parsed("literal", expression)
    while isinstance(found, dict | list) and found:
        step = next(iter(found)) if isinstance(found, dict) else len(found) - 1
        path.append(step)
        found = found[step]
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{escaped(step)}" for step in path)
    if not steps:
        return values
    return _into(f"{steps[1:]}=set", values, "string", lambda _: found)


_EXPRESSIONS: dict[str, Callable[[str, Body], Body]] = {
    "set_json": _into_json,
    "set": _into_typed,
    "set_string": _into_string,
    "set_file": _into_file,
    "set_literal": _into_literal,
}


def _into(expression: str, values: Body, flavour: str, read: Callable[[Any], Any]) -> Body:
    """The same as `strvals.ParseInto`, which the library does not offer: it only parses into an empty mapping.

    So the expression is preceded by one that builds the part of `values` it touches, with a placeholder for every
    other value. The parser then changes lists and mappings in place, and fails where Helm fails.
    """
    touched = _parsed(flavour, expression)
    kept: dict[str, Any] = {}
    given = ",".join(
        setting
        for key in touched
        if key in values
        for setting in _settings(escaped(key), values[key], touched[key], kept)
    )
    found = _parsed(flavour, f"{given},{expression}" if given else expression)
    return values | {key: _restored(value, kept, read) for key, value in found.items()}


def _settings(path: str, value: Any, touched: Any, kept: dict[str, Any]) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(touched, dict):
        if not value:
            yield f"{path}.{_KEPT}={_KEPT}"
        for key, below in value.items():
            yield from _settings(f"{path}.{escaped(key)}", below, touched.get(key), kept)
    elif isinstance(value, list) and isinstance(touched, list):
        if not value:
            yield f"{path}={{{_KEPT}}}"
        for index, below in enumerate(value):
            at = touched[index] if index < len(touched) else None
            yield from _settings(f"{path}[{index}]", below, at, kept)
    else:
        standin = f"{_KEPT}{len(kept)}"
        kept[standin] = value
        yield f"{path}={standin}"


def _restored(found: Any, kept: dict[str, Any], read: Callable[[Any], Any]) -> Any:
    """The values instead of their placeholders; `read` converts what the expression itself set."""
    if isinstance(found, dict):
        return {key: _restored(value, kept, read) for key, value in found.items() if key != _KEPT}
    if isinstance(found, list):
        whole = [] if found == [_KEPT] else found
        return [None if item == _KEPT else _restored(item, kept, read) for item in whole]
    if isinstance(found, str) and found in kept:
        return kept[found]
    return None if found is None else read(found)


def escaped(key: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", key)
