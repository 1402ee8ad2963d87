"""What `explain` says of kinds: every kind has a page, and its tables are those that rehearsals use."""

from __future__ import annotations

import pytest

from seatrial.explain import kindpage, kinds
from seatrial.explain.kinds import KindTopic
from seatrial.kinds import known
from seatrial.report.page import Page

WITHOUT_FIELDS = {
    "ControllerRevision",
    "IngressClass",
    "RuntimeClass",
    "PersistentVolume",
    "Pod",
    "ReplicaSet",
    "Service",
}
"""Kinds with immutable fields of which an example has none, or that few people change."""


def found(name: str) -> KindTopic:
    topic = kinds.find(name)
    assert topic is not None, name
    return topic


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("deploy", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("apps/Deployment", "Deployment"),
        ("STS", "StatefulSet"),
        ("es", "ExternalSecret"),
        ("externalsecrets.external-secrets.io", "ExternalSecret"),
        ("service", "Service"),
    ],
)
def test_a_kind_is_found_by_any_name_that_kubectl_takes(name: str, kind: str) -> None:
    assert found(name).kind == kind


def test_a_kind_of_several_groups_names_the_others() -> None:
    assert (found("Service").group, found("Service").others) == ("", ("Service.serving.knative.dev",))
    assert found("Service.serving.knative.dev").group == "serving.knative.dev"


@pytest.mark.parametrize(("group", "kind"), sorted(known()), ids=str)
def test_every_kind_has_a_page(group: str, kind: str) -> None:
    assert kindpage.render(kinds.topic(group, kind), Page()).startswith(kind)


def test_examples_name_all_immutable_fields_of_common_kinds() -> None:
    with_fields = {kind for (_, kind), behaviour in known().items() if behaviour.immutable}
    shown = {kind for kind in with_fields if found(kind).immutable}
    assert with_fields - shown - WITHOUT_FIELDS == set()


def test_verdicts_differ_where_engines_differ() -> None:
    states = {state.when: state.verdicts for state in found("Job").states}
    assert states["its pod runs"]["Helm 4 --wait"] == "continues"
    assert states["its pod runs"]["Flux wait"] == "waits"
    assert states["it failed"]["Helm, as a hook"] == "fails"
    late = found("Deployment").states[3].verdicts
    assert (late["Helm 3 --wait"], late["Helm 4 --wait"]) == ("waits", "fails")
    balancer = {state.when: state.verdicts for state in found("Service").states}["LoadBalancer without an address"]
    assert (balancer["Helm 3 --wait"], balancer["Helm 4 --wait"], balancer["Argo CD"]) == (
        "waits",
        "continues",
        "Progressing",
    )


def test_needs_are_those_of_the_kind() -> None:
    needs = {(need.stage, need.kind) for need in found("StatefulSet").needs}
    assert {("admit", "ServiceAccount"), ("schedule", "StorageClass"), ("serve", "Service")} <= needs
    assert [
        (need.stage, need.field) for need in found("Certificate").needs if need.kind == "CustomResourceDefinition"
    ] == [("resolve", "certificates.cert-manager.io")]
    assert {need.kind for need in found("ScaledObject").needs} >= {"TriggerAuthentication"}
