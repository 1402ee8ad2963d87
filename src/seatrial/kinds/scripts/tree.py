"""Shell text as a tree: lists, pipelines, `if`, `while`, `for`. Knows what is written, and runs nothing.

Functions, subshells, `case` and arithmetic commands are not read: a script with one of them has no tree.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds.scripts.words import Token, tokens, without_heredocs

ENDS = frozenset(("then", "elif", "else", "fi", "do", "done", "}"))
"""Words that end a list of commands."""
SEPARATORS = (";", "\n", "&")
DEPTH_MAX = 50


class Simple(Struct, frozen=True):
    """One command with its assignments and redirections."""

    words: tuple[Token, ...]


class Pipeline(Struct, frozen=True):
    stages: tuple[Node, ...]
    negated: bool = False


class AndOr(Struct, frozen=True):
    """Pipelines, each with the operator before it."""

    parts: tuple[tuple[str, Pipeline], ...]
    background: bool = False


class If(Struct, frozen=True):
    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block = ()


class Loop(Struct, frozen=True):
    """`while`, or `until`."""

    asks: Block
    body: Block
    until: bool = False


class For(Struct, frozen=True):
    variable: str
    words: tuple[Token, ...]
    body: Block


class Group(Struct, frozen=True):
    body: Block


Node = Simple | If | Loop | For | Group
Block = tuple[AndOr, ...]


class Script(Struct, frozen=True):
    body: Block
    documents: tuple[str, ...]
    """Its here-documents, in order."""


class _Unreadable(Exception):
    """What stands here is none of what is read."""


class _Reader(Struct):
    """The tokens that are left, next first."""

    left: list[Token]
    depth: int = 0


def tree(text: str) -> Script | None:
    """A script as a tree; None where it holds what is not read."""
    shortened, documents = without_heredocs(text)
    reader = _Reader(list(reversed(tokens(shortened))))
    try:
        body = _block(reader)
    except _Unreadable:
        return None
    return Script(body, tuple(documents)) if not reader.left else None


def _block(reader: _Reader) -> Block:
    """Commands up to a word that ends them."""
    found: list[AndOr] = []
    reader.depth += 1
    if reader.depth > DEPTH_MAX:
        raise _Unreadable
    while _skip(reader) and _word(reader) not in ENDS:
        parts = [("", _pipeline(reader))]
        while _operator(reader) in ("&&", "||"):
            operator = reader.left.pop().text
            _skip(reader)
            parts.append((operator, _pipeline(reader)))
        if reader.left and _operator(reader) not in SEPARATORS and _word(reader) not in ENDS:
            raise _Unreadable
        found.append(AndOr(tuple(parts), background=_operator(reader) == "&"))
    reader.depth -= 1
    return tuple(found)


def _pipeline(reader: _Reader) -> Pipeline:
    negated = False
    while _word(reader) == "!":
        reader.left.pop()
        negated = not negated
    stages = [_node(reader)]
    while _operator(reader) in ("|", "|&"):
        reader.left.pop()
        _skip(reader)
        stages.append(_node(reader))
    return Pipeline(tuple(stages), negated)


def _node(reader: _Reader) -> Node:
    word = _word(reader)
    if word in COMPOUND:
        reader.left.pop()
        node = COMPOUND[word](reader)
        _words(reader)  # Redirections of the whole.
        return node
    words = _words(reader)
    if not words or word in ("case", "function", "select", "((") or _operator(reader) in ("(", ")", ";;"):
        raise _Unreadable
    return Simple(words)


def _if(reader: _Reader) -> If:
    branches = []
    otherwise: Block = ()
    while True:
        asks = _block(reader)
        _expect(reader, "then")
        branches.append((asks, _block(reader)))
        if _word(reader) != "elif":
            break
        reader.left.pop()
    if _word(reader) == "else":
        reader.left.pop()
        otherwise = _block(reader)
    _expect(reader, "fi")
    return If(tuple(branches), otherwise)


def _while(reader: _Reader) -> Loop:
    asks = _block(reader)
    return Loop(asks, _body(reader))


def _until(reader: _Reader) -> Loop:
    asks = _block(reader)
    return Loop(asks, _body(reader), until=True)


def _for(reader: _Reader) -> For:
    name, *rest = _words(reader) or [Token("")]
    if rest[:1] != [Token("in")]:
        raise _Unreadable
    _skip(reader)
    return For(name.text, tuple(rest[1:]), _body(reader))


def _group(reader: _Reader) -> Group:
    body = _block(reader)
    _expect(reader, "}")
    return Group(body)


COMPOUND: dict[str, Callable[[_Reader], Node]] = {"if": _if, "while": _while, "until": _until, "for": _for, "{": _group}


def _body(reader: _Reader) -> Block:
    _expect(reader, "do")
    body = _block(reader)
    _expect(reader, "done")
    return body


def _expect(reader: _Reader, word: str) -> None:
    if _word(reader) != word:
        raise _Unreadable
    reader.left.pop()


def _skip(reader: _Reader) -> bool:
    """Over what separates commands. Whether anything is left."""
    while _operator(reader) in SEPARATORS:
        reader.left.pop()
    return bool(reader.left)


def _words(reader: _Reader) -> tuple[Token, ...]:
    found = []
    while reader.left and not reader.left[-1].operator:
        found.append(reader.left.pop())
    return tuple(found)


def _word(reader: _Reader) -> str:
    """The next word where it may be a keyword."""
    token = reader.left[-1] if reader.left else Token("", operator=True)
    return "" if token.operator or token.quoted else token.text


def _operator(reader: _Reader) -> str:
    return reader.left[-1].text if reader.left and reader.left[-1].operator else ""
