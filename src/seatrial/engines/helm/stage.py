"""A step of Helm, prepared: its chart opened, its values merged, its release rendered as Helm would.

Knows the revisions that Helm has recorded by then: what a rollback returns to, and which values an upgrade keeps.
Assumes that every earlier step succeeded; runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.helm import process, sdk, v3
from seatrial.engines.setting import Setting, values_of
from seatrial.helm.binary import FLAG
from seatrial.helm.history import History
from seatrial.helm.sdk import require
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, dig
from seatrial.model.trial import ROLLS_BACK, Step, Trial
from seatrial.sandbox.client import Binary
from seatrial.sources.charts.chart import ChartSource, own_values, with_own_values
from seatrial.sources.charts.conditions import looks_up
from seatrial.sources.charts.values import merged
from seatrial.sources.files import project_of
from seatrial.sources.opened import Opened

SIMULATED = "helm@3 is simulated; templates are rendered by Helm 4. Use --helm-binary PATH to run a real Helm 3."
NEARBY = (
    f"helm@{{}} is rehearsed with Helm {{}}, and with the differences that docs/helm-3-and-4.md marks as known. Use "
    f"{FLAG} PATH to run the real one."
)
ON_PATH = (
    f"helm on the PATH is {{}}; rehearsed with the built-in Helm {sdk.VERSION}. Use {FLAG} helm to rehearse with it."
)


ONLY_RENDERS = ("--no-hooks", "--skip-crds", "--take-ownership", "--disable-openapi-validation")
"""Flags of an act of which only the record is of interest."""


class WhichHelm(Struct, frozen=True):
    """Which Helm runs: the SDK, a binary, or a simulated Helm 3."""

    binary: Binary | None = None
    simulated: bool = False
    as_version: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def configure(setting: Setting, trial: Trial) -> Setting:
    """The Helm that is asked for: the one that is built in, a binary, or a simulated Helm 3."""
    path = setting.binaries.get(sdk.NAME, "")
    if binary := process.chosen(setting.engine, path):
        engine = EngineId(sdk.NAME, binary.version, real=True)
        return replace(setting, engine=engine, config=WhichHelm(binary))
    require()
    engine = EngineId(sdk.NAME, process.asked_version(setting.engine))
    simulated = int(engine.major) < sdk.MAJOR
    nearby = engine.numbers if engine.version not in (sdk.VERSION, v3.VERSION) else ()
    notes = tuple(_notes(setting, engine, simulated=simulated))
    return replace(setting, engine=engine, config=WhichHelm(None, simulated, nearby, notes))


def _notes(setting: Setting, engine: EngineId, *, simulated: bool) -> Iterator[str]:
    """What is rehearsed in place of the version that is asked for, or that the user has."""
    if simulated:
        yield SIMULATED
    if engine.version not in (sdk.VERSION, v3.VERSION):
        yield NEARBY.format(engine.version, v3.VERSION if simulated else sdk.VERSION)
    project = project_of(Path(setting.opened.beside or setting.opened.base))
    if not setting.engine.version and (other := process.other_on_path(project)):
        yield ON_PATH.format(other.version)


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[HelmAct]:
    """What Helm is to do in a step, and the release that it deploys."""
    before = _recorded_before(step, earlier, setting.history)
    planned = _deployed(step, setting, before) if step.action in sdk.DEPLOYS else _without_chart(step, setting, before)
    client: WhichHelm = setting.config
    act = replace(planned.act, binary=client.binary, simulated=client.simulated, as_version=client.as_version)
    return replace(planned, act=act, notes=client.notes)


def _deployed(step: Step, setting: Setting, before: Revisions) -> PlannedStep[HelmAct]:
    opened = setting.opened
    chart = opened.chart_of(step)
    namespace = step.namespace or setting.namespace
    name = step.release or setting.release or chart.release
    given = values_of(step, setting)
    if not given and setting.history:
        given = setting.history.current.release.values  # Helm keeps them, and a user who reinstalls gives them again.
    values, defaults = before.values(name, namespace, given, step)

    as_valued = chart if defaults is None else with_own_values(chart, defaults)

    def render(more: Sequence[str] = ()) -> Release:
        release = _as_upgrade_or_install(
            opened,
            as_valued,
            values,
            release=name,
            namespace=namespace,
            is_upgrade=step.action == "upgrade" and not ("--install" in step.flags and before.is_new(name, namespace)),
            revision=max(before.numbers(name, namespace), default=0) + 1 if opened.asks(chart) else 1,
            kube_version=f"v{setting.kube_version}.0",
            api_versions=tuple(dict.fromkeys((*setting.api_versions, *more))),
        )
        return replace(release, crds=(), skipped_crds=release.crds) if "--skip-crds" in step.flags else release

    asks = opened.asks(chart)
    act = HelmAct(
        step.action,
        name,
        namespace,
        chart.as_deployed(values).load,
        given,
        step.flags,
        archive=chart.archive,
        defaults=own_values(chart) if defaults is None else defaults,
        asks=asks,
        render=render if asks and setting.config.simulated else None,
        looks_up=_looking_up(as_valued, name, namespace, values) if setting.config.simulated else None,
    )
    installs = step.action == "install" or "--install" in step.flags
    creates = (namespace,) if installs and "--create-namespace" in step.flags else ()
    return PlannedStep(step, sdk.NAME, name, namespace, act, render(), namespaces=creates)


def _looking_up(chart: ChartSource, name: str, namespace: str, values: Body) -> HelmAct | None:
    """The act that renders a chart which uses `lookup`; None for another one."""
    if not looks_up(chart.files):
        return None
    return HelmAct("install", name, namespace, chart.as_deployed(values).load, values, ONLY_RENDERS)


def _as_upgrade_or_install(
    opened: Opened, chart: ChartSource, values: Body, *, is_upgrade: bool, **options: Any
) -> Release:
    """A chart may refuse an upgrade if `lookup` finds nothing, as here: then it is rendered as an install.

    What Helm really deploys, it renders by itself when the step is rehearsed.
    """
    try:
        return opened.render(chart, values, is_upgrade=is_upgrade, **options)
    except CannotContinue:
        if not is_upgrade or not opened.asks(chart):
            raise
        return opened.render(chart, values, is_upgrade=False, **options)


def _without_chart(step: Step, setting: Setting, before: Revisions) -> PlannedStep[HelmAct]:
    namespace = step.namespace or setting.namespace
    name = step.release or setting.release or setting.opened.first_name
    target = before.target(name, namespace, step.revision) if step.action == "rollback" else None
    if step.revision and target is None and not before.unsure:
        known = before.numbers(name, namespace)
        there = f"only {', '.join(map(str, known))}" if known else "the release is not installed"
        raise CannotContinue(f"step rollback: {name} has no revision {step.revision} at this step, {there}")
    defaults = target.defaults if target else {}
    act = HelmAct(step.action, name, namespace, flags=step.flags, revision=step.revision, defaults=defaults)
    return PlannedStep(step, sdk.NAME, name, namespace, act, target.release if target else None)


class Deployed(Struct, frozen=True):
    """One revision: its objects, the values the user gave, and those of its chart."""

    release: Release
    defaults: Body = {}


def _recorded_before(step: Step, earlier: Sequence[PlannedStep[Any]], history: History | None) -> Revisions:
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
