"""A generated value of a Secret is read back with `lookup` if the Secret exists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.lines import Line, key_line
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.model.release import Resource
from seatrial.model.resource import Path, Pointer
from seatrial.sources.charts.gotemplate import actions, open_blocks

FIELDS = ("data", "stringData")
_ONE_ACTION = re.compile(r"""[ ]*(?P<quote>["']?)\{\{-?[ ]*(?P<says>[^{}]+?)[ ]*-?\}\}(?P=quote)[ \t]*(#.*)?\r?""")
_SCALAR = re.compile(r"""[ ]*(?P<quote>["']?)(?P<name>[^#]+?)(?P=quote)[ \t]*(#.*)?\r?""")
_PART = re.compile(r"\{\{-?\s*(?P<says>.*?)\s*-?\}\}")
_QUOTES = re.compile(r"\s*\|\s*(?:s?quote)\s*$")


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    secret = problem.newest(ref)
    if secret is None or not problem.release_of(secret).chart:
        return
    if ref.namespace != problem.release_of(secret).namespace:
        return
    paths = [one.path for one in problem.finding.pointers if isinstance(one, Pointer) and one.origin == secret.origin]
    changes = [_read_back(secret, path) for path in paths if len(path) == len(FIELDS) and path[0] in FIELDS]
    if changes:
        yield Proposal(f"read the generated values of {ref} back with lookup", joined(*changes))


def _read_back(secret: Resource, path: Path) -> Edits | ByHand:
    line, name = key_line(secret, *path, near=True), key_line(secret, "metadata", "name")
    if isinstance(line, ByHand):
        return line
    if isinstance(name, ByHand):
        return name
    where = f"{line.text.path}:{line.number}"
    if line.text.path != name.text.path or _blocks(line) != _blocks(name):
        return ByHand(f"{where}: the name of the Secret is written in another block")
    value, named = _ONE_ACTION.fullmatch(line.rest), _SCALAR.fullmatch(name.rest)
    if value is None or named is None:
        return ByHand(f"{where} does not have one action as its value")
    says = value["says"]
    quoted = _QUOTES.search(says)
    made = says[: quoted.start()] if quoted else says
    stored = (
        f'get ((lookup "v1" "Secret" $.Release.Namespace {_expression(named["name"])}).data | default dict) "{path[1]}"'
    )
    decoded = " | b64dec" if path[0] == "stringData" else ""
    ends = f" {quoted[0].strip()}" if quoted else ""
    start = line.after_colon
    words = f"{stored}{decoded} | default ({made}){ends}"
    return line.edited(start + value.start("says"), start + value.end("says"), words)


def _expression(name: str) -> str:
    """The name of the Secret as an expression: text, an action, or both."""
    parts = [part["says"] for part in _PART.finditer(name)]
    if not parts:
        return f'"{name.strip()}"'
    pattern = _PART.sub("%s", name.strip()).replace('"', "")
    parts = [f"({part})" if " " in part else part for part in parts]
    return parts[0] if pattern == "%s" else f'(printf "{pattern}" {" ".join(parts)})'


def _blocks(line: Line) -> tuple[str, ...]:
    """The blocks around a line that change what a dot means."""
    content, opened = line.text.content, open_blocks(line.text.content, line.start)
    return tuple(one.says for one in actions(content) if one.start in opened and not one.says.startswith("if"))


FIXER = Fixer(("random-secret-rotates-on-upgrade",), propose)
