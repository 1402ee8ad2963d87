"""The cases of a trial: its default, other values of the chart, `--wait`, and what a second deployment changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from seatrial import sources
from seatrial.engines.engine import Engine
from seatrial.helm import hooks
from seatrial.model.options import ValueFlags
from seatrial.model.release import Case
from seatrial.model.trial import Step, Trial
from seatrial.sources import CHART, git
from seatrial.sources.charts.conditions import generates_values
from seatrial.sources.opened import Opened

WAITING_STEPS = 2
SAME_AGAIN = "the same again"
"""The case of a trial file with its last deployment repeated."""


def cases_of(trial: Trial, engine: Engine[Any], opened: Opened, values: ValueFlags) -> Iterator[tuple[str, Trial]]:
    """The default case, each ci/*-values.yaml of the newest chart and, for a default trial, the case with --wait."""
    yield "", trial
    newest = next((step for step in reversed(trial.steps) if _is_rendered(step, engine, opened)), None)
    if newest is None:
        return
    if values == ValueFlags() and not newest.values and not newest.set:
        for name in sorted(opened.chart(newest.source).cases):
            yield name, trial if opened.base else _understood(name, trial, newest, engine, opened)
    if opened.base and (again := _again(trial, newest, engine, opened)):
        yield SAME_AGAIN, again
    if engine.wait_flag and not opened.base:
        waiting = tuple(_waiting(step, engine) for step in trial.steps[:WAITING_STEPS])
        yield engine.wait_flag, replace(trial, steps=waiting)


def _understood(name: str, trial: Trial, newest: Step, engine: Engine[Any], opened: Opened) -> Trial:
    """The trial with these values, without older charts that lack the file: they were never installed with it."""
    steps = []
    for step in trial.steps:
        older = _is_rendered(step, engine, opened) and name not in opened.chart(step.source).cases
        steps.append(replace(step, source=newest.source) if older else step)
    return replace(trial, steps=tuple(steps))


def _again(trial: Trial, newest: Step, engine: Engine[Any], opened: Opened) -> Trial | None:
    """The trial of a file with its last deployment repeated, if its chart may render differently the second time.

    A chart that generates passwords, or asks whether it is installed or upgraded, shows what that does only then.
    """
    index = max(index for index, step in enumerate(trial.steps) if step is newest)
    repeat = next(action.name for action in engine.actions if action.role == "replace")
    same = [step for step in trial.steps[:index] if (step.source, step.values, step.set) == _input(newest)]
    chart = opened.chart(newest.source)
    if same or newest.kill or not (opened.asks(chart) or generates_values(chart.files, looks=False)):
        return None
    return replace(trial, steps=(*trial.steps[: index + 1], replace(newest, action=repeat)))


def with_second_upgrade(trial: Trial, case: Case) -> Trial | None:
    """The same with its upgrade twice, if the first one makes hooks of regular resources.

    Such a hook replaces an object of the first revision, and only the second upgrade shows what happens without that.
    """
    same = [step for step in trial.steps if step.source == trial.steps[0].source]
    if len(same) != 2 or trial.steps[:2] != tuple(same):
        return None
    old, new = case.releases[:2]
    made = {one.ref for one in old.resources if not hooks.is_hook(one.body)} if old else set()
    flips = any(one.ref in made and hooks.is_hook(one.body) for one in new.resources) if new else False
    return replace(trial, steps=(*trial.steps[:2], *trial.steps[1:])) if flips else None


def _input(step: Step) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return step.source, step.values, step.set


def _is_rendered(step: Step, engine: Engine[Any], opened: Opened) -> bool:
    if not engine.has_cases or not _deploys(step, engine):
        return False
    path = opened.path(step.source)
    return git.is_ref(path) or sources.kind_of(path) == CHART


def _waiting(step: Step, engine: Engine[Any]) -> Step:
    return replace(step, flags=(*step.flags, engine.wait_flag)) if _deploys(step, engine) else step


def _deploys(step: Step, engine: Engine[Any]) -> bool:
    action = engine.action(step.action)
    return action is not None and action.role in ("install", "replace")
