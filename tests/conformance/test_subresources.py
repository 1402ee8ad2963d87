"""The status and scale subresources. On both arms."""

from __future__ import annotations

import pytest
from arms import Here, config, deployment
from situations import plain

from seatrial.model.resource import Body


@pytest.fixture
def web(here: Here) -> Here:
    """A Deployment that no controller changes, so that both arms show the same."""
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    here.create({**deployment(replicas=0), "spec": {**deployment()["spec"], "replicas": 0, "paused": True}})
    return here


def test_the_status_is_only_written_through_its_subresource(web: Here) -> None:
    condition = {"type": "Tested", "status": "True"}
    changed = web.patch(
        "Deployment", "web/status", {"status": {"conditions": [condition]}, "spec": {"replicas": 9}}
    ).body
    assert condition.items() <= next(c for c in changed["status"]["conditions"] if c["type"] == "Tested").items()
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (0, 1)
    unchanged = web.patch("Deployment", "web", {"status": {"replicas": 77}}).body
    assert unchanged["status"].get("replicas") != 77


def test_a_status_in_a_creation_is_dropped(here: Here) -> None:
    made = here.create({**deployment(replicas=0), "status": {"replicas": 77}}).body
    assert made.get("status", {}).get("replicas") != 77


def test_a_scale_shows_replicas_and_selector(web: Here) -> None:
    shown = web.get("Deployment", "web/scale").body
    assert (shown["kind"], shown["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (shown["spec"], shown["status"]) == ({}, {"replicas": 0, "selector": "app=web"})
    assert shown["metadata"]["uid"] == web.get("Deployment", "web").body["metadata"]["uid"]


def test_a_scale_changes_the_replicas(web: Here) -> None:
    scale: Body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": web.name}}
    path = web.at("Deployment", "web/scale")
    assert web.api.put(path, {**scale, "spec": {"replicas": 3}}).body["spec"] == {"replicas": 3}
    assert web.patch("Deployment", "web/scale", {"spec": {"replicas": 2}}).body["spec"] == {"replicas": 2}
    body = web.get("Deployment", "web").body
    assert (body["spec"]["replicas"], body["metadata"]["generation"]) == (2, 3)


def test_an_invalid_scale_is_refused(web: Here) -> None:
    assert web.patch("Deployment", "web/scale", {"spec": {"replicas": -2}}).refusal == (
        '422 Invalid: Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -2: must be greater than '
        "or equal to 0"
    )
    assert web.get("Deployment", "none/scale").refusal == '404 NotFound: deployments.apps "none" not found'
    old = {"metadata": {"name": "web", "namespace": web.name, "resourceVersion": "1"}, "spec": {"replicas": 1}}
    path = web.at("Deployment", "web/scale")
    assert web.api.put(path, {"apiVersion": "autoscaling/v1", "kind": "Scale", **old}).code == 409
    assert web.api.put(path, deployment()).refusal == (
        '400 BadRequest: Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to '
        "(autoscaling.Scale): unknown conversion"
    )


# Each: method, kind, the rest of the path, and the response.
SUBRESOURCES = {
    ("GET", "Deployment", "web/bogus"): 404,
    ("POST", "Deployment", "web/status"): 405,
    ("DELETE", "Deployment", "web/status"): 405,
    ("DELETE", "Deployment", "web/scale"): 405,
    ("GET", "ConfigMap", "app/status"): 404,
    ("GET", "ConfigMap", "app/scale"): 404,
    ("PATCH", "ConfigMap", "app/status"): 404,
    ("GET", "Pod", "none/log"): 404,
    ("GET", "Deployment", "web/status"): 200,
}


@pytest.mark.parametrize("given", SUBRESOURCES, ids=" ".join)
def test_subresources(web: Here, given: tuple[str, str, str]) -> None:
    method, kind, name = given
    web.create(config())
    body: Body | None = {} if method in ("POST", "PATCH") else None
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    assert web.api.send(method, web.at(kind, name), body, content_type).code == SUBRESOURCES[given]


POD = {"containers": [{"name": "main", "image": "app"}]}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
COUNTED = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (plain("CronJob", "x", "batch/v1", spec={"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}}), {}),
        (plain("Deployment", "x", "apps/v1", spec=WORKLOAD), {}),
        (plain("StatefulSet", "x", "apps/v1", spec=WORKLOAD), {"replicas": 0, "availableReplicas": 0}),
        (plain("PodDisruptionBudget", "x", "policy/v1", spec={"minAvailable": 1}), COUNTED),
        (
            plain("HorizontalPodAutoscaler", "x", "autoscaling/v2", spec={"maxReplicas": 2, "scaleTargetRef": TARGET}),
            {"desiredReplicas": 0, "currentMetrics": None},
        ),
    ],
    ids=lambda value: str(value.get("kind", "")),
)
def test_a_new_object_has_an_empty_status(here: Here, body: Body, status: Body) -> None:
    assert here.create(body).body["status"] == status
