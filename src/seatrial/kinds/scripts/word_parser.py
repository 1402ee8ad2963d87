"""Reads the words of shell text: quotes, expansions, here-documents. Knows no keyword and no command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.kinds.scripts.syntax import (
    Arithmetic,
    Block,
    Literal,
    OtherExpansion,
    Piece,
    Substitution,
    Variable,
    Word,
)
from seatrial.model import lazy_re

DEPTH_MAX = 50
"""Of commands within commands, and of expansions within expansions."""
_BLANKS = lazy_re.compile(r"(?:[ \t\r]|\\\n)+")
_BARE = lazy_re.compile(r"[^\s\\'\"$`;&|()<>]+")
_INSIDE = lazy_re.compile(r'[^\\"$`]+')
_NAMED = lazy_re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?!$-])")
_BRACED = lazy_re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*?$-])(\}|:?[-=+?]|##?|%%?|//?|\^\^?|,,?|:)")
_LENGTH = lazy_re.compile(r"\$\{#([A-Za-z_][A-Za-z0-9_]*|[0-9]+)\}")
PATTERNS = ("#", "##", "%", "%%", "/", "//", "^", "^^", ",", ",,")
"""Operators whose word is a pattern: quotes inside it count, even where the whole expansion is quoted."""
LINE_MAX = 80
"""Characters of a line that are kept to name it."""
_GLOB = lazy_re.compile(r"[@?*+!]\(")
_QUOTES = lazy_re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)\"""", re.S)


class UnreadableScript(Exception):
    """Text that is not a script, or beyond what is read here."""


class _Awaited(Struct, frozen=True):
    """A here-document that begins after the end of the line."""

    end: str
    tabs: bool
    then: Callable[[str], None]


class Cursor:
    """A place in shell text. At the end of a line it reads the here-documents that were announced in it."""

    def __init__(self, text: str, depth: int = 0, *, is_part: bool = False) -> None:
        """`is_part`: the text is a part of a script, so that its lines have no number."""
        self.text, self.place, self.depth = text, 0, depth
        self._awaited: list[_Awaited] = []
        self._counted, self._line = 0, 0 if is_part else 1

    def line(self) -> tuple[int, str]:
        """The number and the text of the current line; 0 in a part of a script."""
        if not self._line:
            return 0, ""
        self._line += self.text.count("\n", self._counted, self.place)
        self._counted = max(self._counted, self.place)
        far = max(0, self.place - 10 * LINE_MAX)
        start = max(far, self.text.rfind("\n", far, self.place) + 1)
        written = self.text[start : self.place + LINE_MAX + 1].partition("\n")[0].strip()
        return self._line, written if len(written) <= LINE_MAX else f"{written[: LINE_MAX - 1]}…"

    def enter(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise UnreadableScript

    def leave(self) -> None:
        self.depth -= 1

    def at_end(self) -> bool:
        return self.place >= len(self.text)

    def at(self, *texts: str) -> bool:
        return bool(texts) and self.text.startswith(texts, self.place)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.place)

    def move(self, place: int) -> None:
        self.place = place

    def skip(self, text: str) -> bool:
        if not self.at(text):
            return False
        self.place += len(text)
        return True

    def skip_blanks(self) -> None:
        """Over blanks, and over a comment up to the end of its line."""
        if found := self.match(_BLANKS):
            self.place = found.end()
        if self.at("#"):
            end = self.text.find("\n", self.place)
            self.place = len(self.text) if end < 0 else end

    def operator(self, *operators: str) -> str:
        """The first of these that is next, which is taken; `&` and `|` are not taken from `&&`, `||` and `&>`."""
        self.skip_blanks()
        for operator in operators:
            if self.at(operator) and not (operator in ("&", "|") and self.at("&&", "||", "&>")):
                self.place += len(operator)
                if operator == "\n":
                    self._read_documents()
                return operator
        return ""

    def keyword(self, word: str) -> bool:
        self.skip_blanks()
        found = re.compile(rf"{word}(?=[\s;]|$)").match(self.text, self.place)
        return found is not None and self.skip(word)

    def until(self, end: str) -> str:
        """The text up to an end, which is taken as well."""
        place = self.text.find(end, self.place)
        if place < 0:
            raise UnreadableScript
        found = self.text[self.place : place]
        self.place = place + len(end)
        return found

    def arithmetic(self, begin: str) -> str | None:
        """The text of `((...))`, which is taken; None where the two parentheses do not end together."""
        depth, start = 0, self.place + len(begin)
        for place in range(start, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if depth < 0:
                if not self.text.startswith("))", place):
                    return None
                self.place = place + 2
                return self.text[start:place]
        raise UnreadableScript

    def balanced(self) -> str:
        """The text of `(...)`, which is taken with its parentheses."""
        depth, start = 0, self.place
        while not self.at_end():
            depth += {"(": 1, ")": -1}.get(self.text[self.place], 0)
            self.place += 1
            if not depth:
                return self.text[start : self.place]
        raise UnreadableScript

    def await_document(self, end: str, *, tabs: bool, then: Callable[[str], None]) -> None:
        self._awaited.append(_Awaited(end, tabs, then))

    def _read_documents(self) -> None:
        awaited, self._awaited = self._awaited, []
        for one in awaited:
            lines: list[str] = []
            while not self.at_end():
                line, _, _ = self.text[self.place :].partition("\n")
                self.place += len(line) + 1
                line = line.lstrip("\t") if one.tabs else line
                if line.rstrip("\r") == one.end:
                    break
                lines.append(line)
            one.then("\n".join(lines))


Commands = Callable[[Cursor], Block]
"""Reads the commands of a substitution up to its `)`, which is taken."""


def read_word(cursor: Cursor, commands: Commands, *, pattern: bool = False) -> Word | None:
    """The word that is next, if any. In a pattern, `@(a|b)` is part of it."""
    start, pieces = cursor.place, list[Piece]()
    while not cursor.at_end():
        if pattern and cursor.match(_GLOB):
            cursor.skip(cursor.text[cursor.place])
            cursor.balanced()
            pieces.append(OtherExpansion())
        elif found := cursor.match(_BARE):
            pieces.append(Literal(found[0]))
            cursor.move(found.end())
        elif (quoted := _quoted(cursor, commands)) is not None:
            pieces += quoted
        elif (piece := _expansion(cursor, commands, quoted=False)) is not None:
            pieces.append(piece)
        else:
            break
    raw = cursor.text[start : cursor.place]
    return Word(tuple(pieces), raw) if raw else None


def read_array(cursor: Cursor, commands: Commands) -> Word:
    """`(a b c)` after the `=` of an assignment."""
    start, words = cursor.place, list[Word]()
    cursor.skip("(")
    while not cursor.operator(")"):
        if not cursor.operator("\n"):
            word = read_word(cursor, commands)
            if word is None:
                raise UnreadableScript
            words.append(word)
    return Word((OtherExpansion(tuple(words)),), cursor.text[start : cursor.place])


def read_regex(cursor: Cursor, commands: Commands) -> Word:
    """What follows `=~`: parentheses and bars are part of it."""
    start, words = cursor.place, list[Word]()
    while (word := read_word(cursor, commands)) is not None or cursor.at("(", ")", "|"):
        if word is not None:
            words.append(word)
        else:
            cursor.move(cursor.place + 1)
    return Word((OtherExpansion(tuple(words)),), cursor.text[start : cursor.place])


def quote_removed(raw: str) -> str:
    return _QUOTES.sub(lambda found: found[1] or found[2] or found[3] or "", raw)


def _quoted(cursor: Cursor, commands: Commands) -> list[Piece] | None:
    """A part of a word in quotes, or one escaped character."""
    if cursor.skip("\\\n"):
        return []
    if cursor.at("\\"):
        cursor.skip("\\")
        letter = cursor.text[cursor.place : cursor.place + 1]
        cursor.skip(letter)
        return [Literal(letter, quoted=True)]
    if cursor.skip("'"):
        return [Literal(cursor.until("'"), quoted=True)]
    if cursor.skip("$'"):
        return [Literal(_ansi(cursor), quoted=True)]
    if cursor.skip('"') or cursor.skip('$"'):
        return [Literal("", quoted=True), *_double_quoted(cursor, commands)]
    return None


def _double_quoted(cursor: Cursor, commands: Commands) -> Iterator[Piece]:
    """Up to the closing quote, which is taken; at the end of a here-document there is none."""
    while not cursor.skip('"'):
        if cursor.at_end():
            raise UnreadableScript
        yield _inside(cursor, commands)


def _inside(cursor: Cursor, commands: Commands) -> Piece:
    """One piece of a text in which expansions happen and quotes mean nothing."""
    if found := cursor.match(_INSIDE):
        cursor.move(found.end())
        return Literal(found[0], quoted=True)
    if cursor.skip("\\"):
        letter = cursor.text[cursor.place : cursor.place + 1]
        cursor.skip(letter)
        return Literal("" if letter == "\n" else letter if letter in '$`"\\' else f"\\{letter}", quoted=True)
    piece = _expansion(cursor, commands, quoted=True)
    if piece is None:
        piece = Literal(cursor.text[cursor.place], quoted=True)
        cursor.move(cursor.place + 1)
    return piece


def _ansi(cursor: Cursor) -> str:
    """The text of `$'...'`."""
    text = ""
    while not cursor.skip("'"):
        if cursor.at_end():
            raise UnreadableScript
        if cursor.skip("\\"):
            letter = cursor.text[cursor.place : cursor.place + 1]
            text += {"n": "\n", "t": "\t", "r": "\r", "'": "'", "\\": "\\", '"': '"'}.get(letter, f"\\{letter}")
        else:
            letter = cursor.text[cursor.place]
            text += letter
        cursor.skip(letter)
    return text


def _expansion(cursor: Cursor, commands: Commands, *, quoted: bool) -> Piece | None:
    if cursor.at("$((") and (text := cursor.arithmetic("$((")) is not None:
        return Arithmetic(text, quoted)
    if cursor.skip("$("):
        return Substitution(commands(cursor), quoted)
    if not quoted and (cursor.skip("<(") or cursor.skip(">(")):
        return Substitution(commands(cursor), is_file=True)
    if cursor.skip("`"):
        return _backticks(cursor, commands, quoted=quoted)
    if cursor.at("${"):
        return _braced(cursor, commands, quoted=quoted)
    if found := cursor.match(_NAMED):
        cursor.move(found.end())
        return Variable(found[1], quoted)
    if cursor.skip("$"):
        return Literal("$", quoted)
    return None


def _backticks(cursor: Cursor, commands: Commands, *, quoted: bool) -> Substitution:
    """The commands between backticks, in which a backslash escapes `$`, a backtick and itself."""
    text = ""
    while not cursor.skip("`"):
        if cursor.at_end():
            raise UnreadableScript
        if cursor.at("\\`", "\\$", "\\\\") or (quoted and cursor.at('\\"')):
            cursor.skip("\\")
        text += cursor.text[cursor.place]
        cursor.move(cursor.place + 1)
    return Substitution(commands(Cursor(f"{text})", cursor.depth, is_part=True)), quoted)


def _braced(cursor: Cursor, commands: Commands, *, quoted: bool) -> Variable | OtherExpansion:
    """`${NAME}`, with a default or a pattern, or with what is not modelled."""
    if counted := cursor.match(_LENGTH):
        cursor.move(counted.end())
        return Variable(counted[1], quoted, "length")
    found = cursor.match(_BRACED)
    operator = found[2] if found else ""
    cursor.enter()
    cursor.move(found.end() if found else cursor.place + 2)
    if found and operator == "}":
        cursor.leave()
        return Variable(found[1], quoted)
    start, pieces = cursor.place, list[Piece]()
    inside = quoted and operator not in PATTERNS
    while not cursor.skip("}"):
        if cursor.at_end():
            raise UnreadableScript
        pieces += _of_braced(cursor, commands, quoted=inside)
    cursor.leave()
    word = Word(tuple(pieces), cursor.text[start : cursor.place - 1])
    return Variable(found[1], quoted, operator, word) if found else OtherExpansion((word,), quoted)


def _of_braced(cursor: Cursor, commands: Commands, *, quoted: bool) -> list[Piece]:
    """What is next up to the closing brace; inside quotes, single quotes and most backslashes mean nothing."""
    if quoted and cursor.at("\\"):
        letter = cursor.text[cursor.place + 1 : cursor.place + 2]
        cursor.move(cursor.place + 1 + len(letter))
        return [Literal("" if letter == "\n" else letter if letter in '$`"\\}' else f"\\{letter}", quoted=True)]
    inner = _quoted(cursor, commands) if not cursor.at("'") or not quoted else None
    if inner is not None:
        return inner
    piece = _expansion(cursor, commands, quoted=quoted)
    if piece is None:
        piece = Literal(cursor.text[cursor.place], quoted)
        cursor.move(cursor.place + 1)
    return [piece]


def read_document(text: str, commands: Commands, *, quoted: bool, depth: int) -> Word:
    """The text of a here-document; expansions happen in it unless its delimiter is quoted."""
    if quoted:
        return Word((Literal(text, quoted=True),), text)
    cursor, pieces = Cursor(text, depth, is_part=True), list[Piece]()
    while not cursor.at_end():
        if cursor.skip('"'):
            pieces.append(Literal('"', quoted=True))
        else:
            pieces.append(_inside(cursor, commands))
    return Word(tuple(pieces), text)
