"""CEL expressions: compiled and evaluated within limits. Knows nothing of Kubernetes.

The only module that knows the library. Its errors are translated to those of cel-go, which controllers written in Go
show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from cel_expr_python.cel import Env, FunctionDecl, Value
    from cel_expr_python.cel import Expression as Program

LENGTH_MAX = 4_000
CALLS_MAX = {"optMap": 4, "optFlatMap": 4, "replace": 4, "join": 4, "format": 4, "map": 16}
"""Limits on functions whose results grow when chained. The library limits loops and depth."""
STRUCT = "google.protobuf.Struct"
BEYOND = "more than is evaluated here"
_OWN_LIMITS = ("Iteration budget exceeded", "recursion limit exceeded", "Exceeded max recursion depth")
_SETS: dict[str, Callable[[list[Any], list[Any]], bool]] = {
    "sets.contains": lambda whole, part: all(one in whole for one in part),
    "sets.equivalent": lambda a, b: all(one in b for one in a) and all(one in a for one in b),
    "sets.intersects": lambda a, b: any(one in b for one in a),
}
_STATUS_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_IN_GO: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"Index error: index=(\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"No matching overloads found : .*"), "no such overload"),
    (re.compile(r"Applying SELECT to non-message type"), "no such overload"),
    (re.compile(r"divide by zero"), "division by zero"),
)
_UNKNOWN_NAME = re.compile(r'No value with name "(\w+)" found in Activation')


class CelError(Struct, frozen=True):
    """Why an expression has no result, in the words of cel-go."""

    message: str
    is_ours: bool = False
    """Whether only seatrial cannot evaluate it."""
    why: str = ""
    """The error of the evaluation, without the expression."""


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
    program = _program(text, ())
    if isinstance(program, CelError):
        return None
    try:
        found = program.eval(data=data).value()
    except RuntimeError:
        return None
    return found if isinstance(found, str) else None


def is_true(text: str, data: Mapping[str, Any], variables: tuple[str, ...] = ()) -> bool | CelError:
    """Whether an expression is true; a fault if it is neither true nor false."""
    program = _program(text, variables)
    if isinstance(program, CelError):
        return program
    try:
        value = program.eval(data=data)
    except RuntimeError as why:
        return _failed(str(why), text)
    return _result(value, text)


def _result(value: Value, text: str) -> bool | CelError:
    from cel_expr_python.cel import Type

    if value.type() == Type.ERROR:
        return _failed(str(value.value()), text)
    if value.type() != Type.BOOL:
        return CelError(f"failed to evaluate CEL expression as boolean: '{text}'")
    return bool(value.value())


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
