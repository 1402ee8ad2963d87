"""Operators that OLM installs for a Subscription. Which package brings which is in operators.toml (`packages`).

Upstream: pkg/controller/operators/catalog of operator-lifecycle-manager 0.46. The bundle of another package is not
known: nothing is installed for it here. A Subscription with manual approval waits for people.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from seatrial.kinds import Acts, Create, Emit, Kind, Need, Status, World
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.operators.manifests import crd_of, workloads
from seatrial.kinds.operators.patterns import matches, parse
from seatrial.kinds.operators.table import OperatorEntry, operator_kinds, release_of, table
from seatrial.model.resource import Body, Ref, annotations_of, dig, group_of, labels_of, name_of

GROUP = "operators.coreos.com"
OPERATOR = "olm"
INSTALLED = "AtLatestKnown"
ALONGSIDE = "operatorframework.io/installed-alongside-"
"""How the annotation begins that OLM sets on the CRDs of a package."""
OWNER = "olm.owner"
"""The label of the workloads that it installs."""
CRD_GROUP = "apiextensions.k8s.io"


def package_of(body: Body) -> OperatorEntry | None:
    """The operator that OLM installs for a Subscription; None for other objects and packages."""
    if body.get("kind") != "Subscription" or group_of(str(body.get("apiVersion") or "")) != GROUP:
        return None
    automatic = dig(body, "spec", "installPlanApproval") in (None, "", "Automatic")
    return _packages().get(str(dig(body, "spec", "name") or "")) if automatic else None


def crds_installed(body: Body) -> Iterator[Body]:
    """The CRDs in the package of a Subscription, in all versions: which release its channel has is not known."""
    operator = package_of(body)
    for kind in operator.kinds if operator else ():
        names = [version.name for version in kind.versions]
        meta: Body = {"annotations": {f"{ALONGSIDE}seatrial": f"{namespace_of(body)}/{dig(body, 'spec', 'name')}"}}
        crd = crd_of(kind, names, names[-1])
        yield {**crd, "metadata": {**crd["metadata"], **meta}}


def is_installed(body: Body) -> bool:
    """Whether OLM installed an object, and no engine."""
    return OWNER in labels_of(body) or any(key.startswith(ALONGSIDE) for key in annotations_of(body))


def _workloads(operator: OperatorEntry, body: Body) -> Iterator[Body]:
    for made in workloads(operator, "", namespace_of(body)):
        labels = {**labels_of(made), OWNER: str(dig(body, "spec", "name"))}
        yield {**made, "metadata": {**made["metadata"], "labels": labels}}


@cache
def _packages() -> dict[str, OperatorEntry]:
    return {package: operator for operator in table().values() for package in operator.packages}


def _needs(body: Body) -> Iterator[Need]:
    for pattern in map(parse, operator_kinds()[GROUP, "Subscription"][1].needs):
        for named in matches(pattern, body):
            ref = Ref(named.kind, named.namespace, named.name, named.group)
            yield Need(ref, pattern.stage, named.field, optional=pattern.optional)


def _produces(body: Body) -> Iterator[Ref]:
    return (Ref("CustomResourceDefinition", "", name_of(crd), CRD_GROUP) for crd in crds_installed(body))


def _behave(body: Body, world: World) -> Acts:
    operator = package_of(body)
    if operator is None or release_of(world, OPERATOR) is None:
        return
    for made in (*crds_installed(body), *_workloads(operator, body)):
        ref = Ref(made["kind"], dig(made, "metadata", "namespace") or "", name_of(made), group_of(made["apiVersion"]))
        if world.get(ref) is None:
            refusal = yield Create(made)  # They stay when the Subscription is deleted.
            if refusal is not None:
                yield Emit(body, "CreateFailed", refusal.message, refusal=refusal)
                return
    yield Status(body, {**(body.get("status") or {}), "state": INSTALLED})


KINDS = (Kind("Subscription", GROUP, actor=OPERATOR, needs=_needs, produces=_produces, behave=_behave),)
