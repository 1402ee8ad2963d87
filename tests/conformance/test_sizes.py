"""Size limits of requests, objects and fields, and their errors. On both arms."""

from __future__ import annotations

import pytest
from arms import Here, config, deployment
from situations import plain

from seatrial.model.resource import Body

MEBI = 1 << 20
TOO_LONG = "Too long: may not be more than"
BODY_TOO_LARGE = "413 RequestEntityTooLarge: Request entity too large: limit is 3145728"


def workload(size: int) -> Body:
    body = deployment(replicas=0)
    body["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * size]
    return body


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (config(data={"k": "x" * (MEBI + 1)}), f'ConfigMap "app" is invalid: []: {TOO_LONG} 1048576 bytes'),
        (
            config(data={"k": "x" * (MEBI // 2), "l": "x" * (MEBI // 2 + 1)}),
            f'ConfigMap "app" is invalid: []: {TOO_LONG} 1048576 bytes',
        ),
        (
            {**config(data={"k": "x" * (MEBI // 2)}), "binaryData": {"b": "AAAA" * (MEBI // 4)}},
            f'ConfigMap "app" is invalid: []: {TOO_LONG} 1048576 bytes',
        ),
        (
            plain("Secret", "app", stringData={"k": "x" * (MEBI + 1)}),
            f'Secret "app" is invalid: data: {TOO_LONG} 1048576 bytes',
        ),
        (
            config(annotations={"k": "x" * (MEBI // 4)}),
            f'ConfigMap "app" is invalid: metadata.annotations: {TOO_LONG} 262144 bytes',
        ),
    ],
    ids=["one key", "two keys", "bytes and text", "secret", "annotations"],
)
def test_a_field_that_is_too_large_is_invalid(here: Here, body: Body, why: str) -> None:
    assert here.create(body).refusal == f"422 Invalid: {why}"


@pytest.mark.parametrize(
    "body",
    [
        config(data={"k": "x" * MEBI}),
        plain("Secret", "app", stringData={"k": "x" * MEBI}),
        config(annotations={"k": "x" * (MEBI // 4 - 1)}),
        workload(1_500_000),
    ],
    ids=["configmap", "secret", "annotations", "object"],
)
def test_the_largest_objects_are_accepted(here: Here, body: Body) -> None:
    assert here.create(body).code == 201


def test_a_body_of_more_than_three_mebibytes_is_refused(here: Here) -> None:
    large = config(data={"k": "x" * (3 * MEBI)})
    assert here.create(large).refusal == BODY_TOO_LARGE
    assert here.put(large).refusal == BODY_TOO_LARGE
    assert here.patch("ConfigMap", "app", large).refusal == BODY_TOO_LARGE
    assert here.apply(large).refusal == BODY_TOO_LARGE
    assert (
        here.delete("ConfigMap", "app", {"kind": "DeleteOptions", "apiVersion": "v1", **large}).refusal
        == BODY_TOO_LARGE
    )
    assert here.create(config()).code == 201


def test_an_object_that_is_too_large_for_etcd_is_a_server_error(here: Here) -> None:
    reply = here.create(workload(1_600_000))
    assert (reply.code, reply.body["message"]) == (500, "etcdserver: request is too large")
    assert here.get("Deployment", "web").code == 404
    assert here.create(workload(1_600_000), dryRun="All").code == 201
    assert here.create(workload(10)).code == 201
    grown = here.patch("Deployment", "web", {"spec": workload(1_600_000)["spec"]})
    assert (grown.code, grown.body["message"]) == (500, "etcdserver: request is too large")
    containers = here.get("Deployment", "web").body["spec"]["template"]["spec"]["containers"]
    assert [len(container["args"][0]) for container in containers] == [10]
