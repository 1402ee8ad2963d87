"""What the release needs and does not contain: one line for each operator that brings it, and one for each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.result import Prerequisite
from seatrial.report.page import Line, Page, Piece, line, sentences
from seatrial.report.wording import listed

NAMES_MAX = 3
LINES_MAX = 8
CRD = "CustomResourceDefinition"


def prerequisites_section(found: Sequence[Prerequisite], page: Page) -> Iterator[Line]:
    if not found:
        return
    if page.verbose:
        yield line(Piece("Prerequisites (not in the release, assumed to exist):", "strong"))
        texts = [_with_reason(one) for one in found]
    else:
        yield line(Piece("Prerequisites (not in the release, assumed to exist; -v shows why):", "strong"))
        texts = [*_by_operator(found), *_by_kind(found)]
    shown = texts if page.verbose else texts[:LINES_MAX]
    for text in shown:
        yield from (line(words) for words in sentences(text, page, first="  ", rest="    "))
    if len(shown) < len(texts):
        yield line(Piece(f"  and {len(texts) - len(shown)} more (-v shows all)", "faint"))


def _with_reason(one: Prerequisite) -> str:
    subject = f"{one.operator} must be installed" if one.operator else one.object
    return f"{subject}: {one.why}"


def _by_operator(found: Sequence[Prerequisite]) -> Iterator[str]:
    """`external-secrets: its controller, CRDs externalsecrets.external-secrets.io and 2 more`"""
    for operator in dict.fromkeys(one.brought_by for one in found if one.brought_by):
        own = [one for one in found if one.brought_by == operator]
        workloads = [one.operator.partition("(")[2].rstrip(")") for one in own if one.operator]
        crds = [one.object.partition("/")[2] for one in own if one.object.startswith(f"{CRD}/")]
        parts = [_named("controller", [name or operator for name in workloads]), _named("CRD", crds)]
        yield f"{operator}: {', '.join(filter(None, parts))}"


def _by_kind(found: Sequence[Prerequisite]) -> Iterator[str]:
    kinds: dict[str, list[str]] = {}
    for one in found:
        if not one.brought_by:
            kind, _, name = one.object.partition("/")
            kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        yield _named("CRD" if kind == CRD else kind, names) if any(names) else kind


def _named(what: str, found: Sequence[str]) -> str:
    """`Secret default/a and default/b`, each once: several cases may need it for other reasons."""
    names = list(dict.fromkeys(found))
    if not names:
        return ""
    more = [f"{len(names) - NAMES_MAX} more"] if len(names) > NAMES_MAX else []
    return f"{what} {listed([*names[:NAMES_MAX], *more])}"
