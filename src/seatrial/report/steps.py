"""The steps of all rehearsals as compact tables, and the outcome of one step. Equal tables are shown once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from seatrial.model.result import Played
from seatrial.model.timeline import Outcome, Rehearsal, StepResult
from seatrial.report.page import Line, Page, Piece, Role, line, lines_of, quoted
from seatrial.report.wording import counted, listed

TABLES_MAX = 8
"""With more tables than this, each one without problems takes one line."""

OUTCOMES: dict[Outcome, Role] = {"ok": "good", "failed": "bad", "hung": "bad"}


class Row(Struct, frozen=True):
    """One step in the table; rehearsals with equal rows share one table."""

    number: int
    action: str
    source: str
    outcome: Outcome
    error: str
    done: str
    amiss: str
    schedule: str = ""
    """If the step ends differently by schedule: the schedules of this row."""


class StepsTable(Struct, frozen=True):
    engine: str
    schedules: tuple[str, ...]
    rows: tuple[Row, ...]
    cases: tuple[str, ...] = ()


def steps_table(played: Sequence[Played], page: Page) -> Iterator[Line]:
    """A table for each engine and case."""
    tables = _tables(played)
    rows = [row for table in tables for row in table.rows]
    action = max((len(row.action) for row in rows), default=0)
    source = max((len(row.source) for row in rows), default=0)
    many = len(tables) > TABLES_MAX and not page.verbose
    for table in tables:
        well = all(row.outcome == "ok" and not row.amiss for row in table.rows)
        if many and well:
            yield line(*_heading(table), f": all {counted(len(table.rows), 'step')} ok")
            continue
        yield line(*_heading(table))
        outcome = max((len(_outcome(row)) for row in table.rows), default=0)
        for row in table.rows:
            names = f"{row.action:<{action}}  {row.source:<{source}}" if source else f"{row.action:<{action}}"
            yield from _row(row, f"  {row.number}  {names}  ", outcome, page)


def ended(step: StepResult) -> Line:
    """How a step ended and what it did to the objects of the release."""
    done, amiss = _done(step), _amiss(step)
    pieces = [Piece(step.outcome, OUTCOMES[step.outcome])]
    if done:
        pieces.append(Piece(f"  {done}"))
    if amiss:
        pieces.append(Piece(f"{', ' if done else '  '}{amiss}", "bad"))
    return tuple(pieces)


def _tables(played: Sequence[Played]) -> list[StepsTable]:
    """One table for each engine and case, those with the same rows in one."""
    found: dict[StepsTable, list[str]] = {}
    for (case, engine, _), group in groupby(played, _trial_of):
        rehearsals = [one.rehearsal for one in group]
        schedules = tuple(rehearsal.schedule for rehearsal in rehearsals)
        table = StepsTable(engine, schedules, tuple(_rows(rehearsals)))
        found.setdefault(table, []).append(case)
    return [StepsTable(t.engine, t.schedules, t.rows, tuple(cases)) for t, cases in found.items()]


def _trial_of(played: Played) -> tuple[str, str, tuple[tuple[str, str, str], ...]]:
    """The key of a trial: several inputs are several trials."""
    steps = tuple((step.action, step.source, step.release) for step in played.rehearsal.steps)
    return played.case, str(played.rehearsal.engine), steps


def _rows(rehearsals: Sequence[Rehearsal]) -> Iterator[Row]:
    for index in range(max((len(rehearsal.steps) for rehearsal in rehearsals), default=0)):
        alike: dict[Row, list[str]] = {}
        for rehearsal in rehearsals:
            if index < len(rehearsal.steps):
                alike.setdefault(_as_row(index, rehearsal.steps[index]), []).append(rehearsal.schedule)
        for row, schedules in alike.items():
            about = listed(schedules) if len(alike) > 1 else ""
            yield Row(row.number, row.action, row.source, row.outcome, row.error, row.done, row.amiss, about)


def _as_row(index: int, step: StepResult) -> Row:
    return Row(index + 1, step.action, step.source, step.outcome, step.error, _done(step), _amiss(step))


def _done(step: StepResult) -> str:
    counts = ((step.created, "created"), (step.deleted, "deleted"), (step.recreated, "recreated"))
    done = [f"{len(refs)} {word}" for refs, word in counts if refs]
    return ", ".join([*done, f"{step.again} on retry"] if step.again else done)


def _amiss(step: StepResult) -> str:
    parts = [f"{len(step.missing)} missing"] if step.missing else []
    parts += [f"{len(step.orphans)} left behind"] if step.orphans else []
    return ", ".join(parts)


def _heading(table: StepsTable) -> Iterator[Piece]:
    yield Piece(table.engine, "strong")
    if table.cases != ("",):
        yield Piece(f", {listed([case or 'default' for case in table.cases])}")
    yield Piece(f", {listed(table.schedules)} schedule{'s' if len(table.schedules) > 1 else ''}", "faint")


def _outcome(row: Row) -> str:
    return f"{row.outcome} ({row.schedule})" if row.schedule else row.outcome


def _row(row: Row, start: str, outcome: int, page: Page) -> Iterator[Line]:
    pieces = [Piece(start), Piece(_outcome(row).ljust(outcome), OUTCOMES[row.outcome])]
    if row.done:
        pieces.append(Piece(f"  {row.done}"))
    if row.amiss:
        pieces += [Piece(", " if row.done else "  "), Piece(row.amiss, "bad")]
    yield tuple(pieces)
    if row.error:
        error = row.error if page.verbose else _first_words(row.error)
        yield from (line(text) for text in quoted(error, page, first="     ", rest="     "))


def _first_words(error: str) -> str:
    """The first line, and the next one too if the first ends with a colon."""
    first, *rest = lines_of(error)
    second = next(filter(None, map(str.strip, rest)), "") if first.rstrip().endswith(":") else ""
    return f"{first.rstrip()} {second}".rstrip()
