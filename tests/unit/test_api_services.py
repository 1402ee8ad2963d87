"""APIServices with an unavailable backend, in requests, discovery and namespaces."""

from __future__ import annotations

import msgspec
import pytest
from asking import OK, Api

from seatrial.cluster.refusal import Refused
from seatrial.cluster.request import Request

METRICS = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.example.com}
spec:
  group: metrics.example.com
  version: v1beta1
  service: {name: ms, namespace: kube-system}
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
"""
BACKEND = """
apiVersion: v1
kind: Service
metadata: {name: ms, namespace: kube-system}
spec: {selector: {app: ms}, ports: [{port: 443, targetPort: 4443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: ms, namespace: kube-system, labels: {app: ms}}
spec: {containers: [{name: ms, image: ms}]}
"""
DOWN = "the server is currently unable to handle the request"
GROUP = "apiregistration.k8s.io"


def ask(api: Api) -> tuple[int, str]:
    reply = api.cluster.request(Request("list", "metrics.example.com", "v1beta1", "pods", "default"))
    return reply.code, reply.body["message"]


def stale(api: Api) -> list[str]:
    listed = msgspec.json.decode(api.cluster.discovery.document("/apis", aggregated=True) or b"")
    return [
        f"{item['metadata']['name']}/{version['version']}"
        for item in listed["items"]
        for version in item["versions"]
        if version["freshness"] == "Stale"
    ]


def test_a_group_version_without_a_backend_is_unavailable() -> None:
    api = Api(METRICS)
    assert ask(api) == (503, DOWN)
    assert stale(api) == ["metrics.example.com/v1beta1"]
    with pytest.raises(Refused, match=DOWN):
        api.cluster.discovery.document("/apis/metrics.example.com/v1beta1")


def test_a_ready_backend_makes_it_available() -> None:
    api = Api(METRICS)
    api.put(BACKEND)
    assert stale(api) == []
    assert api.delete("Pod", "ms", "kube-system") == OK
    assert stale(api) == ["metrics.example.com/v1beta1"]


def test_a_deleted_api_service_is_not_listed() -> None:
    api = Api(METRICS)
    assert api.delete("APIService", "v1beta1.metrics.example.com", group=GROUP) == OK
    assert stale(api) == []
    assert ask(api) == (404, "the server could not find the requested resource")


def test_no_namespace_is_deleted_while_a_group_is_unavailable() -> None:
    api = Api("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}")
    api.put(METRICS)
    assert api.delete("Namespace", "x") == OK
    api.let_time_pass()
    condition = api.get("Namespace", "x", "")["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == (
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.example.com/v1beta1: stale GroupVersion discovery: metrics.example.com/v1beta1",
    )
    assert api.delete("APIService", "v1beta1.metrics.example.com", group=GROUP) == OK
    api.let_time_pass()
    assert api.get("Namespace", "x", "") is None
