"""What each minor of Kubernetes serves: removed versions are refused, and their replacements are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apiclient import Api
from arms import Arm
from bothservers import is_given

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.kinds.tables.removed import REMOVED

# (group, version, plural, kind): the last minor that served it, or an empty string for one older than all of these.
LAST_SERVED = {
    ("extensions", "v1beta1", "ingresses", "Ingress"): "",
    ("networking.k8s.io", "v1beta1", "ingresses", "Ingress"): "",
    ("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget"): "",
    ("batch", "v1beta1", "cronjobs", "CronJob"): "",
    ("autoscaling", "v2beta1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"): "",
    ("autoscaling", "v2beta2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"): "1.25",
    ("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas", "FlowSchema"): "1.28",
}
MINORS = tuple(f"1.{minor}" for minor in range(25, 38))
SOME = ("1.25", "1.26", "1.29", "1.32", "1.34", "1.37")


def as_number(version: str) -> int:
    return int(version.partition(".")[2] or 0)


@pytest.fixture(scope="module", params=SOME)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Api]]:
    with ApiServer(Cluster(request.param)) as found, Api(found.url) as api:
        yield request.param, api


def test_a_version_is_served_until_it_is_removed(server: tuple[str, Api]) -> None:
    minor, api = server
    served = {key: api.get(f"/apis/{key[0]}/{key[1]}/{key[2]}").code == 200 for key in LAST_SERVED}
    assert served == {key: as_number(minor) <= as_number(last) for key, last in LAST_SERVED.items()}


def test_a_removed_version_is_not_found(server: tuple[str, Api]) -> None:
    _, api = server
    path = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
    body = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    for reply in (api.get(path), api.post(path, body)):
        assert (reply.code, reply.body) == (404, "404 page not found\n")


def test_the_replacement_is_served(server: tuple[str, Api]) -> None:
    minor, api = server
    for group, version, plural, kind in LAST_SERVED:
        removed = REMOVED[group, version, kind]
        if as_number(minor) >= as_number(removed.minor):
            assert api.get(f"/apis/{removed.replacement}/{plural}").code == 200


def test_the_real_server_has_the_expected_minor(pytestconfig: pytest.Config, arm: Arm) -> None:
    if not is_given(pytestconfig):
        pytest.skip(
            "only the embedded API was asked; --kubeconfig FILE, SEATRIAL_REAL_KUBECONFIG or KUBEBUILDER_ASSETS "
            "names a real one to be asked the same"
        )
    assert arm.api.get("/version").body["minor"] == "34"


@pytest.mark.parametrize("minor", MINORS)
def test_every_minor_reports_its_version(minor: str) -> None:
    with ApiServer(Cluster(minor)) as server, Api(server.url) as api:
        version = api.get("/version").body
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", minor[2:], f"v{minor}.0")


@pytest.mark.parametrize(("minor", "code"), [("1.36", 422), ("1.37", 201)])
def test_an_autoscaler_may_scale_to_zero_since_1_37(minor: str, code: int) -> None:
    metric = {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "worker"},
        "spec": {"minReplicas": 0, "maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]},
    }
    with ApiServer(Cluster(minor)) as server, Api(server.url) as api:
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        assert api.post(path, autoscaler).code == code
