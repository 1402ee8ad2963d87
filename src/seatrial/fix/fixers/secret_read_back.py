"""A generated value of a Secret is read back with `lookup` if the Secret exists."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.expressions import SCALAR, contexts, expression_of
from seatrial.fix.lines import key_line
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Path, Pointer

FIELDS = ("data", "stringData")
_ONE_ACTION = lazy_re.compile(r"""[ ]*(?P<quote>["']?)\{\{-?[ ]*(?P<says>[^{}]+?)[ ]*-?\}\}(?P=quote)[ \t]*(#.*)?\r?""")
_QUOTES = lazy_re.compile(r"\s*\|\s*(?:s?quote)\s*$")


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
    if line.text.path != name.text.path or contexts(line) != contexts(name):
        return ByHand(f"{where}: the name of the Secret is written in another block")
    value, named = _ONE_ACTION.fullmatch(line.rest), SCALAR.fullmatch(name.rest)
    if value is None or named is None:
        return ByHand(f"{where} does not have one action as its value")
    says = value["says"]
    quoted = _QUOTES.search(says)
    made = says[: quoted.start()] if quoted else says
    own = expression_of(named["name"])
    stored = f'get ((lookup "v1" "Secret" $.Release.Namespace {own}).data | default dict) "{path[1]}"'
    decoded = " | b64dec" if path[0] == "stringData" else ""
    ends = f" {quoted[0].strip()}" if quoted else ""
    start = line.after_colon
    words = f"{stored}{decoded} | default ({made}){ends}"
    return line.edited(start + value.start("says"), start + value.end("says"), words)


FIXER = Fixer(("random-secret-rotates-on-upgrade",), propose)
