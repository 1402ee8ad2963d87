"""All Applications that come of an input: itself, those among its objects, those among theirs, to any depth."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import argocd
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import HOME
from seatrial.engines.argocd.ignoring import not_understood
from seatrial.engines.argocd.projects import DEFAULT, destination_of, project_of, windows_for
from seatrial.engines.argocd.rollout import rollout_of
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, metadata, ref_of
from seatrial.plan.stage.applications import TAKEN_AS, app_of, declared, in_project
from seatrial.plan.stage.argocd_settings import is_project, is_setting
from seatrial.sources.argocd.applications import render_application
from seatrial.sources.argocd.applicationsets import applications_of
from seatrial.sources.repos import NotAtHand, Repos

DEPTH_MAX = 20
APPLICATIONS_MAX = 2_000
OWN_KINDS = ("Application", "ApplicationSet", "AppProject")
DELETING = ("sync", "create-delete")
SECRET_TYPE = "argocd.argoproj.io/secret-type"


class Gathered(Struct, frozen=True):
    fleet: argocd.Fleet
    release: Release
    """All objects of all Applications."""
    notes: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    """An Application, and the way that led to it."""

    body: Body
    trail: tuple[Ref, ...] = ()


def gather(release: Release, repos: Repos, settings: argocd.Settings, **options: Any) -> Gathered:
    """The Applications of an input. Where that is nothing but Argo CD's own objects, they are what is synced."""
    gathering = _Gathering(repos, settings, options)
    gathering.learn(release.resources)
    given: tuple[Ref, ...] = ()
    if _is_argocds_own(release.resources):
        for body in gathering.applications(release.resources):
            gathering.queue.append(_Found(body))
        found = [_ref(found.body) for found in gathering.queue]
        given = tuple(gathering.sets)
        gathering.follow()
        if all(gathering.apps[ref].assumed for ref in found):
            raise NothingToCheck(f"{release.source}: {'; '.join(dict.fromkeys(gathering.absent))}")
        roots = [ref for ref in found if not _is_rolled(ref, gathering.sets)]
        apps = tuple(gathering.apps[ref] for ref in roots)
        others = {ref: app for ref, app in gathering.apps.items() if ref not in roots}
    else:
        root = app_of(release)
        apps = (root,)
        gathering.notes.append(TAKEN_AS)
        for body in gathering.applications(release.resources):
            gathering.queue.append(_Found(body, (root.ref,)))
        gathering.follow()
        others = gathering.apps
    everything = replace(release, resources=(*release.resources, *gathering.resources))
    notes = tuple(dict.fromkeys(gathering.notes))
    return Gathered(argocd.Fleet(apps, others, gathering.sets, given), everything, notes)


def namespaces_made(fleet: argocd.Fleet) -> set[str]:
    """Those that Argo CD creates for Applications that ask for it."""
    apps = (*fleet.roots, *fleet.others.values())
    return {app.destination for app in apps if "CreateNamespace=true" in app.options}


class _Gathering:
    """Applications, while they are found one through another."""

    def __init__(self, repos: Repos, settings: argocd.Settings, options: dict[str, Any]) -> None:
        self.repos, self.settings, self.options = repos, settings, options
        self.queue: deque[_Found] = deque()
        self.apps: dict[Ref, argocd.App] = {}
        self.bodies: dict[Ref, Body] = {}
        self.placed: dict[Ref, str] = {}
        """By the object: the cluster that it is for."""
        self.projects = dict(settings.projects)
        self.sets: dict[Ref, argocd.AppSet] = {}
        self.resources: list[Resource] = []
        self.notes: list[str] = []
        self.absent: list[str] = []
        self._note_expressions("resource.customizations", settings.ignore_differences)

    def follow(self) -> None:
        while self.queue:
            found = self.queue.popleft()
            ref = _ref(found.body)
            if ref in found.trail:
                way = " -> ".join(one.name for one in (*found.trail, ref))
                self.notes.append(f"argocd: Applications that make each other: {way}")
            if ref in self.apps:
                continue
            if len(found.trail) > DEPTH_MAX:
                way = " -> ".join(one.name for one in found.trail)
                raise CannotContinue(f"Applications that make Applications, more than {DEPTH_MAX} deep: {way}")
            if len(self.apps) >= APPLICATIONS_MAX:
                raise CannotContinue(f"more than {APPLICATIONS_MAX} Applications")
            self.bodies[ref] = found.body
            self._add(found, ref)
        for ref, body in self.bodies.items():
            self._put_into_project(ref, body)

    def _put_into_project(self, ref: Ref, body: Body) -> None:
        name = str(dig(body, "spec", "project") or DEFAULT)
        project = self.projects.get(name)
        if project is None:
            if name != DEFAULT:
                self.notes.append(f"argocd: AppProject {name} is not at hand, and taken to permit all that {ref} does")
            return
        self.apps[ref] = in_project(self.apps[ref], body, project)
        for window in windows_for(body, project):
            when = f"{window.get('kind')} {window.get('schedule')!r} for {window.get('duration')}"
            self.notes.append(
                f"argocd: a sync window of AppProject {name} ({when}) may hold {ref} back: there is no clock here, so "
                f'it is rehearsed as if none did. Then it says "Sync operation blocked by sync window"'
            )

    def _add(self, found: _Found, ref: Ref) -> None:
        try:
            globs = versions.has(self.settings.version, "globs of value files")
            rendered = render_application(found.body, self.repos, globs=globs, **self.options)
            self._place(found.body, rendered.release)
        except NotAtHand as why:
            self.notes.append(f"argocd: {ref} is taken to sync well: {why}")
            self.absent.append(str(why))
            self.apps[ref] = declared(found.body, None, self.settings.version, assumed=True)
            return
        app = self.apps[ref] = declared(found.body, rendered.release, self.settings.version, rendered.error)
        self._note_expressions(f"ignoreDifferences of {ref}", app.ignore_differences)
        if rendered.release is not None:
            self.resources += rendered.release.resources
            self.learn(rendered.release.resources)
            for body in self.applications(rendered.release.resources):
                self.queue.append(_Found(body, (*found.trail, ref)))

    def _place(self, application: Body, release: Release | None) -> None:
        """Objects of the same name in two clusters are two; one cluster is rehearsed. Raises `NotAtHand`."""
        where = destination_of(application)
        cluster = where.server or where.name
        refs = [resource.ref for resource in release.resources] if release is not None else []
        for ref in refs:
            other = self.placed.get(ref, cluster)
            if other != cluster:
                raise NotAtHand(f"it goes to {cluster}, and its {ref} is another one than that of {other}")
        self.placed |= dict.fromkeys(refs, cluster)

    def _note_expressions(self, where: str, entries: tuple[Body, ...]) -> None:
        for expression in not_understood(entries):
            self.notes.append(f"argocd: {where}: {expression!r} is not evaluated, so what it would ignore counts")

    def learn(self, resources: Iterable[Resource]) -> None:
        """The projects among objects."""
        self.projects |= {r.ref.name: project_of(r.body) for r in resources if is_project(r.body)}

    def applications(self, resources: Iterable[Resource]) -> Iterator[Body]:
        """The Applications among objects, and those that sets among them make."""
        for resource in resources:
            if resource.ref.group != GROUP:
                continue
            if resource.ref.kind == "Application":
                yield _at_home(resource)
            elif resource.ref.kind == "ApplicationSet":
                yield from self._of_set(resource)

    def _of_set(self, resource: Resource) -> Iterator[Body]:
        body = _at_home(resource)
        try:
            bodies = tuple(applications_of(body, self.repos))
        except NotAtHand as why:
            self.notes.append(f"argocd: what {resource.ref} makes is left out: {why}")
            return
        bodies = tuple(self._unlike(_ref(body), bodies))
        ref, rollout = _ref(body), rollout_of(body, bodies)
        if rollout is not None:
            self.notes.append(_about_steps(ref, self.settings))
        self.sets[ref] = argocd.AppSet(
            ref,
            bodies,
            rollout if self.settings.progressive_syncs is not False else None,
            **_policy(body),
        )
        yield from bodies

    def _unlike(self, application_set: Ref, bodies: tuple[Body, ...]) -> Iterator[Body]:
        """Those whose names are their own: a set makes none of those that share one."""
        counts = Counter(map(_ref, bodies))
        for ref in (ref for ref, count in counts.items() if count > 1):
            said = f"ApplicationSet {application_set.name} contains applications with duplicate name: {ref.name}"
            self.notes.append(f"argocd: {application_set} makes no {ref}: {said}")
        yield from (body for body in bodies if counts[_ref(body)] == 1)


def _about_steps(ref: Ref, settings: argocd.Settings) -> str:
    """Whether the steps of a set count: what the cluster that it is for says is seldom at hand."""
    match settings.progressive_syncs:
        case None:
            return (
                f"argocd: taken to run with --enable-progressive-syncs, as {ref} has steps; that is off unless "
                f"argocd-cmd-params-cm turns it on, and then all of its Applications sync at once"
            )
        case False:
            return f"argocd: progressive syncs are not turned on, so all Applications of {ref} sync at once"
    return f"argocd: the Applications of {ref} sync step by step, and never by themselves: nothing of them heals itself"


def _policy(application_set: Body) -> dict[str, bool]:
    """`applicationsSync`: whether a set changes and deletes Applications that are there."""
    said = dig(application_set, "spec", "syncPolicy", "applicationsSync")
    return {"updates": said not in ("create-only", "create-delete"), "deletes": said in (None, "", *DELETING)}


def _is_rolled(ref: Ref, sets: dict[Ref, argocd.AppSet]) -> bool:
    return any(made.rollout is not None and ref in made.rollout.apps for made in sets.values())


def _is_argocds_own(resources: Iterable[Resource]) -> bool:
    found = list(resources)
    own = all(
        (r.ref.group == GROUP and r.ref.kind in OWN_KINDS)
        or is_setting(r.body)
        or SECRET_TYPE in labels_of(r.body)
        or r.ref.kind == "Namespace"
        for r in found
    )
    return own and any(r.ref.kind in OWN_KINDS[:2] for r in found)


def _at_home(resource: Resource) -> Body:
    """The object in the namespace that it will be in."""
    home = resource.ref.namespace or HOME
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": home}}


def _ref(application: Body) -> Ref:
    return ref_of(application, namespace=HOME)
