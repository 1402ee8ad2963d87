"""Entries of lists in the user's own YAML: in the form that the list has, or as a new list."""

from __future__ import annotations

import re

from seatrial.fix.lines import Line, inserted, key_line, with_children
from seatrial.fix.proposal import ByHand, Edits
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Path, listed

_ITEM = lazy_re.compile(r"(?P<indent>[ ]*)-[ ]")
_CLOSES = {"[": "]", "{": "}"}
_WORD = lazy_re.compile(r"[\w./-]+")


def with_item(resource: Resource, path: Path, entry: dict[str, str]) -> Edits | ByHand:
    """Append a mapping to the list at `path`, which may be missing."""
    if not listed(resource.body, *path):
        return _new_list(resource, path, entry)
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    if line.rest.strip().startswith("["):
        return _in_flow(line, _flow(entry))
    return _in_block(line, entry)


def replaced_item(resource: Resource, path: Path, name: str, entry: dict[str, str]) -> Edits | ByHand:
    """Another mapping in place of the one that has this name, in a list on one line."""
    line = key_line(resource, *path)
    if isinstance(line, ByHand):
        return line
    found = re.search(rf"""\{{[^{{}}]*\bname:[ ]*["']?{re.escape(name)}["']?[ ]*[,}}][^{{}}]*\}}?""", line.rest)
    if found is None or not found[0].endswith("}"):
        return ByHand(f"{line.text.path}:{line.number} does not have {name} on the same line")
    return line.edited(line.after_colon + found.start(), line.after_colon + found.end(), _flow(entry))


def _new_list(resource: Resource, path: Path, entry: dict[str, str]) -> Edits | ByHand:
    head = key_line(resource, *path[:-1])
    if isinstance(head, ByHand):
        return head
    if head.rest.strip().startswith("{"):
        return _in_flow(head, f"{path[-1]}: [{_flow(entry)}]")
    first, *rest = (f"{key}: {_scalar(value)}" for key, value in entry.items())
    lines = [f"{path[-1]}:", f"  - {first}", *(f"    {words}" for words in rest)]
    return with_children(resource, path[:-1], lines)


def _in_flow(line: Line, words: str) -> Edits | ByHand:
    """Before the bracket that closes the first one of a line."""
    at = _closing(line.rest)
    if at is None or "{{" in line.rest:
        return ByHand(f"{line.text.path}:{line.number} does not end on the same line")
    before = line.rest[:at].rstrip()
    between = "" if before[-1] in _CLOSES else ", "
    start = line.after_colon + len(before)
    return line.edited(start, start, f"{between}{words}")


def _closing(words: str) -> int | None:
    expected: list[str] = []
    quoted = ""
    for at, char in enumerate(words):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in _CLOSES:
            expected.append(_CLOSES[char])
        elif expected and char == expected[-1]:
            expected.pop()
            if not expected:
                return at
    return None


def _in_block(line: Line, entry: dict[str, str]) -> Edits | ByHand:
    first = _ITEM.match(line.text.line_at(line.number + 1))
    if line.rest.split("#")[0].strip() or first is None:
        return ByHand(f"{line.text.path}:{line.number} does not begin a list")
    indent, last = len(first["indent"]), line.number + 1
    while (words := line.text.line_at(last + 1)).strip():
        own = len(words) - len(words.lstrip())
        if own < indent or (own == indent and not _ITEM.match(words)):
            break
        last += 1
    begins, *rest = (f"{key}: {_scalar(value)}" for key, value in entry.items())
    at = Line(line.text, last, indent, "", line.path, line.template)
    return inserted(at, indent, [f"- {begins}", *(f"  {words}" for words in rest)])


def _flow(entry: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in entry.items()) + "}"


def _scalar(value: str) -> str:
    return value if _WORD.fullmatch(value) and not value.isdigit() else f'"{value}"'
