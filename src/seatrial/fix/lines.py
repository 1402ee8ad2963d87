"""Edits of YAML in the user's own text, by line: a manifest or the template of a chart.

The rendered body says what there is, its places say on which line that is written. A line is edited only if the place
is exact and the line has the key in plain text; otherwise the change is left to the user, with the reason.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.fix.hoisting import hoisted
from seatrial.fix.kustomize import annotated_by_patch, is_built
from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Path, dig
from seatrial.sources import text_of
from seatrial.sources.charts.gotemplate import Definition, definitions, open_blocks
from seatrial.sources.places import place_of
from seatrial.text.source import Edit, Span, Text

ANNOTATIONS: Path = ("metadata", "annotations")
INDENT = 2

_KEY = r"""^(?P<indent>[ ]*(?:-[ ]+)?)(?P<quote>["']?){key}(?P=quote)[ ]*:(?P<rest>.*)$"""
_ALONE = lazy_re.compile(r"[ \t]*(#.*)?\r?")
_FLOW = lazy_re.compile(r"[ ]*\{(?P<inside>[^{}]*)\}[ \t]*(#.*)?\r?")
_VALUE = lazy_re.compile(r"""[ ]*(?P<value>"[^"{}]*"|'[^'{}]*'|[^\s"'#{}\[][^#{}]*?)[ \t]*(?P<comment>#.*)?\r?""")
_CHILD = lazy_re.compile(r"""(?P<indent>[ ]+)["']?[\w./-]+["']?[ ]*:""")


class Line(Struct, frozen=True):
    """The line of a key, in the file that an edit may change."""

    text: Text
    number: int
    indent: int
    """The column of the key, from 0."""
    rest: str
    """What follows the colon."""
    path: Path = ()
    template: Definition | None = None
    """The named template that contains it."""

    @property
    def start(self) -> int:
        return self.text.start_of(self.number)

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.text.start_of(self.number + 1)

    def edited(self, start: int, end: int, new: str) -> Edits:
        """An edit of the file, which says whether it changes a named template."""
        name = self.template.name if self.template else ""
        return (TextEdit(self.text, Edit(Span(start, end), new), name, self.path, self.number),)

    @property
    def after_colon(self) -> int:
        return self.start + len(self.text.line_at(self.number)) - len(self.rest)


def key_line(resource: Resource, *path: str | int, near: bool = False) -> Line | ByHand:
    """The line that has the key at `path` of an object, which the body must contain.

    The line of a random value is only `near`, since no two renderings agree on it.
    """
    key = str(path[-1])
    place = place_of(resource.place(*path))
    if place.sure != "exact" and not (near and place.sure == "near"):
        return ByHand(f"the line of {key} is not certain")
    text = text_of(place.file)
    if text is None or (text.content.lstrip().startswith("{") and not text.content.lstrip().startswith("{{")):
        return ByHand(f"{place.file} is not YAML that can be read again")
    matched = re.match(_KEY.format(key=re.escape(key)), text.line_at(place.line))
    if matched is None:
        return ByHand(f"{place} does not begin with the key {key}")
    at = text.start_of(place.line)
    template = next((one for one in definitions(text.content) if one.start <= at < one.end), None)
    return Line(text, place.line, len(matched["indent"]), matched["rest"], path, template)


def annotated(resource: Resource, wanted: dict[str, str], *, after: tuple[str, ...] = ()) -> Edits | ByHand:
    """Set annotations. Those that exist keep their place; new ones come after the first of `after` that exists.

    Of a kustomization where they are written, or by a patch.
    """
    written = _annotated(resource, wanted, after)
    return annotated_by_patch(resource, wanted) if isinstance(written, ByHand) and is_built(resource) else written


def _annotated(resource: Resource, wanted: dict[str, str], after: tuple[str, ...]) -> Edits | ByHand:
    now = dig(resource.body, *ANNOTATIONS)
    given = now if isinstance(now, dict) else {}
    edits: list[TextEdit] = []
    for key in [key for key in wanted if key in given]:
        changed = with_value(resource, (*ANNOTATIONS, key), wanted[key])
        if isinstance(changed, ByHand):
            return changed
        edits += changed
    new = {key: value for key, value in wanted.items() if key not in given}
    if new:
        added = _added(resource, new, after) if given else _first(resource, new)
        if isinstance(added, ByHand):
            return added
        edits += added
    return tuple(edits)


def with_value(resource: Resource, path: Path, value: str) -> Edits | ByHand:
    """Replace a scalar, keeping its quotes and the comment after it."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    found = _VALUE.fullmatch(line.rest)
    if found is None:
        return ByHand(f"{line.text.path}:{line.number} does not have the value of {path[-1]} in plain text")
    old = found["value"]
    quote = old[0] if old[0] in "\"'" else ""
    number = old.isdigit() and value.isdigit()
    new = f"{quote}{value}{quote}" if quote else value if number else plain_or_quoted(line.text, value)
    start = line.after_colon + found.start("value")
    return line.edited(start, start + len(old), new)


def with_suffix(resource: Resource, path: Path, suffix: str) -> Edits | ByHand:
    """Append to a scalar that may contain actions of a template."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    value = line.rest.split(" #")[0].rstrip()
    if not value.strip() or value.lstrip()[0] in "&*|>[" or (value.lstrip()[0] == "{" and "{{" not in value):
        return ByHand(f"{line.text.path}:{line.number} does not have the value of {path[-1]} in one line")
    at = line.after_colon + len(value) - (value[-1] in "\"'")
    return line.edited(at, at, suffix)


def with_children(resource: Resource, parent: Path, children: list[str]) -> Edits | ByHand:
    """Put lines below a key whose mapping is written as a block; `children` are indented from 0."""
    line = key_line(resource, *parent)
    if isinstance(line, ByHand):
        return line
    if not _ALONE.fullmatch(line.rest):
        return ByHand(f"{line.text.path}:{line.number} does not begin a block")
    indent = _child_indent(line)
    keys = [words.partition(":")[0] for words in children if not words.startswith(" ")]
    if named := next((key for key in keys if _is_written_below(line, key, indent)), ""):
        return ByHand(f"{line.text.path}:{line.number}: {named} is written there under a condition")
    return inserted(line, indent, children)


def without_entry(resource: Resource, path: Path) -> Edits | ByHand:
    """Remove a key with everything below it, which must be plain text."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    end = line.number + 1
    while (words := line.text.line_at(end)) and len(words) - len(words.lstrip()) > line.indent:
        end += 1
    span = Span(line.start, line.text.start_of(end))
    if "{{" in line.text.within(span):
        return ByHand(f"{line.text.path}:{line.number} is not plain text")
    return line.edited(span.start, span.end, "")


def without_annotations(resource: Resource) -> Edits | ByHand:
    """Remove all annotations, of which none is rendered by an action."""
    return without_entry(resource, ANNOTATIONS)


def replaced_entry(resource: Resource, path: Path, words: str) -> Edits | ByHand:
    """Put another key and value where a key with a value in one line is."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    if not line.rest.strip() or line.rest.strip()[0] in "&*|>[":
        return ByHand(f"{line.text.path}:{line.number} does not have the value of {path[-1]} in one line")
    return line.edited(line.start + line.indent, line.start + len(line.text.line_at(line.number)), words)


def with_siblings(resource: Resource, path: Path, lines: list[str]) -> Edits | ByHand:
    """Put lines below a key with a value in one line, in the same mapping; `lines` are indented from 0."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    if not line.rest.strip() or line.rest.strip()[0] in "&*|>":
        return ByHand(f"{line.text.path}:{line.number} does not have the value of {path[-1]} in one line")
    return inserted(line, line.indent, lines)


def document_of(resource: Resource) -> tuple[Text, Span] | ByHand:
    """The text of an object with the separator before it: from a line to the next document or the end of its block."""
    first, kind = key_line(resource, "apiVersion"), key_line(resource, "kind")
    if isinstance(first, ByHand):
        return first
    if isinstance(kind, ByHand):
        return kind
    if first.template is not None:
        return ByHand(f"{first.text.path}:{first.number} is in a named template, which other objects may use")
    span = _document(first.text, min(first.number, kind.number))
    return (first.text, span) if span else ByHand(f"{first.text.path}:{first.number}: where it ends is not certain")


def _document(text: Text, first: int) -> Span | None:
    start, number = text.start_of(first), first
    blocks = open_blocks(text.content, start)
    lines = text.content.count("\n") + 1
    while number <= lines:
        after = open_blocks(text.content, text.start_of(number + 1))
        if text.line_at(number).startswith("---") or len(after) < len(blocks):
            break
        number += 1
    end = text.start_of(number)
    return Span(start, end) if open_blocks(text.content, end) == blocks and end > start else None


def plain_or_quoted(text: Text, value: str) -> str:
    """A value with the quotes that this file prefers, if it needs any."""
    if re.fullmatch(r"[A-Za-z][\w./,=-]*", value) and value.lower() not in ("true", "false", "yes", "no", "on", "off"):
        return value
    single, double = text.content.count(": '"), text.content.count(': "')
    quote = "'" if single > double else '"'
    return f"{quote}{value}{quote}"


def _added(resource: Resource, new: dict[str, str], after: tuple[str, ...]) -> Edits | ByHand:
    line = key_line(resource, *ANNOTATIONS)
    if isinstance(line, ByHand):
        return line
    if _conditional(resource, line):
        if not after and line.template is None:
            return hoisted(line.text, line.number, _entries(line.text, new))
        return ByHand(f"{line.text.path}:{line.number}: the annotations are written under a condition")
    if named := next((key for key in new if _is_written_below(line, key, _child_indent(line))), ""):
        return ByHand(f"{line.text.path}:{line.number}: {named} is written there under a condition")
    quote = _quote_of_keys(line)
    new = {f"{quote}{key}{quote}": value for key, value in new.items()}
    if flow := _FLOW.fullmatch(line.rest):
        more = ", ".join(f"{key}: {plain_or_quoted(line.text, value)}" for key, value in new.items())
        at = line.after_colon + flow.end("inside") - (len(flow["inside"]) - len(flow["inside"].rstrip()))
        return line.edited(at, at, f", {more}")
    if not _ALONE.fullmatch(line.rest):
        return ByHand(f"{line.text.path}:{line.number}: the annotations are not written as a block")
    lines = [f"{key}: {plain_or_quoted(line.text, value)}" for key, value in new.items()]
    indent = _child_indent(line)
    for key in [key for key in after if dig(resource.body, *ANNOTATIONS, key) is not None]:
        beside = key_line(resource, *ANNOTATIONS, key)
        unconditional = isinstance(beside, Line) and not _conditional(resource, beside)
        if isinstance(beside, Line) and unconditional and beside.indent == indent and _VALUE.fullmatch(beside.rest):
            return inserted(beside, indent, lines)
    return inserted(line, indent, lines)


def _is_written_below(line: Line, key: str, indent: int) -> bool:
    """Whether the text below a key has another key, in the column `indent`, that this rendering does not show."""
    for number in range(line.number + 1, line.text.content.count("\n") + 2):
        words = line.text.line_at(number)
        ends = len(words) - len(words.lstrip()) <= line.indent and not words.lstrip().startswith(("{{", "#"))
        if words.strip() and ends:
            return False
        written = re.match(_KEY.format(key=re.escape(key)), words)
        if written and len(written["indent"]) <= indent:
            return True
    return False


def _quote_of_keys(line: Line) -> str:
    """The quotes that the file has around the first key below a key."""
    found = re.match(r"""[ ]+(["'])[\w./-]+\1[ ]*:""", line.text.line_at(line.number + 1))
    return found[1] if found else ""


def _first(resource: Resource, new: dict[str, str]) -> Edits | ByHand:
    """The first annotations of an object, below its name."""
    name = key_line(resource, "metadata", "name")
    head = key_line(resource, "metadata")
    if isinstance(name, ByHand):
        return name
    if isinstance(head, ByHand):
        return head
    if name.template != head.template or name.text.path != head.text.path:
        return ByHand(f"{head.text.path}:{head.number}: a named template writes a part of the metadata")
    if name.number <= head.number:
        return ByHand(f"{head.text.path}:{head.number}: the metadata is not written as a block")
    lines = _entries(name.text, new)
    if number := _mentions(head, name.indent):
        rest = head.text.line_at(number).partition(":")[2]
        empty = Line(head.text, number, name.indent, rest, ANNOTATIONS, head.template)
        always = open_blocks(head.text.content, empty.start) == open_blocks(head.text.content, head.start)
        if always and _ALONE.fullmatch(rest):
            return inserted(empty, _child_indent(empty), lines)
        if head.template is None:
            return hoisted(head.text, number, lines)
        return ByHand(f"{head.text.path}:{number}: the annotations are written under a condition")
    return inserted(name, name.indent, ["annotations:", *(" " * INDENT + line for line in lines)])


def _entries(text: Text, new: dict[str, str]) -> list[str]:
    return [f"{key}: {plain_or_quoted(text, value)}" for key, value in new.items()]


def _mentions(head: Line, indent: int) -> int:
    """The line where the metadata has annotations that this rendering does not show; 0 if there is none."""
    number = head.number + 1
    lines = head.text.content.count("\n") + 1
    while number <= lines:
        words = head.text.line_at(number)
        own = len(words) - len(words.lstrip())
        if words.strip() and own < indent and not words.lstrip().startswith(("{{", "#")):
            return 0
        if own == indent and words.lstrip().startswith("annotations:"):
            return number
        number += 1
    return 0


def _conditional(resource: Resource, line: Line) -> bool:
    """Whether a line is in more blocks of the template than the metadata of its object."""
    head = key_line(resource, "metadata")
    if isinstance(head, ByHand):
        return True
    content = line.text.content
    if line.template is not None and (head.text.path != line.text.path or head.template != line.template):
        return len(open_blocks(content, line.start)) > len(open_blocks(content, line.template.start))
    return open_blocks(content, line.start) != open_blocks(content, head.start)


def _child_indent(line: Line) -> int:
    """The column of the keys below a key, as the file has them."""
    for number in range(line.number + 1, line.text.content.count("\n") + 2):
        words = line.text.line_at(number)
        if not words.strip() or words.lstrip().startswith(("#", "{{")):
            continue
        child = _CHILD.match(words)
        return len(child["indent"]) if child and len(child["indent"]) > line.indent else line.indent + INDENT
    return line.indent + INDENT


def inserted(line: Line, indent: int, lines: list[str]) -> Edits:
    """Lines after another one, with its line ending."""
    whole = line.text.content[line.start : line.end]
    ending = "\r\n" if whole.endswith("\r\n") else "\n"
    first = "" if whole.endswith("\n") else ending
    new = "".join(f"{' ' * indent}{words}{ending}" for words in lines)
    return line.edited(line.end, line.end, first + (new.removesuffix(ending) if first else new))
