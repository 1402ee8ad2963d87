"""Shell text as words and operators. Knows quotes, substitutions and here-documents, and no keyword.

Not read: process substitution, arrays, arithmetic. What cannot be read gives fewer words, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

WORDS_MAX = 20_000

UNKNOWN = "\x00"
"""Stands in a word for what only a run would tell."""
_DOLLAR = "\x01"
"""A dollar that was quoted, until variables are put in."""

OPERATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "\n", "(", ")")

_HEREDOC = re.compile(r"(?<!<)<<(?!<)(-?)\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_VARIABLE = re.compile(
    r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=]([^{}]*)|[^}]*)\}|([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?!$]))"
)
HERE = "<<HERE"


class Token(Struct, frozen=True):
    text: str
    operator: bool = False
    quoted: bool = False


def without_heredocs(script: str) -> tuple[str, list[str]]:
    """The script with `HERE` in place of each here-document; they come in order."""
    lines, documents = script.replace("\\\n", " ").split("\n"), []
    kept: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        for _, _, end in _HEREDOC.findall(line):
            body = []
            while index < len(lines) and lines[index].strip() != end:
                body.append(lines[index])
                index += 1
            index += 1
            documents.append("\n".join(body))
        kept.append(_HEREDOC.sub(f" {HERE} ", line))
    return "\n".join(kept), documents


def tokens(text: str) -> list[Token]:
    """Words and operators. Quotes are taken off; what stands in `$(...)` stays in its word."""
    found: list[Token] = []
    position = 0
    while position < len(text) and len(found) < WORDS_MAX:
        letter = text[position]
        redirects = text.startswith("&>", position)
        if letter in " \t\r":
            position += 1
        elif letter == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif not redirects and (operator := next((op for op in OPERATORS if text.startswith(op, position)), "")):
            found.append(Token(operator, operator=True))
            position += len(operator)
        else:
            word, quoted, position = _word(text, position)
            found.append(Token(word, quoted=quoted))
    return found


def substitutions(word: str) -> Iterator[tuple[str, str]]:
    """Each `$(...)` in a word, as it stands there and as the script inside."""
    position = 0
    while (start := _next_substitution(word, position)) >= 0:
        end = _closing(word, start)
        inner = word[start + 1 : end - 1] if word[start] == "`" else word[start + 2 : end - 1]
        yield word[start:end], inner
        position = end


def filled(word: str, variables: Mapping[str, str]) -> str:
    """A word with its variables put in, and `UNKNOWN` for what only a run would tell."""
    for whole, _ in substitutions(word):
        word = word.replace(whole, UNKNOWN)
    return _VARIABLE.sub(lambda found: _value(found, variables), word).replace(_DOLLAR, "$")


def _next_substitution(word: str, position: int) -> int:
    places = [place for mark in ("$(", "`") if (place := word.find(mark, position)) >= 0]
    return min(places, default=-1)


def _word(text: str, position: int) -> tuple[str, bool, int]:
    parts: list[str] = []
    quoted = False
    while position < len(text):
        letter = text[position]
        joins = letter == "&" and (text[position + 1 : position + 2] == ">" or (parts and parts[-1] in (">", "<")))
        if letter in " \t\r\n;|&()" and not joins:
            break
        if letter == "'":
            end = text.find("'", position + 1)
            end = len(text) if end < 0 else end
            parts.append(text[position + 1 : end].replace("$", _DOLLAR))
            quoted, position = True, end + 1
        elif letter == '"':
            inner, position = _double_quoted(text, position + 1)
            parts.append(inner)
            quoted = True
        else:
            part, position = _unquoted(text, position)
            parts.append(part)
    return "".join(parts), quoted, position


def _double_quoted(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while position < len(text) and text[position] != '"':
        part, position = _unquoted(text, position)
        parts.append(part)
    return "".join(parts), position + 1


def _unquoted(text: str, position: int) -> tuple[str, int]:
    """One letter, one escaped letter, or one whole substitution."""
    if text.startswith("$(", position) or text[position] == "`":
        end = _closing(text, position)
        return text[position:end], end
    if text[position] == "\\" and position + 1 < len(text):
        return text[position + 1].replace("$", _DOLLAR), position + 2
    return text[position], position + 1


def _closing(text: str, position: int) -> int:
    """Where a substitution that begins here ends."""
    if text[position] == "`":
        end = text.find("`", position + 1)
        return len(text) if end < 0 else end + 1
    depth = 0
    for index in range(position + 1, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index + 1
    return len(text)


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name = found[1] or found[3]
    if name in variables:
        return variables[name]
    return found[2] if found[2] is not None else UNKNOWN
