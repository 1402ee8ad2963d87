"""A step of a real Argo CD, prepared: the Applications that are written for it, and the files of their sources."""

from __future__ import annotations

from pathlib import Path

import msgspec

from seatrial.engines.act import RealControllers, Sync
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.controlled import application_of, installed, key_of
from seatrial.engines.argocd.process import NAME, find
from seatrial.engines.argocd.projects import is_project
from seatrial.engines.controllers import FLAG
from seatrial.engines.setting import Setting, is_chart, values_of
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, listed, name_of
from seatrial.model.trial import Step
from seatrial.sources.argocd.gathering import FoundApplications
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.files import STDIN, read_bytes
from seatrial.sources.manifests import kustomize
from seatrial.sources.repos import Repos, chart_in
from seatrial.sources.trees import Tree, tree_at, unpacked

INPUT = "https://localhost/input"
"""The source of an Application that is assumed."""
DOING = "make a repository of it"


def real_engine(asked: EngineId, folder: str) -> EngineId:
    """The Argo CD in a folder; refuses another version than the one that is asked for."""
    found, version = find(folder).version, asked.version.removeprefix("v")
    if version and not f"{found}.".startswith(f"{version}."):
        raise CannotContinue(f"--engine {asked}: {FLAG} {NAME}={folder} is Argo CD {found}")
    return EngineId(NAME, found, real=True)


def modelled(version: str) -> str:
    """The minor version whose settings are known: the newest one for later ones."""
    minor = ".".join(version.split(".")[:2])
    return minor if minor in map(versions.shown, versions.KNOWN) else versions.shown(versions.NEWEST)


def controllers_instead(act: Sync, step: Step, setting: Setting, found: FoundApplications) -> RealControllers:
    """The same step for the user's controllers."""
    if act.fleet.others or act.fleet.sets:
        raise CannotContinue(
            f"{FLAG} {NAME}: Applications that Applications or ApplicationSets create are only simulated"
        )
    given, trees = [], {}
    for app in act.fleet.roots:
        if app.ref in found.applications:
            body = found.applications[app.ref].body
            for source in _sources(body):
                trees[key_of(source)] = _tree(source, setting.repos)
        else:
            source, trees[INPUT] = _input(step, setting, app.name)
            body = application_of(app, source)
        given.append(body)
    return RealControllers(
        programs=find(setting.binaries[NAME]),
        action=step.action,
        instead_of=act,
        given=tuple(given),
        settings=installed(act.settings, _projects(act, found, given)),
        trees=trees,
        flags=step.flags,
    )


def _sources(application: Body) -> list[Body]:
    return listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]


def _tree(source: Body, repos: Repos) -> Tree:
    root = repos.find(str(source.get("repoURL") or ""))
    if root is None:
        raise CannotContinue(f"{FLAG} {NAME}: the source {source.get('repoURL')} is not on disk; pass --repo")
    if source.get("chart"):
        path = chart_in(root, str(source["chart"]), str(source.get("targetRevision") or ""))
        return unpacked(open_any_chart(str(path)).archive)
    return tree_at(root, DOING)


def _input(step: Step, setting: Setting, name: str) -> tuple[Body, Tree]:
    """The input as the source of the Application that is assumed."""
    source: Body = {"repoURL": INPUT, "path": "."}
    if is_chart(step, setting):
        chart = setting.opened.chart(step.source)
        values = msgspec.yaml.encode(values_of(step, setting)).decode()
        helm = {"releaseName": name, "values": values}
        return {**source, "path": chart.name, "helm": helm}, unpacked(chart.archive)
    path = setting.opened.path(step.source)
    if path == STDIN:
        return source, {"input.yaml": read_bytes(path, DOING)}
    is_plain = not kustomize.is_kustomization(Path(path))
    return {**source, **({"directory": {"recurse": True}} if is_plain else {})}, tree_at(Path(path), DOING)


def _projects(act: Sync, found: FoundApplications, given: list[Body]) -> dict[str, Body]:
    """The projects that Applications are in; those that are not described permit everything."""
    named = {str(dig(body, "spec", "project") or "") for body in given} - {""}
    known = {name_of(body): body for body in act.settings.given if is_project(body)} | found.projects
    return {name: known.get(name, {}) for name in named | known.keys()}
