"""Words of a script as text, with the variables that are known. What only a run would tell is `UNKNOWN`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.scripts.patterns import quoted_glob, with_replaced, without_prefix, without_suffix
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
from seatrial.model.timeline import ScriptLine

UNKNOWN = "\x00"
"""Stands in a word for what only a run would tell."""
BLANK = " \t\n"
TEXT_MAX = 1_000_000
"""Of characters that one word or the output of one command may have; what is longer is not followed."""
NAMES = frozenset("@*#?$!-")
_BLANKS = lazy_re.compile("[ \t\n]+")
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
    file_of: Callable[[Block], str] = lambda block: UNKNOWN
    """The path of a file that holds what commands in `<(...)` print."""
    refuse: Callable[[str, str], str] = lambda name, why: UNKNOWN
    """What comes of `${NAME:?why}` where the variable is empty or not set."""
    others: frozenset[str] | None = frozenset()
    """Variables that others set to a value that is not known; None where there may be any."""
    cleared: set[str] = set()
    """Variables that are certainly not set unless they have a value."""
    sources: dict[str, ScriptLine] = {}
    """Of each variable whose value is not known: the line of the script that made it so."""
    line: ScriptLine | None = None
    """The line that runs."""
    blamed: ScriptLine | None = None
    """The line that made a value unknown that the current command reads."""

    def assign(self, assignments: Iterable[Assignment]) -> None:
        for one in assignments:
            before = _value(Variable(one.name), self) if one.appends else ""
            self.put(one.name, before + text_of(one.value, self))

    def put(self, name: str, text: str) -> None:
        text = text if len(text) <= TEXT_MAX else UNKNOWN
        self.variables[name] = text
        source = (self.blamed or self.line) if UNKNOWN in text else None
        if source is not None:
            self.sources[name] = source

    def blame(self, name: str = "") -> str:
        """What is not known, because of the line that set the variable, or of the one that runs."""
        self.blamed = self.sources.get(name) or self.line
        return UNKNOWN

    def call(self, arguments: tuple[str, ...]) -> Scope:
        """The scope of a function that is called with these; it shares the variables."""
        return replace(self, arguments=arguments)

    def copy(self) -> Scope:
        """The scope of a subshell."""
        return replace(self, variables=dict(self.variables))


def text_of(word: Word, scope: Scope) -> str:
    """A word as one text, as in an assignment or a here-document."""
    return "".join(_text(piece, scope) for piece in word.pieces)


def fields(word: Word, scope: Scope) -> list[str]:
    """The words that a word becomes: what expands without quotes is split, and is no word where it is empty."""
    variables = [piece for piece in word.pieces if isinstance(piece, Variable)]
    if [(one.name, one.operator) for one in variables] == [("@", "")] and len(word.pieces) <= 2:
        return list(scope.arguments) if scope.arguments is not None else [scope.blame()]
    found: list[str] = []
    is_open = False
    for piece in word.pieces:
        text = _text(piece, scope)
        if isinstance(piece, Literal) or piece.quoted:
            parts, starts, ends = [text], False, False
        else:
            ifs = scope.variables.get("IFS", BLANK)
            parts, starts, ends = split(text, ifs), text[:1] in ifs, text[-1:] in ifs
        if not parts:
            is_open = is_open and not text
            continue
        if is_open and not starts:
            found[-1] += parts[0]
            parts = parts[1:]
        found += parts
        is_open = not ends
    return found


def split(text: str, ifs: str = BLANK) -> list[str]:
    """The fields of a text: blanks in `ifs` belong together, each other character of it ends a field."""
    if ifs == BLANK:
        return [part for part in _BLANKS.split(text) if part]
    blank = "".join(letter for letter in ifs if letter in BLANK)
    found, field, is_open = list[str](), "", False
    for letter in text.strip(blank) if blank else text:
        if letter not in ifs:
            field, is_open = field + letter, True
        elif letter in blank:
            found += [field] if is_open else []
            field, is_open = "", False
        else:
            found.append(field)
            field, is_open = "", False
    return [*found, field] if is_open else found


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


def pattern_of(word: Word, scope: Scope) -> str:
    """A word as a shell pattern: what is quoted stands for itself."""
    return "".join(quoted_glob(_text(piece, scope)) if piece.quoted else _text(piece, scope) for piece in word.pieces)


def _text(piece: Piece, scope: Scope) -> str:
    match piece:
        case Literal():
            return piece.text
        case Variable():
            return _value(piece, scope)
        case Arithmetic():
            found = scope.total(piece.text)
        case Substitution(is_file=True):
            found = scope.file_of(piece.body)
        case Substitution():
            found = scope.substitute(piece.body).rstrip("\n")
        case _:
            found = UNKNOWN
    if len(found) > TEXT_MAX:
        found = UNKNOWN
    if UNKNOWN in found:
        scope.blamed = scope.blamed or scope.line
    return found


def _value(variable: Variable, scope: Scope) -> str:
    name, operator = variable.name, variable.operator
    value = _known(name, scope)
    is_set = value is not None and (value != "" or not operator.startswith(":"))
    word = variable.word or Word(())
    may_be_set = value is None and name not in scope.cleared and (scope.others is None or name in scope.others)
    match operator:
        case ":-" | "-" | ":=" | "=" if not is_set:
            value = scope.blame(name) if may_be_set else text_of(word, scope)
            if operator.endswith("="):
                scope.put(name, value)
        case ":+" | "+" if value is not None:
            value = text_of(word, scope) if is_set else ""
        case ":+" | "+":
            value = "" if name in scope.cleared else scope.blame(name)
        case ":?" | "?" if not is_set and not may_be_set:
            return scope.refuse(name, text_of(word, scope) or "parameter null or not set")
    if value is None:
        value = scope.unset(name)
    if UNKNOWN in value:
        scope.blame(name)
        return UNKNOWN if operator in _CHANGES else value
    return _changed(value, operator, word, scope) if operator in _CHANGES else value


_CHANGES = frozenset(("#", "##", "%", "%%", "/", "//", ":", "^", "^^", ",", ",,", "length"))


def _changed(value: str, operator: str, word: Word, scope: Scope) -> str:
    """The value of a variable with its prefix or suffix removed, a part replaced, its case changed, or its length."""
    if operator == "length":
        return str(len(value))
    if operator == ":":
        return _part(value, text_of(word, scope), scope)
    if operator in ("/", "//"):
        pattern, new = _halves(word)
        old, text = pattern_of(pattern, scope), text_of(new, scope)
        found = with_replaced(value, old, text, every=operator == "//") if UNKNOWN not in old + text else None
        return scope.blame() if found is None else found
    pattern_text = pattern_of(word, scope)
    if UNKNOWN in pattern_text:
        return UNKNOWN
    if operator[0] in "^,":
        if pattern_text:
            return scope.blame()
        changed = value.upper() if operator[0] == "^" else value.lower()
        return changed if len(operator) == 2 else changed[:1] + value[1:]
    remove = without_prefix if operator[0] == "#" else without_suffix
    found = remove(value, pattern_text, longest=len(operator) == 2)
    return scope.blame() if found is None else found


def _halves(word: Word) -> tuple[Word, Word]:
    """`pattern/text`: the text begins after the first slash that is not quoted and not the first character."""
    for index, piece in enumerate(word.pieces):
        if isinstance(piece, Literal) and not piece.quoted and piece.text == "/" and index:
            return Word(word.pieces[:index]), Word(word.pieces[index + 1 :])
    return word, Word(())


def _part(value: str, text: str, scope: Scope) -> str:
    """`${NAME:offset:length}`; what is negative counts from the end."""
    offset, colon, length = text.partition(":")
    numbers = [scope.total(offset), scope.total(length) if colon else str(len(value))]
    if any(UNKNOWN in number for number in numbers):
        return scope.blame()
    start, size = int(numbers[0]), int(numbers[1])
    start = max(0, len(value) + start) if start < 0 else start
    if int(numbers[0]) < -len(value):
        return ""
    end = start + size if size >= 0 else len(value) + size
    return value[start : max(start, end)]


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
