"""Steps that were killed on the way: how many moments are safe, and with -v what each of them leads to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from seatrial.model.interruption import Aftermath, Interrupted, Interruption
from seatrial.report.page import Line, Page, Piece, line, sentences
from seatrial.report.wording import counted, listed

HEADING = "Killed after each write, then repeated (-v lists the moments):"
FAILS = "One write failed, then repeated (-v lists the writes):"
ANSWERS = {
    "500": " with a 500 (not done)",
    "504": " with a timeout (done)",
    "429": " with a 429 (repeated by the client)",
    "cut": " with a watch that is cut",
}
WORDS: dict[Aftermath, str] = {
    "locked": "locked",
    "fails": "not repeatable",
    "hangs": "hanging",
    "loses": "with lost objects",
    "leaves": "with objects or fields left over",
}


def interrupted_section(found: Sequence[Interrupted], page: Page) -> Iterator[Line]:
    dead = [one for one in found if not one.answer]
    yield from _steps(HEADING, dead, page)
    yield from _steps(FAILS, [one for one in found if one.answer], page)


def _steps(heading: str, found: Sequence[Interrupted], page: Page) -> Iterator[Line]:
    if not found:
        return
    yield line(Piece(heading, "strong"))
    for one in found:
        yield from _wrapped(f"{_named(one)}: {_counts(one)}", page, "  ")
        for moment in one.moments if page.verbose else ():
            yield from _wrapped(_moment(moment), page, "    ")
    yield ()


def _named(one: Interrupted) -> str:
    """`helm@4.2.3, step 2, helm upgrade`."""
    return f"{one.engine}, step {one.step + 1}, {one.act}{ANSWERS.get(one.answer, '')}"


def _counts(one: Interrupted) -> str:
    if not one.possible:
        return "not killed, since it or a step before it does not end well by itself"
    counts = Counter(moment.aftermath for moment in one.moments)
    others = [f"{counts[aftermath]} {words}" for aftermath, words in WORDS.items() if counts[aftermath]]
    safe = f"{counts['safe']} of {counted(len(one.moments), 'write' if one.answer else 'moment')} safe"
    return ", ".join([safe, *others, *([f"{one.untried} not tried"] if one.untried else [])])


def _moment(moment: Interruption) -> str:
    state = WORDS.get(moment.aftermath, moment.aftermath)
    said = f"write {moment.write}, {moment.verb} {moment.object}: {state}"
    objects = [*(f"lacks {ref}" for ref in moment.lost), *(f"leaves {ref}" for ref in moment.left)]
    objects += [f"leaves {path} of {ref}" for ref, path in moment.fields]
    way = "; ".join(moment.way_out)
    return " - ".join(filter(None, (said, listed(objects) if objects else "", f"then: {way}" if way else "")))


def _wrapped(text: str, page: Page, indent: str) -> Iterator[Line]:
    return (line(words) for words in sentences(text, page, first=indent, rest=f"{indent}  "))
