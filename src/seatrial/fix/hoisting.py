"""A key that a template writes only under a condition is moved before the condition, with new lines below it.

{{- with .Values.annotations }}          annotations:
annotations:                               new: value
  {{- toYaml . | nindent 6 }}     ->       {{- with .Values.annotations }}
{{- end }}                                 {{- toYaml . | nindent 6 }}
                                         {{- end }}
"""

from __future__ import annotations

from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.text.source import Edit, Span, Text

INDENT = 2
_OPENS = lazy_re.compile(r"[ ]*\{\{-?[ ]*(if|with)\b[^{}]*\}\}[ ]*\r?")
_ACTION = lazy_re.compile(r"\{\{-?\s*(?P<word>\w+)")
_INDENTED = lazy_re.compile(r"\bn?indent[ ]+(\d+)")
_BLOCKS = ("if", "with", "range", "define", "block")


def hoisted(text: Text, number: int, lines: list[str]) -> Edits | ByHand:
    """The key in line `number`, alone in its condition, with `lines` below it; they are indented from 0."""
    key = text.line_at(number)
    why = ByHand(f"{text.path}:{number}: the annotations are written under a condition")
    indent = len(key) - len(key.lstrip())
    below = _below(text, number + 1, indent)
    if not key.rstrip().endswith(":") or not _OPENS.fullmatch(text.line_at(number - 1)) or below is None:
        return why
    ending = "\r\n" if text.within(Span(text.start_of(number), text.start_of(number + 1))).endswith("\r\n") else "\n"
    child = next((int(found[1]) for line in below if (found := _INDENTED.search(line))), indent + INDENT)
    plain = next((len(line) - len(line.lstrip()) for line in below if not line.lstrip().startswith("{{")), child)
    new = [f"{' ' * indent}{key.strip()}", *(f"{' ' * plain}{line}" for line in lines)]
    before, own = text.start_of(number - 1), text.start_of(number)
    return (
        TextEdit(text, Edit(Span(before, before), "".join(f"{line}{ending}" for line in new))),
        TextEdit(text, Edit(Span(own, text.start_of(number + 1)), "")),
    )


def _below(text: Text, number: int, indent: int) -> list[str] | None:
    """The lines up to the end of the condition; None if it contains more than what is below the key."""
    found: list[str] = []
    depth = 1
    for at in range(number, text.content.count("\n") + 2):
        line = text.line_at(at)
        words = [action["word"] for action in _ACTION.finditer(line)]
        depth += sum(word in _BLOCKS for word in words) - words.count("end")
        if depth <= 0:
            return found if words == ["end"] and found else None
        plain = line.strip() and not line.lstrip().startswith("{{")
        if "else" in words or (plain and len(line) - len(line.lstrip()) <= indent):
            return None
        if line.strip():
            found.append(line)
    return None
