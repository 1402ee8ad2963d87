"""Objects from which an operator creates CRDs: Gatekeeper's ConstraintTemplates, Crossplane's XRDs.

From constraint/pkg/client/crds/crds.go of the OPA frameworks and pkg/controller/constrainttemplate of Gatekeeper 3.23;
from pkg/xcrd of crossplane-runtime 2.3. The schemas here accept any object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from seatrial.kinds import Acts, Kind, World
from seatrial.kinds.operators import olm
from seatrial.kinds.operators.manifests import ANYTHING
from seatrial.kinds.operators.reconcile import apply, keep_finalizer
from seatrial.kinds.operators.table import CONSTRAINTS, release_of
from seatrial.model.resource import Body, Ref, dig, group_of, listed, name_of

CRD_GROUP = "apiextensions.k8s.io"
CONSTRAINT_VERSIONS = ({"name": "v1beta1", "storage": True}, {"name": "v1alpha1", "storage": False})

Generate = Callable[[Body], Iterator[Body]]


def crds_of(body: Body) -> Iterator[Body]:
    """The CRDs that an operator creates from an object; none for other kinds."""
    found = GENERATORS.get((group_of(str(body.get("apiVersion") or "")), str(body.get("kind") or "")))
    return found[1](body) if found else iter(())


def _of_constraint_template(template: Body) -> Iterator[Body]:
    names = dig(template, "spec", "crd", "spec", "names") or {}
    kind = str(names.get("kind") or "")
    if kind:
        short = {"shortNames": listed(names, "shortNames")} if names.get("shortNames") else {}
        plural = {"plural": kind.lower(), "categories": ["constraint", "constraints"], **short}
        yield _crd(CONSTRAINTS, {"kind": kind, **plural}, "Cluster", CONSTRAINT_VERSIONS)


def _of_composite(xrd: Body) -> Iterator[Body]:
    """The CRD of the composite resource, and one of its claim if it has one."""
    spec = xrd.get("spec") or {}
    versions = [
        {"name": version.get("name"), "served": version.get("served"), "storage": version.get("referenceable")}
        for version in listed(spec, "versions")
    ]
    group, second = str(spec.get("group") or ""), str(xrd.get("apiVersion")).endswith("/v2")
    scope = str(spec.get("scope") or ("Namespaced" if second else "LegacyCluster"))
    if dig(spec, "names", "kind"):
        yield _crd(group, spec["names"], scope.removeprefix("Legacy"), versions)
    if dig(spec, "claimNames", "kind"):
        yield _crd(group, spec["claimNames"], "Namespaced", versions)


def _crd(group: str, names: Body, scope: str, versions: Any) -> Body:
    return {
        "apiVersion": f"{CRD_GROUP}/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.get('plural')}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": names,
            "versions": [
                {"served": True, **version, "schema": ANYTHING, "subresources": {"status": {}}} for version in versions
            ],
        },
    }


GENERATORS: dict[tuple[str, str], tuple[str, Generate]] = {
    ("templates.gatekeeper.sh", "ConstraintTemplate"): ("gatekeeper", _of_constraint_template),
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"): ("crossplane", _of_composite),
    (olm.GROUP, "Subscription"): (olm.OPERATOR, olm.crds_installed),
}
"""By (group, kind): the operator, and the CRDs it creates."""


def _kind(group: str, kind: str, operator: str, generate: Generate) -> Kind:
    def produces(body: Body) -> Iterator[Ref]:
        return (Ref("CustomResourceDefinition", "", name_of(made), CRD_GROUP) for made in generate(body))

    def behave(body: Body, world: World) -> Acts:
        release = release_of(world, operator)
        if release is None or not (yield from keep_finalizer(body, release)):
            return
        for made in generate(body):
            yield from apply(made, world, owner=body)

    return Kind(kind, group, actor=operator, produces=produces, behave=behave)


KINDS = tuple(_kind(*key, *made) for key, made in GENERATORS.items() if key[0] != olm.GROUP)
