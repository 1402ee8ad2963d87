"""Stages a step of Flux: the Kustomizations and HelmReleases of an input, and all they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.act import Reconcile
from seatrial.engines.engine import PlannedStep, known_version
from seatrial.engines.flux.declared import declared, declared_release, not_evaluated
from seatrial.engines.flux.objects import (
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    FluxObjects,
    HelmRelease,
    Kustomization,
)
from seatrial.engines.flux.process import NAME, find
from seatrial.engines.flux.real_stage import controllers_instead
from seatrial.engines.script import DescribedObject
from seatrial.engines.setting import Setting, is_chart, release_of, served, values_of
from seatrial.kinds.operators.charts import installation
from seatrial.model.engine import EngineId
from seatrial.model.errors import NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig, ref_of
from seatrial.model.trial import Step, Trial
from seatrial.sources.flux.building import FluxSources, Shelf, read_folder
from seatrial.sources.flux.gathering import ACTED_ON, Charted, FoundFlux, at_home, beginning, gather, is_of_flux

VERSIONS = ("2.9",)
USUAL_FOR = ACTED_ON
HOME = "flux-system"
ONE_KUSTOMIZATION = (
    "flux: no Kustomization or HelmRelease given; assuming one Kustomization with prune and without wait. Pass one of "
    "your own to change that."
)
ONE_HELMRELEASE = (
    "flux: no HelmRelease given; assuming one with nothing but the chart and its values. Pass one of your own to "
    "change that."
)


class Prepared(Struct, frozen=True):
    """What Flux keeps in the cluster, and all objects of it as one release."""

    fleet: FluxObjects
    release: Release
    notes: tuple[str, ...] = ()
    not_rehearsed: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    """Namespaces that HelmReleases create."""


def configure(setting: Setting, trial: Trial) -> Setting:
    """The version that is simulated, or the Flux of the user, which does not say its version."""
    folder = setting.binaries.get(NAME, "")
    if not folder:
        return replace(setting, engine=known_version(setting.engine, VERSIONS))
    return replace(setting, engine=EngineId(NAME, find(folder).version, real=True))


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Any]:
    """Manifests as what Flux begins with, or as one Kustomization; a chart as that of one HelmRelease."""
    release, opened = release_of(step, setting, read=read_folder), setting.opened
    known = None
    if is_chart(step, setting):
        prepared = _of_chart(Charted({}, opened.chart_of(step), values_of(step, setting), release), release)
    else:
        known = FluxSources(setting.repos, setting.charts, release.source, {}, served(setting), opened.kept(Shelf))
        prepared = prepare(release, known, _missing_in(setting))
    act: Any = Reconcile(prepared.fleet)
    if NAME in setting.binaries:
        act = controllers_instead(act, step, setting, known)
    return PlannedStep(
        step,
        NAME,
        release.name,
        release.namespace,
        act,
        prepared.release,
        prepared.notes,
        not_rehearsed=prepared.not_rehearsed,
        hollow=all(map(is_of_flux, prepared.release.resources)),
        namespaces=prepared.namespaces,
    )


def prepare(release: Release, known: FluxSources, is_missing: Callable[[Ref], bool] = lambda _: False) -> Prepared:
    """What comes of manifests: themselves, where they are what a cluster begins with, or else as one Kustomization."""
    known.objects.update((resource.ref, resource.body) for resource in release.resources)
    first = beginning(release)
    found = gather(first or release.resources, known)
    if not first:
        return _with_others(_of_manifests(release, found, known), is_missing)
    absent = _absent(found)
    if absent and not found.resources:
        raise NothingToCheck("\n  ".join((f"{release.source}: nothing of it can be rehearsed", *absent)))
    whole = replace(release, resources=tuple(first))
    return _with_others(_prepared(whole, found, known, _targets(first)), is_missing)


def _of_manifests(release: Release, found: FoundFlux, known: FluxSources) -> Prepared:
    """Manifests as the path of one Kustomization."""
    own = Kustomization(release.name or "app", HOME, _targets(release.resources), timeout="5m0s")
    source = {"kind": "GitRepository", "name": HOME}
    body: Body = {"spec": {"prune": True, "interval": "10m", "path": "./", "sourceRef": source}}
    root = _made_up(own.ref, f"{KUSTOMIZE_GROUP}/v1", body, release.source)
    whole = replace(release, resources=(root, *release.resources))
    prepared = _prepared(whole, found, known, (DescribedObject(root.ref, root.body),), own)
    return replace(prepared, notes=(ONE_KUSTOMIZATION, *prepared.notes))


def _of_chart(charted: Charted, release: Release) -> Prepared:
    """A chart as that of one HelmRelease."""
    ref = Ref("HelmRelease", release.namespace, release.name, HELM_GROUP)
    body: Body = {"spec": {"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": release.name}}}
    root = _made_up(ref, f"{HELM_GROUP}/v2", body, release.source)
    fleet = FluxObjects(
        (DescribedObject(ref, root.body),), {}, {ref: declared_release(replace(charted, body=root.body))}
    )
    return Prepared(fleet, replace(release, resources=(root, *release.resources)), (ONE_HELMRELEASE,))


def _prepared(
    release: Release, found: FoundFlux, known: FluxSources, roots: tuple[DescribedObject, ...], *own: Kustomization
) -> Prepared:
    resources, crds = (*release.resources, *found.resources), (*release.crds, *found.crds)
    kustomizations = {one.ref: one for one in own}
    for ref, built in found.kustomizations.items():
        kustomizations.setdefault(ref, declared(built))
    bringing = {one.by for one in found.absent_charts if one.namespace or installation(one)}
    releases = {ref: replace(declared_release(one), brings=ref in bringing) for ref, one in found.releases.items()}
    notes = [*found.notes, *_notes(found, releases)]
    if absent := _absent(found):
        notes += _ignore_unknown_checks(kustomizations, {r.ref for r in (*resources, *crds)})
    notes += _from_checkout(resources, known)
    fleet = FluxObjects(roots, kustomizations, releases)
    skipped = (*release.skipped_crds, *found.skipped_crds)
    whole = replace(
        release,
        resources=resources,
        crds=crds,
        skipped_crds=skipped,
        pins=(*release.pins, *found.pins),
        absent_charts=(*release.absent_charts, *found.absent_charts),
    )
    unseen = (*found.not_rehearsed, *_assumed_ready(absent))
    created = tuple(dict.fromkeys(_created(found)))
    return Prepared(fleet, whole, tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(unseen)), created)


def _created(found: FoundFlux) -> Iterator[str]:
    """The namespaces that HelmReleases create."""
    for charted in found.releases.values():
        if charted.release is not None and dig(charted.body, "spec", "install", "createNamespace") is True:
            yield charted.release.namespace


def _targets(resources: Iterable[Resource]) -> tuple[DescribedObject, ...]:
    return tuple(DescribedObject(resource.ref, at_home(resource)) for resource in resources)


def _absent(found: FoundFlux) -> dict[str, list[Ref]]:
    """What was not found, and what needs it."""
    absent: dict[str, list[Ref]] = {}
    for ref, built in found.kustomizations.items():
        if built.absent:
            absent.setdefault(built.absent, []).append(ref)
    for ref, charted in found.releases.items():
        if charted.absent:
            absent.setdefault(charted.absent, []).append(ref)
    return absent


def _notes(found: FoundFlux, releases: dict[Ref, HelmRelease]) -> Iterator[str]:
    for one in found.kustomizations.values():
        yield from not_evaluated(one.body) if not one.absent else ()
    for ref, charted in found.releases.items():
        if charted.release is None:
            continue
        yield from not_evaluated(charted.body)
        if releases[ref].health and releases[ref].runs_post_hooks:
            yield f"flux: {ref}: Helm waits for it before its hooks, without healthCheckExprs"


def _ignore_unknown_checks(kustomizations: dict[Ref, Kustomization], here: set[Ref]) -> Iterator[str]:
    """Do not wait for what a chart or path that was not found may bring."""
    for ref, one in list(kustomizations.items()):
        for check in (check for check in one.health_checks if check not in here):
            yield f"flux: {ref} waits for {check}, which was not found; assuming it is ready"
        waited = tuple(check for check in one.health_checks if check in here)
        kustomizations[ref] = replace(one, health_checks=waited)


def _assumed_ready(absent: dict[str, list[Ref]]) -> Iterator[str]:
    for why, refs in absent.items():
        more = f" and {len(refs) - 1} more" if len(refs) > 1 else ""
        yield f"{refs[0]}{more} (assumed to become Ready): its {why}"


def _from_checkout(resources: Iterable[Resource], known: FluxSources) -> Iterator[str]:
    """The notes on sources that are the checkout of the input."""
    for resource in resources:
        url = str(dig(resource.body, "spec", "url") or "")
        if resource.ref.kind == "GitRepository" and known.repos.is_checkout(url):
            tree = "its working tree is rehearsed, whatever spec.ref names"
            yield f"flux: {resource.ref}: {url} is a remote of this checkout; {tree}"


def _missing_in(setting: Setting) -> Callable[[Ref], bool]:
    """Whether the user says that an object is not in the cluster."""
    there = {ref_of(body) for body in setting.assumed}
    return lambda ref: ref not in there and (setting.only or str(ref) in setting.absent)


def _with_others(prepared: Prepared, is_missing: Callable[[Ref], bool]) -> Prepared:
    """With the dependencies that are not in the input: assumed to be Ready, or missing if the user says so."""
    fleet = prepared.fleet
    own: dict[Ref, Kustomization | HelmRelease] = {**fleet.kustomizations, **fleet.releases}
    names = {ref.name for ref in own}
    wanted = [(ref, other) for ref, one in own.items() for other in one.depends_on if other.name not in names]
    missing = frozenset(other for _, other in wanted if is_missing(other))
    notes = (
        f"flux: {ref} depends on {other}, which was not found; assuming it is Ready"
        for ref, other in wanted
        if other not in missing
    )
    fleet = replace(fleet, missing=missing)
    return replace(prepared, fleet=fleet, notes=tuple(dict.fromkeys((*prepared.notes, *notes))))


def _made_up(ref: Ref, api_version: str, body: Body, file: str) -> Resource:
    meta = {"name": ref.name, "namespace": ref.namespace}
    whole = {"apiVersion": api_version, "kind": ref.kind, "metadata": meta, **body}
    return Resource(ref, whole, Origin(file))
