"""Charts that ask the cluster for CRDs of their own program: what they render before these exist, and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.core.crd import api_versions
from seatrial.model.program import Generated, Guarded
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, dig, ref_of
from seatrial.sources.charts.rendering import NotRendered
from seatrial.sources.pulumi.charts import Charts


class RenderedChart(Struct, frozen=True):
    """A chart as it renders once the CRDs of the program exist."""

    release: Release
    refused: str = ""
    """Why it does not render before the CRDs in `after` are in the cluster."""
    after: tuple[Ref, ...] = ()
    guarded: tuple[Guarded, ...] = ()


def rendered(charts: Charts, named: str, own_crds: Iterable[Body], **options: Any) -> RenderedChart | None:
    """A chart rendered for an empty cluster, and with the CRDs of the program; None if it is not on disk.

    Raises `NotRendered` if it renders in neither.
    """
    try:
        first = charts.render(named, **options)
    except NotRendered as refused:
        for definitions in _by_group(own_crds):
            later = _with(charts, named, definitions, options)
            if later is not None:
                return RenderedChart(later, refused.words, tuple(map(_definition, definitions)))
        raise
    if first is None:
        return None
    found = {resource.ref: resource for resource in first.resources}
    guarded = []
    for definitions in _by_group(own_crds):
        later = _with(charts, named, definitions, options)
        for resource in later.resources if later is not None else ():
            if resource.ref not in found:
                found[resource.ref] = resource
                guarded.append(Guarded(_scoped(resource.ref, definitions), tuple(map(_definition, definitions))))
    return RenderedChart(replace(first, resources=tuple(found.values())), guarded=tuple(guarded))


def generated(first: Release, second: Release, *, looked_up: bool) -> Iterator[Generated]:
    """The Secrets that differ between two renders of the same input, and in which keys."""
    again = {resource.ref: resource.body for resource in second.resources}
    for resource in first.resources:
        if resource.ref.kind == "Secret" and resource.ref in again:
            one, other = (_data(body) for body in (resource.body, again[resource.ref]))
            if keys := tuple(sorted(key for key in one if one[key] != other.get(key))):
                yield Generated(resource.ref, keys, looked_up)


def _data(secret: Body) -> Body:
    return {**(secret.get("data") or {}), **(secret.get("stringData") or {})}


def _with(charts: Charts, named: str, definitions: list[Body], options: dict[str, Any]) -> Release | None:
    try:
        return charts.render(named, **options, also=api_versions(definitions))
    except NotRendered:
        return None


def _definition(body: Body) -> Ref:
    return ref_of(body, namespaced=False)


def _scoped(ref: Ref, definitions: list[Body]) -> Ref:
    """The object without a namespace if one of these CRDs makes its kind cluster-scoped."""
    for body in definitions:
        spec = body.get("spec") or {}
        if (spec.get("scope"), spec.get("group"), dig(spec, "names", "kind")) == ("Cluster", ref.group, ref.kind):
            return Ref(ref.kind, "", ref.name, ref.group)
    return ref


def _by_group(definitions: Iterable[Body]) -> Iterator[list[Body]]:
    """The CRDs of each API group, then all of them."""
    groups: dict[str, list[Body]] = {}
    for one in definitions:
        groups.setdefault(str(dig(one, "spec", "group")), []).append(one)
    yield from groups.values()
    if len(groups) > 1:
        yield [one for group in groups.values() for one in group]
