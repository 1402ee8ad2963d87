"""Trials with a flag toggled that the change between two revisions of a chart is about, unasked. Rehearses nothing.

The user who has the flag on (or off) in both revisions upgrades, and installs the new one on an empty cluster. A flag
is left out if the change does nothing with it that the default does not show, and if the chart does not render with
it: a feature often needs further values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial import sources
from seatrial.engines.engine import load
from seatrial.engines.setting import Setting, release_of
from seatrial.helm import hooks
from seatrial.model.engine import engine_id
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref
from seatrial.model.trial import Step, Trial
from seatrial.plan.chosen_steps import with_detour
from seatrial.plan.plan import Plan
from seatrial.plan.plans import CONSUMERS_MAX, HELM, plan_of, setting_of
from seatrial.plan.steps import planned_steps, usual_engine
from seatrial.sources import CHART, git
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.charts.conditions import asks_for_the_act, generates_values
from seatrial.sources.charts.consumers import consumers_of, with_library
from seatrial.sources.charts.flags import flags_of_change
from seatrial.sources.charts.values import merged, merged_values
from seatrial.sources.opened import Opened

TOGGLES_MAX = 6
"""How many flags are toggled, one at a time."""
RENDERED_MAX = 12
"""How many are rendered to see whether the change does something with them."""
CASE_OF_CHART = ", "
"""Between the name of a chart that uses a library and the flag."""
PAIR = 2
"""The steps of a trial that deploy the old and the new revision."""

Pair = tuple[Release, Release]
"""The old and the new revision, as the steps of a trial deploy them."""


class _Subject(Struct, frozen=True):
    """One chart whose change is looked at: how it is deployed, and where its revisions are."""

    old: str
    new: str
    trial: Trial
    opened: Opened
    called: str = ""
    """Begins the names of its cases."""
    values: str = ""
    """The values file in ci/ that it is deployed with."""


def toggled_plans(options: CheckOptions, usual: Sequence[Plan]) -> Iterator[Plan]:
    """A plan for each flag that the change of an input is about, the nearest to the change first.

    All of them have no more steps than the `usual` plans: a check takes at most twice as long.
    """
    if options.no_toggles or options.matrix or options.steps or options.snapshot or options.assume_only:
        return
    charts = [path for path in options.inputs if sources.kind_of(path) == CHART]
    every = _consumers if options.consumers else _charts
    subjects = [subject for path in charts for subject in every(path, options, usual)]
    steps = sum(len(plan.steps) for plan in usual if not any(planned.step.flags for planned in plan.steps))
    for subject in subjects:
        yield from _of_subject(subject, options, steps // len(subjects))


def _charts(path: str, options: CheckOptions, usual: Sequence[Plan]) -> Iterator[_Subject]:
    """The chart with the values of the first case that is rehearsed with its old revision."""
    old = options.old or options.compare or options.instead
    if not old or not (git.is_ref(old) or sources.kind_of(old) == CHART):
        return
    for engine in map(engine_id, options.engines or (usual_engine(path, CHART),)):
        steps = load(engine.name).default_trial(options.instead or path, options.old, 0)[:PAIR]
        begun = (plan for plan in usual if plan.engine.name == engine.name)
        case = next((plan for plan in begun if plan.steps[0].step.source == steps[0].source), None)
        if case is None or not load(engine.name).has_cases:
            continue
        opened = Opened("", path)
        values = case.case.name if case.case.name in opened.cases(path) else ""
        own = tuple(replace(step, set=case.steps[0].step.set) for step in steps)
        release = opened.chart(path).release if options.old else ""
        trial = Trial(engines=(engine,), steps=own, release=release)
        yield _Subject(old, path, trial, opened, f"{values}{CASE_OF_CHART}" if values else "", values)


def _consumers(path: str, options: CheckOptions, usual: Sequence[Plan]) -> Iterator[_Subject]:
    if not options.old:
        return
    library, before = open_any_chart(path), open_any_chart(options.old, path)
    for chart in list(consumers_of(library, options.consumers))[:CONSUMERS_MAX]:
        opened = Opened("", path)
        new = opened.add(with_library(chart, library))
        old = opened.add(with_library(chart, before, f"{chart} ({library.name} of {options.old})"))
        trial = Trial(engines=(HELM,), steps=(Step("install", old), Step("upgrade", new)))
        yield _Subject(old, new, trial, opened, f"{chart}{CASE_OF_CHART}")


def _of_subject(subject: _Subject, options: CheckOptions, steps_max: int) -> Iterator[Plan]:
    setting = setting_of(subject.trial, subject.trial.engines[0], subject.values, subject.opened, options, None)
    wanted = _wanted(subject, options)
    try:
        chosen, left_out = (
            _again(wanted, subject, setting) if wanted is not None else _chosen(subject, setting, steps_max)
        )
    except (CannotContinue, NothingToCheck):
        return  # The trial without a toggle reports it.
    for toggle in chosen:
        name = f"{subject.called}{toggle.setting}"
        for case, steps in toggle.trials(name):
            trial = replace(subject.trial, steps=with_detour(steps, options.detour, setting.engine.name))
            subject.opened.same_values(subject.values, case.removeprefix(subject.called))
            plan = plan_of(trial, replace(setting, case=case))
            about = replace(plan.case, differences=())
            yield replace(plan, case=about, toggle=name, not_toggled=left_out, toggled_before=toggle.before)


def _wanted(subject: _Subject, options: CheckOptions) -> list[str] | None:
    """The flags that an earlier check chose; None to choose them."""
    if options.toggled is None:
        return None
    begun = (name.removeprefix(subject.called) for name in options.toggled if name.startswith(subject.called))
    return [setting for setting in begun if CASE_OF_CHART not in setting]


class _Toggle(Struct, frozen=True):
    """A flag that is toggled, and the steps with it."""

    setting: str
    steps: tuple[Step, ...]
    before: frozenset[Ref]
    """The objects of the old revision with it."""
    installs: bool
    """Whether the new revision is installed on an empty cluster as well."""
    steps_to_run: int
    """Steps that the trial without it does not have."""

    def trials(self, name: str) -> Iterator[tuple[str, tuple[Step, ...]]]:
        """The upgrade, and the new revision on an empty cluster."""
        yield name, self.steps
        if self.installs:
            first, second = self.steps[:PAIR]
            yield f"{name}, new install", (replace(first, source=second.source, set=second.set),)


def _chosen(subject: _Subject, setting: Setting, steps_max: int) -> tuple[list[_Toggle], tuple[str, ...]]:
    """The nearest flags that the change does something with, and those for which there are too few steps."""
    old, new = (subject.opened.chart(source).files for source in (subject.old, subject.new))
    given = merged(subject.opened.case_values(subject.values), merged_values(setting.values))
    flags = flags_of_change(old, new, given)
    chosen: list[_Toggle] = []
    left, trying = steps_max, _Trying(subject, setting)
    for number, flag in enumerate(flags):
        full = len(chosen) == TOGGLES_MAX or number == RENDERED_MAX or (chosen and left <= 0)
        toggle, changed = (None if full else trying.toggle(flag.setting, is_new=flag.is_new)) or (None, set())
        if full or (toggle and changed and chosen and toggle.steps_to_run > left):
            return chosen, tuple(f"{subject.called}{other.setting}" for other in flags[number:])
        if toggle and changed:
            chosen.append(toggle)
            left -= toggle.steps_to_run
    return chosen, ()


def _again(wanted: list[str], subject: _Subject, setting: Setting) -> tuple[list[_Toggle], tuple[str, ...]]:
    """The same flags with other texts, whatever the change does with them now."""
    trying = _Trying(subject, setting)
    found = [trying.toggle(flag, is_new=False) for flag in wanted]
    return [one[0] for one in found if one is not None], ()


class _Trying:
    """Renders both revisions of a chart with one flag toggled after the other."""

    def __init__(self, subject: _Subject, setting: Setting) -> None:
        self._subject = subject
        self._setting = setting
        first, second = subject.trial.steps
        self._pair = replace(first, source=subject.old), replace(second, source=subject.new)

    @cached_property
    def _usual(self) -> Pair:
        old, new = self._pair
        return self._rendered(old), self._rendered(new, old)

    def toggle(self, flag: str, *, is_new: bool) -> tuple[_Toggle, set[Ref]] | None:
        """A flag with its steps, and the objects that change only with it; None if the chart needs more than that.

        A flag that the new revision reads and that changes none of its objects is not looked at further.
        """
        first, second = self._pair
        old, new = replace(first, set=(*first.set, flag)), replace(second, set=(*second.set, flag))
        usual = self._usual
        try:
            now = self._rendered(new, first)
            if is_new and _bodies(now) == _bodies(usual[1]):
                return None
            try:
                was = self._rendered(old)
            except CannotContinue:
                old, was = first, usual[0]
            if _bodies(was) == _bodies(usual[0]):
                old, was = first, usual[0]
            else:
                now = self._rendered(new, old)
        except (CannotContinue, NothingToCheck):
            return None
        changed = _changed(usual, (was, now)) - _random(new, self._setting)
        return _toggle(flag, self._subject, (old, new), (was, now), changed), changed

    def _rendered(self, step: Step, *before: Step) -> Release:
        release = planned_steps((*before, step), self._setting)[-1].release
        assert release is not None
        return release


def _toggle(flag: str, subject: _Subject, steps: tuple[Step, Step], toggled: Pair, changed: set[Ref]) -> _Toggle:
    """A flag with the steps of its trial.

    A second upgrade shows what becomes of hooks that replace regular resources in the first one; an install of the new
    revision, what hooks need that an upgrade finds.
    """
    first, second = subject.trial.steps
    upgrades = first.source != second.source
    own = replace(first, set=steps[0 if upgrades else 1].set), replace(second, set=steps[1].set)
    regular = {one.ref for one in toggled[0].resources if not hooks.is_hook(one.body)}
    hooked = {one.ref for one in toggled[1].resources if hooks.is_hook(one.body)}
    again = (own[1],) if regular & hooked else ()
    installs = upgrades and (bool(changed & hooked) or asks_for_the_act(subject.opened.chart(subject.new).files))
    cost = len(own) + len(again) + installs - (upgrades and not own[0].set)
    before = frozenset(resource.ref for resource in toggled[0].resources)
    return _Toggle(flag, (*own, *again), before, installs, cost)


def _changed(usual: Pair, toggled: Pair) -> set[Ref]:
    """The objects that change between the revisions with the toggle, unlike without it."""
    was, now = (_bodies(release) for release in toggled)
    old, new = (_bodies(release) for release in usual)
    differ = {ref for ref in {*was, *now} if was.get(ref) != now.get(ref)}
    return {ref for ref in differ if (was.get(ref), now.get(ref)) != (old.get(ref), new.get(ref))}


def _bodies(release: Release) -> dict[Ref, Body]:
    """The objects without their labels, which name the version of the chart, and without those of `helm test`."""
    return {one.ref: _unlabelled(one.body) for one in release.resources if not hooks.is_test(one.body)}


def _unlabelled(body: Body) -> Body:
    metadata: Any = body.get("metadata")
    if not isinstance(metadata, dict) or "labels" not in metadata:
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "labels"}}


def _random(step: Step, setting: Setting) -> set[Ref]:
    """The objects that are another one in each rendering."""
    if not generates_values(setting.opened.chart(step.source).files, looks=False):
        return set()
    first, second = (_bodies(release_of(step, setting, turn=turn)) for turn in (0, 1))
    return {ref for ref in {*first, *second} if first.get(ref) != second.get(ref)}
