"""What cannot be installed, and is no fault of the newest chart: placeholders, and an old chart with new values.

Placeholders are default values that leave empty what the API server requires, where values in ci/ fill it in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.model.result import DEFAULT_VALUES
from seatrial.model.timeline import Event

CI = "ci/"
"""The folder of the values that chart-testing (`ct`) installs a chart with."""
VALUES = "-values.yaml"
EMPTY = ("", "null")
REQUIRED = "FieldValueRequired"


class Uninstallable(Struct, frozen=True):
    notes: tuple[str, ...] = ()
    """Why the default values are placeholders; empty if they are not, with any engine."""
    old: tuple[tuple[str, str], ...] = ()
    """Cases of ci/ with which the old chart cannot be installed, and why."""

    def __bool__(self) -> bool:
        return bool(self.notes or self.old)


def uninstallable(seen: Sequence[ComparedRehearsal]) -> Uninstallable:
    """What the trials of one chart cannot install; `seen` are their rehearsals under the ordinary schedule."""
    default = [one for one in seen if not one.case.name]
    same = [[other for other in seen if other.rehearsal.engine == one.rehearsal.engine] for one in default]
    why = [words for one, others in zip(default, same, strict=True) if (words := placeholders(one, others))]
    notes = tuple(f"{DEFAULT_VALUES}: not rehearsed: {words}" for words in dict.fromkeys(why))
    return Uninstallable(notes if len(why) == len(default) else (), tuple(dict(_refused_old(seen)).items()))


def _refused_old(seen: Sequence[ComparedRehearsal]) -> Iterator[tuple[str, str]]:
    """Nobody has installed the old chart with these values, so there is no such upgrade."""
    for one in seen:
        first, name = one.rehearsal.steps[0], one.case.name
        upgrades = len({release.source for release in one.case.releases if release}) > 1
        if upgrades and first.outcome != "ok" and name.startswith(CI) and name.endswith(VALUES):
            yield name, f"{first.source} cannot be installed with these values: {' '.join(first.error.split())}"


def placeholders(default: ComparedRehearsal, others: Sequence[ComparedRehearsal]) -> str:
    """Why the first step cannot deploy the default values as they are; empty if it can, or if that is a fault.

    It is one where a refused value is not empty, where values in ci/ are refused as well, or where they deploy no
    object of the same template, which then is tested nowhere.
    """
    refused = list(_refused(default))
    in_ci = [one for one in others if one.case.name.startswith(CI)]
    if not refused or not in_ci or not all(map(_is_empty, refused)) or any(map(_fails, in_ci)):
        return ""
    deployed = {template for one in in_ci for template in _deployed(one)}
    if not {_template(default, event) for event in refused} <= deployed:
        return ""
    source = default.rehearsal.steps[0].source
    return f"{source}: placeholders, which {in_ci[0].case.name} fills in: {refused[0].message}"


def _refused(one: ComparedRehearsal) -> Iterator[Event]:
    """The writes that the API server refuses in the first step, if that fails."""
    if one.rehearsal.steps[0].outcome == "failed":
        events = (event for event in one.rehearsal.of_step(0) if event.effect == "refused")
        yield from (event for event in events if event.actor in one.rehearsal.actors and event.verb != "delete")


def _fails(one: ComparedRehearsal) -> bool:
    return one.rehearsal.steps[0].outcome != "ok"


def _is_empty(refused: Event) -> bool:
    """Whether nothing but empty values is wrong with an object."""
    causes = refused.refusal.causes if refused.refusal and refused.refusal.reason == "Invalid" else ()
    return bool(causes) and all(cause.reason == REQUIRED or cause.value in EMPTY for cause in causes)


def _deployed(one: ComparedRehearsal) -> Iterator[tuple[str, str]]:
    return (_template(one, event) for event in one.rehearsal.of_step(0) if event.effect == "created")


def _template(one: ComparedRehearsal, event: Event) -> tuple[str, str]:
    """The file and the kind of an object; values may give it another name."""
    written = one.case.written(0, event.object)
    return written.file if written else "", event.object.kind
