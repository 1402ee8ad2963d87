"""The step "upgrade to the next version" of a default trial: where it goes, and whether it would show anything.

Most real upgrades change the version of the chart, its appVersion and image tags. Rehearses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.engine import Engine
from seatrial.engines.setting import Setting, values_of
from seatrial.helm import hooks
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, Path, Ref, changed_paths, dig, listed
from seatrial.model.trial import NextVersion, Step, Trial
from seatrial.plan.plan import Plan
from seatrial.plan.steps import planned_steps
from seatrial.sources.charts.next_version import next_tags

TRIED_MAX = 8
"""How many image tags are tried one by one where a chart does not render with all of them raised."""
HARMLESS = (("metadata", "labels"), ("metadata", "annotations"))
"""Fields of which a change does nothing to the object itself."""

OBJECTS_MAX = 40
"""In a larger release, a next version that only replaces pods is left out."""
ROLLED = ("Deployment", "DaemonSet", "StatefulSet", "CronJob")
TEMPLATES = (("spec", "template"), ("spec", "jobTemplate"))
GATES = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")
"""Kinds that answer requests through pods: while these are replaced, other writes may fail."""

Steps = tuple[Step, ...]
Shown = tuple[Ref, bytes, bytes]
"""An object before and after."""
Objects = dict[tuple[Ref, bool], Body]
"""The objects of a release, regular resources apart from hooks of the same name."""


class Change(Struct, frozen=True):
    """An object that the next version changes, adds or removes."""

    ref: Ref
    was: Body | None
    now: Body | None
    paths: tuple[Path, ...]

    @property
    def shown(self) -> Shown:
        return self.ref, msgspec.json.encode(self.was), msgspec.json.encode(self.now)

    @property
    def rolls_only(self) -> bool:
        """Whether only pods are replaced: those of a hook, or of a workload that no volume ties to one pod."""
        if self.was is None or self.now is None:
            return False
        if hooks.is_hook(self.was) and hooks.is_hook(self.now):
            return True
        volumes = listed(self.now, "spec", "template", "spec", "volumes")
        tied = self.ref.kind == "Deployment" and any(dig(volume, "persistentVolumeClaim") for volume in volumes)
        return self.ref.kind in ROLLED and not tied and all(path[:2] in TEMPLATES for path in self.paths)


def planned_with_next_version(
    trial: Trial, setting: Setting, engine: Engine[Any], plan: Callable[[Trial], Plan], shown: set[Shown]
) -> Plan:
    """The plan of a trial that goes on to the next version, if that changes more than earlier cases have `shown`.

    A chart may refuse versions: image tags that it does not render with stay, and without any rendering there is no
    such step.
    """
    begin, step, end = _divided(trial, setting, engine)
    if step is None:
        return plan(trial)

    def going_on(to: Step) -> Plan:
        return _if_it_shows_more(plan(replace(trial, steps=(*begin, to, *end))), shown)

    try:
        return going_on(step)
    except CannotContinue:
        usual = plan(trial)  # Raises where the chart as it is does not render.
    why = ""
    for kept in _kept(begin, step, setting):
        if not (why := _error((*begin, _keeping(step, kept)), setting)):
            return going_on(_keeping(step, kept))
    note = f"the upgrade to the next version is not rehearsed, because the chart does not render with it: {why}"
    return replace(usual, case=replace(usual.case, notes=(*usual.case.notes, note)))


def _divided(trial: Trial, setting: Setting, engine: Engine[Any]) -> tuple[Steps, Step | None, Steps]:
    """The steps up to the last deployment, the one that deploys the next version of its chart, and those after it."""
    roles = {action.name: action.role for action in engine.actions}
    deploys = [index for index, step in enumerate(trial.steps) if roles.get(step.action) in ("install", "replace")]
    repeat = next((action.name for action in engine.actions if action.role == "replace"), "")
    if not deploys or not repeat or not engine.has_cases:
        return trial.steps, None, ()
    cut = deploys[-1] + 1
    step = replace(trial.steps[cut - 1], action=repeat, next=NextVersion(""))
    version = setting.opened.chart_of(step).next_version
    raised = replace(step, next=NextVersion(version)) if version else None
    return trial.steps[:cut], raised, trial.steps[cut:]


def _kept(begin: Steps, step: Step, setting: Setting) -> Iterator[tuple[str, ...]]:
    """The image tags that may have to stay: those that alone the chart refuses, then all."""
    tags = next_tags(setting.opened.chart_of(step), values_of(begin[-1], setting))
    if 1 < len(tags) <= TRIED_MAX:
        others = {tag: tuple(other for other in tags if other != tag) for tag in tags}
        yield tuple(tag for tag in tags if _error((*begin, _keeping(step, others[tag])), setting))
    yield tags


def _keeping(step: Step, kept: tuple[str, ...]) -> Step:
    return replace(step, next=replace(step.next, kept=kept)) if step.next else step


def _error(steps: Steps, setting: Setting) -> str:
    """Why a chart does not render; empty if it does."""
    try:
        planned_steps(steps, setting)
    except CannotContinue as why:
        return str(why)
    return ""


def _if_it_shows_more(plan: Plan, shown: set[Shown]) -> Plan:
    """The plan, without the step if that changes nothing but what is `shown` already. Adds what it changes to that."""
    at = next(index for index, planned in enumerate(plan.steps) if planned.step.next)
    releases = [one.release for one in plan.steps[: at + 1] if one.release]
    changes = [] if _is_large_and_rolls_only(releases) else list(_changes(releases))
    new = {change.shown for change in changes}
    if not new <= shown:
        shown |= new
        return plan
    kept = (*plan.case.releases[:at], *plan.case.releases[at + 1 :])
    return replace(plan, steps=(*plan.steps[:at], *plan.steps[at + 1 :]), case=replace(plan.case, releases=kept))


def _is_large_and_rolls_only(releases: Sequence[Release]) -> bool:
    """Whether the last release is large and only replaces pods, which nothing in it can hold up.

    A step of a large chart takes Helm seconds, and such a one shows nothing that the same upgrade again does not.
    """
    written = releases[-1].resources
    if len(written) <= OBJECTS_MAX or any(resource.ref.kind in GATES for resource in written):
        return False
    return all(change.rolls_only for change in _changes(releases))


def _changes(releases: Sequence[Release]) -> Iterator[Change]:
    """The objects that the last release changes in more than labels and in what no two renderings have in common.

    A chart that generates passwords or names renders others each time.
    """
    first, before, after = (_objects(release) for release in (releases[0], releases[-2], releases[-1]))
    vary = {ref.kind for ref, _ in first.keys() ^ before.keys()}
    for key in sorted({*before, *after}):
        was, now = before.get(key), after.get(key)
        if was == now or (key[0].kind in vary and (was is None or now is None)):
            continue
        varying = set(changed_paths(first.get(key, was), was))
        paths = tuple(path for path in changed_paths(was, now) if path not in varying and path[:2] not in HARMLESS)
        if paths:
            yield Change(key[0], was, now, paths)


def _objects(release: Release) -> Objects:
    return {(resource.ref, hooks.is_hook(resource.body)): resource.body for resource in release.resources}
