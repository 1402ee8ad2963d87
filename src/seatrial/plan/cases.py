"""The cases of a trial: its default, other values of the chart, and what a second deployment changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial import sources
from seatrial.engines.engine import Engine
from seatrial.helm import hooks
from seatrial.model.options import ValueFlags
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.trial import Step, Trial
from seatrial.sources import CHART, git
from seatrial.sources.charts.conditions import generates_values, looks_up_namespaces
from seatrial.sources.opened import Opened

WAITING_STEPS = 2
SAME_AGAIN = "the same again"
"""The case of a trial file with its last deployment repeated."""


class TrialCase(Struct, frozen=True):
    """One case of a trial: its name, and its steps."""

    name: str
    trial: Trial
    newest: str = ""
    """The path of the newest chart, if the trial deploys one."""
    old: str = ""
    """The older chart that is upgraded, as the user named it."""
    fresh: Trial | None = None
    """The same without the older chart."""
    in_ci: bool = False
    """Whether its values are in ci/ of the newest chart."""

    @property
    def is_own(self) -> bool:
        """Whether its values are the chart's own: the default ones, or those in ci/."""
        return self.in_ci or not self.name


def cases_of(trial: Trial, engine: Engine[Any], opened: Opened, values: ValueFlags) -> Iterator[TrialCase]:
    """The default case, and each ci/*-values.yaml of the newest chart, with which older charts are installed as well.

    Of a trial file also its last deployment repeated.
    """
    newest = next((step for step in reversed(trial.steps) if _is_rendered(step, engine, opened)), None)
    if newest is None:
        yield TrialCase("", trial)
        return
    old = next((step.source for step in trial.steps if _is_older(step, newest, engine, opened)), "")
    default = TrialCase(
        "", trial, opened.chart(newest.source).path, old, _fresh(trial, newest, engine) if old else None
    )
    if opened.base:
        default = replace(default, old="", fresh=None)
    yield default
    if values == ValueFlags() and not newest.values and not newest.set:
        yield from (replace(default, name=name, in_ci=True) for name in opened.cases(newest.source))
    if opened.base and (again := _again(trial, newest, engine, opened)):
        yield replace(default, name=SAME_AGAIN, trial=again)


def waiting(trial: Trial, engine: Engine[Any]) -> Trial:
    """The first steps of a default trial, with --wait."""
    return replace(trial, steps=tuple(_waiting(step, engine) for step in trial.steps[:WAITING_STEPS]))


def _is_older(step: Step, newest: Step, engine: Engine[Any], opened: Opened) -> bool:
    return step.source != newest.source and _is_rendered(step, engine, opened)


def _fresh(trial: Trial, newest: Step, engine: Engine[Any]) -> Trial | None:
    """The default trial of the newest chart alone, with those of its steps that this trial has."""
    wanted = {step.action for step in trial.steps}
    steps = tuple(step for step in engine.default_trial(newest.source, "", 0) if step.action in wanted)
    return replace(trial, steps=steps) if steps else None


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
    same = [step for step in trial.steps if step.source == trial.steps[0].source and not step.next]
    if len(same) != 2 or trial.steps[:2] != tuple(same):
        return None
    old, new = case.releases[:2]
    made = {one.ref for one in old.resources if not hooks.is_hook(one.body)} if old else set()
    flips = any(one.ref in made and hooks.is_hook(one.body) for one in new.resources) if new else False
    return replace(trial, steps=(*trial.steps[:2], *trial.steps[1:])) if flips else None


def with_created_namespace(trial: Trial, case: Case, engine: Engine[Any], opened: Opened) -> Trial | None:
    """The same with the flag that creates the release namespace, if the chart contains or looks up namespaces.

    Such a chart is usually installed so; for any other one the flag changes nothing.
    """
    first, release = trial.steps[0], case.releases[0]
    flag = engine.namespace_flag
    if not flag or release is None or release.namespace == "default" or not _is_rendered(first, engine, opened):
        return None
    homes = (one for one in release.resources if one.ref == Ref("Namespace", "", release.namespace))
    contains = any(not hooks.is_hook(one.body) for one in homes)  # As a hook it is deleted, whoever created it.
    if flag in first.flags or not (contains or looks_up_namespaces(opened.chart(first.source).files)):
        return None
    return replace(trial, steps=(replace(first, flags=(*first.flags, flag)), *trial.steps[1:]))


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
