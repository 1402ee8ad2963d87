"""Kinds without a module: finalizers and products from the table or a trial."""

from __future__ import annotations

import pytest
from operatorcluster import OperatorCluster

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Ref, name_of
from seatrial.model.trial import Operator
from seatrial.plan.prerequisites.declared import assumed_objects, without_installed_parts
from seatrial.play.prerequisites import assume

SLUICE = Operator(
    "sluice", deployment="ops/sluice-operator", kinds=("Lock.canal.example",), finalizer="canal.example/drain"
)
SYNC = Operator("vault-sync", kinds=("RemoteSecret.sync.example",), produces={"secret": "spec.target.name"})
LOCK = "{apiVersion: canal.example/v1, kind: Lock, metadata: {name: north}}"
REMOTE = """
apiVersion: sync.example/v1alpha1
kind: RemoteSecret
metadata: {name: remote}
spec: {target: {name: app-secret}}
"""


def with_described(operator: Operator) -> OperatorCluster:
    world = OperatorCluster()
    assume(world.cluster, assumed_objects(operator))
    return world


def test_an_operator_of_the_table_sets_its_finalizer_and_creates_its_products() -> None:
    world = OperatorCluster("rabbitmq-cluster-operator")
    assert world.create("{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {name: mq}}") == []
    found = world.object("RabbitmqCluster", "mq", group="rabbitmq.com")
    assert found["metadata"]["finalizers"] == ["deletion.finalizers.rabbitmqclusters.rabbitmq.com"]
    assert world.names("Secret") == ["mq-default-user", "mq-erlang-cookie"]
    assert world.names("Service") == ["mq", "mq-nodes"]
    assert world.delete("RabbitmqCluster", "mq", group="rabbitmq.com") == ""
    assert (world.names("RabbitmqCluster", "rabbitmq.com"), world.names("Secret")) == ([], [])


def test_each_workload_of_flux_reconciles_the_kinds_of_its_group() -> None:
    world = OperatorCluster("flux")
    assert world.delete("Deployment", "helm-controller", "flux-system", "apps") == ""
    source = "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: git}}"
    release = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: app}}"
    assert world.create(source, release) == []
    touched = world.object("GitRepository", "git", group="source.toolkit.fluxcd.io")["metadata"]
    untouched = world.object("HelmRelease", "app", group="helm.toolkit.fluxcd.io")["metadata"]
    assert (touched.get("finalizers"), untouched.get("finalizers")) == (["finalizers.fluxcd.io"], None)


def test_a_described_operator_removes_its_finalizer_on_deletion() -> None:
    world = with_described(SLUICE)
    assert world.create(LOCK) == []
    assert world.object("Lock", "north", group="canal.example")["metadata"]["finalizers"] == ["canal.example/drain"]
    assert world.delete("Lock", "north", group="canal.example") == ""
    assert world.get("Lock", "north", group="canal.example") is None


def test_without_a_described_operator_its_finalizer_remains() -> None:
    world = with_described(SLUICE)
    assert world.create(LOCK) == []
    assert world.delete("Deployment", "sluice-operator", "ops", "apps") == ""
    assert world.delete("Lock", "north", group="canal.example") == ""
    assert "deletionTimestamp" in world.object("Lock", "north", group="canal.example")["metadata"]


def test_a_described_operator_creates_what_a_field_names() -> None:
    world = with_described(SYNC)
    assert world.create(REMOTE) == []
    assert world.names("Secret") == ["app-secret"]
    assert world.delete("RemoteSecret", "remote", group="sync.example") == ""
    assert world.names("Secret") == []


DEPLOYMENT = Ref("Deployment", "ops", "sluice-operator", "apps")
NAMESPACE = Ref("Namespace", "", "ops")


@pytest.mark.parametrize(
    ("brought", "left"),
    [
        ([], ["ops", "sluice-operator"]),
        ([DEPLOYMENT], ["ops"]),
        ([DEPLOYMENT, NAMESPACE], []),
        ([NAMESPACE], ["ops", "sluice-operator"]),
    ],
)
def test_the_workload_of_a_release_is_not_assumed(brought: list[Ref], left: list[str]) -> None:
    names = [name_of(body) for body in without_installed_parts(assumed_objects(SLUICE), [SLUICE], brought)]
    assert names == ["locks.canal.example", "seatrial-operator-sluice", *left]


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (
            Operator("external-secret"),
            "assume.operators: unknown operator 'external-secret'; did you mean external-secrets? "
            "Describe other operators in the trial file",
        ),
        (
            Operator("external-secrets", "0.1.0"),
            "assume.operators: external-secrets@0.1.0 is not known; known are 0.5 to 2.9",
        ),
        (
            Operator("sluice", finalizer="canal.example/drain"),
            "assume.operators: sluice: needs the kinds it reconciles, such as kinds: [Lock.example.com]",
        ),
        (
            Operator("sluice", kinds=("Lock",)),
            "assume.operators: sluice: 'Lock' is not of the form Kind.group",
        ),
        (
            Operator("sluice", kinds=("Lock.canal.example",), produces={"sekret": "spec.name"}),
            "assume.operators: sluice: produces: 'sekret' is not a kind of Kubernetes",
        ),
    ],
)
def test_an_invalid_operator_is_reported(operator: Operator, words: str) -> None:
    with pytest.raises(CannotContinue) as error:
        assumed_objects(operator)
    assert str(error.value) == words
