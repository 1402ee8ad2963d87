"""From what the user typed to plans: which trial, which cases, which releases, what is assumed. Plays nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial import outside, sources
from seatrial.case import Case, Release
from seatrial.cluster.discovery import Discovery
from seatrial.cluster.schema import published_versions
from seatrial.errors import CannotContinue, NothingToCheck
from seatrial.kinds.catalogue import CATALOGUE
from seatrial.rehearsal import Plan, Played
from seatrial.resource import Body
from seatrial.result import Prerequisite
from seatrial.sources.chart import ChartSource, open_chart
from seatrial.sources.manifests import read_manifests
from seatrial.sources.rendering import render
from seatrial.sources.values import ValueFlags, merged, merged_values, values_in
from seatrial.trial import Assumptions, Step, StorageClass, Trial, default_steps

KUBE_VERSION = "1.34"
USUAL_STORAGE = StorageClass("standard", binding="WaitForFirstConsumer", default=True)
"""What most clusters have: a default class that waits for the first consumer."""
WAIT = "--wait"
"""The case of those who wait: CI pipelines, Flux, `--atomic`."""
WAITING_STEPS = 2
RENDERED = ("install", "upgrade")
PLAYABLE = ("helm", "kubectl")


class CheckOptions(Struct, frozen=True):
    """What the user asked for, in Helm's words where Helm has one."""

    inputs: tuple[str, ...]
    old: str = ""
    engines: tuple[str, ...] = ()
    values: ValueFlags = ValueFlags()
    release_name: str = ""
    namespace: str = ""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()


class Planned(Struct, frozen=True):
    """A plan, the engine that plays it, and what had to be taken for granted."""

    engine: str
    plan: Plan
    prerequisites: tuple[Prerequisite, ...] = ()
    missing_dependencies: tuple[str, ...] = ()


def plans(options: CheckOptions) -> Iterator[Planned]:
    """Every case of every input, for every engine that plays it."""
    for path in options.inputs:
        kind = sources.kind_of(path)
        if kind == "trial":
            if options.old:
                raise CannotContinue(f"{path} is a trial file, which says its own steps: --from does not go with it")
            trial = sources.read_trial(path)
            base = str(PurePath(path).parent)
        else:
            trial = _default_trial(path, kind, options)
            base = ""
        yield from _of_trial(trial, base, options)


def _default_trial(path: str, kind: str, options: CheckOptions) -> Trial:
    engines = options.engines or ("helm" if kind == "chart" else "kubectl",)
    name = engines[0].partition("@")[0]
    return Trial(engines=engines, steps=default_steps(path, options.old, engine=name))


def _of_trial(trial: Trial, base: str, options: CheckOptions) -> Iterator[Planned]:
    for engine in options.engines or trial.engines:
        name = engine.partition("@")[0]
        if name not in PLAYABLE:
            raise CannotContinue(f"the engine {engine} cannot be played yet; known are {', '.join(PLAYABLE)}")
        opened = _Sources(base)
        for case, variant in _cases(trial, opened, options, own=not base):
            yield _planned(variant, name, case, opened, options)


def _cases(trial: Trial, opened: _Sources, options: CheckOptions, *, own: bool) -> Iterator[tuple[str, Trial]]:
    """The plain one; each ci/*-values.yaml of the newest chart; and, where we chose the steps, those that wait."""
    yield "", trial
    newest = next((step for step in reversed(trial.steps) if step.action in RENDERED), None)
    if newest is None:
        return
    if options.values == ValueFlags() and not newest.values and not newest.set:
        yield from ((name, trial) for name in sorted(opened.chart(newest.source).cases))
    if own:
        yield WAIT, replace(trial, steps=tuple(_waiting(step) for step in trial.steps[:WAITING_STEPS]))


def _waiting(step: Step) -> Step:
    return replace(step, flags=(*step.flags, WAIT)) if step.action in RENDERED else step


class _Sources:
    """The charts and manifests of a trial, each opened once."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._charts: dict[str, ChartSource] = {}
        self._releases: dict[tuple[str, bytes], Release] = {}

    def path(self, source: str) -> str:
        return source if source == "-" else str(PurePath(self._base, source))

    def chart(self, source: str) -> ChartSource:
        path = self.path(source)
        if path not in self._charts:
            self._charts[path] = open_chart(path)
        return self._charts[path]

    def render(self, chart: ChartSource, values: Body, **options: Any) -> Release:
        """A release, rendered once however many steps and cases deploy it."""
        key = (chart.path, msgspec.json.encode([values, options], order="sorted"))
        if key not in self._releases:
            self._releases[key] = render(chart, values, **options)
        return self._releases[key]

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


def _planned(trial: Trial, engine: str, case: str, opened: _Sources, options: CheckOptions) -> Planned:
    kube_version = minor_of(options.kube_version or trial.assume.kubernetes)
    setting = _Setting(
        opened=opened,
        case=case,
        options=options,
        namespace=options.namespace or trial.namespace,
        release=options.release_name or trial.release,
        kube_version=kube_version,
        api_versions=(*Discovery(kube_version).api_versions(), *options.api_versions),
    )
    played = tuple(_step(step, setting) for step in _flat(trial.steps))
    releases = _with_rollbacks([release for _, release in played], [step for step, _ in played])
    given = [release for release in releases if release is not None]
    if not any(release.resources or release.crds for release in given):
        raise NothingToCheck(
            f"{' and '.join(sorted({r.source for r in given}))}: renders to no Kubernetes object at all"
        )
    taken = _taken_for_granted(given, setting)
    assumed = (*_assumed(trial.assume, setting), *(body for body, _ in taken))
    plan = Plan(tuple(step for step, _ in played), Case(case, releases), kube_version, assumed)
    prerequisites = (*(prerequisite for _, prerequisite in taken), *outside.default_storage(given))
    return Planned(engine, plan, prerequisites, opened.missing)


class _Setting(Struct, frozen=True):
    """What holds for all steps of a plan."""

    opened: _Sources
    case: str
    options: CheckOptions
    namespace: str
    release: str
    kube_version: str
    api_versions: tuple[str, ...]


def _flat(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, those of a rebuild among them; the first of these starts on an empty cluster."""
    for step in steps:
        if step.action != "rebuild":
            yield step
            continue
        first, *rest = _flat(step.steps)
        yield replace(first, fresh=True)
        yield from rest


def _step(step: Step, setting: _Setting) -> tuple[Played, Release | None]:
    namespace = step.namespace or setting.namespace
    opened = setting.opened
    if step.action in RENDERED:
        chart = opened.chart(step.source)
        flags = setting.options.values
        files = (*map(opened.path, step.values), *flags.files)
        given = merged_values(replace(flags, files=files, set=(*step.set, *flags.set)))
        values = merged(opened.case_values(setting.case), given)
        name = step.release or setting.release or chart.name
        release = opened.render(
            chart,
            values,
            release=name,
            namespace=namespace,
            is_upgrade=step.action == "upgrade",
            kube_version=f"v{setting.kube_version}.0",
            api_versions=setting.api_versions,
        )
        return Played(step, name, namespace, chart.load, values), release
    if step.action == "apply":
        release = read_manifests(opened.path(step.source), namespace=namespace)
        return Played(step, "", namespace, objects=tuple(r.body for r in release.resources)), release
    if step.action == "delete":
        return Played(step, "", namespace, objects=tuple(_deleted(step, setting))), None
    return Played(step, step.release or setting.release or opened.first_name, namespace), None


def _deleted(step: Step, setting: _Setting) -> Iterator[Body]:
    """What `delete` names: an object `Kind/namespace/name`, or a file of objects."""
    parts = step.source.split("/")
    kinds = [entry for entry in CATALOGUE.values() if entry.kind == parts[0]]
    if not kinds:
        path = setting.opened.path(step.source)
        release = read_manifests(path, namespace=step.namespace or setting.namespace)
        yield from (resource.body for resource in release.resources)
        return
    entry = kinds[0]
    if len(parts) != (3 if entry.namespaced else 2):
        shape = "Kind/namespace/name" if entry.namespaced else "Kind/name"
        raise CannotContinue(f"delete {step.source}: a {entry.kind} is named {shape}")
    kind = Discovery(setting.kube_version).of_kind(entry.group, entry.kind)
    if kind is None:
        raise CannotContinue(f"delete {step.source}: Kubernetes {setting.kube_version} serves no {entry.kind}")
    meta = {"name": parts[-1], "namespace": parts[1]} if entry.namespaced else {"name": parts[-1]}
    yield {"apiVersion": kind.api_version, "kind": entry.kind, "metadata": meta}


def _with_rollbacks(releases: list[Release | None], steps: list[Played]) -> tuple[Release | None, ...]:
    """A rollback deploys the release of the revision that it goes back to."""
    filled = list(releases)
    revisions: list[int] = []
    for index, played in enumerate(steps):
        match played.step.action:
            case "install" | "upgrade":
                revisions.append(index)
            case "rollback":
                wanted = played.step.revision or len(revisions) - 1
                if 0 < wanted <= len(revisions):
                    filled[index] = filled[revisions[wanted - 1]]
                revisions.append(index)
            case "uninstall":
                revisions.clear()
    return tuple(filled)


def _taken_for_granted(releases: list[Release], setting: _Setting) -> list[tuple[Body, Prerequisite]]:
    objects = outside.objects(releases)
    return [
        *outside.definitions(releases),
        *outside.namespaces(releases, [setting.namespace], objects),
        *objects,
    ]


def _assumed(assume: Assumptions, setting: _Setting) -> Iterator[Body]:
    """What the trial file and the flags say is in the cluster."""
    served = Discovery(setting.kube_version).api_versions()
    yield from outside.from_api_versions(setting.options.api_versions, served)
    for path in (*assume.crds, *assume.objects):
        yield from (r.body for r in read_manifests(setting.opened.path(path), namespace=setting.namespace).resources)
    for path in setting.options.assume:
        yield from (r.body for r in read_manifests(path, namespace=setting.namespace).resources)
    for storage_class in assume.storage_classes or (USUAL_STORAGE,):
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if storage_class.default else {}
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": storage_class.name, "annotations": annotations},
            "provisioner": "example.com/assumed",
            "volumeBindingMode": storage_class.binding,
        }


def minor_of(asked: str) -> str:
    """The minor whose schemas are used: `v1.31.2`, `1.31` and nothing are understood."""
    if not asked:
        return KUBE_VERSION
    minor = ".".join(asked.removeprefix("v").split(".")[:2])
    known = published_versions()
    if minor not in known:
        raise CannotContinue(f"--kube-version {asked}: only {known[0]} to {known[-1]} are known")
    return minor
