"""Sentences about steps that die: the moment, what is reported then, the way out, and which moments are safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seatrial.model.finding import Certainty, Damage, Finding
from seatrial.model.interruption import Interrupted, Interruption, InterruptionRule
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref

ERROR_LENGTH_MAX = 300


HAPPENS = {
    "": "dies",
    "500": "gets a 500 for a write",
    "504": "gets a timeout for a write",
    "429": "gets a 429 for a write",
    "cut": "loses a watch",
}
"""What becomes of a step, by the fault."""


def interruption_finding(
    rule: InterruptionRule,
    one: Interrupted,
    moments: Sequence[Interruption],
    case: Case,
    *,
    damage: Damage,
    message: str,
    details: Iterable[str],
    objects: Iterable[Ref],
) -> Finding:
    """A finding about some moments of a step. It is likely if there is no way out of one; whether it dies is chance."""
    certain = damage != "nuisance" and not one.answer and not all(moment.way_out for moment in moments)
    certainty: Certainty = "likely" if certain else "may"
    refs = tuple(dict.fromkeys(objects))
    return Finding(
        rule=rule.name,
        code=rule.code,
        certainty=certainty,
        damage=damage,
        engines=(one.engine,),
        action=one.action,
        objects=refs,
        message=message,
        details=tuple(filter(None, (*details, safe_moments(one)))),
        pointers=tuple(_pointers(refs, case)),
        step=one.step,
        cause=f"{one.action} {one.step} {one.answer}".rstrip(),
        removes=one.role == "remove",
    )


def happens(one: Interrupted) -> str:
    """`dies`, or which answer it gets."""
    return HAPPENS[one.answer]


def place_in(one: Interrupted, moment: Interruption) -> str:
    """`after write 3 of 9 (create Job/default/migrate)`."""
    return f"after write {moment.write} of {one.writes} ({moment.verb} {moment.object})"


def reports(moment: Interruption) -> str:
    """What the engine reports when the step is repeated."""
    return f'{moment.act} again reports: "{_short(moment.error)}"' if moment.error else ""


def recovers(commands: Sequence[str]) -> str:
    return f"To recover (rehearsed): {'; '.join(commands)}" if commands else "No way out that was rehearsed helps."


def safe_moments(one: Interrupted) -> str:
    """How many moments are safe, and how many were tried."""
    safe, tried = len(one.having("safe")), len(one.moments)
    left = f"; {one.untried} more were not tried" if one.untried else ""
    verb = "is" if safe == 1 else "are"
    what = f"moments at which {one.act} can die" if not one.answer else f"writes of {one.act} that can fail"
    return f"{safe} of {tried} {what} {verb} safe{left}."


def _pointers(refs: Iterable[Ref], case: Case) -> Iterator[Pointer]:
    for ref in refs:
        if (found := next((r for r in case.all_resources() if r.ref == ref), None)) is not None:
            yield found.place("metadata", "name")


def _short(error: str) -> str:
    text = " ".join(error.split())
    return text if len(text) <= ERROR_LENGTH_MAX else f"{text[:ERROR_LENGTH_MAX]}..."
