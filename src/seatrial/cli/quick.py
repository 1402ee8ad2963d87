"""Usual command lines of `check`, read from the same annotations without cyclopts: a sixth of a small check.

Reads only what has one meaning. Anything else is left to cyclopts, which also words the errors.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

TEXTS = tuple[str, ...]
READABLE = (bool, str, TEXTS)


class _Flag(NamedTuple):
    """Where the value of a flag belongs: to a parameter, or to a field of one that is a group of flags."""

    parameter: str
    field: str
    type: Any


def command(arguments: list[str]) -> Callable[[], int] | None:
    """The call that a command line asks for; None if cyclopts has to read it."""
    if arguments[:1] != ["check"]:
        return None
    from seatrial.cli.check import check

    return _bound(check, arguments[1:])


def _bound(function: Callable[..., int], arguments: list[str]) -> Callable[[], int] | None:
    hints = _hints(function)
    flags = dict(_flags(hints))
    inputs: list[str] = []
    given: dict[str, dict[str, Any]] = {}
    words = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            inputs.append(word)
            continue
        name, sign, value = word.partition("=")
        flag = flags.get(name)
        if flag is None or flag.type not in READABLE:
            return None
        if flag.type is not bool and not sign:
            value = next(words, "")
        into = given.setdefault(flag.parameter, {})
        read = _read(flag, value, into.get(flag.field), signed=bool(sign))
        if read is None:
            return None
        into[flag.field] = read
    if not all(inputs):
        return None
    return partial(function, *inputs, **{name: _grouped(hints[name], values) for name, values in given.items()})


def _read(flag: _Flag, value: str, before: Any, *, signed: bool) -> Any:
    """The value of a flag; None if it is not plain, or given twice where one is allowed."""
    if flag.type is bool:
        return None if signed or before is not None else True
    if not value or value.startswith("-"):
        return None
    if flag.type is str:
        return None if before is not None else value
    return (*(before or ()), value)


def _grouped(hint: Any, values: dict[str, Any]) -> Any:
    return values[""] if "" in values else hint(**values)


def _flags(hints: dict[str, Any]) -> typing.Iterator[tuple[str, _Flag]]:
    """Every flag by its names."""
    for parameter, hint in hints.items():
        fields = {"": hint} if typing.get_origin(hint) else _hints(hint)
        for field, inner in fields.items():
            if typing.get_origin(inner) is typing.Annotated:
                kind, names = typing.get_args(inner)
                yield from ((name, _Flag(parameter, field, kind)) for name in names)


def _hints(holder: Any) -> dict[str, Any]:
    """The annotations of parameters or fields. A flag is only its names there, which takes no cyclopts."""
    if not hasattr(sys.modules.get(holder.__module__), "flag"):
        return {}
    read_as = {"flag": lambda *names, **_: names, "positional": lambda *_: ()}
    return typing.get_type_hints(holder, localns=read_as, include_extras=True)
