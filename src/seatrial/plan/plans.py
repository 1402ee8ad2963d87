"""From options to plans: trials, cases, releases and prerequisites. Rehearses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from seatrial import sources
from seatrial.cluster.discovery.schema import published_versions
from seatrial.cluster.discovery.served import Discovery
from seatrial.engines.engine import configured, load
from seatrial.engines.setting import Setting
from seatrial.helm.binary import stand_in_for_library
from seatrial.helm.history import History, existing_objects, records_of
from seatrial.kinds.core.crd import api_versions
from seatrial.model.engine import EngineId, engine_id
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.release import Case, Release
from seatrial.model.result import NotRehearsed
from seatrial.model.trial import Step, Trial
from seatrial.plan.cases import with_created_namespace, with_second_upgrade
from seatrial.plan.chosen_steps import chosen, with_detour
from seatrial.plan.crowds import refuse_crowds
from seatrial.plan.health_checks import tried_health_checks
from seatrial.plan.libraries import removed_helpers, without_values
from seatrial.plan.matrix import Cell, cells, differences, not_chosen, transitions, without_difference
from seatrial.plan.next_version import Shown, planned_with_next_version
from seatrial.plan.plan import Plan
from seatrial.plan.playable import playable
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.brought import late_objects
from seatrial.plan.prerequisites.combined import (
    Prerequisites,
    absent_names,
    declared_objects,
    descriptions_of_removers,
    prerequisites_of,
    without_installed,
)
from seatrial.plan.prerequisites.declared import is_described
from seatrial.plan.prerequisites.found import (
    STORAGE_CLASSES,
    declared_snapshot,
    named,
    not_evaluated,
    other_kinds,
    split_found,
    stored_release,
    with_snapshot,
    with_values,
)
from seatrial.plan.real_engines import (
    flag_of,
    given_binaries,
    renders,
    simulated_engine,
    with_binary,
    without_binaries,
)
from seatrial.plan.renderings import between_acts, between_steps, both_acts, consumer_of
from seatrial.plan.steps import created_by_engine, notes_on, only_created, planned_steps, usual_engine
from seatrial.sandbox.watchdog import limit_to
from seatrial.sources import CHART, MANIFESTS, PROGRAM, TRIAL, InputKind, git
from seatrial.sources.charts.cascade import moves
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.charts.consumers import (
    consumers_of,
    helpers_called,
    helpers_changed,
    with_library,
)
from seatrial.sources.opened import Opened
from seatrial.sources.repos import charts_given, repos_of
from seatrial.sources.stored import asked, history_in, read_history

KUBE_VERSION = "1.34"
HELM = EngineId(CHART.engine)
CONSUMERS_MAX = 30
RENDERINGS_MAX = 3
"""An assumed kind may enable a template, whose objects may need another kind."""


def plans(options: CheckOptions, *, goes_on: bool = False) -> Iterator[Plan]:
    """Every case of every input, for every engine; `goes_on`: up to the next version of a chart."""
    limit_to(options.limits)
    stand_in_for_library(options.helm_binary)
    repos_of(options.repos)
    options = with_snapshot(options)
    for path in options.inputs:
        kind = sources.kind_of(path)
        if kind == TRIAL:
            if options.old:
                raise CannotContinue(f"--from does not work with the trial file {path}: its steps are in the file")
            if options.steps:
                raise CannotContinue(f"--steps does not work with the trial file {path}: its steps are in the file")
            if options.matrix or options.consumers:
                flag = "--matrix" if options.matrix else "--consumers"
                raise CannotContinue(f"{flag} does not work with the trial file {path}: its releases are in the file")
            base = str(PurePath(path).parent)
            trial = sources.read_trial(path, lambda name: load(name).actions)
            yield from refuse_crowds(_of_trial(trial, Opened(base, base), options))
        elif options.consumers:
            yield from refuse_crowds(_of_library(path, options))
        else:
            yield from refuse_crowds(_of_input(path, kind, options, goes_on=goes_on))


def simulated_plans(options: CheckOptions, real: Sequence[Plan]) -> Iterator[Plan]:
    """The plans of the same trials without the user's binaries, one for each, in their order."""
    if len(options.inputs) > 1:
        raise CannotContinue("--compare-engines needs exactly one input")
    engines = dict.fromkeys(simulated_engine(plan.engine) for plan in real)
    return plans(replace(without_binaries(options), engines=tuple(engines), compare_engines=False), goes_on=True)


def newest_releases(options: CheckOptions) -> list[Release]:
    """The last release of each input, by name."""
    newest: dict[tuple[str, str, str], Release] = {}
    for path in options.inputs:
        first = next(plans(replace(options, inputs=(path,))))
        for release in first.case.releases:
            if release is not None:
                newest[path, release.namespace, release.name] = release
    return list(newest.values())


def _of_input(path: str, kind: InputKind, options: CheckOptions, *, goes_on: bool) -> Iterator[Plan]:
    """The default trial of a chart, of manifests or of a program."""
    if kind == MANIFESTS and git.is_ref(options.old):
        why = f"--from {options.old} works for charts and Pulumi programs, but {path} contains manifests"
        raise CannotContinue(f"{why}; pass a folder with the old manifests, or use --compare {options.old}")
    engines = tuple(map(engine_id, options.engines or (usual_engine(path, kind),)))
    for engine in engines:
        if kind == PROGRAM and engine.name != kind.engine:
            raise CannotContinue(f"{path} is {kind.words}: it is rehearsed with {kind.engine}, not with {engine.name}")
        opened = Opened("", path, options.folder)
        history = _history(path, opened, options) if engine.name == HELM.name else None
        deployed = history.current.number if history else 0
        every = load(engine.name).default_trial(options.instead or path, options.old, deployed)
        steps = with_detour(chosen(every, options.steps, engine.name), options.detour, engine.name)
        trial = Trial(engines=(engine,), steps=steps, release=_one_release(path, kind, opened, options))
        is_first = kind == CHART and not (options.old or options.steps or history)
        going_on = goes_on and is_first
        yield from _of_trial(trial, opened, replace(options, engines=()), history, engines, goes_on=going_on)
        if options.matrix:
            if engine.name != HELM.name:
                raise CannotContinue(
                    f"--matrix needs the engine {HELM.name}, but {path} is rehearsed with {engine.name}"
                )
            yield from _of_matrix(path, trial, opened, options, history)


def _one_release(path: str, kind: InputKind, opened: Opened, options: CheckOptions) -> str:
    """The name of the release where old and new are one app but may not show it; empty if its source names it."""
    if kind == MANIFESTS and (options.old or options.instead):
        return PurePath(path).stem
    # A chart that gets another name is upgraded under the name that the release has.
    return opened.chart(path).release if kind == CHART and options.old else ""


def _of_matrix(
    path: str, trial: Trial, opened: Opened, options: CheckOptions, history: History | None
) -> Iterator[Plan]:
    """Every transition between cells that changes an object."""
    found = cells(options.matrix)
    setting = setting_of(trial, trial.engines[0], "", opened, options, history)
    new = {cell: both_acts(path, cell, setting) for cell in found}
    installed = {cell: both[0] for cell, both in new.items()}
    upgraded = {cell: both[1] for cell, both in new.items()}
    old = installed
    if history:
        old = dict.fromkeys(found[:1], history.current.release)
    elif options.old:
        old = {cell: both_acts(options.old, cell, setting)[0] for cell in found}
    chosen, left = transitions(old, upgraded)
    notes = () if history else tuple(without_difference(upgraded))
    differ = [*differences({cell.name: release for cell, release in upgraded.items()})]
    differ += [d for cell, (i, u) in new.items() for d in between_acts(i, u, opened.chart(path), cell.name)]
    for transition in chosen:
        step = Step("upgrade", path, set=transition.new.settings)
        first = () if history else (Step("install", options.old or path, set=transition.old.settings),)
        case = transition.new.name if history else transition.name
        variant = replace(trial, steps=(*first, step, step))
        planned = plan_of(variant, replace(setting, case=case))
        unseen = (*planned.case.not_rehearsed, *not_chosen(left, chosen))
        noted = (*planned.case.notes, *notes)
        yield _with(planned, differences=tuple(differ), not_rehearsed=unseen, notes=noted)


def _of_library(path: str, options: CheckOptions) -> Iterator[Plan]:
    """The charts that use a library, each upgraded from the old library to the new one, if there is an old one."""
    if options.matrix:
        raise CannotContinue("--matrix does not work with --consumers; check one consumer with --matrix instead")
    engine = next((one for one in map(engine_id, options.engines) if one.name == HELM.name), HELM)
    library = open_any_chart(path)
    old = open_any_chart(options.old, path) if options.old else library
    changed = helpers_changed(old, library)
    using = list(consumers_of(library, options.consumers))
    if not using:
        raise NothingToCheck(f"--consumers {options.consumers}: no chart in this folder depends on {library.name}")
    left_out = len(using[CONSUMERS_MAX:])
    left = (NotRehearsed(f"{left_out} of {len(using)} charts", "--consumers"),) if left_out else ()
    tried = using[:CONSUMERS_MAX]
    notes = (*moves(library, old, options.consumers), *removed_helpers(library, old), *without_values(library, tried))
    for chart in tried:
        opened = Opened("", path)
        new = opened.add(with_library(chart, library))
        was = opened.add(with_library(chart, old, f"{chart} ({library.name} of {options.old})")) if options.old else new
        trial = Trial(engines=(engine,), steps=(Step("install", was), Step("upgrade", new), Step("upgrade", new)))
        setting = setting_of(trial, engine, chart, opened, options, None)
        planned = plan_of(trial, setting)
        before, after = (both_acts(source, Cell(()), setting) for source in (was, new))
        called = sorted(changed & (helpers_called(chart, old) | helpers_called(chart, library)))
        unseen = (*planned.case.not_rehearsed, *left)
        used = consumer_of(chart, called, before, after)
        yield _with(planned, not_rehearsed=unseen, consumer=used, notes=(*planned.case.notes, *notes))
        if was != new:
            fresh = replace(trial, steps=(Step("install", new),))
            yield plan_of(fresh, replace(setting, case=f"{chart}, new install"))


def _history(path: str, opened: Opened, options: CheckOptions) -> History | None:
    """The deployed release, if `--from` names one, which is anything but a chart, or if a snapshot has one."""
    if not options.old and options.snapshot is not None and sources.kind_of(path) == CHART:
        name = options.release_name or opened.chart(path).release
        return history_in(options.snapshot.releases, name, options.namespace or "default", named(options.snapshot))
    if not options.old or git.is_ref(options.old):
        return None
    kind = sources.kind_of(asked(options.old)[0])
    if kind == TRIAL:
        raise CannotContinue(f"--from {options.old}: this is a trial file; use a chart, git:REF or a stored release")
    if kind == CHART:
        return None
    usual = opened.chart(path).release
    return read_history(options.old, name=options.release_name, namespace=options.namespace, usual=usual)


def _of_trial(
    trial: Trial,
    opened: Opened,
    options: CheckOptions,
    history: History | None = None,
    others: Sequence[EngineId] = (),
    *,
    goes_on: bool = False,
) -> Iterator[Plan]:
    """The cases of a trial, for each of its engines; `others` rehearse the same input.

    `goes_on`: up to the next version of the chart.
    """
    engines = tuple(map(engine_id, options.engines)) or trial.engines
    for name in given_binaries(options):
        if not any(engine.name == name or renders(name) for engine in engines):
            named = ", ".join(map(str, engines))
            raise CannotContinue(f"{flag_of(name)} needs the engine {name}, but the input is rehearsed with {named}")
    names = {one.name for one in (*engines, *others)}
    for engine in engines:
        shown: set[Shown] = set()

        def plan(case: str, variant: Trial, engine: EngineId = engine, shown: set[Shown] = shown) -> Plan:
            setting = setting_of(variant, engine, case, opened, options, history)
            again = partial(_planned_again if not opened.base and not options.steps else plan_of, setting=setting)
            if goes_on and not case.startswith("--"):
                planned = planned_with_next_version(variant, setting, load(engine.name), again, shown)
            else:
                planned = again(variant)
            releases = filter(None, planned.case.releases)
            created = only_created(releases, "" if opened.base else opened.beside, names)
            return _with(planned, not_rehearsed=(*planned.case.not_rehearsed, *created))

        by = load(engine.name)
        own = not (opened.base or options.steps or history)
        for planned in playable(trial, by, opened, options, plan, deployed=history is not None):
            yield planned
            if own and not planned.case.name and (made := with_created_namespace(trial, planned.case, by, opened)):
                yield plan(by.namespace_flag, made)


def setting_of(
    trial: Trial, engine: EngineId, case: str, opened: Opened, options: CheckOptions, history: History | None
) -> Setting:
    assume, snapshot = declared_snapshot(trial.assume, opened, options.snapshot)
    kube_version = minor_of(
        options.kube_version or trial.assume.kubernetes or (snapshot.kubernetes if snapshot else "")
    )
    namespace = history.namespace if history else options.namespace or trial.namespace
    discovery = Discovery(kube_version)
    served = discovery.api_versions()
    only = trial.assume.only or options.assume_only
    absent = absent_names((*trial.assume.absent, *options.absent))
    more = (*options.api_versions, *(other_kinds(snapshot) if snapshot else ()))
    said = declared_objects(
        assume,
        opened,
        namespace,
        served,
        api_versions=more,
        files=options.assume,
        only=only or (snapshot is not None and STORAGE_CLASSES in snapshot.whole),
    )
    assumed = (*said, *(snapshot.objects if snapshot else ()))
    given = given_binaries(options)
    setting = Setting(
        engine=engine,
        opened=opened,
        case=case,
        values=options.values,
        namespace=namespace,
        release=history.name if history else options.release_name or trial.release,
        kube_version=kube_version,
        api_versions=(*served, *more, *api_versions(assumed)),
        api_version_of=discovery.api_version_of,
        assumed=assumed,
        snapshot=snapshot,
        only=only,
        absent=absent,
        history=history,
        repos=repos_of(options.repos, opened.beside),
        charts=charts_given(options.charts),
        include_crds=options.include_crds,
        trust=options.trust,
        binaries=with_binary(engine, given) if options.compare_engines else given,
    )
    return configured(load(engine.name), setting, trial)


def _planned_again(trial: Trial, setting: Setting) -> Plan:
    """The plan of a trial, with its upgrade twice if only the second one shows what a new hook does."""
    planned = plan_of(trial, setting)
    again = with_second_upgrade(trial, planned.case)
    return plan_of(again, setting) if again else planned


def plan_of(trial: Trial, setting: Setting) -> Plan:
    history = setting.history
    before = history.current.release if history else None
    for _ in range(RENDERINGS_MAX):
        steps = tuple(planned_steps(trial.steps, setting))
        given = [release for release in (before, *(step.release for step in steps)) if release is not None]
        needs = prerequisites_of(before, given, setting)
        taken = needs.assumed
        unknown = [name for name in api_versions(body for body, _ in taken) if name not in setting.api_versions]
        if not unknown:
            break
        setting = replace(setting, api_versions=(*setting.api_versions, *unknown))
    unseen = tuple(dict.fromkeys(NotRehearsed(words) for step in steps for words in step.not_rehearsed))
    own = (note for step in steps if step.release for note in notes_on(step.release))
    notes = tuple(dict.fromkeys((*(note for step in steps for note in step.notes), *own, *_remarks(setting, needs))))
    if not any(release.resources or release.crds or _touches_others(release) for release in given):
        empty = f"{' and '.join(sorted({r.source for r in given}))}: renders no Kubernetes objects"
        raise NothingToCheck("\n  ".join((empty, *map(str, unseen), *notes)))
    late = late_objects(taken, given, setting, created_by_engine(steps))
    case = Case(
        name=setting.case,
        releases=tuple(step.release for step in steps),
        before=before,
        assumed=(
            *(stored_release(history, setting) if history else ()),
            *(replace(prerequisite, ref=needed.ref_in_cluster(body)) for body, prerequisite in late.assumed),
            *(() if setting.only or setting.snapshot else needed.default_storage(given)),
        ),
        absent=tuple(needs.absent),
        brought=tuple(late.brought),
        missing_dependencies=tuple(dict.fromkeys(name for one in given for name in one.missing_dependencies)),
        differences=tuple(between_steps(steps, setting)),
        operators=tuple(one for one in trial.assume.operators if is_described(one)),
        notes=(*notes, *late.notes),
        not_rehearsed=unseen,
        health_checks=tried_health_checks(given),
        hollow=bool(unseen) and all(step.hollow for step in steps if step.release),
    )
    given_objects, found = split_found(without_installed(trial, given, setting), setting.snapshot)
    return Plan(
        engine=setting.engine,
        steps=steps,
        case=case,
        expects=trial.expect,
        kube_version=setting.kube_version,
        assumed=(*given_objects, *late.at_first, *descriptions_of_removers(trial, given)),
        found=tuple(with_values(found, [step.release for step in steps if step.release])),
        created_namespaces=late.created,
        heralds=late.heralds,
        deployed=tuple(records_of(history) if setting.snapshot else existing_objects(history)) if history else (),
        server_side=history is None or history.server_side,
        revisions=tuple((revision.number, revision.release) for revision in history.revisions) if history else (),
    )


def _remarks(setting: Setting, needs: Prerequisites) -> Iterator[str]:
    """Notes on objects that are said to be absent and that no release needs from outside, and on policies."""
    yield from not_evaluated(setting.snapshot)
    unused = set(setting.absent) - {one.object for one in needs.absent}
    yield from (f"absent {name} has no effect: it is not a prerequisite of this release" for name in sorted(unused))


def _with(plan: Plan, **fields: Any) -> Plan:
    """The same plan with changes to its case."""
    return replace(plan, case=replace(plan.case, **fields))


def _touches_others(release: Release) -> bool:
    """Whether a program reads or patches existing objects."""
    return release.program is not None and any(one.object for one in release.program.registrations)


def minor_of(asked: str) -> str:
    """The minor version whose schemas are used; accepts `v1.31.2`, `1.31` or nothing."""
    if not asked:
        return KUBE_VERSION
    minor = ".".join(asked.removeprefix("v").split(".")[:2])
    known = published_versions()
    if minor not in known:
        raise CannotContinue(f"--kube-version {asked}: not supported; use {known[0]} to {known[-1]}")
    return minor
