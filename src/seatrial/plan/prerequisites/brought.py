"""Prerequisites that an object of the same input is known to bring: they are not there at first.

Which chart brings what is in `kinds.operators.charts`. What nothing is known to bring stays assumed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.setting import Setting
from seatrial.graph import products_of
from seatrial.helm import hooks
from seatrial.kinds.operators.charts import brings_crds, installation, is_of, runs_operator
from seatrial.model.release import CHART, AbsentChart, Brought, Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig, name_of
from seatrial.model.result import Prerequisite
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.scripted import installed_by
from seatrial.sources.bootstrap import set_up_before

NAMES_MAX = 4
Wanted = tuple[Body, Prerequisite]


class LateObjects(Struct, frozen=True):
    """Prerequisites that are assumed, and those that an object of the input brings."""

    assumed: list[Wanted]
    at_first: list[Body]
    """The assumed objects that exist before the first step, or as soon as their namespace does."""
    created: frozenset[str]
    """The namespaces that releases, engines and what is brought create."""
    brought: list[Brought] = []
    heralds: dict[Ref, Ref] = {}
    """The regular objects of charts, by whose creation Helm has also created those of their dependencies."""
    notes: tuple[str, ...] = ()


def late_objects(
    wanted: list[Wanted], releases: Sequence[Release], setting: Setting, by_engine: Iterable[str]
) -> LateObjects:
    """Nothing is brought late where a release is deployed already, a real cluster is known, or a real engine acts."""
    brought: list[Brought] = []
    set_up: dict[str, str] = {}
    if setting.history is None and setting.snapshot is None and not setting.engine.real:
        set_up = set_up_before(setting.opened.beside, setting.repos, _known_charts(releases))
        wanted, brought = _split(wanted, releases, set_up)
    homes = {*by_engine, *_namespaces_of_scripts(releases)}
    homes |= {one.resource.ref.name for one in brought if one.resource.ref.kind == "Namespace"}
    wanted = [(body, why) for body, why in wanted if body["kind"] != "Namespace" or name_of(body) not in homes]
    there = {name_of(body) for body, _ in wanted if body["kind"] == "Namespace"}
    created = frozenset(homes | needed.created_namespaces(releases)) - there
    assumed = list(needed.put_later(wanted, created))
    later = {one.resource.ref for one in brought}
    at_first = [body for body, _ in assumed if needed.ref_in_cluster(body) not in later]
    before = (f"{file} names chart {chart}: assuming it is installed before" for chart, file in set_up.items())
    return LateObjects(assumed, at_first, created, brought, _heralds(brought, releases), (*_notes(brought), *before))


def _split(
    wanted: Iterable[Wanted], releases: Sequence[Release], set_up: Container[str]
) -> tuple[list[Wanted], list[Brought]]:
    """The charts in `set_up` are installed before the engine runs."""
    charts = list(_charts(releases))
    assumed: list[Wanted] = []
    brought: list[Brought] = []
    for body, prerequisite in wanted:
        chart = next((one for one in charts if _brings(one, body, prerequisite, set_up)), None)
        if chart is None:
            assumed.append((body, prerequisite))
        else:
            brought.append(_brought(chart, body, releases))
    return assumed, [*brought, *_of_brought_kinds(assumed, brought)]


def _namespaces_of_scripts(releases: Sequence[Release]) -> set[str]:
    """Those that the scripts of Jobs create, which are rehearsed."""
    jobs = (r for release in releases for r in release.resources if r.ref.kind == "Job")
    return {ref.name for job in jobs for ref in products_of(job) if ref.kind == "Namespace"}


def _of_brought_kinds(assumed: Iterable[Wanted], brought: Sequence[Brought]) -> Iterator[Brought]:
    """Prerequisites of a kind that is not served before: they are assumed as soon as it is."""
    kinds = {
        (dig(one.resource.body, "spec", "group"), dig(one.resource.body, "spec", "names", "kind")): one
        for one in brought
        if one.resource.ref.kind == "CustomResourceDefinition"
    }
    for body, _ in assumed:
        ref = needed.ref_in_cluster(body)
        if crd := kinds.get((ref.group, ref.kind)):
            yield replace(crd, resource=replace(crd.resource, ref=ref, body=body), chart="")


def _known_charts(releases: Sequence[Release]) -> set[str]:
    """The charts that are not at hand, that HelmReleases or Applications install and that are known."""
    charts = (one for release in releases for one in release.absent_charts)
    return {one.chart for one in charts if not one.part and installation(one)}


def _notes(brought: Iterable[Brought]) -> Iterator[str]:
    """Who brings what, and that it is not there before."""
    found: dict[str, list[str]] = {}
    for one in brought:
        if one.chart or one.resource.ref.kind == "Namespace":
            found.setdefault(one.source, []).append(_shown(one.resource.ref))
    for source, names in found.items():
        more = [f"{len(names) - NAMES_MAX} more"] if len(names) > NAMES_MAX else []
        what = " and ".join((", ".join(names[:NAMES_MAX]), *more))
        yield f"{source} is known to bring {what}: absent before that"


def _shown(ref: Ref) -> str:
    if _is_workload(ref):
        return f"controller {ref.name}"
    return f"CRD {ref.name}" if ref.kind == "CustomResourceDefinition" else str(ref)


def _heralds(brought: Iterable[Brought], releases: Sequence[Release]) -> dict[Ref, Ref]:
    """The regular objects of charts, by whose creation Helm has also created those of their dependencies."""
    charts = {one.by for one in brought if one.by.kind == CHART}
    found: dict[Ref, Ref] = {}
    for release in releases:
        own = _own(release)
        if own in charts:
            found |= {r.ref: own for r in release.resources if not hooks.is_hook(r.body)}
    return found


def _charts(releases: Sequence[Release]) -> Iterator[AbsentChart]:
    """The charts that are not at hand. Dependencies of a chart count from the first release on: later, who knows."""
    for release in releases:
        yield from (one for one in release.absent_charts if one.by is not None)
        yield from (one for r in release.resources if r.ref.kind == "Job" for one in installed_by(r))
    for release in releases[:1]:
        yield from (replace(one, by=_own(release)) for one in release.absent_charts if one.by is None)


def _own(release: Release) -> Ref:
    return Ref(CHART, release.namespace, release.name)


def _brings(chart: AbsentChart, body: Body, prerequisite: Prerequisite, set_up: Container[str]) -> bool:
    if body["kind"] == "Namespace":
        return bool(chart.namespace) and name_of(body) == chart.namespace
    known = installation(chart)
    before = chart.chart in set_up and not chart.part
    if known is None or before or not is_of(chart, prerequisite.brought_by):
        return False
    if prerequisite.operator:
        return runs_operator(chart) and _is_late(chart)
    return brings_crds(chart) and (not known.is_first or _is_late(chart))


def _is_late(chart: AbsentChart) -> bool:
    """Whether something of the input can come before it; Helm installs crds/ and pre-install hooks first."""
    return not (chart.part and chart.by is not None and chart.by.kind == CHART)


def _brought(chart: AbsentChart, body: Body, releases: Sequence[Release]) -> Brought:
    assert chart.by is not None
    ref, known = needed.ref_in_cluster(body), installation(chart)
    early = chart.part and known is not None and known.is_first and not _is_workload(ref)
    written = (release.find(chart.by) for release in releases)
    by = next((one for one in written if one is not None), None)
    origin = by.origin if by is not None else Origin("")
    named = "" if ref.kind == "Namespace" else chart.chart or chart.url
    return Brought(Resource(ref, body, origin), chart.by, named, early)


def _is_workload(ref: Ref) -> bool:
    return ref.group == "apps"
