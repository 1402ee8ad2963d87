"""Empty mappings and lists: Go omits them, so they count as not set. On both arms."""

from __future__ import annotations

import pytest
from arms import Here, config
from situations import message, plain, pod

from seatrial.model.resource import Body, dig

NETWORK, SCALING = "networking.k8s.io/v1", "autoscaling/v2"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.mark.parametrize(
    ("body", "field", "seen"),
    [
        (config(data={}, labels={}, annotations={}), ("data",), None),
        (config(data={}, labels={}, annotations={}), ("metadata", "labels"), None),
        (plain("ServiceAccount", "app", imagePullSecrets=[], secrets=[]), ("imagePullSecrets",), None),
        (pod(nodeSelector={}, serviceAccountName="default"), ("spec", "nodeSelector"), None),
        (pod(affinity={}, securityContext={}), ("spec", "affinity"), {}),
        (
            pod(containers=[{"name": "main", "image": "app:1", "args": [], "resources": {"limits": {}}}]),
            ("spec", "containers", 0, "resources"),
            {},
        ),
        (
            plain(
                "NetworkPolicy",
                "app",
                NETWORK,
                spec={"podSelector": {"matchLabels": {}}, "ingress": [{"from": []}], "egress": [], "policyTypes": []},
            ),
            ("spec",),
            {"podSelector": {}, "ingress": [{}], "policyTypes": ["Ingress"]},
        ),
        (
            plain(
                "HorizontalPodAutoscaler",
                "app",
                SCALING,
                spec={"maxReplicas": 2, "scaleTargetRef": TARGET, "metrics": []},
            ),
            ("spec", "metrics", 0, "resource", "name"),
            "cpu",
        ),
    ],
    ids=["data", "labels", "accounts", "nodes", "a struct", "resources", "policy", "autoscaler"],
)
def test_empty_fields_are_dropped_and_defaulted(
    here: Here, body: Body, field: tuple[str | int, ...], seen: object
) -> None:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    made = here.create(body)
    assert made.code == 201, made.refusal
    assert dig(made.body, *field) == seen


def test_an_applied_empty_mapping_is_owned_but_not_stored(here: Here) -> None:
    made = here.apply(config(data={}, labels={}), "one").body
    assert "data" not in made
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {}, "f:metadata": {"f:labels": {}}}
    refused = here.apply(config(data={"a": "1"}), "two")
    assert message(refused) == 'Apply failed with 1 conflict: conflict with "one": .data'
    assert here.apply(config(data={}, labels={}), "one").body["metadata"] == made["metadata"]


def test_an_update_with_empty_mappings_changes_nothing(here: Here) -> None:
    before = here.create(config(data={"a": "1"})).body["metadata"]["resourceVersion"]
    after = here.patch("ConfigMap", "app", {"binaryData": {}, "metadata": {"labels": {}}}).body
    assert after["metadata"]["resourceVersion"] == before
