"""`jqPathExpressions`: what Argo CD removes from objects before it compares them, by `del(EXPRESSION)`.

Upstream: util/argo/normalizers/diff_normalizer.go of Argo CD 3.5, which runs gojq 0.12. libjq runs them here; the few
expressions that gojq reads differently are in `tests/unit/test_argocd_expressions.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from seatrial import jq
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Path

TIMED_OUT = "JQ patch execution timed out (1s)"
NO_DATA = "JQ patch did not return any data"
MULTIPLE = "JQ patch returned multiple objects"
NO_OBJECT = "JQ patch returned no object"
_NOT_IN_GOJQ = lazy_re.compile(
    r"(?<![.\w$])(debug|get_search_list|have_decnum|have_literal_numbers|input_filename|input_line_number|inputs?"
    r"|keys_unsorted|stderr)(?![\w:])|\$__loc__"
)
"""Functions of libjq that Argo CD does not compile."""
_STRING = lazy_re.compile(r'"(?:\\.|[^"\\])*"')
_UNDEFINED = lazy_re.compile(r"jq: error: (\$\w+|\w+/\d+) is not defined")
_UNEXPECTED = lazy_re.compile(r"jq: error: syntax error, unexpected (end of file|'[^']+'|\.\.)")
_COMPLAINT = lazy_re.compile(r"jq: error: (.*?)(?: at <top-level>.*)?$", re.M)


class Unusable(Exception):
    """An expression that has no effect on an object, with Argo CD's message."""


def illegal(expression: str) -> str:
    """Why an expression does not compile; empty if it does. Then no object of the Application can be compared."""
    lacking = _NOT_IN_GOJQ.search(_STRING.sub('""', expression))
    if lacking:
        return _undefined(lacking[0], "1" if expression[lacking.end() :].lstrip().startswith("(") else "0")
    fault = jq.fault_of(f"del({expression})")
    return _in_gojq_words(fault.words) if fault is not None and fault.is_illegal else ""


def applied(expression: str, body: Body) -> Body:
    """The body without what an expression names; with what it puts there, if it closes the parenthesis of `del(`."""
    found = jq.run(f"del({expression})", body)
    if isinstance(found, jq.JqFault):
        raise Unusable(TIMED_OUT if found.ran_away else f"JQ patch returned error: {found.words}")
    if len(found) != 1:
        raise Unusable(MULTIPLE if found else NO_DATA)
    if not isinstance(found[0], dict):
        raise Unusable(NO_OBJECT)
    return found[0]


def places(expression: str, body: Body) -> list[Path]:
    """The fields that an expression removes or changes."""
    after = applied(expression, body)
    found = jq.run(f"[path({expression})]", body)
    if isinstance(found, list) and len(found) == 1:
        paths = [path for steps in found[0] if isinstance(steps, list) for path in _plain(steps, body, ())]
        if without(body, paths) == after:
            return paths
    return list(_differences(body, after, ()))


def without(body: Any, paths: list[Path]) -> Any:
    """The body without these paths; list entries from the last to the first, so that indices stay valid."""
    for path in sorted(set(paths), key=lambda path: [str(part).rjust(12) for part in path], reverse=True):
        body = _removed(body, path) if path else body
    return body


def _plain(steps: list[Any], body: Any, path: Path) -> Iterator[Path]:
    """A jq path without slices and negative indices."""
    if not steps:
        yield path
        return
    first, *rest = steps
    if isinstance(first, dict) and isinstance(body, list):
        start, end, _ = slice(first.get("start"), first.get("end")).indices(len(body))
        if not rest:
            yield from ((*path, index) for index in range(start, end))
        elif isinstance(rest[0], int):
            yield from _plain([start + rest[0], *rest[1:]], body, path)
    elif isinstance(first, int) and isinstance(body, list):
        index = first + len(body) if first < 0 else first
        if 0 <= index < len(body):
            yield from _plain(rest, body[index], (*path, index))
    elif isinstance(first, str):
        yield from _plain(rest, body.get(first) if isinstance(body, dict) else None, (*path, first))


def _differences(before: Any, after: Any, path: Path) -> Iterator[Path]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield (*path, key)
            else:
                yield from _differences(before[key], after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, (*path, index))
    elif before != after:
        yield path


def _removed(body: Any, path: Path) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(body, list):
        at = index_of(key)
        if not isinstance(at, int) or not -len(body) <= at < len(body):
            return body
        at %= len(body)
        return [_removed(entry, rest) if i == at else entry for i, entry in enumerate(body) if rest or i != at]
    if not isinstance(body, dict) or key not in body:
        return body
    if not rest:
        return {name: value for name, value in body.items() if name != key}
    return {**body, key: _removed(body[key], rest)}


def index_of(key: str | int) -> str | int:
    """A part of a JSON pointer as an index of a list, if it is one."""
    return int(key) if isinstance(key, str) and key.isdecimal() else key


def _in_gojq_words(text: str) -> str:
    if undefined := _UNDEFINED.search(text):
        name, _, arity = undefined[1].partition("/")
        return _undefined(name, arity)
    unexpected, complaint = _UNEXPECTED.search(text), _COMPLAINT.search(text)
    if unexpected:
        token = unexpected[1].strip("'")
        return "unexpected EOF" if token == "end of file" else f'unexpected token "{token}"'
    return complaint[1] if complaint else text


def _undefined(name: str, arity: str) -> str:
    if name in ("input", "inputs"):
        return "input(s)/0 is not allowed"
    return f"variable not defined: {name}" if name.startswith("$") else f"function not defined: {name}/{arity}"
