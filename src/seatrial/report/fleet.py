"""The report on a fleet: which trials fail, and totals by rule, input and engine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from seatrial.model.engine import engine_id
from seatrial.model.finding import Certainty, Damage, Finding, worst_first
from seatrial.model.fleet import Fleet, FleetEntry, FleetTrial
from seatrial.report.concise import lines as concise_lines
from seatrial.report.contract import JsonNotRehearsed
from seatrial.report.not_rehearsed import not_rehearsed
from seatrial.report.page import Line, Page, Piece, Role, line, printed, sentences
from seatrial.report.table import table
from seatrial.report.wording import counted, exit_line

K = TypeVar("K", bound=Hashable)

CONTRACT = "seatrial.fleet/v1"
ROWS_MAX = 30
FIT = "as fits"
"""The engine of a trial that names none."""


class RuleTotal(Struct, frozen=True):
    """One rule over all trials."""

    rule: str
    code: str
    trials: int
    inputs: int
    certainty: Certainty
    damage: Damage
    """Both of its worst finding."""


class Total(Struct, frozen=True):
    """The trials of one input or one engine."""

    name: str
    trials: int
    failing: int
    not_rehearsed: int
    """Those of which something was not rehearsed, or all of it."""


class FoundIn(Struct, frozen=True, omit_defaults=True):
    """A finding of one trial, as short as a machine needs it to compare runs."""

    rule: str
    code: str
    certainty: Certainty
    damage: Damage
    message: str
    fingerprint: str
    removal: bool = False
    known: bool = False
    place: str = ""


class TrialRow(Struct, frozen=True, omit_defaults=True):
    trial: FleetTrial
    exit: int
    reason: str
    findings: tuple[FoundIn, ...] = ()
    error: str = ""
    not_rehearsed: tuple[JsonNotRehearsed, ...] = ()


class FleetContract(Struct, frozen=True):
    """`seatrial fleet -o json`."""

    contract: str
    exit: int
    reason: str
    rules: tuple[RuleTotal, ...]
    inputs: tuple[Total, ...]
    engines: tuple[Total, ...]
    trials: tuple[TrialRow, ...]


def as_json(fleet: Fleet) -> str:
    ended = fleet.result.exit
    contract = FleetContract(
        contract=CONTRACT,
        exit=ended.code if ended else 0,
        reason=ended.reason if ended else "",
        rules=tuple(_by_rule(fleet.entries)),
        inputs=tuple(_totals(fleet.entries, _input)),
        engines=tuple(_totals(fleet.entries, _engine)),
        trials=tuple(map(_row, fleet.entries)),
    )
    return msgspec.json.format(msgspec.json.encode(contract), indent=2).decode() + "\n"


def render(fleet: Fleet, page: Page) -> str:
    return printed(_report(fleet, page), page)


def _report(fleet: Fleet, page: Page) -> Iterator[Line]:
    parts = fleet.result.not_rehearsed[fleet.result.broken :]  # The table below has those that could not be checked.
    yield from not_rehearsed(msgspec.structs.replace(fleet.result, not_rehearsed=parts), page)
    bad = [entry for entry in fleet.entries if entry.exit.code]
    shown = fleet.entries if page.verbose else bad[:ROWS_MAX]
    if shown:
        rows = [("trial", "exit", "why"), *((str(one.trial), str(one.exit.code), _why(one)) for one in shown)]
        yield from table(rows, page, _role, indent="  ")
        yield ()
    if more := len(bad) - len(shown):
        yield line(f"and {counted(more, 'more trial')} that {'fails' if more == 1 else 'fail'} (-v lists all)")
        yield ()
    if not page.quiet:
        yield from _total_tables(fleet.entries, page)
    unique = list({finding.fingerprint: finding for finding in fleet.result.findings if not finding.removal}.values())
    if unique:
        yield line(Piece("Findings, each once:", "strong"))
        yield from concise_lines(sorted(unique, key=worst_first))
        yield ()
    if not page.quiet:
        yield from map(line, sentences(_closing(fleet, len(unique)), page, first="", rest=""))
    if ended := exit_line(fleet.result, quiet=page.quiet):
        yield line(Piece(ended, "strong"))


def _total_tables(entries: Sequence[FleetEntry], page: Page) -> Iterator[Line]:
    if rules := list(_by_rule(entries)):
        rows = [("rule", "code", "trials", "inputs", "worst")]
        rows += [(r.rule, r.code, str(r.trials), str(r.inputs), f"{r.certainty}, {r.damage}") for r in rules]
        yield from table(rows, page, _role, indent="  ")
        yield ()
    for name, key in (("engine", _engine), ("input", _input)):
        totals = list(_totals(entries, key))
        shown = [one for one in totals if page.verbose or key is _engine or one.failing or one.not_rehearsed]
        if len(totals) > 1 and shown:
            cells = [(one.name, str(one.trials), str(one.failing), str(one.not_rehearsed)) for one in shown]
            yield from table([(name, "trials", "failing", "not rehearsed"), *cells], page, _role, indent="  ")
            yield ()


def _why(entry: FleetEntry) -> str:
    if entry.error or not entry.exit.failing:
        return entry.error or entry.exit.reason
    first, *others = sorted(entry.exit.failing, key=worst_first)
    more = f" and {len(others)} more" if others else ""
    return f"{first.certainty}, {first.damage}: {first.rule}{more}"


def _closing(fleet: Fleet, unique: int) -> str:
    trials = len(fleet.entries)
    failing = sum(entry.exit.code == 1 for entry in fleet.entries)
    broken = sum(bool(entry.error) for entry in fleet.entries)
    partial = sum(bool(entry.not_rehearsed) for entry in fleet.entries)
    parts = [
        counted(trials, "trial"),
        counted(len({entry.trial.input for entry in fleet.entries}), "input"),
        counted(unique, "different finding"),
        f"{failing} failing",
        *([f"{broken} not rehearsed"] if broken else []),
        *([f"{partial} rehearsed in part"] if partial else []),
    ]
    return f"{', '.join(parts)}."


def _by_rule(entries: Iterable[FleetEntry]) -> Iterator[RuleTotal]:
    """Worst first."""
    found: dict[tuple[str, str], list[tuple[FleetEntry, Finding]]] = {}
    for entry in entries:
        for finding in entry.findings:
            if not finding.removal:
                found.setdefault((finding.rule, finding.code), []).append((entry, finding))
    worst = {rule: min((finding for _, finding in group), key=worst_first) for rule, group in found.items()}
    for (rule, code), first in sorted(worst.items(), key=lambda item: worst_first(item[1])):
        group = found[rule, code]
        trials = {id(entry) for entry, _ in group}
        inputs = {entry.trial.input for entry, _ in group}
        yield RuleTotal(rule, code, len(trials), len(inputs), first.certainty, first.damage)


def _totals(entries: Iterable[FleetEntry], key: Callable[[FleetTrial], str]) -> Iterator[Total]:
    """By name; those that fail most come first."""
    groups: dict[str, list[FleetEntry]] = {}
    for entry in entries:
        groups.setdefault(key(entry.trial), []).append(entry)
    totals = [
        Total(
            name,
            len(group),
            sum(one.exit.code == 1 for one in group),
            sum(bool(one.error or one.not_rehearsed) for one in group),
        )
        for name, group in groups.items()
    ]
    yield from sorted(totals, key=lambda total: (-total.failing, -total.not_rehearsed, total.name))


def _input(trial: FleetTrial) -> str:
    return trial.input


def _engine(trial: FleetTrial) -> str:
    return str(engine_id(trial.engine)) if trial.engine else FIT


def _row(entry: FleetEntry) -> TrialRow:
    return TrialRow(
        trial=entry.trial,
        exit=entry.exit.code,
        reason=entry.exit.reason,
        findings=tuple(map(_found, entry.findings)),
        error=entry.error,
        not_rehearsed=tuple(JsonNotRehearsed(one.case, one.step, one.reason) for one in entry.not_rehearsed),
    )


def _found(finding: Finding) -> FoundIn:
    return FoundIn(
        rule=finding.rule,
        code=finding.code,
        certainty=finding.certainty,
        damage=finding.damage,
        message=finding.message,
        fingerprint=finding.fingerprint,
        removal=finding.removal,
        known=finding.known,
        place=str(finding.places[0]) if finding.places else "",
    )


def _role(cell: str) -> Role:
    return "bad" if cell in ("1", "2") else ""
