"""Objects of which an operator makes definitions: ConstraintTemplates of Gatekeeper, XRDs of Crossplane.

From constraint/pkg/client/crds/crds.go of the OPA frameworks and pkg/controller/constrainttemplate of Gatekeeper 3.23;
from pkg/xcrd of crossplane-runtime 2.3. Their schemas take any object here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from seatrial.kinds import Acts, Kind, World
from seatrial.kinds.operators.installed import ANYTHING
from seatrial.kinds.operators.shared import hold, put
from seatrial.kinds.operators.table import CONSTRAINTS, release_of
from seatrial.model.resource import Body, Ref, dig, group_of, listed, name_of

DEFINITIONS = "apiextensions.k8s.io"
CONSTRAINT_VERSIONS = ({"name": "v1beta1", "storage": True}, {"name": "v1alpha1", "storage": False})

Generate = Callable[[Body], Iterator[Body]]


def definitions_of(body: Body) -> Iterator[Body]:
    """The definitions that an operator makes of an object; none of any other."""
    found = GENERATORS.get((group_of(str(body.get("apiVersion") or "")), str(body.get("kind") or "")))
    return found[1](body) if found else iter(())


def _of_constraint_template(template: Body) -> Iterator[Body]:
    names = dig(template, "spec", "crd", "spec", "names") or {}
    kind = str(names.get("kind") or "")
    if kind:
        short = {"shortNames": listed(names, "shortNames")} if names.get("shortNames") else {}
        plural = {"plural": kind.lower(), "categories": ["constraint", "constraints"], **short}
        yield _definition(CONSTRAINTS, {"kind": kind, **plural}, "Cluster", CONSTRAINT_VERSIONS)


def _of_composite(definition: Body) -> Iterator[Body]:
    """A definition of the composite, and one of its claim where there is one."""
    spec = definition.get("spec") or {}
    versions = [
        {"name": version.get("name"), "served": version.get("served"), "storage": version.get("referenceable")}
        for version in listed(spec, "versions")
    ]
    group, second = str(spec.get("group") or ""), str(definition.get("apiVersion")).endswith("/v2")
    scope = str(spec.get("scope") or ("Namespaced" if second else "LegacyCluster"))
    if dig(spec, "names", "kind"):
        yield _definition(group, spec["names"], scope.removeprefix("Legacy"), versions)
    if dig(spec, "claimNames", "kind"):
        yield _definition(group, spec["claimNames"], "Namespaced", versions)


def _definition(group: str, names: Body, scope: str, versions: Any) -> Body:
    return {
        "apiVersion": f"{DEFINITIONS}/v1",
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
}
"""By (group, kind): whose it is, and what it makes of it."""


def _kind(group: str, kind: str, operator: str, generate: Generate) -> Kind:
    def produces(body: Body) -> Iterator[Ref]:
        return (Ref("CustomResourceDefinition", "", name_of(made), DEFINITIONS) for made in generate(body))

    def behave(body: Body, world: World) -> Acts:
        release = release_of(world, operator)
        if release is None or not (yield from hold(body, release)):
            return
        for made in generate(body):
            yield from put(made, world, owner=body)

    return Kind(kind, group, actor=operator, produces=produces, behave=behave)


KINDS = tuple(_kind(*key, *made) for key, made in GENERATORS.items())
