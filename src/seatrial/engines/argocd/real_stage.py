"""A step of a real Argo CD, prepared: the Applications that are written for it, and the files of their sources."""

from __future__ import annotations

from pathlib import Path

import msgspec

from seatrial.engines.act import RealControllers, Repository, Sync
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.controlled import PRIVATE, application_of, installed
from seatrial.engines.argocd.process import NAME, find
from seatrial.engines.argocd.projects import is_project
from seatrial.engines.argocd.real_sources import (
    DOING,
    certificates,
    reachable,
    refuse_unreachable,
    repositories,
)
from seatrial.engines.controllers import FLAG
from seatrial.engines.setting import Setting, is_chart, values_of
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, name_of, ref_of
from seatrial.model.trial import Step
from seatrial.sources.argocd.gathering import FoundApplications
from seatrial.sources.files import STDIN, read_bytes
from seatrial.sources.manifests import kustomize
from seatrial.sources.trees import Tree, tree_at, unpacked

INPUT = f"{PRIVATE}/input"
"""The source of an Application that is assumed."""


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
    if found.not_rehearsed:
        raise CannotContinue(f"{FLAG} {NAME}: {found.not_rehearsed[0].replace(' (assumed to sync)', '')}")
    made = {ref_of(one) for _, applications in found.sets.values() for one in applications}
    given, private = [], []
    for app in act.fleet.roots:
        if app.ref not in found.applications:
            source, files = _input(step, setting, app.name)
            private.append(Repository(INPUT, files=files))
            given.append(application_of(app, source))
        elif app.ref not in made:
            given.append(reachable(found.applications[app.ref].body))
    for ref, one in found.applications.items():
        if ref in made or ref not in found.roots:
            refuse_unreachable(ref, one.body)
    bodies = [one.body for one in found.applications.values()]
    served = (*private, *repositories(bodies, (body for body, _ in found.sets.values()), setting.repos))
    return RealControllers(
        programs=find(setting.binaries[NAME], sets=bool(found.sets)),
        action=step.action,
        instead_of=act,
        given=(*given, *(found.sets[ref][0] for ref in found.given)),
        settings=installed(act.settings, _projects(act, found, [*given, *bodies])),
        repositories=served,
        files=certificates(served),
        flags=step.flags,
    )


def _input(step: Step, setting: Setting, name: str) -> tuple[Body, Tree]:
    """The input as the source of the Application that is assumed."""
    source: Body = {"repoURL": INPUT, "path": "."}
    if is_chart(step, setting):
        chart = setting.opened.chart_of(step)
        values = msgspec.yaml.encode(values_of(step, setting)).decode()
        helm = {"releaseName": name, "values": values}
        return {**source, "path": chart.name, "helm": helm}, unpacked(chart.archive)
    path = setting.opened.path(step.source)
    if path == STDIN:
        return source, {"input.yaml": read_bytes(path, DOING)}
    is_plain = not kustomize.is_kustomization(Path(path))
    return {**source, **({"directory": {"recurse": True}} if is_plain else {})}, tree_at(Path(path), DOING)


def _projects(act: Sync, found: FoundApplications, applications: list[Body]) -> dict[str, Body]:
    """The projects of Applications, unless one deploys them; those that are not described permit everything."""
    named = {str(dig(body, "spec", "project") or "") for body in applications} - {""}
    known = {name_of(body): body for body in act.settings.given if is_project(body)} | found.projects
    deployed = {resource.ref.name for resource in found.resources if is_project(resource.body)}
    return {name: known.get(name, {}) for name in (named | known.keys()) - deployed}
