"""CEL expressions: compiled and evaluated within limits. Knows nothing of Kubernetes.

The only module that knows the library. Its errors are translated to those of cel-go, which controllers written in Go
show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.sandbox.service import Offer, Service

if TYPE_CHECKING:
    from cel_expr_python.cel import Env, FunctionDecl
    from cel_expr_python.cel import Expression as Program

LENGTH_MAX = 4_000
CALLS_MAX = {"optMap": 4, "optFlatMap": 4, "replace": 4, "join": 4, "format": 4, "map": 16}
"""Limits on functions whose results grow when chained. The library limits loops and depth."""
SUMS_MAX = 8
_GROWING = lazy_re.compile(r"\.(?:replace|join|format|map|optMap|optFlatMap)\(")
_LOOPS = lazy_re.compile(r"\.(?:all|exists|exists_one|filter|map)\(")
SECONDS_MAX = 5.0
STRUCT = "google.protobuf.Struct"
BEYOND = "more than is evaluated here"
_OWN_LIMITS = ("Iteration budget exceeded", "recursion limit exceeded", "Exceeded max recursion depth")
_SETS: dict[str, Callable[[list[Any], list[Any]], bool]] = {
    "sets.contains": lambda whole, part: all(one in whole for one in part),
    "sets.equivalent": lambda a, b: all(one in b for one in a) and all(one in a for one in b),
    "sets.intersects": lambda a, b: any(one in b for one in a),
}
_STATUS_CODE = lazy_re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_IN_GO: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy_re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (lazy_re.compile(r"Index error: index=(\d+) size=\d+"), r"index out of bounds: \1"),
    (lazy_re.compile(r"No matching overloads found : .*"), "no such overload"),
    (lazy_re.compile(r"Applying SELECT to non-message type"), "no such overload"),
    (lazy_re.compile(r"divide by zero"), "division by zero"),
)
_UNKNOWN_NAME = lazy_re.compile(r'No value with name "(\w+)" found in Activation')


class CelError(Struct, frozen=True):
    """Why an expression has no result, in the words of cel-go."""

    message: str
    is_ours: bool = False
    """Whether only seatrial cannot evaluate it."""
    why: str = ""
    """The error of the evaluation, without the expression."""


class _Found(Struct, frozen=True):
    """What an expression evaluates to, if it is a boolean or a string."""

    is_true: bool | None = None
    text: str | None = None
    fault: CelError | None = None


def fault_of(text: str) -> CelError | None:
    """Why a text is not an expression, or not one that is evaluated here."""
    program = _program(text, ())
    return program if isinstance(program, CelError) else None


def fault_of_typed(text: str, variables: tuple[str, ...]) -> CelError | None:
    """The same, for an expression that must use these variables, each an object, and return a boolean."""
    from cel_expr_python.cel import Type

    program = _program(text, variables)
    if isinstance(program, CelError):
        return program
    given = program.return_type()
    if given == Type.BOOL:
        return None
    return CelError(f"CEL expression output type mismatch: expected bool, got {str(given).lower()}")


def text_of(text: str, data: Mapping[str, Any]) -> str | None:
    """The result of an expression if it is a string."""
    return _found(text, data, ()).text


def is_true(text: str, data: Mapping[str, Any], variables: tuple[str, ...] = ()) -> bool | CelError:
    """Whether an expression is true; a fault if it is neither true nor false."""
    found = _found(text, data, variables)
    if found.fault is not None:
        return found.fault
    return (
        CelError(f"failed to evaluate CEL expression as boolean: '{text}'") if found.is_true is None else found.is_true
    )


def answer(request: dict[str, Any] | None) -> Any:
    """What runs in a process of its own: an expression that may need any amount of memory."""
    if request is None:
        _environment(())
        return {}
    return msgspec.to_builtins(_evaluated(request["text"], request["data"], tuple(request["variables"])))


def _found(text: str, data: Mapping[str, Any], variables: tuple[str, ...]) -> _Found:
    if not _may_grow(text):
        return _evaluated(text, data, variables)
    line = _PROCESS.ask(msgspec.json.encode({"text": text, "data": data, "variables": variables}))
    return _Found(fault=CelError(BEYOND, is_ours=True)) if line is None else msgspec.json.decode(line, type=_Found)


@lru_cache(maxsize=1_000)
def _may_grow(text: str) -> bool:
    """Whether the result may be much larger than the data: `a + a` in nested loops doubles each time."""
    sums = text.count("+")
    return bool(_GROWING.search(text)) or sums > SUMS_MAX or (sums > 0 and len(_LOOPS.findall(text)) > 1)


def _evaluated(text: str, data: Mapping[str, Any], variables: tuple[str, ...]) -> _Found:
    from cel_expr_python.cel import Type

    program = _program(text, variables)
    if isinstance(program, CelError):
        return _Found(fault=program)
    try:
        value = program.eval(data=data)
    except RuntimeError as why:
        return _Found(fault=_failed(str(why), text))
    if value.type() == Type.ERROR:
        return _Found(fault=_failed(str(value.value()), text))
    if value.type() == Type.BOOL:
        return _Found(is_true=bool(value.value()))
    found = value.value() if value.type() == Type.STRING else None
    return _Found(text=found if isinstance(found, str) else None)


def _failed(error: str, text: str) -> CelError:
    message = _STATUS_CODE.sub("", error)
    if any(limit in message for limit in _OWN_LIMITS):
        return CelError(BEYOND, is_ours=True)
    for pattern, instead in _IN_GO:
        message = pattern.sub(instead, message)
    message = _UNKNOWN_NAME.sub(lambda match: f"no such attribute(s): {_path(match.group(1), text)}", message)
    return CelError(f"failed to evaluate the CEL expression '{text}': {message}", why=message)


def _path(name: str, text: str) -> str:
    """The whole field path after the first use of an unknown name: cel-go reports it as one qualified name."""
    found = re.search(rf"\b{name}(?:\.\w+\b(?!\())*", text)
    return found.group() if found else name


@lru_cache(maxsize=1_000)
def _program(text: str, variables: tuple[str, ...]) -> Program | CelError:
    if len(text) > LENGTH_MAX or any(text.count(f".{name}(") > most for name, most in CALLS_MAX.items()):
        return CelError(BEYOND, is_ours=True)
    try:
        return _environment(variables).compile(text, disable_check=not variables)
    except RuntimeError as why:
        message = _STATUS_CODE.sub("", str(why))
    if any(limit in message for limit in _OWN_LIMITS):
        return CelError(BEYOND, is_ours=True)
    return CelError(f"failed to parse the CEL expression '{text}': {message}")


@cache
def _environment(variables: tuple[str, ...]) -> Env:
    """As `NewExpression` of fluxcd/pkg/runtime/cel: optional types, strings, sets and encoders."""
    # Imported on demand: few releases have expressions.
    from cel_expr_python.cel import NewEnv, Type
    from cel_expr_python.ext.ext_encoders import ExtEncoders
    from cel_expr_python.ext.ext_optional import ExtOptional
    from cel_expr_python.ext.ext_strings import ExtStrings

    return NewEnv(
        variables={name: Type(STRUCT) for name in variables},
        extensions=[ExtOptional(), ExtStrings(), ExtEncoders()],
        functions=[_set_function(name, does) for name, does in _SETS.items()],
    )


def _set_function(name: str, does: Callable[[list[Any], list[Any]], bool]) -> FunctionDecl:
    from cel_expr_python.cel import FunctionDecl, Overload, Type

    lists = [Type.List(Type.DYN), Type.List(Type.DYN)]
    return FunctionDecl(name, [Overload(name.replace(".", "_"), Type.BOOL, lists, impl=does)])


def _offer() -> Offer:
    return Offer("evaluate a CEL expression", __name__, "answer", SECONDS_MAX)


_PROCESS = Service(_offer)
