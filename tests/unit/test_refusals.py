"""What the timeline keeps of a refusal, and of what a controller or a kubelet looked for and did not find."""

from __future__ import annotations

import msgspec
import pytest
from asking import OK, Api

from seatrial.kinds.access.authorizer import service_account
from seatrial.model.refusal import Denial, FailedCall, FieldCause, GroupVersionKind, Refusal
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tide, namespace: %s}}"
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.canal.example%s}
spec:
  group: canal.example
  scope: Namespaced
  names: {kind: Gate, plural: gates}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                width: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}
                height: {type: integer, maximum: 9}
"""
GATE = "{apiVersion: canal.example/v1, kind: Gate, metadata: {name: north}, spec: {width: %s, height: %s}}"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {%s containers: [{name: web, image: web%s}]}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template: {spec: {restartPolicy: Never, %s containers: [{name: migrate, image: migrate, %s}]}}
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gatekeeper}
webhooks:
  - name: check.gatekeeper.example
    admissionReviewVersions: [v1]
    sideEffects: None
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    clientConfig: {service: {namespace: default, name: gatekeeper}%s}
"""


def refusal_of(api: Api, kind: str) -> Refusal:
    """The last refusal of an object of this kind, as it comes back from JSON."""
    refusal = api.events(kind, "refused")[-1].refusal
    assert refusal is not None
    assert msgspec.json.decode(msgspec.json.encode(refusal), type=Refusal) == refusal
    return refusal


def said_of(api: Api, kind: str) -> Event:
    return api.events(kind, "said")[-1]


def test_an_object_that_is_there_already_is_refused_by_its_reason() -> None:
    api = Api(CONFIG_MAP % "default")
    api.create(CONFIG_MAP % "default")
    assert refusal_of(api, "ConfigMap") == Refusal(
        409, "AlreadyExists", 'configmaps "tide" already exists', "configmaps"
    )


def test_a_missing_namespace_is_named() -> None:
    api = Api()
    words = api.create(CONFIG_MAP % "harbour")
    home = Ref("Namespace", "", "harbour")
    assert refusal_of(api, "ConfigMap") == Refusal(404, "NotFound", words, "namespaces", missing=(home,))
    assert api.events("ConfigMap", "refused")[-1].missing == (home,)


def test_a_namespace_that_is_being_deleted_is_named() -> None:
    api = Api("{apiVersion: v1, kind: Namespace, metadata: {name: harbour}}", schedule="lazy")
    api.delete("Namespace", "harbour")
    api.create(CONFIG_MAP % "harbour")
    refusal = refusal_of(api, "ConfigMap")
    assert (refusal.reason, refusal.terminating) == ("Forbidden", Ref("Namespace", "", "harbour"))


def test_an_object_that_is_being_deleted_is_named() -> None:
    held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tide, finalizers: [harbour.example/hold]}}"
    api = Api(held)
    api.delete("ConfigMap", "tide")
    api.create(CONFIG_MAP % "default")
    refusal = refusal_of(api, "ConfigMap")
    assert (refusal.reason, refusal.terminating) == ("AlreadyExists", Ref("ConfigMap", "default", "tide"))


def test_a_crd_that_is_being_deleted_is_named() -> None:
    api = Api(CRD % ", finalizers: [canal.example/hold]")
    api.delete("CustomResourceDefinition", "gates.canal.example", group="apiextensions.k8s.io")
    api.create(GATE % (1, 1))
    crd = Ref("CustomResourceDefinition", "", "gates.canal.example", "apiextensions.k8s.io")
    assert refusal_of(api, "Gate").terminating == crd


def test_the_fields_of_an_invalid_object_are_listed_with_their_values() -> None:
    api = Api(CRD % "")
    api.create(GATE % (1, 10))
    refusal = refusal_of(api, "Gate")
    detail = "spec.height in body should be less than or equal to 9"
    cause = FieldCause("spec.height", "FieldValueInvalid", f"Invalid value: 10: {detail}", "10", detail)
    assert refusal.causes == (cause,)
    assert refusal.by == ""


def test_an_immutable_field_is_distinguished_from_an_invalid_object() -> None:
    api = Api(CRD % "")
    assert api.create(GATE % (3, 1)) == OK
    api.apply(GATE % (2, 1), force=True)
    assert refusal_of(api, "Gate").by == "unchangeable"
    api.apply(GATE % (4, 10), force=True)
    assert refusal_of(api, "Gate").by == ""


def test_an_immutable_field_is_listed() -> None:
    api = Api(JOB % ("", ""))
    api.apply(JOB % ("", "args: [now],"))
    refusal = refusal_of(api, "Job")
    assert refusal.by == "unchangeable"
    assert [(cause.field, cause.value, cause.detail) for cause in refusal.causes] == [
        ("spec.template", "", "field is immutable")
    ]


def test_a_version_that_is_still_stored_is_no_immutable_field() -> None:
    api = Api(CRD % "")
    api.apply((CRD % "").replace("name: v1", "name: v2"), force=True)
    refusal = refusal_of(api, "CustomResourceDefinition")
    assert refusal.by == ""
    assert [(cause.field, cause.value) for cause in refusal.causes] == [("status.storedVersions[0]", "v1")]


def test_a_field_that_is_not_declared_has_its_whole_path() -> None:
    api = Api(CRD % "")
    api.apply(GATE % (1, "1, depth: 2"))
    refusal = refusal_of(api, "Gate")
    assert refusal.by == "unknown-field"
    assert [cause.field for cause in refusal.causes] == ["spec.depth"]


def test_strict_decoding_lists_the_unknown_fields() -> None:
    api = Api()
    api.create((CONFIG_MAP % "default")[:-1] + ", dat: {}}", field_validation="Strict")
    refusal = refusal_of(api, "ConfigMap")
    assert (refusal.by, [cause.field for cause in refusal.causes]) == ("unknown-field", ["dat"])


def test_a_conflict_lists_the_fields_of_the_other_manager() -> None:
    api = Api((CONFIG_MAP % "default")[:-1] + ", data: {tide: low}}")
    api.apply((CONFIG_MAP % "default")[:-1] + ", data: {tide: high}}")
    refusal = refusal_of(api, "ConfigMap")
    assert (refusal.reason, [(c.field, c.reason) for c in refusal.causes]) == (
        "Conflict",
        [(".data.tide", "FieldManagerConflict")],
    )


def test_a_webhook_that_is_ignored_is_named_on_the_write() -> None:
    api = Api((WEBHOOK % "") + "    failurePolicy: Ignore\n")
    assert api.create(CONFIG_MAP % "default") == OK
    assert api.events("ConfigMap", "created")[-1].unanswered == ("check.gatekeeper.example",)


def test_the_path_of_a_field_has_keys_and_indices() -> None:
    assert FieldCause("spec.ports[0].name", "", "").path == ("spec", "ports", 0, "name")
    assert FieldCause("metadata.labels[app.kubernetes.io/name]", "", "").path[-1] == "app.kubernetes.io/name"


@pytest.mark.parametrize(("bundle", "untrusted"), [("", False), (", caBundle: bm9uZQ==", True)])
def test_a_webhook_that_does_not_answer_is_named(bundle: str, untrusted: bool) -> None:
    api = Api(WEBHOOK % bundle)
    api.create(CONFIG_MAP % "default")
    assert refusal_of(api, "ConfigMap").call == FailedCall("check.gatekeeper.example", untrusted=untrusted)


def test_a_conversion_webhook_is_identified_by_its_kind() -> None:
    webhook = "{clientConfig: {service: {namespace: default, name: canal}}, conversionReviewVersions: [v1]}"
    other = "    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"
    api = Api((CRD % "") + other + "  conversion: {strategy: Webhook, webhook: " + webhook + "}\n")
    api.create("{apiVersion: canal.example/v2, kind: Gate, metadata: {name: north}}")
    call = refusal_of(api, "Gate").call
    assert call == FailedCall(converts=GroupVersionKind("canal.example", "v2", "Gate"))


def test_what_a_user_may_not_do_is_named() -> None:
    api = Api()
    api.create(CONFIG_MAP % "default", user=service_account("default", "web"))
    user = "system:serviceaccount:default:web"
    assert refusal_of(api, "ConfigMap").denied == Denial(user, ("create",), "configmaps", namespace="default")


@pytest.mark.parametrize(
    ("text", "pod", "by"),
    [
        (
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: '0'}}}",
            POD % ("", ""),
            "quota",
        ),
        (
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {requests.cpu: '1'}}}",
            POD % ("", ""),
            "quota-unspecified",
        ),
        (
            "{apiVersion: v1, kind: LimitRange, metadata: {name: few}, spec: {limits: [{type: Pod, max: {cpu: '1'}}]}}",
            POD % ("", ""),
            "limit-maximum",
        ),
        (
            "{apiVersion: v1, kind: LimitRange, metadata: {name: few}, spec: {limits: [{type: Pod, min: {cpu: '1'}}]}}",
            POD % ("", ""),
            "limit-minimum",
        ),
    ],
)
def test_the_check_that_refuses_a_pod_is_named(text: str, pod: str, by: str) -> None:
    api = Api(text)
    api.create(pod)
    assert refusal_of(api, "Pod").by == by


def test_pod_security_is_named_as_what_refuses_a_pod() -> None:
    labels = "{pod-security.kubernetes.io/enforce: restricted}"
    api = Api(f"{{apiVersion: v1, kind: Namespace, metadata: {{name: harbour, labels: {labels}}}}}")
    api.create((POD % ("", "")).replace("name: web}", "name: web, namespace: harbour}"))
    assert refusal_of(api, "Pod").by == "pod-security"


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ("serviceAccountName: app,", Ref("ServiceAccount", "default", "app")),
        ("priorityClassName: high,", Ref("PriorityClass", "", "high", "scheduling.k8s.io")),
        ("runtimeClassName: gvisor,", Ref("RuntimeClass", "", "gvisor", "node.k8s.io")),
    ],
)
def test_a_controller_names_what_its_pod_was_refused_for(spec: str, missing: Ref) -> None:
    said = said_of(Api(JOB % (spec, "")), "Job")
    assert (said.reason, said.missing) == ("FailedCreate", (missing,))
    assert said.refusal is not None
    assert said.message == f"Error creating: {said.refusal.message}"


@pytest.mark.parametrize(
    ("spec", "container", "missing", "reason"),
    [
        ("volumes: [{name: v, secret: {secretName: s}}],", "", Ref("Secret", "default", "s"), "FailedMount"),
        ("", "envFrom: [{configMapRef: {name: c}}]", Ref("ConfigMap", "default", "c"), "Failed"),
        (
            "volumes: [{name: v, persistentVolumeClaim: {claimName: p}}],",
            "",
            Ref("PersistentVolumeClaim", "default", "p"),
            "FailedScheduling",
        ),
    ],
)
def test_a_pod_names_what_it_lacks(spec: str, container: str, missing: Ref, reason: str) -> None:
    said = said_of(Api(JOB % (spec, container)), "Pod")
    assert (said.reason, said.missing, said.key) == (reason, (missing,), "")


def test_a_pod_names_the_key_that_an_object_lacks() -> None:
    there = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {user: x}}\n---\n"
    env = "env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: password}}}]"
    said = said_of(Api(there + JOB % ("", env)), "Pod")
    assert (said.missing, said.key) == ((Ref("Secret", "default", "s"),), "password")


def test_a_pod_whose_command_is_refused_says_what_it_may_not_do() -> None:
    account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: app}}\n---\n"
    said = said_of(Api(account + JOB % ("serviceAccountName: app,", "command: [kubectl, get, pods]")), "Pod")
    assert said.refusal is not None
    assert said.refusal.denied == Denial("system:serviceaccount:default:app", ("list",), "pods", namespace="default")


def test_a_pod_names_the_pods_that_hold_its_volume() -> None:
    text = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOncePod], resources: {requests: {storage: 1Gi}}, storageClassName: fast}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: disks.example
---
"""
    pods = POD % ("volumes: [{name: v, persistentVolumeClaim: {claimName: data}}],", "")
    api = Api(text + pods + "---\n" + pods.replace("name: web}", "name: web-2}", 1))
    said = [event for event in api.events("Pod", "said") if event.object.name == "web-2"]
    assert said[-1].held_by == (Ref("Pod", "default", "web"),)
