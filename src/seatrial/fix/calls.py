"""Calls in programs, as text: their arguments and options. Reads Python with its own parser, TypeScript by brackets."""

from __future__ import annotations

import ast

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.phrases.programs import PYTHON, TYPESCRIPT
from seatrial.text.source import Span, Text

CLOSES = {"(": ")", "[": "]", "{": "}"}
_NEW = lazy_re.compile(r"\bnew\s+(?P<callee>[\w$.]+)\s*(?:<[^()]*>)?\s*\(")
_KEY = lazy_re.compile(r"""\s*["']?(?P<key>[A-Za-z_$][\w$]*)["']?\s*(?P<colon>:)?""")


class Argument(Struct, frozen=True):
    """One argument of a call, or one property of an object."""

    name: str
    """The keyword or key; empty for a positional argument."""
    whole: Span
    value: Span


class ResourceCall(Struct, frozen=True):
    """The creation of a resource in a program."""

    text: Text
    callee: Span
    arguments: tuple[Argument, ...]
    opens: int
    """The offset behind the bracket that opens the arguments."""

    def given(self, name: str) -> Argument | None:
        return next((one for one in self.arguments if one.name == name), None)


def is_program(file: str) -> bool:
    return file.endswith((*PYTHON, *TYPESCRIPT))


def call_at(text: Text, line: int) -> ResourceCall | None:
    """The call that creates a resource on a line; None if it is not clear which."""
    return _python(text, line) if text.path.endswith(PYTHON) else _script(text, line)


def inner_call(text: Text, value: Span) -> ResourceCall | None:
    """A call in Python that is a value."""
    return _python(text, text.line(value.start), value)


def object_at(text: Text, value: Span) -> ResourceCall | None:
    """An object of TypeScript that is a value, as a call without a callee."""
    if not text.within(value).startswith("{"):
        return None
    found = parts(text.content, value.start)
    if found is None or found[1] != value.end:
        return None
    properties = tuple(_property(text, span) for span in found[0])
    return ResourceCall(text, Span(value.start, value.start), properties, value.start + 1)


def items_of(text: Text, value: Span) -> list[str] | None:
    """The elements of a list in brackets; None if the value is something else."""
    found = parts(text.content, value.start) if text.within(value).startswith("[") else None
    return [text.within(one) for one in found[0]] if found and found[1] == value.end else None


def parts(content: str, opens: int) -> tuple[list[Span], int] | None:
    """What commas separate between the bracket at `opens` and the one that closes it, and the offset behind that.

    Without the spaces and comments around it.
    """
    expected = [CLOSES[content[opens]]]
    found: list[Span] = []
    at, start, end = opens + 1, -1, -1
    while at < len(content):
        char = content[at]
        if content.startswith(("//", "/*"), at):
            ends = content.find("\n" if content[at + 1] == "/" else "*/", at)
            at = len(content) if ends < 0 else ends + (1 if content[at + 1] == "/" else 2)
            continue
        if char.isspace():
            at += 1
            continue
        begins = at
        at = _after_quoted(content, at) if char in "\"'`" else at + 1
        if char in CLOSES:
            expected.append(CLOSES[char])
        elif char == expected[-1]:
            expected.pop()
        if not expected or (char == "," and len(expected) == 1):
            found += [Span(start, end)] if start >= 0 else []
            start = end = -1
            if not expected:
                return found, at
            continue
        start, end = start if start >= 0 else begins, at
    return None


def _after_quoted(content: str, at: int) -> int:
    quote = content[at]
    at += 1
    while at < len(content) and content[at] != quote:
        if quote == "`" and content.startswith("${", at):
            found = parts(content, at + 1)
            at = found[1] if found else len(content)
        else:
            at += 2 if content[at] == "\\" else 1
    return at + 1


def _script(text: Text, line: int) -> ResourceCall | None:
    start, end = text.start_of(line), text.start_of(line + 1)
    calls = [one for one in _NEW.finditer(text.content, start) if one.start() < end]
    found = parts(text.content, calls[0].end() - 1) if calls else None
    if found is None or len([one for one in calls if one.start() > found[1]]) > 0:
        return None
    arguments = tuple(Argument("", span, span) for span in found[0])
    return ResourceCall(text, Span(*calls[0].span("callee")), arguments, calls[0].end())


def _property(text: Text, span: Span) -> Argument:
    found = _KEY.match(text.content, span.start, span.end)
    if found is None or (found["colon"] is None and found.end() < span.end):
        return Argument("", span, span)
    value = text.content[found.end() : span.end]
    start = found.end() + len(value) - len(value.lstrip()) if found["colon"] else span.start
    return Argument(found["key"], span, Span(start, span.end))


def _python(text: Text, line: int, whole: Span | None = None) -> ResourceCall | None:
    try:
        tree = ast.parse(text.content)
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and one.lineno == line]
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if (whole is None and name[:1].isupper()) or (whole is not None and _span(text, call) == whole):
            callee = _span(text, call.func)
            positional = [Argument("", span, span) for span in (_span(text, one) for one in call.args)]
            keywords = [
                Argument(one.arg or "", Span(_offset(text, one.lineno, one.col_offset), span.end), span)
                for one in call.keywords
                for span in (_span(text, one.value),)
            ]
            return ResourceCall(text, callee, (*positional, *keywords), text.content.index("(", callee.end) + 1)
    return None


def _span(text: Text, node: ast.expr) -> Span:
    end = _offset(text, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return Span(_offset(text, node.lineno, node.col_offset), end)


def _offset(text: Text, line: int, column: int) -> int:
    """Columns of the parser count bytes."""
    return text.start_of(line) + len(text.line_at(line).encode()[:column].decode())
