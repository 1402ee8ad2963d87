"""Named templates whose text reaches an object through `fromYaml` and `toYaml`, where no line of it is known.

The line is looked for: in the named templates that the template of the object includes, the one with the same key and
value. Whether it is the right one shows when it is rehearsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from seatrial.fix.proposal import ByHand, Edits, Problem, TextEdit
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.sources import disk, text_of
from seatrial.sources.charts.gotemplate import definitions
from seatrial.text.source import Edit, Span, Text

TEMPLATES = "/templates/"
_INCLUDES = lazy_re.compile(r'\b(?:include|template)\s+"([^"]+)"')


class HelperLine(Struct, frozen=True):
    """A line of a named template."""

    name: str
    text: Text
    number: int


def helper_line(resource: Resource, key: str) -> HelperLine | ByHand:
    """The only line of an included named template that writes this annotation of an object."""
    value = str(annotations_of(resource.body).get(key, ""))
    chart, inside, _ = resource.file.rpartition(TEMPLATES)
    if not inside or not disk.is_dir(Path(chart)):
        return ByHand(f"{resource.file} is not a template on disk")
    found = [line for line in _lines(chart, included(resource)) if _says(line, key, value)]
    if len(found) != 1:
        return ByHand(f"{resource.file}: the line of {key} is not certain")
    return found[0]


def included(resource: Resource) -> set[str]:
    """The named templates that the template of an object names."""
    text = text_of(resource.file)
    return set(_INCLUDES.findall(text.content)) if text else set()


def with_line_below(line: HelperLine, words: str) -> Edits:
    """Another line with the same indentation."""
    own = line.text.line_at(line.number)
    at = line.text.start_of(line.number + 1)
    return (TextEdit(line.text, Edit(Span(at, at), f"{own[: len(own) - len(own.lstrip())]}{words}\n")),)


def also_written(problem: Problem, line: HelperLine, ref: Ref) -> list[Ref]:
    """Other objects whose templates include the same named template."""
    every = {one.ref: one for case in problem.cases for one in case.all_resources() if one.ref != ref}
    return sorted(other for other, one in every.items() if line.name in included(one))


def _lines(chart: str, names: set[str]) -> Iterator[HelperLine]:
    for path in sorted(disk.below(Path(chart))):
        text = text_of(str(path)) if path.suffix == ".tpl" else None
        for one in definitions(text.content) if text else ():
            if text is not None and one.name in names:
                first, last = text.line(one.start), text.line(one.end)
                yield from (HelperLine(one.name, text, number) for number in range(first, last + 1))


def _says(line: HelperLine, key: str, value: str) -> bool:
    pattern = rf"""[ ]*(["']?){re.escape(key)}\1[ ]*:[ ]*(["']?){re.escape(value)}\2[ ]*\r?"""
    return re.fullmatch(pattern, line.text.line_at(line.number)) is not None
