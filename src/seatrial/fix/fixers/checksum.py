"""Pods restart when their configuration changes: their template gets a checksum of it."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import Line, key_line, with_children
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.model.release import Resource
from seatrial.model.resource import Path, dig
from seatrial.sources.charts.gotemplate import open_blocks

TEMPLATES = "/templates/"
METADATA: Path = ("spec", "template", "metadata")


def propose(problem: Problem) -> Iterator[Proposal]:
    configuration = problem.newest(problem.finding.objects[0])
    found = [problem.newest(ref) for ref in problem.finding.objects[1:]]
    readers = [reader for reader in found if reader is not None]
    if configuration is None or not readers or TEMPLATES not in configuration.file:
        return
    chart, _, name = configuration.file.rpartition(TEMPLATES)
    if any(not reader.file.startswith(f"{chart}{TEMPLATES}") for reader in readers):
        return  # A template of another chart cannot be included by its path.
    more = f" and {len(readers) - 1} more" if len(readers) > 1 else ""
    key = f"checksum/{configuration.ref.name if _has(readers, 'checksum/config') else 'config'}"
    yield Proposal(
        f"add a checksum of {configuration.ref} to the pods of {readers[0].ref}{more}",
        joined(*(_checked(reader, key, name) for reader in readers)),
    )


def _has(readers: list[Resource], key: str) -> bool:
    return any(dig(reader.body, *METADATA, "annotations", key) is not None for reader in readers)


def _checked(reader: Resource, key: str, name: str) -> Edits | ByHand:
    head = key_line(reader, *METADATA)
    if isinstance(head, ByHand):
        return head
    entry = f'{key}: {{{{ include (print $.Template.BasePath "/{name}") {_root(head)} | sha256sum }}}}'
    if dig(reader.body, *METADATA, "annotations") is None:
        return with_children(reader, METADATA, ["annotations:", f"  {entry}"])
    return with_children(reader, (*METADATA, "annotations"), [entry])


def _root(line: Line) -> str:
    return "$" if open_blocks(line.text.content, line.start) else "."


FIXER = Fixer(("config-change-without-restart",), propose)
