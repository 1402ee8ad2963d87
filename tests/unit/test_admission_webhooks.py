"""Webhooks: which writes they are called for, the API server's errors for unreachable ones, and what waits for them."""

from __future__ import annotations

import base64

import pytest
from asking import OK, Api

CERTIFICATE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n").decode()
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: default}
spec: {selector: {app: hook}, ports: [{port: 443, targetPort: 8443}]}
"""
BACKEND = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook, namespace: default}
spec:
  selector: {matchLabels: {app: hook}}
  template:
    metadata: {labels: {app: hook}}
    spec: {containers: [{name: hook, image: hook}]}
"""
GATES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gate, plural: gates}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
CONFIG_MAPS = '[{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]'


def webhook(
    client: str = "{service: {name: hook, namespace: default, path: /validate}}",
    rules: str = CONFIG_MAPS,
    more: str = "",
    kind: str = "ValidatingWebhookConfiguration",
) -> str:
    return f"""
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: checks}}
webhooks:
- name: check.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {client}
  rules: {rules}
  {more}
"""


def words(why: str, url: str = "https://hook.default.svc:443/validate?timeout=10s") -> str:
    return (
        f'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post "{url}": '
        f"{why}"
    )


NOT_FOUND = words('service "hook" not found')
NO_ENDPOINTS = words('no endpoints available for service "hook"')
UNKNOWN_AUTHORITY = words("tls: failed to verify certificate: x509: certificate signed by unknown authority")
READY = f"{{service: {{name: hook, namespace: default, path: /validate}}, caBundle: {CERTIFICATE}}}"


def test_a_webhook_without_its_service_refuses() -> None:
    api = Api(webhook())
    assert api.create(CONFIG) == NOT_FOUND
    assert (api.reply.code, api.reply.body["reason"]) == (500, "InternalError")


def test_a_webhook_whose_service_has_no_ready_pod_refuses() -> None:
    assert Api(SERVICE + "---" + webhook()).create(CONFIG) == NO_ENDPOINTS


def test_a_webhook_without_a_ca_refuses_with_ready_pods() -> None:
    assert Api(f"{SERVICE}---{BACKEND}---{webhook()}").create(CONFIG) == UNKNOWN_AUTHORITY


def test_a_reachable_webhook_allows() -> None:
    assert Api(f"{SERVICE}---{BACKEND}---{webhook(READY)}").create(CONFIG) == OK


def test_a_ca_bundle_without_a_certificate_is_an_error() -> None:
    client = "{service: {name: hook, namespace: default}, caBundle: Cg==}"
    assert Api(f"{SERVICE}---{BACKEND}---{webhook(client)}").create(CONFIG) == (
        'Internal error occurred: failed calling webhook "check.example.com": could not get REST client: '
        "unable to load root certificates: unable to parse bytes as PEM block"
    )


@pytest.mark.parametrize(
    ("client", "url", "why"),
    [
        (
            "{service: {name: hook, namespace: default}}",
            "https://hook.default.svc:443/?timeout=10s",
            'service "hook" not found',
        ),
        (
            "{service: {name: hook, namespace: default, port: 8443, path: /a/b}}",
            "https://hook.default.svc:8443/a/b?timeout=10s",
            'service "hook" not found',
        ),
    ],
)
def test_the_url_is_that_of_the_service(client: str, url: str, why: str) -> None:
    assert Api(webhook(client)).create(CONFIG) == words(why, url)


def test_a_missing_service_port_is_reported() -> None:
    client = "{service: {name: hook, namespace: default, port: 8443, path: /validate}}"
    url = "https://hook.default.svc:8443/validate?timeout=10s"
    assert Api(f"{SERVICE}---{webhook(client)}").create(CONFIG) == words(
        'no service port 8443 found for service "hook"', url
    )


def test_an_external_name_service_is_not_supported() -> None:
    service = """
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: default}
spec: {type: ExternalName, externalName: example.com}
"""
    assert Api(f"{service}---{webhook()}").create(CONFIG) == words('unsupported service type "ExternalName"')


def test_a_published_unready_pod_refuses_the_connection() -> None:
    service = SERVICE.replace("spec: {", "spec: {publishNotReadyAddresses: true, ")
    backend = BACKEND.replace(
        "image: hook}", "image: hook, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}"
    )
    api = Api(f"{service}---{backend}---{webhook(READY)}")
    address = api.all("Pod")[0]["status"]["podIP"]
    assert api.create(CONFIG) == words(f"dial tcp {address}:8443: connect: connection refused")


def test_a_network_policy_may_make_the_call_time_out() -> None:
    policy = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shut, namespace: default}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}
"""
    lazy = Api(f"{SERVICE}---{BACKEND}---{policy}---{webhook(READY, more='timeoutSeconds: 5')}", "lazy")
    lazy.cluster.settle()
    url = "https://hook.default.svc:443/validate?timeout=5s"
    assert lazy.create(CONFIG) == words("context deadline exceeded", url)
    assert Api(f"{SERVICE}---{BACKEND}---{policy}---{webhook(READY)}").create(CONFIG) == OK


def test_an_ignored_webhook_is_in_the_timeline() -> None:
    api = Api(webhook(more="failurePolicy: Ignore"))
    assert api.create(CONFIG) == OK
    assert api.warnings == []
    assert [e.message for e in api.events("ConfigMap", "created") if e.object.name == "a"] == [f"ignored: {NOT_FOUND}"]


def test_webhooks_are_called_for_updates_and_deletions() -> None:
    api = Api(CONFIG)
    api.put(webhook())
    assert api.update(CONFIG) == NOT_FOUND
    assert api.apply(CONFIG) == NOT_FOUND
    assert api.delete("ConfigMap", "a") == NOT_FOUND
    assert api.get("ConfigMap", "a") is not None


def test_a_webhook_configuration_can_always_be_deleted() -> None:
    everything = '[{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], operations: ["*"]}]'
    api = Api(webhook(rules=everything))
    assert api.delete("ValidatingWebhookConfiguration", "checks", group="admissionregistration.k8s.io") == OK
    assert api.create(CONFIG) == OK


@pytest.mark.parametrize(
    ("rules", "asked"),
    [
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["*"], operations: [CREATE]}]', True),
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["*/*"], operations: ["*"]}]', True),
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["configmaps/*"], operations: [CREATE]}]', True),
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["configmaps/status"], operations: [CREATE]}]', False),
        ("[{apiGroups: [apps], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]", False),
        ('[{apiGroups: [""], apiVersions: [v2], resources: [configmaps], operations: [CREATE]}]', False),
        ('[{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [UPDATE]}]', False),
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["*"], operations: ["*"], scope: Cluster}]', False),
        ('[{apiGroups: [""], apiVersions: [v1], resources: ["*"], operations: ["*"], scope: Namespaced}]', True),
    ],
)
def test_rules_select_the_writes(rules: str, asked: bool) -> None:
    assert Api(webhook(rules=rules)).create(CONFIG) == (NOT_FOUND if asked else OK)


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}", True),
        ("namespaceSelector: {matchExpressions: [{key: team, operator: Exists}]}", False),
        ("objectSelector: {matchLabels: {app: web}}", False),
        ("objectSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}", True),
    ],
)
def test_selectors_match_the_namespace_and_the_object(more: str, asked: bool) -> None:
    assert Api(webhook(more=more)).create(CONFIG) == (NOT_FOUND if asked else OK)


def test_a_namespace_is_selected_by_its_new_labels() -> None:
    rules = '[{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: ["*"]}]'
    api = Api(webhook(rules=rules, more="namespaceSelector: {matchLabels: {team: a}}"))
    assert api.create("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}") == OK
    assert api.create("apiVersion: v1\nkind: Namespace\nmetadata: {name: y, labels: {team: a}}") == NOT_FOUND


def test_an_object_is_also_selected_by_its_old_labels() -> None:
    labelled = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {app: web}}"
    api = Api(labelled)
    api.put(webhook(more="objectSelector: {matchLabels: {app: web}}"))
    assert api.update(CONFIG) == NOT_FOUND


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""
WIDGETS = "[{apiGroups: [example.com], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]"
OLD_WIDGET = "apiVersion: example.com/v1beta1\nkind: Widget\nmetadata: {name: a}"


def test_an_equivalent_webhook_is_called_for_every_version() -> None:
    assert Api(f"{DEFINITION}---{webhook(rules=WIDGETS)}").create(OLD_WIDGET) == NOT_FOUND


def test_an_exact_webhook_is_called_for_its_version() -> None:
    assert Api(f"{DEFINITION}---{webhook(rules=WIDGETS, more='matchPolicy: Exact')}").create(OLD_WIDGET) == OK


def test_match_conditions_are_reported_as_not_evaluated() -> None:
    conditions = "matchConditions: [{name: not-mine, expression: 'false'}]"
    api = Api(f"{SERVICE}---{BACKEND}---{webhook(READY, more=conditions)}")
    assert api.create(CONFIG) == OK
    reported = 'seatrial: matchConditions of webhook "check.example.com" are not evaluated; assumed to match'
    assert api.warnings == [reported]
    assert [e.message for e in api.events("ConfigMap", "created") if e.object.name == "a"] == [reported]


def test_a_webhook_with_a_url_is_assumed_to_respond() -> None:
    api = Api(webhook('{url: "https://hooks.example.com/x"}'))
    assert api.create(CONFIG) == OK


def test_a_mutating_webhook_is_called_before_a_validating_one() -> None:
    mutating = webhook(kind="MutatingWebhookConfiguration").replace("check.example.com", "change.example.com")
    api = Api(webhook())
    api.put(mutating)
    assert api.create(CONFIG) == NOT_FOUND.replace("check.example.com", "change.example.com")


PODS = '[{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]'


def test_a_refused_controller_retries_when_the_webhook_is_reachable() -> None:
    web = BACKEND.replace("hook", "web")
    selected = "objectSelector: {matchLabels: {app: web}}"
    api = Api(f"{SERVICE}---{webhook(READY, PODS, selected)}---{web}")
    assert [e.message for e in api.events("ReplicaSet", "said")] == [
        f"Error creating: {NO_ENDPOINTS}",
    ]
    api.put(BACKEND)
    assert sorted(pod["metadata"]["labels"]["app"] for pod in api.all("Pod")) == ["hook", "web"]


def test_a_refused_controller_retries_when_the_webhook_is_deleted() -> None:
    api = Api(f"{webhook(rules=PODS)}---{BACKEND}")
    assert api.all("Pod") == []
    assert api.delete("ValidatingWebhookConfiguration", "checks", group="admissionregistration.k8s.io") == OK
    assert len(api.all("Pod")) == 1


def test_waiting_for_a_pod_also_waits_for_the_backend_of_its_webhook() -> None:
    web = BACKEND.replace("hook", "web")
    selected = "objectSelector: {matchLabels: {app: web}}"
    api = Api(f"{SERVICE}---{BACKEND}---{webhook(READY, PODS, selected)}---{web}", "lazy")
    ref = api.cluster.ref_of(api.get("Deployment", "web", group="apps"))
    api.cluster.awaits([ref])
    assert api.get("Deployment", "web", group="apps")["status"]["readyReplicas"] == 1


def test_binding_a_pod_is_not_an_update() -> None:
    rules = '[{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [UPDATE]}]'
    api = Api(f"{webhook(rules=rules)}---{BACKEND}")
    assert [pod["status"]["phase"] for pod in api.all("Pod")] == ["Running"]


def test_finalizing_a_namespace_is_not_an_update() -> None:
    rules = '[{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [UPDATE]}]'
    api = Api("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}")
    api.put(webhook(rules=rules))
    assert api.delete("Namespace", "x") == OK
    api.let_time_pass()
    assert api.get("Namespace", "x", "") is None


def test_a_webhook_can_block_the_removal_of_a_finalizer() -> None:
    rules = '[{apiGroups: [""], apiVersions: [v1], resources: [persistentvolumeclaims], operations: [UPDATE]}]'
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
    api = Api(f"{claim}---{webhook(rules=rules)}")
    assert api.delete("PersistentVolumeClaim", "c") == OK
    assert api.get("PersistentVolumeClaim", "c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert [e.message for e in api.events("PersistentVolumeClaim", "refused")] == [NOT_FOUND]


def test_a_webhook_that_is_down_blocks_the_deletion_of_a_namespace() -> None:
    rules = '[{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [DELETE]}]'
    api = Api("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}")
    api.put(webhook(rules=rules, more="namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x}}"))
    assert api.delete("Namespace", "x") == OK
    api.let_time_pass()
    conditions = {c["type"]: c for c in api.get("Namespace", "x", "")["status"]["conditions"]}
    assert conditions["NamespaceDeletionContentFailure"]["message"] == (
        f"Failed to delete all resource types, 1 remaining: {NOT_FOUND}"
    )
    assert api.delete("ValidatingWebhookConfiguration", "checks", group="admissionregistration.k8s.io") == OK
    api.let_time_pass()
    assert api.get("Namespace", "x", "") is None


def test_the_garbage_collector_is_refused_and_retries() -> None:
    rules = "[{apiGroups: [apps], apiVersions: [v1], resources: [replicasets], operations: [DELETE]}]"
    api = Api(f"{BACKEND}---{webhook(rules=rules)}")
    assert api.delete("Deployment", "hook", group="apps") == OK
    assert [e.message for e in api.events("ReplicaSet", "refused")] == [NOT_FOUND]
    assert len(api.all("ReplicaSet", group="apps")) == 1
    assert api.delete("ValidatingWebhookConfiguration", "checks", group="admissionregistration.k8s.io") == OK
    assert api.all("ReplicaSet", group="apps") == []
    assert api.all("Pod") == []


def test_deleting_a_crd_calls_no_webhooks_for_its_custom_resources() -> None:
    api = Api(GATES)
    assert api.create("apiVersion: example.com/v1\nkind: Gate\nmetadata: {name: g}") == OK
    gates = '[{apiGroups: [example.com], apiVersions: ["*"], resources: [gates], operations: [DELETE]}]'
    assert api.create(webhook(rules=gates)) == OK
    assert "failed calling webhook" in api.delete("Gate", "g", group="example.com")
    assert api.delete("CustomResourceDefinition", "gates.example.com", group="apiextensions.k8s.io") == OK
    api.cluster.settle()
    assert api.all("CustomResourceDefinition", group="apiextensions.k8s.io") == []
