"""Objects declared by `assume` in a trial file: known or described operators, and storage classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds import Kind
from seatrial.kinds.operators.generic import (
    deployment_of,
    described_crd,
    described_kinds,
    description,
    is_description,
    operator_in,
)
from seatrial.kinds.operators.manifests import install_manifests, workload_of
from seatrial.kinds.operators.table import find, is_cluster_scoped
from seatrial.kinds.storage.volumes import GUESSED
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, group_of, metadata, name_of, ref_of
from seatrial.model.trial import Operator, StorageClass

USUAL_STORAGE = StorageClass("standard", binding="WaitForFirstConsumer", default=True, expansion=True)
"""As on most clusters: a default class that waits for the first consumer, and whose PVCs can grow."""


def assumed_objects(operator: Operator) -> list[Body]:
    """The objects of an operator that is assumed to run, in an order in which they can be created."""
    return list(_described(operator) if is_described(operator) else _known(operator))


def without_installed_parts(
    assumed: Iterable[Body], operators: Iterable[Operator], brought: Iterable[Ref]
) -> list[Body]:
    """The assumed objects, without what a release itself installs of an operator, and its namespace."""
    theirs = {_ref(body) for operator in operators for body in assumed_objects(operator)} & set(brought)
    rest = [body for body in assumed if body["kind"] == "Namespace" or _ref(body) not in theirs]
    lived_in = {metadata(body).get("namespace") for body in rest}
    return [body for body in rest if _ref(body) not in theirs or name_of(body) in lived_in]


def described_in(assumed: Iterable[Body]) -> dict[tuple[str, str], Kind]:
    """The kinds of the operators described in a trial, by (group, kind)."""
    kinds = (kind for body in assumed if is_description(_ref(body)) for kind in described_kinds(operator_in(body)))
    return {(kind.group, kind.kind): kind for kind in kinds}


def storage_classes(given: Iterable[StorageClass]) -> Iterator[Body]:
    """The storage classes of a trial, or the usual one."""
    for storage_class in tuple(given) or (USUAL_STORAGE,):
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if storage_class.default else {}
        if storage_class is USUAL_STORAGE:
            annotations[GUESSED] = "expansion"
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": storage_class.name, "annotations": annotations},
            "provisioner": "example.com/assumed",
            "volumeBindingMode": storage_class.binding,
            "reclaimPolicy": storage_class.reclaim,
            "allowVolumeExpansion": storage_class.expansion,
        }


def _known(operator: Operator) -> Iterator[Body]:
    return install_manifests(find(operator.name, operator.version), operator.version)


def is_described(operator: Operator) -> bool:
    return bool(operator.all_kinds or operator.deployment or operator.finalizer or operator.produces)


def _described(operator: Operator) -> Iterator[Body]:
    if operator.version:
        raise CannotContinue(f"assume.operators: {operator.name}: a described operator takes no version; remove it")
    if not operator.all_kinds:
        raise CannotContinue(
            f"assume.operators: {operator.name}: needs the kinds it reconciles, such as kinds: [Lock.example.com]"
        )
    unknown = [name for name in operator.generates if name not in operator.all_kinds]
    if unknown:
        raise CannotContinue(f"assume.operators: {operator.name}: generates: {unknown[0]!r} is not one of its kinds")
    for name in operator.all_kinds:
        if name not in operator.generates.values():
            yield described_crd(operator, name)
    tuple(described_kinds(operator))  # Refuses kinds that it cannot produce.
    yield description(operator)
    if operator.deployment:
        deployment = deployment_of(operator)
        if "/" in operator.deployment:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": deployment.namespace}}
        yield workload_of(deployment.name, deployment.namespace, f"{operator.name}:assumed")


def _ref(body: Body) -> Ref:
    return ref_of(body, namespaced=not is_cluster_scoped(group_of(str(body["apiVersion"])), str(body["kind"])))
