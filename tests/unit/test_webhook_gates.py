"""Webhooks and the engines that come to them, as programs read it."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from seatrial.check import check
from seatrial.model.options import CheckOptions
from seatrial.report.contract import schema
from seatrial.report.json import render
from seatrial.report.page import Page

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.canal.example}
spec:
  group: canal.example
  names: {kind: Gate, plural: gates}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""

WEBHOOK = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: lockkeeper}
spec:
  selector: {matchLabels: {app: lockkeeper}}
  template:
    metadata: {labels: {app: lockkeeper}}
    spec: {containers: [{name: webhook, image: registry.example/lockkeeper:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: lockkeeper}
spec: {selector: {app: lockkeeper}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: lockkeeper}
webhooks:
  - name: gates.canal.example
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: FAILURE_POLICY
    clientConfig:
      caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=
      service: {name: lockkeeper, namespace: default}
    rules: [{operations: [CREATE, UPDATE], apiGroups: [canal.example], apiVersions: [v1], resources: [gates]}]
"""

GATES = "---\n".join(
    f"apiVersion: canal.example/v1\nkind: Gate\nmetadata: {{name: north-{number}}}\n" for number in range(5)
)


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("bundle")
    folder.mkdir()
    (folder / "definition.yaml").write_text(DEFINITION)
    (folder / "gates.yaml").write_text(GATES)
    (folder / "webhook.yaml").write_text(WEBHOOK.replace("FAILURE_POLICY", "Fail"))
    return folder


def reported(*inputs: Path, engines: tuple[str, ...], old: str = "") -> Any:
    result = check(CheckOptions(inputs=tuple(map(str, inputs)), engines=engines, old=old))
    report = json.loads(render(result, Page()))
    jsonschema.validate(report, json.loads(schema()))
    return report


def test_a_gate_lists_its_objects_and_the_state_at_each_engines_first_call(bundle: Path) -> None:
    (gate,) = reported(bundle, engines=("kubectl", "flux"))["gates"]
    every = [f"Gate/default/north-{number}" for number in range(5)]
    assert gate == {
        "webhook": "gates.canal.example",
        "owner": "ValidatingWebhookConfiguration/lockkeeper",
        "failure_policies": ["Fail"],
        "rules": [
            {
                "operations": ["CREATE", "UPDATE"],
                "apiGroups": ["canal.example"],
                "apiVersions": ["v1"],
                "resources": ["gates"],
            }
        ],
        "about": [{"operations": ["CREATE", "UPDATE"], "objects": every}],
        "needs": [
            {
                "what": "definition",
                "objects": ["CustomResourceDefinition/gates.canal.example"],
                "by": "release",
                "versions": ["v1"],
            },
            {"what": "service", "objects": ["Service/default/lockkeeper"], "by": "release"},
            {"what": "endpoint", "objects": ["Deployment/default/lockkeeper"], "by": "release"},
            {"what": "ca-bundle", "objects": ["ValidatingWebhookConfiguration/lockkeeper"], "by": "release"},
        ],
        "moments": [
            {
                "engine": "kubectl@1.34",
                "act": "made",
                "step": 1,
                "object": "Gate/default/north-0",
                "definition": "served",
                "service": "there",
                "endpoint": "ready",
                "ca_bundle": "there",
                "then": "asked",
            },
            {
                "engine": "flux@2.9",
                "act": "made",
                "step": 0,
                "object": "Gate/default/north-0",
                "definition": "served",
                "service": "there",
                "endpoint": "none",
                "ca_bundle": None,
                "then": "not registered",
            },
        ],
        "location": {"file": "bundle/webhook.yaml", "line": 19, "sure": "exact"},
    }


def test_engines_are_listed_with_their_first_failure(bundle: Path) -> None:
    assert reported(bundle, engines=("kubectl", "argocd"))["standings"] == [
        {
            "engine": "kubectl@1.34",
            "steps": [{"verdict": "fails"}, {"verdict": "ok"}],
            "stopped_by": {"why": 'no matches for kind "Gate"'},
        },
        {
            "engine": "argocd@3.5",
            "steps": [{"verdict": "ok at a retry"}, {"verdict": "ok"}, {"verdict": "ok", "leaves": 1}],
            "stopped_by": {
                "why": 'failed calling webhook "gates.canal.example"',
                "object": "Gate/default/north-0",
            },
        },
    ]


def test_one_engine_is_not_compared(bundle: Path) -> None:
    assert "standings" not in reported(bundle, engines=("flux",))


def test_an_object_in_a_version_that_is_not_served_is_never_sent(bundle: Path) -> None:
    (bundle / "gates.yaml").write_text(GATES.replace("canal.example/v1", "canal.example/v2"))
    webhook = bundle / "webhook.yaml"
    webhook.write_text(webhook.read_text().replace("apiVersions: [v1]", "apiVersions: ['*']"))
    (gate,) = reported(bundle, engines=("pulumi",))["gates"]
    assert gate["needs"][0]["versions"] == ["v2"]
    assert [(moment["definition"], moment["then"]) for moment in gate["moments"]] == [("not served", "never sent")]


def test_a_webhook_that_may_fail_lets_objects_pass_unvalidated(bundle: Path) -> None:
    webhook = bundle / "webhook.yaml"
    webhook.write_text(webhook.read_text().replace("failurePolicy: Fail", "failurePolicy: Ignore"))
    (gate,) = reported(bundle, engines=("argocd",))["gates"]
    assert gate["failure_policies"] == ["Ignore"]
    assert [moment["then"] for moment in gate["moments"]] == ["let through"]


def test_a_conversion_webhook_has_no_rules_or_policy_and_is_called_for_any_use(bundle: Path) -> None:
    versions = (
        "[{name: v1, served: true, storage: true, SCHEMA}, {name: v1beta1, served: true, storage: false, SCHEMA}]"
    )
    conversion = """\
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: lockkeeper, namespace: default}}
"""
    head = DEFINITION[: DEFINITION.index("  versions:")]
    shapes = versions.replace("SCHEMA", "schema: {openAPIV3Schema: {type: object}}")
    (bundle / "definition.yaml").write_text(f"{head}  versions: {shapes}\n{conversion}")
    (bundle / "gates.yaml").write_text(GATES.replace("canal.example/v1", "canal.example/v1beta1"))
    (gate,) = reported(bundle, engines=("flux",))["gates"]
    assert (gate["webhook"], gate["owner"]) == ("the conversion to v1", "CustomResourceDefinition/gates.canal.example")
    assert (gate["failure_policies"], gate["rules"], gate["about"][0]["operations"]) == ([], [], [])
    assert gate["needs"][-1] == {
        "what": "ca-bundle",
        "objects": ["CustomResourceDefinition/gates.canal.example"],
        "by": "",
    }
    assert [moment["then"] for moment in gate["moments"]] == ["refused"]
