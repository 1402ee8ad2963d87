"""Two inputs compared: how each completes the trial, and which findings and dependencies differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.model.result import Change, Comparison, Dependency, Judged
from seatrial.report.page import Line, Page, Piece, Role, line, sentences
from seatrial.report.standings import standings_table
from seatrial.report.wording import counted, listed

SHOWN_MAX = 20
NAMES_MAX = 3


def compared_section(found: Comparison | None, page: Page) -> Iterator[Line]:
    if found is None:
        return
    yield line(Piece(f"{found.new} compared with {found.old}:", "strong"))
    rows = ((found.old, found.before), (found.new, found.now))
    named = [replace(one, engine=f"{name} ({one.engine})") for name, standings in rows for one in standings]
    yield from standings_table("Same trial", named, page)
    fates: tuple[tuple[str, Role, list[Change]], ...] = (
        ("gone", "good", [one for one in found.changes if one.now is None]),
        ("new", "bad", [one for one in found.changes if one.before is None]),
        ("still there", "doubt", [one for one in found.changes if one.before and one.now]),
    )
    for word, role, changes in fates:
        for one in changes:
            first, *more = sentences(_change(one, page), page, first=f"  {word}: ", rest="    ")
            yield line("  ", Piece(f"{word}:", role), first[len(word) + 3 :])
            yield from (line(text) for text in more)
    if not found.changes:
        yield line("  no findings in either")
    yield from _edges("gained", found.gained, page)
    yield from _edges("lost", found.lost, page)
    yield ()


def _change(found: Change, page: Page) -> str:
    """`webhook-not-ready-race (ST501) may, failed-deploy: Gate/default/north`"""
    before, now = (_judged(one) for one in (found.before, found.now))
    judged = f"{before}, now {now}" if before and now and before != now else now or before
    more = 0 if page.verbose else len(found.objects) - NAMES_MAX
    names = ", ".join(found.objects[:NAMES_MAX] if more > 0 else found.objects)
    return f"{found.rule} ({found.code}) {judged}: {names}{f' and {more} more' if more > 0 else ''}"


def _judged(found: Judged | None) -> str:
    return f"{found.certainty}, {found.damage}" if found else ""


def _edges(word: str, found: Sequence[Dependency], page: Page) -> Iterator[Line]:
    if not found:
        return
    yield line(f"  {counted(len(found), 'dependency', 'dependencies')} {word}:")
    by_user = [(user, [edge.object for edge in edges]) for user, edges in groupby(found, lambda edge: edge.user)]
    shown = by_user if page.verbose else by_user[:SHOWN_MAX]
    for user, objects in shown:
        yield from (line(t) for t in sentences(f"{user} on {listed(objects)}", page, first="    ", rest="      "))
    if len(shown) < len(by_user):
        yield line(Piece(f"    and {len(by_user) - len(shown)} more (-v shows all)", "faint"))
