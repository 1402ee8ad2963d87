"""The steps of a trial, with everything an engine needs to play them: charts opened, values merged, releases rendered.

Knows nothing of what is assumed to be in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster.discovery.served import Discovery
from seatrial.engines import argocd, flux
from seatrial.engines.kubectl import commands as kubectl
from seatrial.helm.history import History
from seatrial.kinds.tables.catalogue import CATALOGUE, Entry
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.model.trial import Step
from seatrial.plan.plan import Played
from seatrial.plan.stage import flux as fluxes
from seatrial.plan.stage.argocd import gather
from seatrial.plan.stage.helm_storage import Past
from seatrial.sources import git, kind_at, kind_of
from seatrial.sources.argocd.helm import as_argocd_renders
from seatrial.sources.charts.chart import ChartSource, open_chart, own_values, with_own_values
from seatrial.sources.charts.gates import asks_anything
from seatrial.sources.charts.rendering import render
from seatrial.sources.charts.values import ValueFlags, merged, merged_values, values_in
from seatrial.sources.files import STDIN
from seatrial.sources.flux.building import Shelf, read_folder
from seatrial.sources.manifests.parts import GROUP as KUSTOMIZE_FILES
from seatrial.sources.manifests.parts import part_of
from seatrial.sources.manifests.reading import kinds_in, read_manifests
from seatrial.sources.pulumi import read_program
from seatrial.sources.pulumi.taken import as_program
from seatrial.sources.repos import Repos

RENDERED = ("install", "upgrade")
PROGRAMMED = ("up", "refresh", "destroy")
USUAL_ENGINE = {"chart": "helm", "manifests": "kubectl", "program": "pulumi"}
SYNCING = (argocd.NAME, flux.NAME)
"""Engines that delete what they sync."""
RECURSIVE = ("-R", "--recursive", "--recursive=true")
PIPED = "kubectl: taken as helm template{} | kubectl apply -f -, to which hooks are objects like all others"
LEFT_OUT = "kubectl: helm template leaves the definitions of crds/ out; --include-crds has it print them"


class Opened:
    """The charts and manifests of a trial, each opened once."""

    def __init__(self, base: str, beside: str) -> None:
        """Paths are relative to `base`; `git:REF` is about the checkout that holds `beside`."""
        self.base = base
        self.beside = beside
        self._charts: dict[str, ChartSource] = {}
        self._releases: dict[tuple[str, bytes], Release] = {}
        self._programs: dict[tuple[str, bytes], Release] = {}
        self._asking: dict[str, bool] = {}
        self.shelf = Shelf()
        """What was built of Kustomizations."""

    def path(self, source: str) -> str:
        return source if source == "-" or git.is_ref(source) else str(PurePath(self.base, source))

    def chart(self, source: str) -> ChartSource:
        path = self.path(source)
        if path not in self._charts:
            self._charts[path] = open_chart(path, self.beside)
        return self._charts[path]

    def asks(self, chart: ChartSource) -> bool:
        """Whether a chart may be rendered otherwise by whoever deploys it."""
        if chart.path not in self._asking:
            self._asking[chart.path] = asks_anything(chart.files)
        return self._asking[chart.path]

    def add(self, chart: ChartSource) -> str:
        """A chart that is not on disk as it is here; the name under which steps deploy it."""
        self._charts[self.path(chart.path)] = chart
        return chart.path

    def render(self, chart: ChartSource, values: Body, *, turn: int = 0, **options: Any) -> Release:
        """A release, rendered once however many steps and cases deploy it; in another `turn`, once more."""
        key = (chart.path, msgspec.json.encode([values, options, turn], order="sorted"))
        if key not in self._releases:
            self._releases[key] = render(chart, values, **options)
        return self._releases[key]

    def program(self, source: str, values: Body, read: Callable[[str], Release], *, anew: bool = False) -> Release:
        """A Pulumi program, run once however many steps bring it up; without a source, the first one.

        `anew` runs one again whose charts make values up.
        """
        path = self.path(source)
        key = (path, msgspec.json.encode(values, order="sorted")) if source else next(iter(self._programs), (path, b""))
        known = self._programs.get(key)
        if known is None or (anew and known.program is not None and known.program.varies):
            known = self._programs[key] = read(path)
        return known

    def case_values(self, case: str) -> Body:
        """The values that make a case, from whichever chart of the trial has them."""
        texts = [chart.cases[case] for chart in self._charts.values() if case in chart.cases]
        return values_in(texts[-1]) if texts else {}

    @property
    def first_name(self) -> str:
        """The name under which the first chart of the trial is installed, where none is given."""
        return next((chart.name for chart in self._charts.values()), "")

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for chart in self._charts.values() for name in chart.missing_dependencies)


class Setting(Struct, frozen=True):
    """What holds for all steps of a plan."""

    opened: Opened
    case: str
    values: ValueFlags
    namespace: str
    release: str
    kube_version: str
    api_versions: tuple[str, ...]
    assumed: tuple[Body, ...] = ()
    """Objects that the user says are in the cluster."""
    history: History | None = None
    argocd: argocd.Settings | None = None
    """How Argo CD is set up, where it is the engine."""
    repos: Repos = Repos()
    charts: dict[str, str] = {}
    """Where the charts are that Pulumi programs and HelmReleases fetch, by name."""
    engine: str = ""
    include_crds: bool = False
    """Whether `helm template` prints the definitions of crds/ for kubectl; other engines bring them anyway."""


def staged(steps: Iterable[Step], setting: Setting) -> Iterator[tuple[Played, Release | None]]:
    """Every step, those of a rebuild among them, and the release that it deploys."""
    past = Past(setting.history)
    for turn, step in enumerate(_flat(steps)):
        if step.fresh:
            past = Past(None)
        if step.action in RENDERED:
            yield _rendered(step, setting, past)
        elif step.action == "sync" or (setting.engine in SYNCING and _is_application(step, setting)):
            yield _synced(step, setting, turn) if setting.argocd is not None else _fluxed(step, setting)
        elif step.action in PROGRAMMED:
            yield _programmed(step, setting)
        elif step.action in ("apply", "delete"):
            yield _others(step, setting)
        else:
            yield _without_chart(step, setting, past)


def usual_engine(path: str, kind: str) -> str:
    """Who plays an input where nobody says: manifests that Flux acts on are Flux's."""
    if kind == "manifests" and path != STDIN and not kinds_in(path).isdisjoint(fluxes.ACTED_ON):
        return flux.NAME
    return USUAL_ENGINE[kind]


def _flat(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, those of a rebuild among them; the first of these starts on an empty cluster."""
    for step in steps:
        if step.action != "rebuild":
            yield step
            continue
        first, *rest = _flat(step.steps)
        yield replace(first, fresh=True)
        yield from rest


def _rendered(step: Step, setting: Setting, past: Past) -> tuple[Played, Release]:
    opened = setting.opened
    chart = opened.chart(step.source)
    namespace = step.namespace or setting.namespace
    name = step.release or setting.release or chart.name
    given = _given(step, setting)
    if not given and setting.history:
        given = setting.history.current.release.values  # Helm keeps them, and who installs again gives them again.
    values, defaults = past.values(name, namespace, given, step)
    release = _as_upgrade_or_install(
        opened,
        chart if defaults is None else with_own_values(chart, defaults),
        values,
        release=name,
        namespace=namespace,
        is_upgrade=step.action == "upgrade" and not ("--install" in step.flags and past.is_new(name, namespace)),
        revision=max(past.numbers(name, namespace), default=0) + 1 if opened.asks(chart) else 1,
        kube_version=f"v{setting.kube_version}.0",
        api_versions=setting.api_versions,
    )
    past.deploy(release, own_values(chart) if defaults is None else defaults, step)
    return Played(step, name, namespace, chart.load, given, archive=chart.archive, asks=opened.asks(chart)), release


def _as_upgrade_or_install(
    opened: Opened, chart: ChartSource, values: Body, *, is_upgrade: bool, **options: Any
) -> Release:
    """A chart may refuse to be upgraded where `lookup` finds nothing, as here: then it is read as it was installed.

    What Helm really deploys, it renders by itself when the step is played.
    """
    try:
        return opened.render(chart, values, is_upgrade=is_upgrade, **options)
    except CannotContinue:
        if not is_upgrade or not opened.asks(chart):
            raise
        return opened.render(chart, values, is_upgrade=False, **options)


def _given(step: Step, setting: Setting) -> Body:
    """The values of a step: its case's, those beside it, and the user's."""
    opened, flags = setting.opened, setting.values
    files = (*map(opened.path, step.values), *flags.files)
    given = merged_values(replace(flags, files=files, set=(*step.set, *flags.set)))
    return merged(opened.case_values(setting.case), given)


def _is_application(step: Step, setting: Setting) -> bool:
    """Whether `delete` speaks of the Application, and not of an object in the cluster."""
    return step.action == "delete" and bool(step.source) and _kind_named(step.source) is None


def _synced(step: Step, setting: Setting, turn: int) -> tuple[Played, Release]:
    """A chart or manifests as the source of one Application, rendered as Argo CD does: always for an install.

    Each sync is one of another commit, or comes when what was rendered for this one is no longer kept.
    """
    release = _given_release(step, setting, turn=turn)
    if _is_chart(step, setting):
        release = as_argocd_renders(release)
    assert setting.argocd is not None
    gathered = gather(release, setting.repos, setting.argocd, **_served(setting))
    played = Played(step, release.name, release.namespace, fleet=gathered.fleet, notes=gathered.notes)
    return played, gathered.release


def _fluxed(step: Step, setting: Setting) -> tuple[Played, Release]:
    """Manifests as what Flux begins with, or as one Kustomization; a chart as that of one HelmRelease."""
    release = _given_release(step, setting)
    if _is_chart(step, setting):
        gathered = fluxes.gather_chart(setting.opened.chart(step.source), _given(step, setting), release)
    else:
        gathered = fluxes.gather(release, setting.repos, setting.charts, setting.opened.shelf, **_served(setting))
    return Played(step, release.name, release.namespace, flux=gathered.fleet, notes=gathered.notes), gathered.release


def _programmed(step: Step, setting: Setting) -> tuple[Played, Release | None]:
    """A Pulumi program, and what it registers; what `destroy` destroys is what was last brought up."""

    def read(path: str) -> Release:
        beside = setting.opened.beside
        kind = kind_at(path, beside) if git.is_ref(path) else kind_of(path)
        if kind == "program":
            return read_program(path, setting.charts, beside=beside, config=given, **_served(setting))
        return as_program(_given_release(step, setting), kind)

    given = _given(step, setting)
    release = setting.opened.program(step.source, given, read, anew=step.action == "up")
    name, namespace = step.release or setting.release or release.name, step.namespace or setting.namespace
    assert release.program is not None
    notes = (*release.program.unknown, *release.program.warnings)
    played = Played(step, name, namespace, program=release.program, notes=notes)
    return played, replace(release, name=name, namespace=namespace) if step.action == "up" else None


def _given_release(step: Step, setting: Setting, *, turn: int = 0) -> Release:
    """The chart of a step as it is installed, or its manifests, for engines that take either."""
    opened, namespace = setting.opened, step.namespace or setting.namespace
    if not _is_chart(step, setting):
        path = opened.path(step.source)
        name = step.release or setting.release or PurePath(path).stem or "app"
        read = read_folder if setting.engine == flux.NAME else read_manifests
        return read(path, namespace=namespace, release=name)
    chart = opened.chart(step.source)
    name = step.release or setting.release or chart.name
    values = _given(step, setting)
    return opened.render(chart, values, turn=turn, release=name, namespace=namespace, **_served(setting))


def _is_chart(step: Step, setting: Setting) -> bool:
    path = setting.opened.path(step.source)
    return git.is_ref(path) or kind_of(path) == "chart"


def _served(setting: Setting) -> Body:
    """What templates are told of the cluster."""
    return {"kube_version": f"v{setting.kube_version}.0", "api_versions": setting.api_versions}


def _others(step: Step, setting: Setting) -> tuple[Played, Release | None]:
    """What people do without Helm; a chart is piped from `helm template`."""
    namespace = step.namespace or setting.namespace
    if step.action == "delete":
        return Played(step, "", namespace, objects=tuple(_deleted(step, setting))), None
    if _is_chart(step, setting):
        return _piped(step, setting, namespace)
    recursive = _is_recursive(step, setting)
    release = read_manifests(setting.opened.path(step.source), namespace=namespace, recursive=recursive)
    if built := next((resource for resource in release.resources if resource.ref.group == KUSTOMIZE_FILES), None):
        raise CannotContinue(part_of(built.file))
    objects = tuple(kubectl.Manifest(resource.body, resource.file) for resource in release.resources)
    return Played(step, "", namespace, objects=objects), release


def _is_recursive(step: Step, setting: Setting) -> bool:
    """Who writes a trial says `-R` as one does to kubectl; who gives a folder to look at means all that is in it."""
    return not setting.opened.base or any(flag in RECURSIVE for flag in step.flags)


def _piped(step: Step, setting: Setting, namespace: str) -> tuple[Played, Release]:
    release, notes = _given_release(step, setting), [PIPED.format(" --include-crds" if setting.include_crds else "")]
    if release.crds and not setting.include_crds:
        release = replace(release, crds=())
        notes.append(LEFT_OUT)
    piped = tuple(kubectl.Manifest(resource.body) for resource in (*release.crds, *release.resources))
    return Played(step, "", namespace, objects=piped, notes=tuple(notes)), release


def _without_chart(step: Step, setting: Setting, past: Past) -> tuple[Played, Release | None]:
    namespace = step.namespace or setting.namespace
    name = step.release or setting.release or setting.opened.first_name
    known = past.numbers(name, namespace)
    release = past.roll_back(name, namespace, step.revision) if step.action == "rollback" else None
    if step.revision and release is None and not past.unsure:
        there = f"only {', '.join(map(str, known))}" if known else "it is not installed"
        raise CannotContinue(f"step rollback: {step.revision}: there is no such revision of {name} by then, {there}")
    if step.action == "uninstall":
        past.uninstall(name, namespace, step)
    return Played(step, name, namespace), release


def _deleted(step: Step, setting: Setting) -> Iterator[kubectl.Manifest]:
    """What `delete` names: an object `Kind/namespace/name`, or files of objects."""
    parts = step.source.split("/")
    entry = _kind_named(step.source)
    if entry is None:
        path, namespace = setting.opened.path(step.source), step.namespace or setting.namespace
        release = read_manifests(path, namespace=namespace, recursive=_is_recursive(step, setting))
        yield from (kubectl.Manifest(resource.body, resource.file) for resource in release.resources)
        return
    if len(parts) != (3 if entry.namespaced else 2):
        shape = "Kind/namespace/name" if entry.namespaced else "Kind/name"
        raise CannotContinue(f"delete {step.source}: a {entry.kind} is named {shape}")
    kind = Discovery(setting.kube_version).of_kind(entry.group, entry.kind)
    if kind is None:
        raise CannotContinue(f"delete {step.source}: Kubernetes {setting.kube_version} serves no {entry.kind}")
    meta = {"name": parts[-1], "namespace": parts[1]} if entry.namespaced else {"name": parts[-1]}
    yield kubectl.Manifest({"apiVersion": kind.api_version, "kind": entry.kind, "metadata": meta}, "")


def _kind_named(source: str) -> Entry | None:
    """The kind of the object that is named so, if one is."""
    return next((entry for entry in CATALOGUE.values() if entry.kind == source.split("/")[0]), None)
