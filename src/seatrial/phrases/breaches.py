"""The findings of invariants and their sentences: objects by name, the chain of causes, the steps, how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.evidence.breaches import Breach, Breaches
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Invariant
from seatrial.model.resource import Path, Ref
from seatrial.model.timeline import Event
from seatrial.phrases.outcome import NAMES_MAX

CHAIN_MAX = 5
QUOTE_MAX = 400
WHY_MAX = 3
EVENTS_MAX = 6
DID = {"deleting": "requests the deletion of", "deleted": "deletes", "created": "creates", "changed": "changes"}


def breach_finding(
    invariant: Invariant,
    group: Breaches,
    message: str,
    *,
    steps: str = "do this",
    answer: str = "",
    ended: str = "",
    confirm: str,
) -> Finding:
    """One finding for breaches of one cause, under all schedules that show it."""
    first = group.first
    finding = found(
        invariant,
        first.moment,
        objects=group.objects,
        damage=first.damage,
        message=message,
        details=(
            steps_sentence(group.steps, steps),
            *dict.fromkeys(breach.why for breach in group.all[:WHY_MAX]),
            answer,
            chain_sentence(first),
            ended,
        ),
        places=group.places(),
        evidence=first.events[:EVENTS_MAX],
        confirm=confirm,
        cause=first.cause,
    )
    return replace(finding, schedules=group.schedules)


def names(refs: Iterable[Ref]) -> str:
    """The first three objects by name, and how many more there are."""
    found = list(dict.fromkeys(refs))
    if len(found) > NAMES_MAX:
        return f"{', '.join(map(str, found[:NAMES_MAX]))} and {len(found) - NAMES_MAX} more"
    *others, last = map(str, found)
    return f"{', '.join(others)} and {last}" if others else last


def chain_sentence(breach: Breach) -> str:
    """`helm deletes Namespace/tenant, so namespace-controller deletes Secret/tenant/db.`"""
    done = (event for event in reversed(breach.events) if event.effect != "said")
    chain = list(dict.fromkeys(map(_sentence, done)))
    if len(chain) > CHAIN_MAX:
        chain = [*chain[: CHAIN_MAX - 1], chain[-1]]
    return f"{', so '.join(chain)}." if chain[1:] else ""


def steps_sentence(steps: Iterable[int], do_this: str) -> str:
    """`Steps 2 and 3 do this.`; nothing for one step."""
    numbers = [str(step + 1) for step in steps]
    return f"Steps {', '.join(numbers[:-1])} and {numbers[-1]} {do_this}." if numbers[1:] else ""


def fields_sentence(ref: Ref, fields: Sequence[Path]) -> str:
    """`In ConfigMap/default/shop: data.colour and data.size.`"""
    shown = [".".join(map(str, path)) for path in fields]
    if len(shown) > NAMES_MAX:
        shown = [*shown[:NAMES_MAX], f"{len(shown) - NAMES_MAX} more"]
    *others, last = shown or [""]
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"In {ref}: {listed}." if listed else ""


def ended_sentence(moment: Moment) -> str:
    """The engine's words, or that it reported success."""
    if moment.ended.outcome == "ok":
        return f"{moment.speaker} reports success."
    return quote_of(moment)


def quote_of(moment: Moment) -> str:
    """The engine's error, cut between words if it is long."""
    quote = moment.says
    return quote if len(quote) <= QUOTE_MAX else f'{quote[:QUOTE_MAX].rpartition(" ")[0]} ..."'


def _sentence(event: Event) -> str:
    return f"{event.actor} {DID.get(event.effect, event.verb)} {event.object}"
