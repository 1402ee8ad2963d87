"""The steps of all rehearsals: a table where something is not ok, otherwise one line. Equal tables are shown once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.finding import Finding
from seatrial.model.result import NotRehearsed, Played
from seatrial.model.timeline import Outcome, StepResult
from seatrial.phrases.step_numbers import explained_objects, sentence, unexplained
from seatrial.report.page import Line, Page, Piece, Role, line, lines_of, quoted
from seatrial.report.wording import listed

TABLES_MAX = 3
"""Tables of steps that are not ok; further cases are named."""
CASES_MAX = 3
"""Cases named in one line; the rest is counted."""
ERROR_MAX = 400
"""Characters of an error in the table."""
NEXT_CAUSE = "; waits for "

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
    why: tuple[str, ...] = ()
    """Sentences for numbers that no finding explains."""
    schedule: str = ""
    """If the step ends differently by schedule: the schedules of this row."""
    is_next: bool = False
    """Whether it deploys the next version, which is simulated."""

    @property
    def words(self) -> str:
        return f"{self.action} to the next version" if self.is_next else self.action


class StepsTable(Struct, frozen=True):
    engine: str
    schedules: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    """Steps that were not rehearsed; an empty one for something else."""
    cases: tuple[str, ...] = ()


def steps_table(
    played: Sequence[Played], findings: Sequence[Finding], page: Page, left_out: Sequence[NotRehearsed] = ()
) -> Iterator[Line]:
    """A table for each engine and case in which a step is not ok; verbose: for each engine and case."""
    tables = _tables(played, findings, left_out)
    amiss = [table for table in tables if page.verbose or not _is_well(table)]
    shown = amiss if page.verbose else _unlike(amiss)[:TABLES_MAX]
    rows = [row for table in shown for row in table.rows]
    action = max((len(row.action) for row in rows), default=0)
    source = max((len(row.source) for row in rows), default=0)
    said: set[str] = set()
    for table in shown:
        yield line(*_heading(table))
        outcome = max((len(_outcome(row)) for row in table.rows), default=0)
        for row in table.rows:
            names = f"{row.action:<{action}}  {row.source:<{source}}" if source else f"{row.action:<{action}}"
            yield from _row(row, f"  {row.number}  {names}  ", outcome, page)
            new = [why for why in row.why if page.verbose or why not in said]
            said.update(new)
            yield from (line(text) for why in new for text in quoted(why, page, first="     ", rest="       "))
        yield from (line(Piece(f"     {step}: not rehearsed", "doubt")) for step in table.left_out if step)
    yield from _named(table for table in amiss if table not in shown)
    yield from _well(table for table in tables if table not in amiss)


def _unlike(tables: Iterable[StepsTable]) -> list[StepsTable]:
    """Those in which a step ends as in no table before."""
    found: list[StepsTable] = []
    seen: set[tuple[str, Row]] = set()
    for table in tables:
        endings = {(table.engine, _ending(row)) for row in table.rows if not _row_is_well(row)}
        if not endings <= seen:
            found.append(table)
        seen |= endings
    return found


def _ending(row: Row) -> Row:
    """A row without what the step did to objects that are as they should be."""
    return replace(row, error=_first_words(row.error), done="")


def _named(tables: Iterable[StepsTable]) -> Iterator[Line]:
    """One line for each engine and first step that is not ok: `helm@4.2.3, ci/a.yaml and ci/b.yaml: install failed`."""
    cases: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        first = next(row for row in table.rows if not _row_is_well(row))
        why = f"{first.words} {_outcome(first)}" if first.outcome != "ok" else f"{first.words}: {first.amiss}"
        cases.setdefault((table.engine, why), []).extend(table.cases)
    for (engine, why), named in cases.items():
        yield line(Piece(engine, "strong"), f", {_cases(named)}: ", Piece(why, "bad"))


def _well(tables: Iterable[StepsTable]) -> Iterator[Line]:
    """One line for each engine: `helm@4.2.3, default and --wait: install and upgrade ok`.

    Another one for cases with other steps, and for cases of which something was not rehearsed: `ci/ha-values.yaml:
    install and upgrade to the same version ok; upgrade from git:v3 not rehearsed`. A flag such as --wait is rehearsed
    with the first steps of the default case, and belongs to it.
    """
    cases: dict[tuple[str, tuple[str, ...], frozenset[str]], list[StepsTable]] = {}
    for table in tables:
        actions = frozenset(row.action for row in table.rows)
        if all(case.partition(" (")[2].startswith("--") or case.startswith("--") for case in table.cases):
            alike = (known for *about, known in cases if about == [table.engine, table.left_out] and actions <= known)
            actions = next(alike, actions)
        cases.setdefault((table.engine, table.left_out, actions), []).append(table)
    for (engine, left_out, _), group in cases.items():
        named = [case for table in group for case in table.cases]
        about = f", {_cases(named)}" if named != [""] else ""
        longest = max(group, key=lambda table: len(table.rows))
        steps = listed(list(filter(None, left_out)))
        own = " to the same version" if steps else ""
        done = listed(list(dict.fromkeys(_action(row, longest.rows, own) for row in longest.rows)))
        pieces = [Piece(engine, "strong"), Piece(f"{about}: {done} "), Piece("ok", "good")]
        pieces += [Piece(" in what was rehearsed")] if "" in left_out else []
        yield (*pieces, *([Piece(f"; {steps} not rehearsed", "doubt")] if steps else []))


def _action(row: Row, rows: Sequence[Row], own: str) -> str:
    """The action of a step; one that deploys what an earlier step deployed has `own` after it."""
    again = any(other.source == row.source != "" for other in rows[: row.number - 1])
    return f"{row.words}{own if again else ''}"


def _is_well(table: StepsTable) -> bool:
    return all(map(_row_is_well, table.rows))


def _row_is_well(row: Row) -> bool:
    return row.outcome == "ok" and not row.amiss


def _cases(cases: Sequence[str]) -> str:
    named = [case or "default" for case in dict.fromkeys(cases)]
    more = [f"{len(named) - CASES_MAX} more cases"] if len(named) > CASES_MAX + 1 else []
    return listed([*named[: CASES_MAX if more else None], *more])


def ended(step: StepResult) -> Line:
    """How a step ended and what it did to the objects of the release."""
    done, amiss = _done(step), _amiss(step)
    pieces = [Piece(step.outcome, OUTCOMES[step.outcome])]
    if done:
        pieces.append(Piece(f"  {done}"))
    if amiss:
        pieces.append(Piece(f"{', ' if done else '  '}{amiss}", "bad"))
    return tuple(pieces)


def _tables(
    played: Sequence[Played], findings: Sequence[Finding], left_out: Sequence[NotRehearsed]
) -> list[StepsTable]:
    """One table for each engine and case, those with the same rows in one."""
    found: dict[StepsTable, list[str]] = {}
    for (case, engine, _), group in groupby(played, _trial_of):
        trial = list(group)
        schedules = tuple(one.rehearsal.schedule for one in trial)
        lacks = tuple(dict.fromkeys(part.step for part in left_out if part.is_about(case)))
        table = StepsTable(engine, schedules, tuple(_rows(trial, findings)), lacks)
        found.setdefault(table, []).append(case)
    return [replace(table, cases=tuple(cases)) for table, cases in found.items()]


def _trial_of(played: Played) -> tuple[str, str, tuple[tuple[str, str, str], ...]]:
    """The key of a trial: several inputs are several trials."""
    steps = tuple((step.action, step.deploys, step.release) for step in played.rehearsal.steps)
    return played.case, str(played.rehearsal.engine), steps


def _rows(trial: Sequence[Played], findings: Sequence[Finding]) -> Iterator[Row]:
    explained = explained_objects(trial, findings)
    for index in range(max((len(one.rehearsal.steps) for one in trial), default=0)):
        alike: dict[Row, list[Played]] = {}
        for played in trial:
            if index < len(played.rehearsal.steps):
                alike.setdefault(_as_row(index, played.rehearsal.steps[index]), []).append(played)
        for row, shown_by in alike.items():
            numbers = shown_by[0].numbers[index] if shown_by[0].numbers else ()
            why = tuple(map(sentence, unexplained(numbers, explained)))
            schedule = listed([one.rehearsal.schedule for one in shown_by]) if len(alike) > 1 else ""
            yield replace(row, why=why, schedule=schedule)


def _as_row(index: int, step: StepResult) -> Row:
    done = _done(step), _amiss(step)
    return Row(index + 1, step.action, step.deploys, step.outcome, step.error, *done, is_next=bool(step.next_version))


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
        yield Piece(f", {_cases(table.cases)}")
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
    """The first line, and the next one too if the first ends with a colon; of several causes the first one."""
    first, *rest = lines_of(error)
    second = next(filter(None, map(str.strip, rest)), "") if first.rstrip().endswith(":") else ""
    words, *others = f"{first.rstrip()} {second}".rstrip().split(NEXT_CAUSE)
    short = words if len(words) <= ERROR_MAX else words[: words.rfind(" ", 0, ERROR_MAX)] + " ..."
    return f"{short} (and {len(others)} more)" if others else short
