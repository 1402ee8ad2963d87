"""Values of a chart as its values.yaml writes them, by the path that a template asks for."""

from __future__ import annotations

import re

from seatrial.fix.lines import Line
from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

TEMPLATES = "/templates/"
_ASKED = lazy_re.compile(r"[ ]*\{\{-?\s*\.Values\.(?P<path>[\w.]+)\s*(?:\|\s*quote\s*)?-?\}\}[ \t]*(#.*)?\r?")
_EMPTY = lazy_re.compile(r"""[ ]*(?:""|''|null|~|\{\})?(?P<rest>[ \t]*(#.*)?\r?)""")
_SCALAR = lazy_re.compile(r"""[ ]*(?P<value>"[^"]*"|'[^']*'|[^\s"'#{}\[|>&*][^#]*?)(?P<rest>[ \t]*(#.*)?\r?)""")


def asked_value(line: Line) -> tuple[str, ...]:
    """The path of the value that is all of a line; empty if it is something else."""
    found = _ASKED.fullmatch(line.rest)
    return tuple(found["path"].split(".")) if found else ()


def condition_of(resource: Resource, key: str) -> tuple[str, ...]:
    """The path of the value without which the template of an object leaves a key out; empty if that is not clear."""
    text = text_of(resource.file)
    pattern = rf"\{{\{{-?\s*(?:if|with)\s+\.Values\.(?P<path>[\w.]+)\s*-?\}}\}}[ \t]*\r?\n[ ]*{re.escape(key)}:"
    found = re.findall(pattern, text.content) if text else []
    return tuple(found[0].split(".")) if len(found) == 1 else ()


def with_chart_value(
    resource: Resource, keys: tuple[str, ...], value: str, *, replaces: bool = False
) -> Edits | ByHand:
    """Set a value in the values.yaml of the chart that has the template of an object; `replaces` one that is there."""
    file = f"{resource.file.rpartition(TEMPLATES)[0]}/values.yaml"
    text = text_of(file)
    number = _line_of(text, keys) if text else 0
    if text is None or not number:
        return ByHand(f"{file} has no line for {'.'.join(keys)}")
    words = text.line_at(number)
    colon = words.index(":") + 1
    found = (_SCALAR if replaces else _EMPTY).fullmatch(words[colon:])
    if found is None:
        what = "no value in one line" if replaces else "a value"
        return ByHand(f"{file}:{number} has {what} for {'.'.join(keys)}")
    quote = found["value"][0] if replaces and found["value"][0] in "\"'" else ""
    start = text.start_of(number) + colon
    end = start + len(words[colon:]) - len(found["rest"])
    return (TextEdit(text, Edit(Span(start, end), f" {quote}{value}{quote}")),)


def _line_of(text: Text, keys: tuple[str, ...]) -> int:
    """The line of a key in nested mappings that are written as blocks; 0 if there is none."""
    opened: list[tuple[int, str]] = []
    for number, words in enumerate(text.content.split("\n"), start=1):
        found = re.match(r"(?P<indent>[ ]*)(?P<key>[\w.-]+):", words)
        if found is None:
            continue
        indent = len(found["indent"])
        opened = [(column, key) for column, key in opened if column < indent] + [(indent, found["key"])]
        if tuple(key for _, key in opened) == keys:
            return number
    return 0
