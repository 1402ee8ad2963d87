"""A limit whose value is empty gets one, in the values of the chart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.lines import key_line
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.model.release import Resource
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

TTL = ("spec", "ttlSecondsAfterFinished")
SECONDS = 3600
TEMPLATES = "/templates/"
_VALUE = re.compile(r"[ ]*\{\{-?\s*\.Values\.(?P<path>[\w.]+)\s*-?\}\}[ \t]*(#.*)?\r?")
_EMPTY = re.compile(r"""(?P<before>[ ]*)(?:""|''|null|~)?(?P<rest>[ \t]*(#.*)?\r?)""")


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    job = problem.newest(ref)
    if job is None or TEMPLATES not in job.file or TTL[-1] not in _fields(problem):
        return
    line = key_line(job, *TTL)
    asked = None if isinstance(line, ByHand) else _VALUE.fullmatch(line.rest)
    if asked is not None:
        for value in (str(SECONDS), f'"{SECONDS}"'):  # A schema may accept only one of them.
            yield Proposal(
                f"set {asked['path']} to {value} in values.yaml",
                _with_value(job, tuple(asked["path"].split(".")), value),
                why_unsafe="finished Jobs are then deleted after an hour",
            )


def _fields(problem: Problem) -> set[str]:
    return {str(one.path[-1]) for one in problem.finding.pointers if hasattr(one, "path") and one.path}


def _with_value(job: Resource, keys: tuple[str, ...], value: str) -> Edits | ByHand:
    file = f"{job.file.rpartition(TEMPLATES)[0]}/values.yaml"
    text = text_of(file)
    number = _line_of(text, keys) if text else 0
    if text is None or not number:
        return ByHand(f"{file} has no line for {'.'.join(keys)}")
    words = text.line_at(number)
    colon = words.index(":") + 1
    empty = _EMPTY.fullmatch(words[colon:])
    if empty is None:
        return ByHand(f"{file}:{number} has a value for {'.'.join(keys)}")
    start = text.start_of(number) + colon
    end = start + len(words[colon:]) - len(empty["rest"])
    return (TextEdit(text, Edit(Span(start, end), f" {value}")),)


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


FIXER = Fixer(("null-means-no-limit",), propose)
