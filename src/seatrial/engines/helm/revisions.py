"""The revisions that Helm has recorded when a step begins: what a rollback returns to, which values an upgrade keeps.

Assumes that every step before succeeded; runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.helm.history import History
from seatrial.model.release import Release
from seatrial.model.resource import Body, dig
from seatrial.model.trial import ROLLS_BACK, Step
from seatrial.sources.charts.values import merged


class Deployed(Struct, frozen=True):
    """One revision: its objects, the values the user gave, and those of its chart."""

    release: Release
    defaults: Body = {}


def recorded_before(step: Step, earlier: Sequence[PlannedStep[Any]], history: History | None) -> Revisions:
    """What Helm has recorded after the earlier steps; nothing on a cluster that is rebuilt."""
    revisions = Revisions(history)
    for planned in earlier:
        revisions = Revisions(None) if planned.step.fresh else revisions
        if isinstance(planned.act, HelmAct):
            revisions.record(planned, planned.act)
    return Revisions(None) if step.fresh else revisions


class Revisions:
    """The revisions of every release of a trial so far, by their numbers."""

    def __init__(self, history: History | None) -> None:
        self._revisions: dict[tuple[str, str], dict[int, Deployed]] = {}
        self._current: dict[tuple[str, str], int] = {}
        self.unsure = False
        """Whether there may be revisions that no step names: a step that rolls back when it fails adds one."""
        if history is not None:
            self._revisions[history.name, history.namespace] = {
                revision.number: Deployed(revision.release, dig(revision.record, "chart", "values") or {})
                for revision in history.revisions
            }
            self._current[history.name, history.namespace] = history.current.number

    def is_new(self, name: str, namespace: str) -> bool:
        """Whether nothing of a release is deployed."""
        return self._last(name, namespace) is None

    def values(self, name: str, namespace: str, given: Body, step: Step) -> tuple[Body, Body | None]:
        """What an upgrade makes of its values (`reuseValues` in pkg/action/upgrade.go of Helm 4.2).

        Second, what takes the place of the chart's own values, where the flags say so.
        """
        last = self._last(name, namespace)
        if step.action != "upgrade" or last is None or "--reset-values" in step.flags:
            return given, None
        if "--reuse-values" in step.flags:
            return merged(last.release.values, given), merged(last.defaults, last.release.values)
        if "--reset-then-reuse-values" in step.flags:
            return merged(last.release.values, given), None
        return given or last.release.values, None

    def record(self, planned: PlannedStep[Any], act: HelmAct) -> None:
        """Add the revision that a step makes, or drop those that it removes."""
        if act.action == "uninstall":
            self._uninstall(act)
        elif planned.release is not None:
            self.unsure = self.unsure or any(flag in ROLLS_BACK for flag in act.flags)
            self._add(act.release, act.namespace, Deployed(planned.release, act.defaults))

    def target(self, name: str, namespace: str, revision: int) -> Deployed | None:
        """The revision that a rollback goes back to; 0 is the one before the last."""
        revisions = self._revisions.get((name, namespace), {})
        return revisions.get(revision or max(revisions, default=0) - 1)

    def numbers(self, name: str, namespace: str) -> list[int]:
        """Of the revisions that there are by then."""
        return sorted(self._revisions.get((name, namespace), ()))

    def _uninstall(self, act: HelmAct) -> None:
        self._current.pop((act.release, act.namespace), None)
        if "--keep-history" not in act.flags:
            self._revisions.pop((act.release, act.namespace), None)

    def _add(self, name: str, namespace: str, deployed: Deployed) -> None:
        revisions = self._revisions.setdefault((name, namespace), {})
        number = max(revisions, default=0) + 1
        revisions[number] = deployed
        self._current[name, namespace] = number

    def _last(self, name: str, namespace: str) -> Deployed | None:
        revisions = self._revisions.get((name, namespace), {})
        return revisions.get(self._current.get((name, namespace), 0))
