"""Generated orders: YAML in, the fields to set out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.generate.order import order
from seatrial.generate.order.ordering import Ordering, patches
from seatrial.model.options import CheckOptions
from seatrial.plan.plans import plans
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

Write = Callable[[str], Path]

WEBHOOK = """
apiVersion: v1
kind: Service
metadata: {name: gate}
spec: {selector: {app: gate}, ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate}
spec:
  selector: {matchLabels: {app: gate}}
  template: {metadata: {labels: {app: gate}}, spec: {containers: [{name: gate, image: "gate:1"}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
- name: gates.canal.example
  clientConfig: {service: {name: gate, namespace: default}}
  rules: [{operations: [CREATE], apiGroups: [canal.example], apiVersions: [v1], resources: [gates]}]
---
"""
GATE = """
apiVersion: canal.example/v1
kind: Gate
metadata: {name: north}
---
"""
USES_PVC = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: load}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: load, image: "load:1", env: [{name: PGHOST, value: gate.default.svc}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        (tmp_path / "all.yaml").write_text(text)
        return tmp_path / "all.yaml"

    return written


def ordered(path: Path, target: str, engine: str = "") -> tuple[Ordering, str]:
    engines = (engine,) if engine else ()
    found, graph = order(target, next(plans(CheckOptions(inputs=(str(path),), engines=engines, namespace="default"))))
    return found, patches(found, graph.resources)


def marks(found: Ordering) -> dict[str, Any]:
    return {f"{mark.ref} {mark.path[-1]}": mark.value for mark in found.marks}


def test_a_wave_comes_after_the_backend_of_a_webhook(write: Write) -> None:
    found, _ = ordered(write(WEBHOOK + GATE), "argocd", "argocd")
    assert marks(found) == {"Gate/default/north argocd.argoproj.io/sync-wave": "5"}


def test_a_pvc_is_in_the_wave_of_its_first_pod(write: Write) -> None:
    found, text = ordered(write(WEBHOOK + USES_PVC), "argocd", "argocd")
    assert marks(found) == {
        "Job/default/load argocd.argoproj.io/sync-wave": "5",
        "PersistentVolumeClaim/default/data argocd.argoproj.io/sync-wave": "5",
    }
    assert "a PVC may be bound only with its first pod" in text


def test_a_wave_that_is_high_enough_stays(write: Write) -> None:
    gate = GATE.replace("name: north", 'name: north, annotations: {argocd.argoproj.io/sync-wave: "1"}')
    assert ordered(write(WEBHOOK + gate), "argocd", "argocd")[0].marks == ()


def test_a_presync_hook_cannot_come_after_a_regular_resource(write: Write) -> None:
    gate = GATE.replace("name: north", "name: north, annotations: {argocd.argoproj.io/hook: PreSync}")
    found, _ = ordered(write(WEBHOOK + gate), "argocd", "argocd")
    assert found.marks == ()
    assert any("make Deployment/default/gate a hook of the same phase" in sentence for sentence in found.left)


def test_kapp_retries_a_validating_webhook(write: Write) -> None:
    found, _ = ordered(write(WEBHOOK + GATE), "kapp")
    assert found.marks == ()
    assert found.given == ("Gate/default/north: kapp retries while a webhook does not answer",)


def test_kapp_gets_a_group_and_a_rule_for_a_mutating_webhook(write: Write) -> None:
    found, _ = ordered(write(WEBHOOK.replace("Validating", "Mutating") + GATE), "kapp")
    assert marks(found)["Deployment/default/gate kapp.k14s.io/change-group"] == "seatrial.dev/deployment-default-gate"
    rule = "upsert after upserting seatrial.dev/deployment-default-gate"
    assert marks(found)["Gate/default/north kapp.k14s.io/change-rule"] == rule


def test_cli_utils_name_objects_of_the_core_group_with_a_leading_slash(write: Write) -> None:
    found, _ = ordered(write(WEBHOOK + GATE), "cli-utils")
    named = marks(found)["Gate/default/north config.kubernetes.io/depends-on"].split(",")
    assert "/namespaces/default/Service/gate" in named
    assert "apps/namespaces/default/Deployment/gate" in named


def test_helm_creates_listed_kinds_before_the_webhook(write: Write) -> None:
    webhook = WEBHOOK.replace("canal.example], apiVersions: [v1], resources: [gates", "networking.k8s.io], "
                              "apiVersions: [v1], resources: [ingresses")  # fmt: skip
    ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {}\n"
    found, _ = ordered(write(webhook + ingress), "helm")
    assert found.marks == ()
    assert found.given[0].startswith("Ingress/default/web: Helm creates it before ValidatingWebhookConfiguration/gate")


def test_objects_that_need_one_another_are_named(write: Write) -> None:
    mutual = WEBHOOK.replace("resources: [gates]}]", "resources: [gates]}, {operations: [CREATE], apiGroups: [apps], "
                             "apiVersions: [v1], resources: [deployments]}]")  # fmt: skip
    other = (
        mutual.replace("name: gate}", "name: lock}")
        .replace("app: gate", "app: lock")
        .replace("name: gate,", "name: lock,")
    )
    found, _ = ordered(write(mutual + other), "cli-utils")
    assert any(sentence.startswith("these need one another: ") for sentence in found.left)


@pytest.mark.parametrize("target", ["argocd", "helm", "kapp", "cli-utils", "pulumi"])
def test_patches_are_yaml_that_says_the_same(write: Write, target: str) -> None:
    found, text = ordered(write(WEBHOOK.replace("Validating", "Mutating") + GATE), target)
    read: dict[str, Any] = {}
    for document in documents(Text("order.yaml", text)):
        body = document.body
        name = f"{body['kind']}{'/default' if 'namespace' in body['metadata'] else ''}/{body['metadata']['name']}"
        read |= {f"{name} {key}": value for key, value in body["metadata"]["annotations"].items()}
    assert read == marks(found)


def test_pulumi_programs_get_dependson(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(PROGRAM)
    found, text = ordered(tmp_path, "pulumi")
    assert marks(found) == {"Program/canal dependsOn": ["${lock-service}", "${lock-webhook}", "${lock}"]}
    assert "resources:\n  gate-north:\n    options:\n" in text


PROGRAM = """
name: canal
runtime: yaml
resources:
  lock-service:
    type: kubernetes:core/v1:Service
    properties:
      metadata: {name: gate, namespace: default}
      spec: {selector: {app: gate}, ports: [{port: 443}]}
  lock:
    type: kubernetes:apps/v1:Deployment
    properties:
      metadata: {name: gate, namespace: default}
      spec:
        selector: {matchLabels: {app: gate}}
        template: {metadata: {labels: {app: gate}}, spec: {containers: [{name: gate, image: "gate:1"}]}}
  lock-webhook:
    type: kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration
    properties:
      metadata: {name: gate}
      webhooks:
        - name: gates.canal.example
          clientConfig: {service: {name: gate, namespace: default}}
          rules: [{operations: [CREATE], apiGroups: [networking.k8s.io], apiVersions: [v1], resources: [ingresses]}]
  gate-north:
    type: kubernetes:networking.k8s.io/v1:Ingress
    properties:
      metadata: {name: north, namespace: default}
      spec: {defaultBackend: {service: {name: gate, port: {number: 443}}}}
"""
