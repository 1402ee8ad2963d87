"""What a trial has behind it when a step begins: the revision a rollback returns to, the values an upgrade keeps.

Reckons that every step before went well; plays nothing.
"""

from __future__ import annotations

from msgspec import Struct

from seatrial.helm.history import History
from seatrial.model.release import Release
from seatrial.model.resource import Body, dig
from seatrial.model.trial import ROLLS_BACK, Step
from seatrial.sources.charts.values import merged


class Deployed(Struct, frozen=True):
    """One revision: its objects, the values the user gave, and those of its chart."""

    release: Release
    defaults: Body = {}


class Past:
    """The revisions of every release of a trial so far, by their numbers."""

    def __init__(self, history: History | None) -> None:
        self._revisions: dict[tuple[str, str], dict[int, Deployed]] = {}
        self._current: dict[tuple[str, str], int] = {}
        self.unsure = False
        """Whether there may be revisions that no step says: a step that goes back where it fails adds one."""
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

    def deploy(self, release: Release, defaults: Body, step: Step) -> None:
        self.unsure = self.unsure or any(flag in ROLLS_BACK for flag in step.flags)
        self._add(release.name, release.namespace, Deployed(release, defaults))

    def roll_back(self, name: str, namespace: str, revision: int) -> Release | None:
        """The release of the revision that a rollback goes back to; 0 is the one before the last."""
        revisions = self._revisions.get((name, namespace), {})
        target = revisions.get(revision or max(revisions, default=0) - 1)
        if target is None:
            return None
        self._add(name, namespace, target)
        return target.release

    def numbers(self, name: str, namespace: str) -> list[int]:
        """Of the revisions that there are by now."""
        return sorted(self._revisions.get((name, namespace), ()))

    def uninstall(self, name: str, namespace: str, step: Step) -> None:
        self._current.pop((name, namespace), None)
        if "--keep-history" not in step.flags:
            self._revisions.pop((name, namespace), None)

    def _add(self, name: str, namespace: str, deployed: Deployed) -> None:
        revisions = self._revisions.setdefault((name, namespace), {})
        number = max(revisions, default=0) + 1
        revisions[number] = deployed
        self._current[name, namespace] = number

    def _last(self, name: str, namespace: str) -> Deployed | None:
        revisions = self._revisions.get((name, namespace), {})
        return revisions.get(self._current.get((name, namespace), 0))
