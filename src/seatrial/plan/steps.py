"""The steps of a trial, each prepared by the engine that runs it. Knows nothing of prerequisites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from shlex import quote
from typing import Any

from msgspec.structs import replace

from seatrial.engines.engine import Engine, PlannedStep, load, names
from seatrial.engines.scopes import scoped, scopes_of
from seatrial.engines.setting import Setting
from seatrial.kinds.tables.catalogue import GROUPS, named_kind
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Ref
from seatrial.model.result import NotRehearsed
from seatrial.model.trial import Step
from seatrial.sources import CHART, MANIFESTS, InputKind, git, kind_of
from seatrial.sources.charts.chart import release_name
from seatrial.sources.files import STDIN
from seatrial.sources.manifests.reading import kinds_in, read_manifests
from seatrial.sources.repos import repos_of

REVISION = lazy_re.compile(r"v?\d+([.-]\d+)*|old|new|before|after|previous|next|base|head")
"""Folder names that say a revision and not an application."""
DEPLOYING = ("Application", "ApplicationSet", "HelmRelease", "Kustomization")
"""The kinds that engines act on. A chart without any of them is rehearsed without importing other engines."""
SKIPPED_MAX = 3
BY_HAND = "kubectl"
"""The engine of manual steps in trials of other engines."""


def planned_steps(steps: Iterable[Step], setting: Setting) -> list[PlannedStep[Any]]:
    """Every step, including those of a rebuild, prepared to run."""
    engine = load(setting.engine.name)
    planned: list[PlannedStep[Any]] = []
    for step in _named(_flat(steps), setting):
        by = engine if _is_own(step, engine) else load(BY_HAND)
        planned.append(_in_scope(by.stage(step, with_repos(setting, step), planned), setting, planned))
    return planned


def _in_scope(planned: PlannedStep[Any], setting: Setting, earlier: Iterable[PlannedStep[Any]]) -> PlannedStep[Any]:
    """A step whose objects have the names that the cluster gives them: others may define their kinds."""
    if planned.release is None:
        return planned
    before = (r.body for one in earlier if one.release for r in (*one.release.resources, *one.release.crds))
    return replace(planned, release=scoped(planned.release, scopes_of((*setting.assumed, *before))))


def with_repos(setting: Setting, step: Step) -> Setting:
    """The setting for a step with its own checkouts, which come before those of all steps."""
    if not step.repos:
        return setting
    try:
        own = repos_of(f"{url}={setting.opened.path(path)}" for url, path in step.repos.items())
    except CannotContinue as why:
        raise CannotContinue(f"step {step.action}: repos: {str(why).removeprefix('--repo ')}") from None
    return replace(setting, repos=replace(setting.repos, paths={**setting.repos.paths, **own.paths}))


def created_by_engine(steps: Iterable[PlannedStep[Any]]) -> Iterator[str]:
    """The namespaces that engines create, unless an earlier step deploys into one that it does not create."""
    used: set[str] = set()
    for step in steps:
        yield from (name for name in step.namespaces if name not in used)
        used |= {step.namespace} - set(step.namespaces)


def usual_engine(path: str, kind: InputKind) -> str:
    """The default engine for an input, such as Flux for manifests with Kustomizations."""
    if kind == MANIFESTS and path != STDIN:
        custom = {found for found in kinds_in(path) if found[0] not in GROUPS}
        engines = (load(name) for name in names()) if custom else ()
        return next((engine.name for engine in engines if not custom.isdisjoint(engine.usual_for)), kind.engine)
    return kind.engine


def only_created(releases: Iterable[Release], path: str, engines: Iterable[str]) -> Iterator[NotRehearsed]:
    """Objects that another engine acts on, such as Applications under Helm: what they deploy is not rehearsed."""
    resources = (one for release in releases for one in release.resources if one.ref.kind in DEPLOYING)
    by_kind: dict[tuple[str, str], list[str]] = {}
    for ref in sorted({one.ref for one in resources}):
        by_kind.setdefault((ref.group, ref.kind), []).append(str(ref))
    for engine in (load(name) for name in names() if name not in engines) if by_kind else ():
        if found := [ref for kind in engine.usual_for for ref in by_kind.get(kind, ())]:
            named = f"{found[0]} and {len(found) - 1} more are" if found[1:] else f"{found[0]} is"
            yield NotRehearsed(f"{named} only created, without what {engine.label} deploys{_command(engine, path)}")


def _command(engine: Engine[Any], path: str) -> str:
    """How to rehearse what objects of an engine deploy, if they are in a chart or in manifests."""
    kind = kind_of(path) if path else None
    if kind not in (CHART, MANIFESTS):
        return ""
    if engine.follows_charts or kind == MANIFESTS:
        return f". To rehearse it: seatrial check {quote(path)} --engine {engine.name}"
    return f". To rehearse it: helm template {quote(path)} | seatrial check - --engine {engine.name}"


def notes_on(release: Release) -> Iterator[str]:
    """What is not as written in the source of a release: its name, references of schemas, files without an object."""
    yield from release.notes
    if release.chart and release.chart != release.name == release_name(release.chart):
        valid = f"{release.chart} is not valid as a name of a release and its objects"
        yield f"{release.source}: rehearsed as release {release.name}: {valid} (--release-name sets another)"
    if files := release.skipped:
        named = ", ".join(files[:SKIPPED_MAX])
        more = f" and {len(files) - SKIPPED_MAX} more" if files[SKIPPED_MAX:] else ""
        skipped = f"{len(files)} YAML or JSON files without a Kubernetes object were skipped"
        yield f"{release.source}: {skipped}: {named}{more}"


def _named(steps: Iterable[Step], setting: Setting) -> Iterator[Step]:
    """Steps with the name of their application: revisions of one are one, in whatever folders they are.

    Manifests have no name. Those that share an object, or lie in a folder that is named after a version, are revisions
    of the application whose manifests the trial deploys first.
    """
    known: list[tuple[str, set[Ref]]] = []
    for step in steps:
        refs = _refs(step, setting)
        if refs is None:
            yield step
            continue
        own = PurePath(setting.opened.path(step.source)).stem
        same = (name for name, others in known if refs & others or REVISION.fullmatch(own))
        name = next(same, own)
        known.append((name, refs))
        yield replace(step, release=name)


def _refs(step: Step, setting: Setting) -> set[Ref] | None:
    """The objects of a step that deploys or removes manifests without a release name; None for any other step."""
    path = setting.opened.path(step.source) if step.source else ""
    if not path or step.release or setting.release or not load(setting.engine.name).names_manifests:
        return None
    if path == STDIN or git.is_ref(path) or named_kind(step.source) or kind_of(path) != MANIFESTS:
        return None
    try:
        return {resource.ref for resource in read_manifests(path).resources}
    except (CannotContinue, NothingToCheck):
        return None  # The step itself reports the error.


def _is_own(step: Step, engine: Engine[Any]) -> bool:
    """Whether the engine runs a step; deleting an object by name is a manual step."""
    return engine.action(step.action) is not None and not (step.action == "delete" and named_kind(step.source))


def _flat(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, including those of a rebuild; the first of these starts on an empty cluster."""
    for step in steps:
        if step.action != "rebuild":
            yield step
            continue
        first, *rest = _flat(step.steps)
        yield replace(first, fresh=True)
        yield from rest
