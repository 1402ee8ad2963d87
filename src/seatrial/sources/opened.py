"""The charts and manifests of one trial, each opened and rendered once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeVar, cast

import msgspec

from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.model.trial import Step
from seatrial.sources import git
from seatrial.sources.charts.chart import ChartSource, open_chart
from seatrial.sources.charts.conditions import has_conditions
from seatrial.sources.charts.lacking import LackingChart
from seatrial.sources.charts.next_version import raised
from seatrial.sources.charts.rendering import render
from seatrial.sources.charts.values import values_in
from seatrial.text.source import Text

T = TypeVar("T")


class Opened:
    """The charts and manifests of a trial, each opened once."""

    def __init__(self, base: str, beside: str, folder: str = "") -> None:
        """Paths are relative to `base`; `git:REF` is about the checkout that holds `beside`.

        `folder` is the folder of charts that the user named, if the trial is about one of them.
        """
        self.base = base
        self.beside = beside
        self.folder = folder
        self._charts: dict[str, ChartSource] = {}
        self._cases: dict[str, Text] = {}
        self._raised: dict[str, ChartSource | None] = {}
        self._releases: dict[tuple[str, bytes], Release] = {}
        self._asking: dict[str, bool] = {}
        self._kept: dict[object, object] = {}

    def path(self, source: str) -> str:
        return source if source == "-" or git.is_ref(source) else str(PurePath(self.base, source))

    def chart(self, source: str) -> ChartSource:
        path = self.path(source)
        if path not in self._charts:
            self._charts[path] = open_chart(path, self.beside, self.folder)
        return self._charts[path]

    def chart_of(self, step: Step) -> ChartSource:
        """The chart that a step deploys: the one of its source, or the next version of that."""
        chart = self.chart(step.source)
        if step.next is None:
            return chart
        if chart.path not in self._raised:
            self._raised[chart.path] = raised(chart)
        return self._raised[chart.path] or chart

    def asks(self, chart: ChartSource) -> bool:
        """Whether a chart may render differently for another client, revision or cluster."""
        if chart.path not in self._asking:
            self._asking[chart.path] = has_conditions(chart.files)
        return self._asking[chart.path]

    def add(self, chart: ChartSource) -> str:
        """A chart that is not on disk as it is here; the name under which steps deploy it."""
        self._charts[self.path(chart.path)] = chart
        return chart.path

    def render(self, chart: ChartSource, values: Body, *, turn: int = 0, **options: Any) -> Release:
        """A release, rendered once however many steps and cases deploy it; in another `turn`, once more."""
        key = (chart.path, msgspec.json.encode([values, options, turn, chart.next_version], order="sorted"))
        if key not in self._releases:
            self._releases[key] = render(chart, values, **options)
        return self._releases[key]

    def kept(self, make: Callable[[], T]) -> T:
        """What an engine keeps for the whole trial, made once."""
        if make not in self._kept:
            self._kept[make] = make()
        return cast(T, self._kept[make])

    def cases(self, source: str) -> list[str]:
        """The values files in ci/ of a chart, with which the whole trial can be planned from now on."""
        self._cases = dict(self.chart(source).cases)
        return sorted(self._cases)

    def same_values(self, case: str, name: str) -> str:
        """Another case with the values of a case: `ci/ha-values.yaml, --wait`; of the default one, `--wait`."""
        if case not in self._cases:
            return name
        self._cases[f"{case}, {name}"] = self._cases[case]
        return f"{case}, {name}"

    def case_values(self, case: str) -> Body:
        """The values that make a case; empty for the default one."""
        return values_in(self._cases[case]) if case in self._cases else {}

    @property
    def first_name(self) -> str:
        """The name under which the first chart of the trial is installed, where none is given."""
        return next((chart.release for chart in self._charts.values()), "")

    @property
    def lacking(self) -> tuple[LackingChart, ...]:
        """The dependencies that are not on disk."""
        return tuple(one for chart in self._charts.values() for one in chart.lacking)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for chart in self._charts.values() for name in chart.missing_dependencies)
