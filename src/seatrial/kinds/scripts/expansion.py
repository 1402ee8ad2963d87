"""Words of a script as text, with the variables that are known. What only a run would tell is `UNKNOWN`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from seatrial.kinds.scripts.syntax import (
    Arithmetic,
    Assignment,
    Block,
    Literal,
    Piece,
    Redirection,
    Substitution,
    Variable,
    Word,
)
from seatrial.model import lazy_re

UNKNOWN = "\x00"
"""Stands in a word for what only a run would tell."""
BLANK = " \t\n"
_ERREXIT = lazy_re.compile(r"-[a-z]*e[a-z]*|errexit")


class Scope(Struct):
    """The variables of a script at some place."""

    variables: dict[str, str]
    arguments: tuple[str, ...] | None = None
    """Of the function that is called; None outside of any."""
    unset: Callable[[str], str] = lambda name: UNKNOWN
    """The value of a variable that is not among the known ones."""
    total: Callable[[str], str] = lambda text: UNKNOWN
    """The value of an arithmetic expansion."""
    substitute: Callable[[Block], str] = lambda block: UNKNOWN
    """What commands in `$(...)` print."""

    def assign(self, assignments: Iterable[Assignment]) -> None:
        for one in assignments:
            before = _value(Variable(one.name), self) if one.appends else ""
            self.variables[one.name] = before + text_of(one.value, self)

    def call(self, arguments: tuple[str, ...]) -> Scope:
        """The scope of a function that is called with these; it shares the variables."""
        return Scope(self.variables, arguments, self.unset, self.total, self.substitute)

    def copy(self) -> Scope:
        """The scope of a subshell."""
        return Scope(dict(self.variables), self.arguments, self.unset, self.total, self.substitute)


def text_of(word: Word, scope: Scope) -> str:
    """A word as one text, as in an assignment or a here-document."""
    return "".join(_text(piece, scope) for piece in word.pieces)


def fields(word: Word, scope: Scope) -> list[str]:
    """The words that a word becomes: what expands without quotes is split, and is no word where it is empty."""
    if [piece.name for piece in word.pieces if isinstance(piece, Variable)] == ["@"] and len(word.pieces) <= 2:
        return list(scope.arguments) if scope.arguments is not None else [UNKNOWN]
    found: list[str] = []
    is_open = False
    for piece in word.pieces:
        text = _text(piece, scope)
        if isinstance(piece, Literal) or piece.quoted:
            parts, starts, ends = [text], False, False
        else:
            parts, starts, ends = text.split(), text[:1] in BLANK, text[-1:] in BLANK
        if not parts:
            is_open = is_open and not text
            continue
        if is_open and not starts:
            found[-1] += parts[0]
            parts = parts[1:]
        found += parts
        is_open = not ends
    return found


def errexit(flags: Iterable[str], *, before: bool = False) -> bool:
    """Whether a script ends at the first failure, after `set` or `sh` with these flags."""
    given = list(flags)
    return (before and "+e" not in given) or any(_ERREXIT.fullmatch(flag) for flag in given)


def document_of(redirections: Iterable[Redirection], scope: Scope) -> str:
    """What here-documents and here-strings feed to a command."""
    found = ""
    for one in redirections:
        if one.document is not None:
            found = text_of(one.document.word, scope)
        elif one.operator == "<<<":
            found = text_of(one.target, scope)
    return found


def _text(piece: Piece, scope: Scope) -> str:
    match piece:
        case Literal():
            return piece.text
        case Variable():
            return _value(piece, scope)
        case Arithmetic():
            return scope.total(piece.text)
        case Substitution():
            return scope.substitute(piece.body).rstrip("\n")
    return UNKNOWN


def _value(variable: Variable, scope: Scope) -> str:
    value = _known(variable.name, scope)
    is_set = value is not None and (value != "" or not variable.operator.startswith(":"))
    match variable.operator.lstrip(":"):
        case "-" | "=" if not is_set:
            value = text_of(variable.word, scope) if variable.word else ""
            if variable.operator.endswith("="):
                scope.variables[variable.name] = value
        case "+" if value is not None:
            value = text_of(variable.word, scope) if variable.word and is_set else ""
        case "+":
            value = UNKNOWN
    return scope.unset(variable.name) if value is None else value


def _known(name: str, scope: Scope) -> str | None:
    arguments = scope.arguments
    if arguments is None or name.isidentifier():
        return scope.variables.get(name)
    if name in ("@", "*"):
        return " ".join(arguments)
    if name == "#":
        return str(len(arguments))
    if name.isdecimal() and name != "0":
        return arguments[int(name) - 1] if int(name) <= len(arguments) else ""
    return None
