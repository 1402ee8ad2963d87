"""What holds for all steps of one case of a trial, and how their charts and manifests are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm.history import History
from seatrial.model.engine import EngineId
from seatrial.model.options import ValueFlags
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.model.snapshot import Snapshot
from seatrial.model.trial import Step
from seatrial.sources import CHART, git, kind_of
from seatrial.sources.charts.next_version import next_values
from seatrial.sources.charts.values import merged, merged_values
from seatrial.sources.manifests.reading import read_manifests
from seatrial.sources.opened import Opened
from seatrial.sources.repos import Repos


class Setting(Struct, frozen=True):
    """What holds for all steps of a plan."""

    engine: EngineId
    """As the user asks for it, until the engine is configured; then with the version that is rehearsed."""
    opened: Opened
    case: str
    values: ValueFlags
    namespace: str
    release: str
    kube_version: str
    api_versions: tuple[str, ...]
    api_version_of: Callable[[str, str], str]
    """The apiVersion in which Kubernetes serves a kind of a group; empty where it does not."""
    assumed: tuple[Body, ...] = ()
    """Objects that the user says are in the cluster."""
    snapshot: Snapshot | None = None
    """The real cluster whose objects are among them."""
    only: bool = False
    """Whether the user says that nothing else is there."""
    absent: tuple[str, ...] = ()
    """Objects that the user says are not there: `Kind/namespace/name`, `Kind/name`."""
    history: History | None = None
    repos: Repos = Repos()
    charts: dict[str, str] = {}
    """Where the charts are that Pulumi programs and HelmReleases fetch, by name."""
    include_crds: bool = False
    """Whether `helm template` prints the CRDs of crds/ for kubectl; other engines bring them anyway."""
    binaries: dict[str, str] = {}
    """By engine: the user's binary that runs in place of what is built in or simulated."""
    trust: bool = False
    """Whether programs run without a sandbox where the system has none."""
    config: Any = None
    """How the engine itself is set up; only the engine knows what this is."""


def release_of(
    step: Step, setting: Setting, *, turn: int = 0, read: Callable[..., Release] = read_manifests
) -> Release:
    """The chart of a step as it is installed, or its manifests, for engines that take either."""
    opened, namespace = setting.opened, step.namespace or setting.namespace
    if not is_chart(step, setting):
        path = opened.path(step.source)
        name = step.release or setting.release or PurePath(path).stem or "app"
        return read(path, namespace=namespace, release=name)
    chart = opened.chart_of(step)
    name = step.release or setting.release or chart.release
    values = values_of(step, setting)
    return opened.render(chart, values, turn=turn, release=name, namespace=namespace, **served(setting))


def is_chart(step: Step, setting: Setting) -> bool:
    path = setting.opened.path(step.source)
    return git.is_ref(path) or kind_of(path) == CHART


def values_of(step: Step, setting: Setting) -> Body:
    """The values of a step: its case's, those beside it, and the user's."""
    opened, flags = setting.opened, setting.values
    files = (*map(opened.path, step.values), *flags.files)
    of_case = opened.case_values(setting.case)
    given = merged(of_case, merged_values(replace(flags, files=files, set=(*step.set, *flags.set))))
    return given if step.next is None else next_values(opened.chart_of(step), given, step.next.kept)


def served(setting: Setting) -> dict[str, Any]:
    """What templates see of the cluster (`.Capabilities`)."""
    return {"kube_version": f"v{setting.kube_version}.0", "api_versions": setting.api_versions}
