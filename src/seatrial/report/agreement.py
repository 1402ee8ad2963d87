"""An engine compared with the real one, a binary of the user: whether they agree, and each difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from seatrial.model.result import EngineAgreement, EngineDifference
from seatrial.report.page import Line, Page, Piece, line, printed, quoted
from seatrial.report.wording import counted, listed

SHOWN_MAX = 20


def render(found: EngineAgreement, page: Page) -> str:
    """After a timeline."""
    return printed(((), *agreement_section([found], page)), page)


def agreement_section(found: Sequence[EngineAgreement], page: Page) -> Iterator[Line]:
    """One paragraph per pair of engines; schedules and cases in which they differ alike are in one."""
    for (model, real), group in groupby(found, lambda one: (one.model, one.real)):
        yield line(Piece(f"{model} compared with {real}:", "strong"))
        alike: dict[tuple[EngineDifference, ...], list[EngineAgreement]] = {}
        for one in group:
            alike.setdefault(one.differences, []).append(one)
        for differences, of in alike.items():
            yield from _differences(differences, of, page)
        yield ()


def _differences(found: Sequence[EngineDifference], of: Sequence[EngineAgreement], page: Page) -> Iterator[Line]:
    where = _where(of)
    first = of[0]
    if not found:
        parts = ((first.steps, "step"), (first.events, "event"), (first.objects, "object"))
        same = listed([counted(count, what) for count, what in parts])
        yield line("  ", Piece("the same", "good"), f" ({where}): {same}")
        return
    yield line("  ", Piece(counted(len(found), "difference"), "bad"), f" ({where}):")
    shown = found if page.verbose else found[:SHOWN_MAX]
    for one in shown:
        yield line(f"    {'at the end' if one.step < 0 else f'step {one.step + 1}'}, {one.what}")
        for side, words in ((first.model, one.model), (first.real, one.real)):
            yield from (line(text) for text in quoted(f"{side}: {words or '-'}", page, first="      ", rest="        "))
    if len(shown) < len(found):
        yield line(Piece(f"    and {len(found) - len(shown)} more (-v shows all)", "faint"))


def _where(of: Sequence[EngineAgreement]) -> str:
    schedules = listed(list(dict.fromkeys(one.schedule for one in of)))
    cases = [case for case in dict.fromkeys(one.case for one in of) if case]
    return f"{schedules}; with {listed(cases)}" if cases else schedules
