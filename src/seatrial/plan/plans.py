"""From what the user typed to plans: which trial, which cases, which releases, what is assumed. Plays nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial import sources
from seatrial.cluster.discovery.schema import published_versions
from seatrial.cluster.discovery.served import Discovery
from seatrial.engines import argocd, flux, pulumi
from seatrial.engines.helm import process
from seatrial.engines.kubectl import commands as kubectl
from seatrial.helm.history import History, existing_objects
from seatrial.helm.records import record_name
from seatrial.kinds.core.crd import api_versions
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Case, Release
from seatrial.model.resource import name_of
from seatrial.model.result import Prerequisite
from seatrial.model.trial import Step, Trial, default_steps, steps_after
from seatrial.plan.matrix import Cell, cells, differences, transitions
from seatrial.plan.plan import Plan
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.combined import not_brought, said_to_be_there, taken_for_granted
from seatrial.plan.renderings import between_acts, between_steps, both_acts, consumer_of
from seatrial.plan.stage.argocd import namespaces_made
from seatrial.plan.stage.argocd_settings import is_setting, settings_of
from seatrial.plan.stage.steps import RENDERED, USUAL_ENGINE, Opened, Setting, staged, usual_engine
from seatrial.sources import git
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.charts.consumers import (
    consumers_of,
    helpers_called,
    helpers_changed,
    with_library,
)
from seatrial.sources.charts.rendering import NotRendered
from seatrial.sources.charts.values import ValueFlags
from seatrial.sources.manifests.reading import read_manifests
from seatrial.sources.repos import charts_given, repos_of
from seatrial.sources.stored import asked, read_history

KUBE_VERSION = "1.34"
WAIT = "--wait"
"""The case of those who wait: CI pipelines, Flux, `--atomic`."""
WAITING_STEPS = 2
CONSUMERS_MAX = 30
RENDERINGS_MAX = 3
"""A kind that is taken for granted may let a template write what it asks for, and that may need another."""
HELM_3 = "helm@3: played by its rules, with what Helm 4 renders; --helm-binary PATH plays a Helm 3 of yours"
PLAYABLE = ("helm", "kubectl", "argocd", "flux", "pulumi")
ONE_VERSION = {engine.NAME: engine.VERSION for engine in (flux, kubectl, pulumi)}


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
    include_crds: bool = False
    assume: tuple[str, ...] = ()
    matrix: tuple[str, ...] = ()
    """`key=v1,v2`"""
    repos: tuple[str, ...] = ()
    """`URL=PATH`: folders that stand for the repositories of Applications."""
    consumers: str = ""
    """The folder with the charts that use the input."""
    helm_binary: str = ""
    """The helm that plays in the place of the SDK."""
    charts: tuple[str, ...] = ()
    """`NAME=PATH`: where a chart is that a Pulumi program fetches."""
    compare: str = ""
    """What the input is compared with."""
    instead: str = ""
    """What is deployed in the place of the input, under its name."""


class Planned(Struct, frozen=True):
    """A plan, and the engine that rehearses it."""

    engine: str
    plan: Plan

    @property
    def case(self) -> Case:
        return self.plan.case


def plans(options: CheckOptions) -> Iterator[Planned]:
    """Every case of every input, for every engine that plays it."""
    repos_of(options.repos)
    for path in options.inputs:
        kind = sources.kind_of(path)
        if kind == "trial":
            if options.old:
                raise CannotContinue(f"{path} is a trial file, which says its own steps: --from does not go with it")
            if options.matrix or options.consumers:
                flag = "--matrix" if options.matrix else "--consumers"
                raise CannotContinue(f"{path} is a trial file, which says what is deployed: {flag} does not go with it")
            base = str(PurePath(path).parent)
            yield from _of_trial(sources.read_trial(path), Opened(base, base), options)
        elif options.consumers:
            yield from _of_library(path, options)
        else:
            yield from _of_input(path, kind, options)


def newest_releases(options: CheckOptions) -> list[Release]:
    """What each input deploys in the end, by the name of the release."""
    newest: dict[tuple[str, str, str], Release] = {}
    for path in options.inputs:
        first = next(plans(replace(options, inputs=(path,))))
        for release in first.plan.case.releases:
            if release is not None:
                newest[path, release.namespace, release.name] = release
    return list(newest.values())


def _of_input(path: str, kind: str, options: CheckOptions) -> Iterator[Planned]:
    """The default trial of a chart, of manifests or of a program."""
    if kind == "manifests" and git.is_ref(options.old):
        said = f"--from {options.old} takes a chart or a Pulumi program, and {path} is manifests"
        raise CannotContinue(f"{said}; name a folder with the old ones, or compare: --compare {options.old}")
    for engine in options.engines or (usual_engine(path, kind),):
        name = engine.partition("@")[0]
        if kind == "program" and name != pulumi.NAME:
            raise CannotContinue(f"{path} is played with {USUAL_ENGINE[kind]}, not with {name}")
        opened = Opened("", path)
        history = _history(path, opened, options) if name == "helm" else None
        steps = default_steps(options.instead or path, options.old, engine=name)
        if history is not None:
            steps = steps_after(path, history.current.number)
        # Manifests bear no name: those of the old revision belong to the app that the new ones are of.
        one = PurePath(path).stem if kind == "manifests" and (options.old or options.instead) else ""
        trial = Trial(engines=(engine,), steps=steps, release=one)
        yield from _of_trial(trial, opened, replace(options, engines=()), history)
        if options.matrix:
            if name != "helm":
                raise CannotContinue(f"--matrix gives values to a chart, and {path} is played with {name}")
            yield from _of_matrix(path, trial, opened, options, history)


def _of_matrix(
    path: str, trial: Trial, opened: Opened, options: CheckOptions, history: History | None
) -> Iterator[Planned]:
    """Every way from cell to cell that changes which objects there are."""
    found = cells(options.matrix)
    setting = _setting(trial, "", opened, options, history)
    new = {cell: both_acts(path, cell, setting) for cell in found}
    installed = {cell: both[0] for cell, both in new.items()}
    upgraded = {cell: both[1] for cell, both in new.items()}
    old = installed
    if history:
        old = dict.fromkeys(found[:1], history.current.release)
    elif options.old:
        old = {cell: both_acts(options.old, cell, setting)[0] for cell in found}
    chosen, left_out = transitions(old, upgraded)
    differ = [*differences({cell.name: release for cell, release in upgraded.items()})]
    differ += [d for cell, (i, u) in new.items() for d in between_acts(i, u, opened.chart(path), cell.name)]
    notes = (f"{left_out} of {left_out + len(chosen)} transitions of the matrix were left out",) if left_out else ()
    for transition in chosen:
        step = Step("upgrade", path, set=transition.new.settings)
        first = () if history else (Step("install", options.old or path, set=transition.old.settings),)
        case = transition.new.name if history else transition.name
        variant = replace(trial, steps=(*first, step, step))
        planned = _planned(variant, "helm", replace(setting, case=case), options)
        yield _with(planned, differences=tuple(differ), notes=notes)


def _of_library(path: str, options: CheckOptions) -> Iterator[Planned]:
    """The charts that use a library: each from the old one to the new one, or where there is no old one, by itself."""
    if options.matrix:
        raise CannotContinue("--matrix and --consumers do not go together: flip the values of one consumer at a time")
    library = open_any_chart(path)
    old = open_any_chart(options.old, path) if options.old else library
    changed = helpers_changed(old, library)
    using = list(consumers_of(library, options.consumers))
    if not using:
        raise NothingToCheck(f"{options.consumers}: no chart in it depends on {library.name}")
    left_out = len(using[CONSUMERS_MAX:])
    notes = (f"{left_out} of {len(using)} consumers were left out",) if left_out else ()
    for chart in using[:CONSUMERS_MAX]:
        opened = Opened("", path)
        new = opened.add(with_library(chart, library))
        was = opened.add(with_library(chart, old, f"{chart} ({library.name} of {options.old})")) if options.old else new
        trial = Trial(engines=("helm",), steps=(Step("install", was), Step("upgrade", new), Step("upgrade", new)))
        setting = _setting(trial, chart, opened, options, None)
        planned = _planned(trial, "helm", setting, options)
        before, after = (both_acts(source, Cell(()), setting) for source in (was, new))
        called = sorted(changed & (helpers_called(chart, old) | helpers_called(chart, library)))
        yield _with(planned, notes=notes, consumer=consumer_of(chart, called, before, after))


def _history(path: str, opened: Opened, options: CheckOptions) -> History | None:
    """The release that is deployed already, where `--from` names one: whatever is no chart."""
    if not options.old or git.is_ref(options.old):
        return None
    kind = sources.kind_of(asked(options.old)[0])
    if kind == "trial":
        raise CannotContinue(f"{options.old} is a trial file: --from takes a chart, git:REF or a stored release")
    if kind == "chart":
        return None
    usual = opened.chart(path).name
    return read_history(options.old, name=options.release_name, namespace=options.namespace, usual=usual)


def _of_trial(trial: Trial, opened: Opened, options: CheckOptions, history: History | None = None) -> Iterator[Planned]:
    engines = options.engines or trial.engines
    if options.helm_binary and not any(engine.partition("@")[0] == "helm" for engine in engines):
        raise CannotContinue(f"--helm-binary goes with the engine helm, and this is played with {', '.join(engines)}")
    for engine in engines:
        name = engine.partition("@")[0]
        if name not in PLAYABLE:
            raise CannotContinue(f"the engine {engine} cannot be played yet; known are {', '.join(PLAYABLE)}")
        _refuse_version(engine)
        process.chosen(engine, options.helm_binary)
        left_out: list[str] = []
        for case, variant in _cases(trial, opened, options, own=not opened.base):
            setting = _setting(variant, case, opened, options, history)
            if name == argocd.NAME:
                setting = _with_argocd(setting, engine.partition("@")[2], variant, options)
            elif name == flux.NAME:
                setting = replace(setting, repos=repos_of(options.repos))
            try:
                planned = _planned(variant, name, replace(setting, engine=name), options)
            except NotRendered as why:
                left_out.append(_left_out(case, why, opened))
                continue
            planned = _with(planned, notes=(*planned.case.notes, *left_out))
            yield _by_rules_of_helm_3(planned) if process.by_rules(engine, options.helm_binary) else planned


def _left_out(case: str, why: NotRendered, opened: Opened) -> str:
    """What is said of a case that cannot be rendered, where that is no fault of the chart's; else it is the end."""
    if case in ("", WAIT):
        raise why
    if not opened.missing or opened.base:
        raise CannotContinue(f"with {case}: {why}") from None
    return f"{case} was left out: {why}"


def _by_rules_of_helm_3(planned: Planned) -> Planned:
    told = _with(planned, notes=(*planned.case.notes, HELM_3))
    return replace(told, plan=replace(told.plan, by_rules_of_helm_3=True))


def _cases(trial: Trial, opened: Opened, options: CheckOptions, *, own: bool) -> Iterator[tuple[str, Trial]]:
    """The plain one; each ci/*-values.yaml of the newest chart; and, where we chose the steps, those that wait."""
    yield "", trial
    newest = next((step for step in reversed(trial.steps) if _is_rendered(step, opened)), None)
    if newest is None:
        return
    if options.values == ValueFlags() and not newest.values and not newest.set:
        yield from ((name, trial) for name in sorted(opened.chart(newest.source).cases))
    if own and newest.action in RENDERED:
        yield WAIT, replace(trial, steps=tuple(_waiting(step) for step in trial.steps[:WAITING_STEPS]))


def _refuse_version(engine: str) -> None:
    """A version of an engine that is modelled in one only; Helm and Argo CD know which they have."""
    name, _, version = engine.partition("@")
    has = ONE_VERSION.get(name)
    if has and version and not f"{has}.".startswith(f"{version.removeprefix('v')}."):
        raise CannotContinue(f"--engine {engine}: what is modelled is {name}@{has}")


def _with_argocd(setting: Setting, version: str, trial: Trial, options: CheckOptions) -> Setting:
    """Argo CD set up as the assumed objects and those beside Applications say, and its repositories."""
    paths = {setting.opened.path(step.source) for step in trial.steps if step.action == "sync"}
    beside = [path for path in sorted(paths) if not git.is_ref(path) and sources.kind_of(path) == "manifests"]
    written = (resource.body for path in beside for resource in read_manifests(path).resources)
    said = [body for body in (*setting.assumed, *written) if is_setting(body)]
    others = tuple(body for body in setting.assumed if not is_setting(body))
    return replace(setting, argocd=settings_of(version, said), repos=repos_of(options.repos), assumed=others)


def _is_rendered(step: Step, opened: Opened) -> bool:
    if step.action == "sync":
        path = opened.path(step.source)
        return git.is_ref(path) or sources.kind_of(path) == "chart"
    return step.action in RENDERED


def _waiting(step: Step) -> Step:
    return replace(step, flags=(*step.flags, WAIT)) if step.action in RENDERED else step


def _setting(trial: Trial, case: str, opened: Opened, options: CheckOptions, history: History | None) -> Setting:
    kube_version = minor_of(options.kube_version or trial.assume.kubernetes)
    namespace = history.namespace if history else options.namespace or trial.namespace
    served = Discovery(kube_version).api_versions()
    said = said_to_be_there(
        trial.assume, opened, namespace, served, api_versions=options.api_versions, files=options.assume
    )
    assumed = tuple(said)
    return Setting(
        opened=opened,
        case=case,
        values=options.values,
        namespace=namespace,
        release=history.name if history else options.release_name or trial.release,
        kube_version=kube_version,
        api_versions=(*served, *options.api_versions, *api_versions(assumed)),
        assumed=assumed,
        history=history,
        charts=charts_given(options.charts),
        include_crds=options.include_crds,
    )


def _planned(trial: Trial, engine: str, setting: Setting, options: CheckOptions) -> Planned:
    history = setting.history
    before = history.current.release if history else None
    for _ in range(RENDERINGS_MAX):
        played = tuple(staged(trial.steps, setting))
        given = [release for release in (before, *(release for _, release in played)) if release is not None]
        taken = taken_for_granted(before, given, setting)
        unknown = [name for name in api_versions(body for body, _ in taken) if name not in setting.api_versions]
        if not unknown:
            break
        setting = replace(setting, api_versions=(*setting.api_versions, *unknown))
    notes = tuple(dict.fromkeys(note for step, _ in played for note in step.notes))
    if not any(release.resources or release.crds or _touches_others(release) for release in given):
        empty = f"{' and '.join(sorted({r.source for r in given}))}: renders to no Kubernetes object at all"
        raise NothingToCheck("\n  ".join((empty, *notes)))
    made = {name for step, _ in played if step.fleet for name in namespaces_made(step.fleet)}
    taken = [(body, why) for body, why in taken if body["kind"] != "Namespace" or name_of(body) not in made]
    case = Case(
        name=setting.case,
        releases=tuple(release for _, release in played),
        before=before,
        assumed=(
            *(_stored(history) if history else ()),
            *(replace(prerequisite, ref=needed.ref_in_cluster(body)) for body, prerequisite in taken),
            *needed.default_storage(given),
        ),
        missing_dependencies=setting.opened.missing,
        differences=tuple(between_steps(played, setting)) if engine == "helm" else (),
        notes=notes,
    )
    plan = Plan(
        steps=tuple(step for step, _ in played),
        case=case,
        kube_version=setting.kube_version,
        assumed=(*not_brought(trial, given, setting), *(body for body, _ in taken)),
        deployed=tuple(existing_objects(history)) if history else (),
        argocd=setting.argocd,
        server_side=history is None or history.server_side,
        helm=process.chosen(engine, options.helm_binary),
        revisions=tuple((revision.number, revision.release) for revision in history.revisions) if history else (),
    )
    return Planned(engine, plan)


def _with(planned: Planned, **fields: Any) -> Planned:
    """The same plan, with more said about its case."""
    return replace(planned, plan=replace(planned.plan, case=replace(planned.case, **fields)))


def _touches_others(release: Release) -> bool:
    """Whether a program reads or patches objects that are not its own."""
    return release.program is not None and any(one.object for one in release.program.registrations)


def _stored(history: History) -> Iterator[Prerequisite]:
    current = history.current
    record = f"Secret/{history.namespace}/{record_name(history.name, current.number)}"
    why = f"read from {history.source} ({current.status}); what it describes is taken to be in the cluster as it says"
    yield Prerequisite(record, why)


def minor_of(asked: str) -> str:
    """The minor whose schemas are used: `v1.31.2`, `1.31` and nothing are understood."""
    if not asked:
        return KUBE_VERSION
    minor = ".".join(asked.removeprefix("v").split(".")[:2])
    known = published_versions()
    if minor not in known:
        raise CannotContinue(f"--kube-version {asked}: only {known[0]} to {known[-1]} are known")
    return minor
