"""Which cases of a trial can be rehearsed. Values in ci/ count as the chart's own, as chart-testing (ct) has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.engine import Engine
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.result import DEFAULT_VALUES, NotRehearsed
from seatrial.model.trial import Trial
from seatrial.plan.cases import SAME_AGAIN, TrialCase, cases_of, waiting
from seatrial.plan.plan import Plan
from seatrial.sources.charts.lacking import switched_off
from seatrial.sources.charts.rendering import NotRendered
from seatrial.sources.opened import Opened

Planning = Callable[[str, Trial], Plan]
"""Plans a case of a trial, by its name. Raises `NotRendered` or `NothingToCheck`."""


class Attempt(Struct, frozen=True):
    """A case: its plan, or why there is none."""

    case: TrialCase
    plan: Plan | None = None
    left_out: tuple[NotRehearsed, ...] = ()
    notes: tuple[str, ...] = ()
    error: Exception | None = None
    fatal: bool = False
    """Whether the error ends the check, whatever the other cases are."""


def playable(
    trial: Trial, engine: Engine[Any], opened: Opened, options: CheckOptions, plan: Planning, *, deployed: bool = False
) -> Iterator[Plan]:
    """A plan for each case that can be rehearsed, with what is left out before it; the last one also with the rest.

    So the last one is held back until all cases were tried. `deployed`: the trial upgrades a release of the user.
    """
    ready: Plan | None = None
    failed: Exception | None = None
    unsaid: list[Attempt] = []
    cases = [one for one in cases_of(trial, engine, opened, options.values) if one.name or not options.placeholders]
    several = any(case.in_ci for case in cases) and not (opened.base or deployed)
    refused = dict(options.without_old)
    for attempt in _attempts(cases, engine, opened, plan, refused, several=several):
        unsaid.append(attempt)
        failed = failed or attempt.error
        if ready is not None and (attempt.plan or attempt.fatal):
            yield ready
        if attempt.error and attempt.fatal:
            raise attempt.error
        if attempt.plan:
            ready, unsaid = _saying(attempt.plan, unsaid), []
    if ready is not None:
        yield _saying(ready, unsaid)
    elif failed:
        raise failed


def _saying(plan: Plan, attempts: Iterable[Attempt]) -> Plan:
    """The plan with what is left out of these attempts."""
    parts = (*plan.case.not_rehearsed, *(part for one in attempts for part in one.left_out))
    notes = (*plan.case.notes, *(note for one in attempts for note in one.notes))
    return replace(plan, case=replace(plan.case, not_rehearsed=parts, notes=notes))


def _attempts(
    cases: list[TrialCase],
    engine: Engine[Any],
    opened: Opened,
    plan: Planning,
    refused: Mapping[str, str],
    *,
    several: bool,
) -> Iterator[Attempt]:
    """Each case, then the first one with --wait. `several`: if one cannot be rehearsed, another one may do."""
    planned: list[Attempt] = []
    for case in cases:
        alone = _without_old(case, refused[case.name], plan) if case.name in refused else None
        attempt = alone or _attempt(case, opened, plan, several=several)
        if attempt.error and not case.name and not several and not opened.base:
            attempt = _without_missing(case, opened, plan) or attempt
        planned += [attempt] if attempt.plan else []
        yield attempt
    if planned and planned[0].case.newest and engine.wait_flag and not opened.base:
        first = next((one for one in planned if not one.left_out), planned[0])
        name = opened.same_values(first.case.name, engine.wait_flag)
        parts = tuple(replace(part, case=name) for part in first.left_out if part.step)
        waits = replace(first.case, name=name, trial=waiting(first.case.trial, engine))
        yield Attempt(waits, plan(name, waits.trial), parts)


def _attempt(case: TrialCase, opened: Opened, plan: Planning, *, several: bool) -> Attempt:
    try:
        return Attempt(case, plan(case.name, case.trial))
    except NothingToCheck as why:
        notes = (_note(case, str(why).partition("\n")[0]),)
        return Attempt(case, notes=notes, error=why, fatal=not (several and case.is_own))
    except NotRendered as why:
        old = several and case.is_own and why.source != case.newest
        fresh = _without_old(case, str(why), plan) if old else None
        return fresh or _not_rendered(case, why, opened, several=several)


def _without_old(case: TrialCase, why: str, plan: Planning) -> Attempt | None:
    """The newest chart alone, if only the old one cannot be deployed: nobody has installed that with these values."""
    if case.fresh is None:
        return None
    part = NotRehearsed(why, case.name or DEFAULT_VALUES, f"upgrade from {case.old}")
    try:
        return Attempt(replace(case, trial=case.fresh), plan(case.name, case.fresh), (part,))
    except (NotRendered, NothingToCheck):
        return None


def _without_missing(case: TrialCase, opened: Opened, plan: Planning) -> Attempt | None:
    """The default values with every dependency switched off that is not on disk and can be, if that renders."""
    off = tuple(dict.fromkeys(filter(None, map(switched_off, opened.lacking))))
    name = ", ".join(off)
    steps = (replace(step, set=(*step.set, *off)) if step.source else step for step in case.trial.steps)
    trial = replace(case.trial, steps=tuple(steps))
    if not off:
        return None
    missing = ", ".join(dict.fromkeys(opened.missing))
    why = f"dependencies in Chart.yaml that are not in charts/ (run helm dependency build): {missing}"
    try:
        planned = plan(name, trial)
    except (NotRendered, NothingToCheck):
        return None
    part = NotRehearsed(f"{why}; rehearsed with {name} instead", DEFAULT_VALUES)
    return Attempt(replace(case, name=name, trial=trial, fresh=None), planned, (part,))


def _not_rendered(case: TrialCase, why: NotRendered, opened: Opened, *, several: bool) -> Attempt:
    """A case whose newest chart does not render. Where the old one does, an upgrade fails, which is no note."""
    if case.name == SAME_AGAIN:
        return Attempt(case, left_out=(NotRehearsed(str(why), "the last deployment again"),), error=why)
    if not case.name:
        breaks = bool(case.old) and why.source == case.newest
        return Attempt(case, notes=(_note(case, str(why)),), error=why, fatal=breaks or not several)
    if not opened.missing or opened.base:
        return Attempt(case, error=CannotContinue(f"with {case.name}: {why}"), fatal=True)
    return Attempt(case, left_out=(NotRehearsed(str(why), case.name),), error=why)


def _note(case: TrialCase, why: str) -> str:
    return f"{case.name or DEFAULT_VALUES}: not rehearsed: {why}"
