"""What a trial's `assume` puts into the cluster: operators that are known or described there, and storage classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds import Kind
from seatrial.kinds.operators.generic import DescribedOperator, described_kinds, description, is_description
from seatrial.kinds.operators.manifests import crd_of, install_manifests, workload_of
from seatrial.kinds.operators.table import OperatorKind, Version, find, is_cluster_scoped, plural_for
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, group_of, metadata, name_of, ref_of
from seatrial.model.trial import Operator, StorageClass

ANY_VERSION = ("v1alpha1", "v1beta1", "v1")
"""Served of a kind that is described: nobody says which one is right."""
USUAL_STORAGE = StorageClass("standard", binding="WaitForFirstConsumer", default=True)
"""What most clusters have: a default class that waits for the first consumer."""


def assumed_objects(operator: Operator) -> list[Body]:
    """An operator that is assumed to run, as objects in the order in which they can be made."""
    return list(_described(operator) if _is_described(operator) else _known(operator))


def without_brought(assumed: Iterable[Body], operators: Iterable[Operator], brought: Iterable[Ref]) -> list[Body]:
    """What is assumed, but for what of an operator a release brings itself: its workloads, and the place for them."""
    theirs = {_ref(body) for operator in operators for body in assumed_objects(operator)} & set(brought)
    rest = [body for body in assumed if body["kind"] == "Namespace" or _ref(body) not in theirs]
    lived_in = {metadata(body).get("namespace") for body in rest}
    return [body for body in rest if _ref(body) not in theirs or name_of(body) in lived_in]


def described_in(assumed: Iterable[Body]) -> dict[tuple[str, str], Kind]:
    """The kinds of operators that a trial describes, by (group, kind)."""
    kinds = (kind for body in assumed if is_description(_ref(body)) for kind in described_kinds(body))
    return {(kind.group, kind.kind): kind for kind in kinds}


def storage_classes(given: Iterable[StorageClass]) -> Iterator[Body]:
    """Those that a trial assumes, or the usual one."""
    for storage_class in tuple(given) or (USUAL_STORAGE,):
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if storage_class.default else {}
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": storage_class.name, "annotations": annotations},
            "provisioner": "example.com/assumed",
            "volumeBindingMode": storage_class.binding,
        }


def _known(operator: Operator) -> Iterator[Body]:
    return install_manifests(find(operator.name, operator.version), operator.version)


def _is_described(operator: Operator) -> bool:
    return bool(operator.kinds or operator.deployment or operator.finalizer or operator.produces)


def _described(operator: Operator) -> Iterator[Body]:
    if operator.version:
        raise CannotContinue(f"assume.operators: {operator.name}: one that is described here has no version")
    if not operator.kinds:
        raise CannotContinue(
            f"assume.operators: {operator.name}: say which kinds it acts on: kinds: [Lock.example.com]"
        )
    for name in operator.kinds:
        kind, _, group = name.partition(".")
        if not group:
            raise CannotContinue(f"assume.operators: {operator.name}: a kind is written Kind.group, not {name!r}")
        yield crd_of(_unknown_kind(group, kind), ANY_VERSION, ANY_VERSION[-1])
    told = DescribedOperator(
        operator.name, operator.kinds, operator.deployment, operator.finalizer, tuple(_patterns(operator))
    )
    yield description(told)
    if operator.deployment:
        namespace, _, name = operator.deployment.rpartition("/")
        if namespace:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        yield workload_of(name, namespace or "default", f"{operator.name}:assumed")


def _patterns(operator: Operator) -> Iterator[str]:
    """`secret: spec.target.name` as the patterns that tell what an operator makes."""
    kinds = {entry.kind.lower(): entry for entry in CATALOGUE.values()}
    for kind, path in operator.produces.items():
        entry = kinds.get(kind.lower())
        if entry is None:
            raise CannotContinue(f"assume.operators: {operator.name}: produces: Kubernetes has no kind {kind!r}")
        yield f"{entry.kind}{'.' if entry.group else ''}{entry.group} {{{path}}}"


def _unknown_kind(group: str, kind: str) -> OperatorKind:
    versions = tuple(Version(name) for name in ANY_VERSION)
    return OperatorKind(group, kind, plural_for(group, kind), True, (), ("status",), versions)


def _ref(body: Body) -> Ref:
    return ref_of(body, namespaced=not is_cluster_scoped(group_of(str(body["apiVersion"])), str(body["kind"])))
