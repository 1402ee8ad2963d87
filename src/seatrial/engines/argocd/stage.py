"""Stages a step of Argo CD: the Applications of an input, and all their children."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.engines.act import Sync
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.declared import app_of, declared, declared_set, in_project
from seatrial.engines.argocd.fleet import Applications
from seatrial.engines.argocd.process import NAME
from seatrial.engines.argocd.projects import DEFAULT, project_of, windows_for
from seatrial.engines.argocd.real_stage import controllers_instead, modelled, real_engine
from seatrial.engines.argocd.rollout import rollout_of
from seatrial.engines.argocd.settings import OPENSHIFT, OPENSHIFT_VERSION, is_setting, settings_of
from seatrial.engines.engine import PlannedStep, known_version
from seatrial.engines.scopes import Scopes, scoped, scopes_of
from seatrial.engines.setting import Setting, is_chart, release_of, served, values_of
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.operators.argocd import GROUP
from seatrial.kinds.operators.charts import installation
from seatrial.model.engine import EngineId
from seatrial.model.errors import NothingToCheck
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, listed
from seatrial.model.trial import Step, Trial
from seatrial.sources import MANIFESTS, git, kind_of
from seatrial.sources.argocd.gathering import Application, FoundApplications, gather
from seatrial.sources.argocd.helm import as_argocd_renders
from seatrial.sources.charts.rendering import hooks_of_upgrades, objects_behind_lookup
from seatrial.sources.manifests.reading import read_manifests

VERSIONS = tuple(map(versions.shown, versions.KNOWN))
OWN_KINDS = ("Application", "ApplicationSet", "AppProject")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")
SECRET_TYPE = "argocd.argoproj.io/secret-type"
ASSUMED = (
    "argocd: no Application given; assuming one with automated sync and pruning. Pass an Application manifest to "
    "change that."
)


def configure(setting: Setting, trial: Trial) -> Setting:
    """Argo CD configured by the assumed objects and those beside the Applications."""
    folder, asked = setting.binaries.get(NAME, ""), setting.engine.version
    openshift = asked == OPENSHIFT and not folder
    if folder:
        engine = real_engine(setting.engine, folder)
    else:
        engine = EngineId(NAME, OPENSHIFT_VERSION) if openshift else known_version(setting.engine, VERSIONS)
    paths = {setting.opened.path(step.source) for step in trial.steps if step.action == "sync"}
    beside = [path for path in sorted(paths) if not git.is_ref(path) and kind_of(path) == MANIFESTS]
    written = (resource.body for path in beside for resource in read_manifests(path).resources)
    said = [body for body in (*setting.assumed, *written) if is_setting(body)]
    others = tuple(body for body in setting.assumed if not is_setting(body))
    config = settings_of(asked if openshift else modelled(engine.version), said)
    return replace(setting, engine=engine, config=config, assumed=others)


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Any]:
    """A chart or manifests as the source of one Application, or Applications as they are.

    Rendered as Argo CD does: always for an install. Each sync is one of another commit, or comes when what was rendered
    for this one is no longer cached.
    """
    settings: Settings = setting.config
    release = release_of(step, setting, turn=len(earlier))
    if is_chart(step, setting):
        chart, values = setting.opened.chart_of(step), values_of(step, setting)
        release = replace(
            release,
            left_out=hooks_of_upgrades(chart, values, release, **served(setting)),
            behind_lookup=objects_behind_lookup(chart, values, release, **served(setting)),
        )
        release = as_argocd_renders(release)
    before = (one.release for one in earlier if one.release is not None)
    scopes = scopes_of((*setting.assumed, *(r.body for one in before for r in (*one.resources, *one.crds))))
    release = scoped(release, scopes)
    root = None if _is_argocds_own(release.resources) else app_of(release)
    globs = versions.has(settings.version, "globs of value files")
    found = _scoped(
        gather(release.resources, setting.repos, root=root.ref if root else None, globs=globs, **served(setting)),
        scopes,
    )
    if root is None and all(found.applications[ref].absent for ref in found.roots):
        absent = (one.absent for one in found.applications.values() if one.absent)
        raise NothingToCheck("\n  ".join((f"{release.source}: nothing of it can be rehearsed", *dict.fromkeys(absent))))
    own = (replace(one, by=root.ref) for one in release.absent_charts) if root else ()
    absent_charts = (*own, *found.absent_charts)
    fleet = fleet_of(found, root, settings, {one.by for one in absent_charts if one.namespace or installation(one)})
    apps = (*fleet.roots, *fleet.others.values())
    notes = (*((ASSUMED,) if root else ()), *found.notes, *_notes(found, apps, settings))
    act: Any = Sync(fleet, settings)
    if NAME in setting.binaries:
        act = controllers_instead(act, step, setting, found)
    return PlannedStep(
        step,
        NAME,
        release.name,
        release.namespace,
        act,
        replace(
            release,
            resources=(*release.resources, *found.resources),
            left_out=(*release.left_out, *(hook for one in found.applications.values() for hook in _left_out(one))),
            behind_lookup=(
                *release.behind_lookup,
                *(r for one in found.applications.values() if one.release for r in one.release.behind_lookup),
            ),
            skipped_crds=(*release.skipped_crds, *found.skipped_crds),
            pins=(*release.pins, *found.pins),
            absent_charts=absent_charts,
        ),
        tuple(dict.fromkeys(notes)),
        tuple(app.destination for app in apps if "CreateNamespace=true" in app.options),
        tuple(dict.fromkeys(found.not_rehearsed)),
        hollow=_is_argocds_own((*release.resources, *found.resources)),
    )


def _left_out(application: Application) -> tuple[Resource, ...]:
    return application.release.left_out if application.release else ()


def _scoped(found: FoundApplications, scopes: Scopes) -> FoundApplications:
    """The Applications with the objects that they have in the cluster, where one may define the kinds of another."""
    every: Scopes = {**scopes, **scopes_of(resource.body for resource in found.resources)}
    applications = {
        ref: replace(one, release=scoped(one.release, every)) if one.release is not None else one
        for ref, one in found.applications.items()
    }
    releases = (one.release for one in applications.values() if one.release is not None)
    return replace(found, applications=applications, resources=[r for one in releases for r in one.resources])


def fleet_of(
    found: FoundApplications, root: App | None, settings: Settings, bringing: Collection[Ref | None] = ()
) -> Applications:
    """The Applications to sync: `root`, or those found first, and all their children."""
    projects = {**settings.projects, **{name: project_of(body) for name, body in found.projects.items()}}
    apps: dict[Ref, App] = {}
    for ref, one in found.applications.items():
        app = declared(one.body, one.release, settings.version, one.error, assumed=bool(one.absent))
        app = replace(app, brings=ref in bringing)
        project = projects.get(_project(one.body))
        apps[ref] = app if project is None else in_project(app, one.body, project)
    sets = {ref: declared_set(ref, body, made, settings) for ref, (body, made) in found.sets.items()}
    if root is not None:
        return Applications((replace(root, brings=root.ref in bringing),), apps, sets)
    rolled = {ref for one in sets.values() if one.rollout is not None for ref in one.rollout.apps}
    roots = [ref for ref in found.roots if ref not in rolled]
    others = {ref: app for ref, app in apps.items() if ref not in roots}
    return Applications(tuple(apps[ref] for ref in roots), others, sets, tuple(found.given))


def _project(application: Body) -> str:
    return str(dig(application, "spec", "project") or DEFAULT)


def _notes(found: FoundApplications, apps: Iterable[App], settings: Settings) -> Iterator[str]:
    """What is assumed about sets, Applications and their projects."""
    for ref, (body, made) in found.sets.items():
        if rollout_of(body, made) is not None:
            yield _about_steps(ref, settings)
    for ref in found.roots:
        if ref in found.applications and "project" not in (found.applications[ref].body.get("spec") or {}):
            yield (
                f"argocd: {ref} has no spec.project, so the API server refuses it (spec.project: Required value). It "
                f"is rehearsed in project {DEFAULT}; add project: {DEFAULT}"
            )
    for app in apps:
        if app.ref in found.applications:
            yield from _about(app, found.applications[app.ref].body)


def _about(app: App, application: Body) -> Iterator[str]:
    name = _project(application)
    if app.project is None and name != DEFAULT:
        yield f"argocd: AppProject {name} was not found; assuming it permits all that {app.ref} does"
    for window in windows_for(application, app.project) if app.project else ():
        when = f"{window.get('kind')} {window.get('schedule')!r} for {window.get('duration')}"
        yield (
            f"argocd: a sync window of AppProject {name} ({when}) may block {app.ref} "
            f'("Sync operation blocked by sync window"). It is rehearsed as if no window blocks it.'
        )


def _about_steps(ref: Ref, settings: Settings) -> str:
    """Whether the steps of a set count: the configuration of its cluster is seldom known."""
    match settings.progressive_syncs:
        case None:
            return (
                f"argocd: assuming --enable-progressive-syncs, because {ref} has steps. It is off unless "
                f"argocd-cmd-params-cm enables it; without it all Applications of {ref} sync at once."
            )
        case False:
            return f"argocd: progressive syncs are not enabled, so all Applications of {ref} sync at once"
    return f"argocd: the Applications of {ref} sync step by step; their automated sync and selfHeal are disabled"


def _is_argocds_own(resources: Iterable[Resource]) -> bool:
    found = list(resources)
    rights = set(_rights_of_argocd(found))
    own = all(
        (r.ref.group == GROUP and r.ref.kind in OWN_KINDS)
        or is_setting(r.body)
        or SECRET_TYPE in labels_of(r.body)
        or r.ref.kind == "Namespace"
        or r.ref in rights
        for r in found
    )
    return own and any(r.ref.kind in OWN_KINDS[:2] for r in found)


def _rights_of_argocd(resources: list[Resource]) -> Iterator[Ref]:
    """Bindings of accounts in the namespace of the Applications, what they grant, and the accounts.

    The user who applies the Applications applies these as well.
    """
    homes = {r.ref.namespace for r in resources if r.ref.group == GROUP and r.ref.kind in OWN_KINDS}
    bindings = [r for r in resources if r.ref.group == RBAC and r.ref.kind in BINDINGS and _binds(r.body, homes)]
    granted = {(dig(r.body, "roleRef", "kind"), dig(r.body, "roleRef", "name")) for r in bindings}
    yield from (r.ref for r in bindings)
    yield from (r.ref for r in resources if r.ref.group == RBAC and (r.ref.kind, r.ref.name) in granted)
    yield from (r.ref for r in resources if r.ref.kind == "ServiceAccount" and r.ref.namespace in homes)


def _binds(binding: Body, homes: set[str]) -> bool:
    subjects = listed(binding, "subjects")
    return bool(subjects) and all(subject.get("namespace") in homes for subject in subjects)
