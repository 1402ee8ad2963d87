"""Kinds that watch others: autoscalers, budgets, quotas, ingresses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from world import SmallWorld, conditions_of

from seatrial.kinds.core.quantities import amount, written

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web, resources: {requests: {cpu: 250m, memory: 64Mi}}}]}
---
"""
SCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
"""


def test_an_autoscaler_finds_its_target_and_does_not_scale() -> None:
    world = SmallWorld(SCALER).run()
    words = 'deployments.apps "web" not found'
    assert conditions_of(world.status("HorizontalPodAutoscaler", "web", group="autoscaling")) == {
        "AbleToScale": f"False FailedGetScale: the HPA controller was unable to get the target's current scale: {words}"
    }
    assert world.said == [f"HorizontalPodAutoscaler/demo/web FailedGetScale: {words}"]
    world.apply(WEB).run()
    status = world.status("HorizontalPodAutoscaler", "web", group="autoscaling")
    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 3)
    assert conditions_of(status) == {
        "AbleToScale": "True SucceededGetScale: the HPA controller was able to get the target's current scale"
    }
    assert len(world.names("Pod")) == 3


@pytest.mark.parametrize(
    ("budget", "expected", "least", "allowed"),
    [
        ("minAvailable: 2", 3, 2, 1),
        ("minAvailable: 3", 3, 3, 0),
        ("minAvailable: 50%", 3, 2, 1),
        ("maxUnavailable: 1", 3, 2, 1),
        ("maxUnavailable: 34%", 3, 1, 2),
    ],
)
def test_a_budget_computes_allowed_disruptions(budget: str, expected: int, least: int, allowed: int) -> None:
    world = SmallWorld(
        WEB
        + f"""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web}}
spec: {{{budget}, selector: {{matchLabels: {{app: web}}}}}}
"""
    ).run()
    reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    assert world.status("PodDisruptionBudget", "web", group="policy") == {
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": reason[0],
                "reason": reason[1],
                "message": "",
                "observedGeneration": 1,
            }
        ],
        "currentHealthy": 3,
        "desiredHealthy": least,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": 1,
    }


def test_a_quota_computes_usage() -> None:
    world = SmallWorld(
        WEB
        + """
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec:
  hard:
    pods: "10"
    configmaps: "5"
    requests.cpu: "2"
    memory: 1Gi
    limits.cpu: "4"
    services.loadbalancers: "1"
    count/deployments.apps: "3"
---
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
"""
    ).run()
    assert world.status("ResourceQuota", "quota")["used"] == {
        "pods": "3",
        "configmaps": "1",
        "requests.cpu": "750m",
        "memory": "192Mi",
        "limits.cpu": "0",
        "services.loadbalancers": "1",
        "count/deployments.apps": "1",
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("500m", Fraction(1, 2)), ("1Gi", 2**30), ("1.5k", 1500), ("2e3", 2000), ("", 0), (2, 2), (None, 0)],
)
def test_quantities_are_numbers(text: object, number: object) -> None:
    assert amount(text) == number


def test_sums_are_formatted_as_by_the_api_server() -> None:
    sums = [written(amount(text), binary=True) for text in ("1536Mi", "2048Mi", "1500", "0")]
    assert sums == ["1536Mi", "2Gi", "1500", "0"]
    assert written(amount("1250m")) == "1250m"


INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {ingressClassName: nginx}
---
"""
CLASS = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: example.com/nginx}
"""


def test_an_ingress_gets_an_address_once_its_class_exists() -> None:
    world = SmallWorld(INGRESS).run()
    assert world.status("Ingress", "web", group="networking.k8s.io") == {"loadBalancer": {}}
    world.apply(CLASS).run()
    assert world.status("Ingress", "web", group="networking.k8s.io") == {
        "loadBalancer": {"ingress": [{"ip": "203.0.113.140"}]}
    }
