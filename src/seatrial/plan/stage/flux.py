"""Everything that Flux makes of an input: its Kustomizations and HelmReleases, and those that come of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import flux
from seatrial.engines.durations import seconds_in, written
from seatrial.engines.flux.dependencies import invalid, unknown_status
from seatrial.engines.flux.objects import HELM_GROUP, KUSTOMIZE_GROUP, SOURCE_GROUP
from seatrial.engines.script import Target
from seatrial.helm import hooks
from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig, group_of, listed, metadata, name_of
from seatrial.readiness import flux as fluxhealth
from seatrial.sources.charts.chart import ChartSource
from seatrial.sources.flux import building as source
from seatrial.sources.repos import NotAtHand, Repos

HOME = "flux-system"
OBJECTS_MAX = 2_000
OWN_GROUPS = (
    *(KUSTOMIZE_GROUP, HELM_GROUP, SOURCE_GROUP, "source.extensions.fluxcd.io"),
    *("notification.toolkit.fluxcd.io", "image.toolkit.fluxcd.io"),
)
GO_WITH_THEM = ("Namespace", "Secret", "ConfigMap")
"""What stands beside Flux's own objects in the folder that a cluster begins with."""
POST = ("post-install", "post-upgrade")
TAKEN_AS = {
    "manifests": "flux: taken as the path of one Kustomization with prune and without wait; one of your own says "
    "otherwise",
    "chart": "flux: taken as the chart of one HelmRelease that says nothing but its values; one of your own says "
    "otherwise",
}
FLAGS = {
    "disableHooks": "--no-hooks",
    "createNamespace": "--create-namespace",
    "replace": "--replace",
    "force": "--force-replace",
    "cleanupOnFail": "--cleanup-on-fail",
    "preserveValues": "--reuse-values",
    "disableOpenAPIValidation": "--disable-openapi-validation",
    "keepHistory": "--keep-history",
}
"""Fields of spec.install, spec.upgrade and spec.uninstall that are flags of Helm's."""
ACTED_ON = ((KUSTOMIZE_GROUP, "Kustomization"), (HELM_GROUP, "HelmRelease"))
NOT_PLAYED = {
    ("HelmRelease", "postRenderers"): "its postRenderers are not run; objects are as the chart renders them",
    ("HelmRelease", "commonMetadata"): "its commonMetadata is not added to the objects of the chart",
    ("HelmRelease", "kubeConfig"): "its kubeConfig is not followed; it acts on the cluster of the trial",
    ("Kustomization", "kubeConfig"): "its kubeConfig is not followed; it acts on the cluster of the trial",
}
"""Fields that change what is deployed or where, and are left out here."""


class Gathered(Struct, frozen=True):
    fleet: flux.Fleet
    release: Release
    """All objects of all Kustomizations and charts."""
    notes: tuple[str, ...] = ()


def is_fluxs(resources: Iterable[Resource]) -> bool:
    """Whether manifests hold something that Flux acts on."""
    return any((resource.ref.group, resource.ref.kind) in ACTED_ON for resource in resources)


def gather(
    release: Release, repos: Repos, charts: dict[str, str], shelf: source.Shelf | None = None, **options: Any
) -> Gathered:
    """What comes of manifests: themselves, where they are what a cluster begins with, or else as one Kustomization."""
    gathering = _Gathering(source.Known(repos, charts, release.source, {}, options, shelf or source.Shelf()))
    gathering.see(release.resources)
    beginning = _beginning(release)
    if beginning:
        gathering.follow(beginning)
        roots = tuple(Target(r.ref, _at_home(r)) for r in beginning)
        if gathering.absent and not gathering.resources:
            raise NothingToCheck(f"{release.source}: {'; '.join(dict.fromkeys(gathering.absent))}")
        return gathering.gathered(replace(release, resources=tuple(beginning)), roots)
    gathering.notes.append(TAKEN_AS["manifests"])
    targets = tuple(Target(r.ref, _at_home(r)) for r in release.resources)
    own = flux.Kustomization(release.name or "app", HOME, targets, timeout="5m0s")
    gathering.kustomizations[own.ref] = own
    gathering.follow(release.resources)
    body: Body = {"spec": {"prune": True, "interval": "10m", "path": "./", "sourceRef": _made_up_source()}}
    root = _made_up(own.ref, f"{KUSTOMIZE_GROUP}/v1", body, release.source)
    return gathering.gathered(release, (Target(root.ref, root.body),), root)


def gather_chart(chart: ChartSource, values: Body, release: Release) -> Gathered:
    """A chart as that of one HelmRelease."""
    ref = Ref("HelmRelease", release.namespace, release.name, HELM_GROUP)
    body: Body = {"spec": {"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": release.name}}}
    root = _made_up(ref, f"{HELM_GROUP}/v2", body, release.source)
    own = _declared_release(root.body, chart, values, release)
    fleet = flux.Fleet((Target(ref, root.body),), {}, {ref: own})
    return Gathered(fleet, replace(release, resources=(root, *release.resources)), (TAKEN_AS["chart"],))


class _Gathering:
    """Objects of Flux's own, while they are found one through another."""

    def __init__(self, known: source.Known) -> None:
        self.known = known
        self.kustomizations: dict[Ref, flux.Kustomization] = {}
        self.releases: dict[Ref, flux.HelmRelease] = {}
        self.resources: list[Resource] = []
        self.crds: list[Resource] = []
        self.notes: list[str] = []
        self.absent: dict[str, list[Ref]] = {}
        """What could not be found, and who would need it."""

    def see(self, resources: Iterable[Resource]) -> None:
        self.known.objects.update((resource.ref, resource.body) for resource in resources)

    def follow(self, resources: Iterable[Resource]) -> None:
        queue = deque(resources)
        while queue:
            resource = queue.popleft()
            if len(self.kustomizations) + len(self.releases) > OBJECTS_MAX:
                raise CannotContinue(f"more than {OBJECTS_MAX} Kustomizations and HelmReleases")
            if resource.ref in self.kustomizations or resource.ref in self.releases:
                continue
            if (resource.ref.group, resource.ref.kind) == (KUSTOMIZE_GROUP, "Kustomization"):
                queue.extend(self._kustomization(resource))
            elif (resource.ref.group, resource.ref.kind) == (HELM_GROUP, "HelmRelease"):
                self._release(resource)

    def gathered(self, release: Release, roots: tuple[Target, ...], *made_up: Resource) -> Gathered:
        everything = replace(
            release,
            resources=(*made_up, *release.resources, *self.resources),
            crds=(*release.crds, *self.crds),
        )
        self._trust_what_is_not_at_hand({r.ref for r in (*everything.resources, *everything.crds)})
        fleet = flux.Fleet(roots, self.kustomizations, self.releases)
        notes = (*self.notes, *self._taken_for_ready(), *self._elsewhere())
        return Gathered(fleet, everything, tuple(dict.fromkeys(notes)))

    def _kustomization(self, resource: Resource) -> tuple[Resource, ...]:
        body, error = _at_home(resource), ""
        built = source.Built(())
        try:
            built = source.build(body, self.known)
        except NotAtHand as why:
            self._not_at_hand(resource.ref, str(why))
            self.kustomizations[resource.ref] = _declared(body, (), assumed=True)
            return ()
        except CannotContinue as why:
            error = str(why)
        self.notes += (*built.notes, *_not_evaluated(body))
        self.see(built.resources)
        self.resources += built.resources
        self.kustomizations[resource.ref] = replace(_declared(body, built.resources), error=error)
        return built.resources

    def _release(self, resource: Resource) -> None:
        body = _at_home(resource)
        try:
            chart = source.chart_of(body, self.known)
            values, notes = source.values_of(body, chart, self.known)
            rendered = source.render_release(body, chart, values, self.known)
        except NotAtHand as why:
            self._not_at_hand(resource.ref, str(why))
            name, home = resource.ref.name, resource.ref.namespace
            self.releases[resource.ref] = flux.HelmRelease(name, home, assumed=True, invalid=_invalid(body))
            return
        except CannotContinue as why:
            broken = flux.HelmRelease(resource.ref.name, resource.ref.namespace, error=str(why))
            self.releases[resource.ref] = broken
            return
        self.notes += (*notes, *_not_evaluated(body))
        self.resources += rendered.resources
        self.crds += rendered.crds
        own = _declared_release(body, chart, values, rendered)
        if own.health and own.runs_post_hooks:
            self.notes.append(f"flux: {resource.ref}: Helm waits for it before its hooks, without healthCheckExprs")
        self.releases[resource.ref] = own

    def _not_at_hand(self, ref: Ref, why: str) -> None:
        self.absent.setdefault(why, []).append(ref)

    def _trust_what_is_not_at_hand(self, here: set[Ref]) -> None:
        """Do not wait for what a chart or path may bring that nobody could look into."""
        for ref, one in self.kustomizations.items() if self.absent else ():
            waited = tuple(check for check in one.health_checks if check in here)
            for check in (check for check in one.health_checks if check not in here):
                self.notes.append(f"flux: {ref} waits for {check}, which nothing here brings; it is taken to be ready")
            self.kustomizations[ref] = replace(one, health_checks=waited)

    def _taken_for_ready(self) -> Iterator[str]:
        for why, refs in self.absent.items():
            who = f"{refs[0]} is" if len(refs) == 1 else f"{refs[0]} and {len(refs) - 1} more are"
            yield f"flux: {who} taken to become Ready: {why}"

    def _elsewhere(self) -> Iterator[str]:
        """What is depended on and is not here in any form."""
        known = (*self.kustomizations, *self.releases)
        wanted = [(ref, other) for ref, one in self.kustomizations.items() for other in one.depends_on]
        wanted += [(ref, other) for ref, one in self.releases.items() for other in one.depends_on]
        for ref, other in wanted:
            if not any(found == other or found.name == other.name for found in known):
                yield f"flux: {ref} depends on {other}, which is not here and is taken to be Ready"


def _not_evaluated(body: Body) -> Iterator[str]:
    """What is not played, and what is said in CEL and not decided here."""
    who = f"flux: {body.get('kind')}/{metadata(body).get('namespace')}/{name_of(body)}"
    for (kind, field), words in NOT_PLAYED.items():
        if kind == body.get("kind") and dig(body, "spec", field):
            yield f"{who}: {words}"
    read = fluxhealth.read(_entries(body, "healthCheckExprs"))
    for named in read.unsupported:
        yield f"{who}: the expressions about {named} are beyond what is evaluated here; kstatus judges it"
    for check in read.checks:
        named = f"{check.kind}.{check.group}" if check.kind else f"all kinds of {check.group}"
        if check.group in (KUSTOMIZE_GROUP, HELM_GROUP):
            yield f"{who}: the expressions about {named} are not evaluated; it counts when it is Ready"
        elif not fluxhealth.is_modelled(check.group, check.kind):
            yield f"{who}: nobody here writes the status of {named}; it is taken to become what is checked in CEL"
    for entry in _entries(body, "dependsOn"):
        fields = unknown_status(str(entry.get("readyExpr") or ""))
        if fields:
            said = f"{who}: its readyExpr about {entry.get('name')} reads status.{fields[0]}, which is not known here"
            yield f"{said}; what it depends on counts when it is Ready"


def _entries(body: Body, field: str) -> list[Body]:
    return [entry for entry in listed(body, "spec", field) if isinstance(entry, dict)]


def _ready_exprs(body: Body, kind: str, group: str) -> dict[Ref, str]:
    """Those that can be decided here."""
    exprs = (str(entry.get("readyExpr") or "") for entry in _entries(body, "dependsOn"))
    pairs = zip(_depends_on(body, kind, group), exprs, strict=True)
    return {ref: expr for ref, expr in pairs if expr and not unknown_status(expr)}


def _invalid(body: Body) -> str:
    """Why Flux stalls on an expression of an object of its own; health checks are read first."""
    read = fluxhealth.read(_entries(body, "healthCheckExprs"))
    named = ((str(entry.get("name")), str(entry.get("readyExpr") or "")) for entry in _entries(body, "dependsOn"))
    return read.invalid or next(filter(None, (invalid(name, expr) for name, expr in named if expr)), "")


def _declared(body: Body, resources: Iterable[Resource], *, assumed: bool = False) -> flux.Kustomization:
    spec = body.get("spec") or {}
    namespace = str(metadata(body).get("namespace") or "default")
    checks = (_checked(entry, namespace) for entry in listed(body, "spec", "healthChecks"))
    return flux.Kustomization(
        name=name_of(body),
        namespace=namespace,
        targets=tuple(Target(resource.ref, _at_home(resource)) for resource in resources),
        depends_on=_depends_on(body, "Kustomization", KUSTOMIZE_GROUP),
        ready_exprs=_ready_exprs(body, "Kustomization", KUSTOMIZE_GROUP),
        wait=bool(spec.get("wait")),
        health_checks=tuple(checks),
        health=fluxhealth.read(_entries(body, "healthCheckExprs")).checks,
        prune=bool(spec.get("prune")),
        force=bool(spec.get("force")),
        ignored=tuple(map(_ignored, _entries(body, "ignore"))),
        suspended=bool(spec.get("suspend")),
        deletion_policy=str(spec.get("deletionPolicy") or "MirrorPrune"),
        timeout=str(spec.get("timeout") or written(max(30, (seconds_in(str(spec.get("interval"))) or 0) - 30))),
        assumed=assumed,
        invalid=_invalid(body),
        declared=body,
    )


def _declared_release(body: Body, chart: ChartSource, values: Body, rendered: Release) -> flux.HelmRelease:
    plain = [r for r in rendered.resources if not hooks.is_hook(r.body)]
    return flux.HelmRelease(
        name=name_of(body),
        namespace=str(metadata(body).get("namespace") or "default"),
        release_name=rendered.name,
        target_namespace=rendered.namespace,
        chart=chart.load,
        chart_name=f"{chart.name}@{chart.version}",
        values=values,
        targets=tuple(Target(resource.ref, _at_home(resource)) for resource in plain),
        crds=tuple(Target(resource.ref, resource.body) for resource in rendered.crds),
        hooks=tuple(Target(r.ref, _at_home(r)) for r in rendered.resources if hooks.is_hook(r.body)),
        runs_post_hooks=any(event in POST for r in rendered.resources for event in hooks.events_of(r.body)),
        depends_on=_depends_on(body, "HelmRelease", HELM_GROUP),
        ready_exprs=_ready_exprs(body, "HelmRelease", HELM_GROUP),
        health=fluxhealth.read(_entries(body, "healthCheckExprs")).checks,
        invalid=_invalid(body),
        declared=body,
        install=_policy(body, "install"),
        upgrade=_policy(body, "upgrade"),
        uninstall=_policy(body, "uninstall"),
        suspended=bool(dig(body, "spec", "suspend")),
        tests=bool(dig(body, "spec", "test", "enable")),
        needs_tests=not dig(body, "spec", "test", "ignoreFailures"),
        drift=str(dig(body, "spec", "driftDetection", "mode") or "disabled"),
        drift_ignored=tuple(map(_ignored, listed(body, "spec", "driftDetection", "ignore"))),
        timeout=str(dig(body, "spec", "timeout") or "5m0s"),
    )


def _ignored(rule: Body) -> flux.Ignored:
    target = rule.get("target") or {}
    fields = ("group", "kind", "namespace", "name", "labelSelector", "annotationSelector")
    return flux.Ignored(tuple(rule.get("paths") or ()), *(str(target.get(field) or "") for field in fields))


def _policy(body: Body, act: str) -> flux.Policy:
    said = dig(body, "spec", act) or {}
    remediation = said.get("remediation") or {}
    retries = int(remediation.get("retries") or 0)
    last = remediation.get("remediateLastFailure")
    ignores = remediation.get("ignoreTestFailures")
    return flux.Policy(
        retries=retries,
        remediates_last=bool(last) if last is not None else act == "upgrade" and retries > 0,
        strategy=str(remediation.get("strategy") or "rollback"),
        retries_on_failure=dig(said, "strategy", "name") == "RetryOnFailure",
        crds=str(said.get("crds") or "Create"),
        flags=tuple(flag for field, flag in FLAGS.items() if said.get(field)),
        waits=not said.get("disableWait"),
        waits_for_jobs=not said.get("disableWaitForJobs"),
        server_side=said.get("serverSideApply") not in (False, "disabled"),
        takes_ownership=not said.get("disableTakeOwnership"),
        ignores_tests=bool(dig(body, "spec", "test", "ignoreFailures") if ignores is None else ignores),
    )


def _depends_on(body: Body, kind: str, group: str) -> tuple[Ref, ...]:
    home = str(metadata(body).get("namespace") or "default")
    entries = _entries(body, "dependsOn")
    return tuple(Ref(kind, str(entry.get("namespace") or home), str(entry.get("name")), group) for entry in entries)


def _checked(entry: Body, namespace: str) -> Ref:
    group, kind = group_of(str(entry.get("apiVersion") or "")), str(entry.get("kind"))
    home = "" if is_cluster_scoped(group, kind) else str(entry.get("namespace") or namespace)
    return Ref(kind, home, str(entry.get("name")), group)


def _beginning(release: Release) -> list[Resource]:
    """What somebody applies by hand: Flux's own objects where there is nothing else, or what `flux bootstrap` wrote.

    That is a Kustomization of the very folder, and what stands beside it.
    """
    if is_fluxs(release.resources) and all(map(_is_beginning, release.resources)):
        return list(release.resources)
    own = [r for r in release.resources if r.ref.kind == "Kustomization" and source.is_path_of(r.body, release.source)]
    beside = {str(PurePath(resource.file).parent) for resource in own}
    return [resource for resource in release.resources if str(PurePath(resource.file).parent) in beside]


def _is_beginning(resource: Resource) -> bool:
    return resource.ref.group in OWN_GROUPS or resource.ref.kind in GO_WITH_THEM


def _at_home(resource: Resource) -> Body:
    """The object in the namespace that it will be in."""
    if not resource.ref.namespace:
        return resource.body
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}


def _made_up(ref: Ref, api_version: str, body: Body, file: str) -> Resource:
    meta = {"name": ref.name, "namespace": ref.namespace}
    whole = {"apiVersion": api_version, "kind": ref.kind, "metadata": meta, **body}
    return Resource(ref, whole, Origin(file))


def _made_up_source() -> Body:
    return {"kind": "GitRepository", "name": HOME}
