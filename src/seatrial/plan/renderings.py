"""Objects that differ between renderings of one chart: install and upgrade, other values, another library.

Rehearses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.setting import Setting
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.result import Consumer, RenderedDifference
from seatrial.model.trial import Step
from seatrial.plan.matrix import Cell, differences
from seatrial.plan.steps import planned_steps
from seatrial.sources.charts.chart import ChartSource
from seatrial.sources.charts.conditions import condition_of

Acts = tuple[Release, Release]
"""A chart as rendered for an install, and for an upgrade."""


def both_acts(source: str, cell: Cell, setting: Setting) -> Acts:
    """A chart with the values of a cell, rendered for an install and for an upgrade."""
    steps = (Step("install", source, set=cell.settings), Step("upgrade", source, set=cell.settings))
    try:
        installed, upgraded = (step.release for step in planned_steps(steps, replace(setting, history=None)))
    except CannotContinue as why:
        raise CannotContinue(f"with {cell.name}: {why}") from None
    assert installed is not None and upgraded is not None
    return installed, upgraded


def between_acts(
    installed: Release, upgraded: Release, chart: ChartSource, case: str = ""
) -> Iterator[RenderedDifference]:
    """Objects that differ between install and upgrade with the same values, and the condition in the template."""
    for difference in differences({"on install": installed, "on upgrade": upgraded}, case):
        condition = condition_of(chart.files, difference.place.file)
        yield replace(difference, asks=condition.asks, asked=condition.place) if condition else difference


def between_steps(planned: Iterable[PlannedStep[Any]], setting: Setting) -> Iterator[RenderedDifference]:
    """The differences between the acts of a trial that render the same chart with the same values."""
    rendered: dict[tuple[str, bytes], dict[str, Release]] = {}
    for one in planned:
        if isinstance(one.act, HelmAct) and one.act.chart is not None and one.release is not None:
            values = msgspec.json.encode(one.release.values, order="sorted")
            rendered.setdefault((one.step.source, values), {}).setdefault(one.act.action, one.release)
    for (source, _), acts in rendered.items():
        if len(acts) == 2:
            yield from between_acts(acts["install"], acts["upgrade"], setting.opened.chart(source), setting.case)


def consumer_of(chart: str, called: list[str], before: Acts, after: Acts) -> Consumer:
    """How the objects of a chart change, as an upgrade renders them; other objects as an install renders them."""
    flipped = list(differences({"before": before[1], "now": after[1]}))
    on_upgrade = {one.object for one in flipped}
    installs = differences({"on install before": before[0], "on install now": after[0]})
    flipped += [one for one in installs if one.object not in on_upgrade]
    known = {resource.ref: resource.body for resource in before[1].resources}
    changed = [r.ref for r in after[1].resources if r.ref in known and known[r.ref] != r.body]
    named = {one.object for one in flipped}
    return Consumer(chart, tuple(called), tuple(flipped), tuple(sorted({str(ref) for ref in changed} - named)))
