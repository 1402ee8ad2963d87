"""Webhook backends, and who writes their CA bundle."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.kinds.webhooks.cabundle import CA_BUNDLE
from seatrial.model.resource import Body, Ref, dig, group_of, name_of, version_of
from seatrial.model.timeline import Schedule

BACKEND = """
apiVersion: v1
kind: Service
metadata: {name: gate}
spec: {selector: {app: gate}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: gate}}
  template: {metadata: {labels: {app: gate}}, spec: {containers: [{name: main, image: "gate:1"}]}}
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
- name: secrets.gate.example
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: gate, namespace: default, path: /check}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
"""
RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: certs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: certs}
rules:
- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: certs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: certs}
subjects: [{kind: ServiceAccount, name: certs, namespace: default}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: certs}
spec:
  template:
    spec: {serviceAccountName: certs, restartPolicy: Never, containers: [{name: patch, image: certgen}]}
"""
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: s}}"

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.canal.example}
spec:
  group: canal.example
  scope: Namespaced
  names: {kind: Gate, plural: gates}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""
CONVERSION = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": CA_BUNDLE,
            "service": {"name": "gate", "namespace": "default", "path": "/convert"},
        },
    },
}
UNREACHED = (
    "conversion webhook for canal.example/{}, Kind=Gate failed: "
    'Post "https://gate.default.svc:443/convert?timeout=30s": service "gate" not found'
)

NO_ENDPOINTS = (
    'Internal error occurred: failed calling webhook "secrets.gate.example": failed to call webhook: '
    'Post "https://gate.default.svc:443/check?timeout=10s": no endpoints available for service "gate"'
)


def sent(cluster: Cluster, verb: Any, body: Body, **more: Any) -> str:
    """The API server's refusal; empty on success."""
    group, version = group_of(body["apiVersion"]), version_of(body["apiVersion"])
    kind = cluster.discovery.of_kind(group, body["kind"], version)
    assert kind is not None, body["apiVersion"]
    name = "" if verb == "create" else name_of(body)
    where = "default" if kind.namespaced else ""
    written = body if verb in ("create", "update", "patch") else None
    reply = cluster.request(Request(verb, group, version, kind.plural, where, name, body=written, **more))
    return str(reply.body["message"]) if reply.code >= 400 else ""


def put(cluster: Cluster, text: str) -> str:
    """The first refusal of a creation."""
    refusals = [sent(cluster, "create", body) for body in yaml.safe_load_all(text)]
    return next(filter(None, refusals), "")


def ca_bundle(cluster: Cluster) -> Any:
    ref = Ref("ValidatingWebhookConfiguration", "", "gate", "admissionregistration.k8s.io")
    return dig(cluster.store.get(ref), "webhooks", 0, "clientConfig", "caBundle")


def test_no_ca_bundle_is_written_if_no_account_may() -> None:
    cluster = Cluster()
    assert put(cluster, BACKEND) == ""
    assert put(cluster, WEBHOOK) == ""
    assert put(cluster, SECRET) == (
        'Internal error occurred: failed calling webhook "secrets.gate.example": failed to call webhook: '
        'Post "https://gate.default.svc:443/check?timeout=10s": '
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


def test_a_job_with_the_right_writes_the_ca_bundle_before_it_ends() -> None:
    cluster = Cluster(schedule="lazy")
    for text in (RIGHTS, BACKEND, WEBHOOK, JOB):
        assert put(cluster, text) == ""
    assert ca_bundle(cluster) is None
    cluster.awaits([Ref("Job", "default", "certs", "batch")])
    assert ca_bundle(cluster) == CA_BUNDLE
    wrote = next(e for e in cluster.timeline() if e.object.kind == "ValidatingWebhookConfiguration" and e.before)
    assert (wrote.actor, wrote.verb) == ("certs", "update")


def test_the_writer_owns_the_ca_bundle_so_another_apply_conflicts() -> None:
    cluster = Cluster()
    placeholder = yaml.safe_load(WEBHOOK)
    placeholder["webhooks"][0]["clientConfig"]["caBundle"] = "Cg=="
    apply = {"patch_type": "apply", "field_manager": "helm"}
    assert put(cluster, RIGHTS) == ""
    assert sent(cluster, "patch", placeholder, **apply) == ""
    assert put(cluster, JOB) == ""
    assert ca_bundle(cluster) == CA_BUNDLE
    assert sent(cluster, "patch", placeholder, **apply) == (
        'Apply failed with 1 conflict: conflict with "certs" using admissionregistration.k8s.io/v1: '
        '.webhooks[name="secrets.gate.example"].clientConfig.caBundle'
    )


def test_cert_manager_injects_the_ca_bundle() -> None:
    cluster = Cluster()
    body = yaml.safe_load(WEBHOOK)
    body["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "default/gate"}
    assert sent(cluster, "create", body) == ""
    assert ca_bundle(cluster) == CA_BUNDLE


@pytest.mark.parametrize(("schedule", "says"), [("eager", ""), ("lazy", NO_ENDPOINTS)])
def test_a_backend_with_strategy_recreate_may_be_down_during_an_update(schedule: Schedule, says: str) -> None:
    cluster = Cluster(schedule=schedule)
    for text in (RIGHTS, BACKEND, WEBHOOK, JOB):
        assert put(cluster, text) == ""
    cluster.settle()
    assert put(cluster, SECRET) == ""
    deployment = list(yaml.safe_load_all(BACKEND))[1]
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "gate:2"
    assert sent(cluster, "update", deployment) == ""
    assert put(cluster, SECRET.replace("name: s", "name: t")) == says


def test_an_object_in_the_storage_version_needs_no_conversion() -> None:
    cluster = Cluster()
    definition = yaml.safe_load(DEFINITION)
    definition["spec"]["conversion"] = CONVERSION
    assert sent(cluster, "create", definition) == ""
    gate = {"apiVersion": "canal.example/v1", "kind": "Gate", "metadata": {"name": "north"}}
    older = {**gate, "apiVersion": "canal.example/v1beta1"}
    assert sent(cluster, "create", gate) == ""
    assert sent(cluster, "get", gate) == ""
    assert sent(cluster, "get", older) == UNREACHED.format("v1")
    assert sent(cluster, "delete", older) == UNREACHED.format("v1")
    assert sent(cluster, "create", {**older, "metadata": {"name": "south"}}) == UNREACHED.format("v1beta1")


def test_an_object_keeps_its_stored_version_until_the_next_write() -> None:
    cluster = Cluster()
    assert put(cluster, DEFINITION) == ""
    gate = {"apiVersion": "canal.example/v1", "kind": "Gate", "metadata": {"name": "north"}}
    older = {**gate, "apiVersion": "canal.example/v1beta1"}
    assert sent(cluster, "create", older) == ""
    definition = yaml.safe_load(DEFINITION)
    definition["spec"]["conversion"] = CONVERSION
    for version in definition["spec"]["versions"]:
        version["storage"] = version["name"] == "v1beta1"
    assert sent(cluster, "patch", definition, patch_type="merge") == ""
    assert sent(cluster, "get", gate) == ""
    changed = {**gate, "metadata": {"name": "north", "labels": {"changed": "yes"}}}
    assert sent(cluster, "patch", changed, patch_type="merge") == UNREACHED.format("v1")
