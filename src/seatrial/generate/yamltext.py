"""YAML with comments, as people write it. Writes plain data; knows nothing of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.model import lazy_re

INDENT = "  "
SHORT_MAX = 80
_PLAIN = lazy_re.compile(r"[A-Za-z/.][-A-Za-z0-9_./]*(?::[-A-Za-z0-9_./]+)*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))

Comments = Mapping[tuple[str | int, ...], tuple[str, ...]]
"""The comments above a value, by its path."""
NO_COMMENTS: Comments = {}


def document(value: Any, comments: Comments = NO_COMMENTS) -> str:
    """One document. A text of several lines is a block."""
    return "".join(f"{line}\n" for line in _lines(value, comments, (), ""))


def scalar(value: Any) -> str:
    """A value in one line; text is quoted where YAML would read something else."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def comment(text: str, indent: str = "") -> Iterator[str]:
    """The lines of a comment. What charts say must not end it."""
    yield from (f"{indent}# {line}".rstrip() for line in text.splitlines())


def _lines(value: Any, comments: Comments, path: tuple[str | int, ...], indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _commented(comments, (*path, key), indent)
            yield from _entry(f"{indent}{scalar(key)}:", entry, comments, (*path, key), indent)
    else:
        for index, entry in enumerate(value):
            yield from _commented(comments, (*path, index), indent)
            if isinstance(entry, dict | list) and entry:
                first, *rest = _lines(entry, comments, (*path, index), indent + INDENT)
                yield f"{indent}- {first[len(indent + INDENT) :]}"
                yield from rest
            else:
                yield from _entry(f"{indent}-", entry, comments, (*path, index), indent)


def _entry(head: str, value: Any, comments: Comments, path: tuple[str | int, ...], indent: str) -> Iterator[str]:
    match value:
        case list() if _is_short(value):
            yield f"{head} [{', '.join(map(scalar, value))}]"
        case dict() | list() if value:
            yield head
            yield from _lines(value, comments, path, indent + INDENT)
        case dict():
            yield f"{head} {{}}"
        case str() if "\n" in value:
            yield f"{head} |" if value.endswith("\n") else f"{head} |-"
            yield from (f"{indent}{INDENT}{line}".rstrip() for line in value.splitlines())
        case _:
            yield f"{head} {scalar(value)}"


def _is_short(value: list[Any]) -> bool:
    """Whether a list fits into one line."""
    return (
        all(isinstance(entry, str | int) and "\n" not in str(entry) for entry in value) and len(str(value)) <= SHORT_MAX
    )


def _commented(comments: Comments, path: tuple[str | int, ...], indent: str) -> Iterator[str]:
    for text in comments.get(path, ()):
        yield from comment(text, indent)
