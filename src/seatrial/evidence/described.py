"""What the operators do that a trial describes: their kinds, their products, their Deployments."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping

from seatrial.graph import config_maps, products_of
from seatrial.kinds.operators.generated_crds import GENERATORS, crds_of
from seatrial.kinds.operators.generic import deployment_of, described_crd, described_kinds
from seatrial.kinds.operators.starting import crds_created, creator_in
from seatrial.kinds.operators.table import operator_kinds
from seatrial.kinds.scripts.commands import RUN_SCRIPTS
from seatrial.model.release import Case, Release, Resource, once
from seatrial.model.resource import Body, Ref
from seatrial.model.trial import Operator


def products(case: Case, resource: Resource) -> list[Ref]:
    """The objects that an object leads to, through Kubernetes or through a known or described operator."""
    beside = _config_maps(case) if resource.ref.kind in RUN_SCRIPTS else {}
    if not case.operators:
        return products_of(resource, beside=beside)
    kinds = (kind for operator in case.operators for kind in described_kinds(operator))
    return products_of(resource, {(kind.group, kind.kind): kind for kind in kinds}, beside)


def _config_maps(case: Case) -> Mapping[Ref, Resource]:
    """The ConfigMaps of a case, each as its last release has it."""
    releases = [release for release in (case.before, *case.releases) if release]
    return ChainMap(*(_config_maps_of(release) for release in reversed(releases)))


def _config_maps_of(release: Release) -> dict[Ref, Resource]:
    return once(release, "config maps", lambda: config_maps((*release.resources, *release.crds)))


def maker(case: Case, ref: Ref) -> str:
    """The name of the operator that acts on an object; empty if none is known."""
    described = (one.name for one in case.operators if f"{ref.kind}.{ref.group}" in one.all_kinds)
    known = operator_kinds().get((ref.group, ref.kind))
    generator = GENERATORS.get((ref.group, ref.kind), ("",))[0]
    return next(described, "") or generator or (known[0].name if known else "") or _runs(case, ref)


def _runs(case: Case, ref: Ref) -> str:
    """The operator that a workload of the trial runs, if it creates CRDs by itself."""
    found = (creator_in(resource.body) for resource in case.all_resources() if resource.ref == ref)
    return next((operator.name for operator in found if operator is not None), "")


def deployments(case: Case) -> dict[Ref, Operator]:
    """The Deployments of described operators."""
    return {deployment_of(one): one for one in case.operators if one.deployment}


def generated(case: Case, body: Body) -> Iterator[Body]:
    """The CRDs that an operator creates from an object."""
    yield from crds_of(body)
    if creator_in(body) is not None:
        yield from crds_created(body, (one.body for one in case.all_resources() if one.ref.kind == "ConfigMap"))
    named = f"{body.get('kind')}.{str(body.get('apiVersion')).partition('/')[0]}"
    for operator in case.operators:
        if named in operator.generates:
            yield described_crd(operator, operator.generates[named])
