"""Error texts of other tools: which error they are, which cause comes first, and in which shapes they are read."""

from __future__ import annotations

import re

import pytest

from seatrial.explain import pasted
from seatrial.explain.diagnosis import BETWEEN_REVISIONS, Diagnosis, diagnose, nearest
from seatrial.explain.pattern import FIELD, GAP
from seatrial.explain.table import ErrorText, causes_of, table
from seatrial.rules import all_explained

CALL = 'Internal error occurred: failed calling webhook "validate.shop.io": failed to call webhook: Post '
URL = '"https://shop-webhook.shop.svc:443/validate?timeout=10s": '


def diagnosed(text: str, engine: str = "", step: str = "") -> Diagnosis:
    found = diagnose(text, engine, step)
    assert found is not None, f"unknown: {text}"
    return found


def first(text: str, engine: str = "", step: str = "") -> str:
    return diagnosed(text, engine, step).causes[0].rule


@pytest.mark.parametrize("error", table().errors, ids=lambda error: error.name)
def test_every_form_of_an_error_is_recognized(error: ErrorText) -> None:
    for text in error.texts:
        written = FIELD.sub(lambda field: f"the-{field[1]}", text).replace(GAP, " and so on ")
        found = {one.error for one in [diagnosed(written), diagnosed(f"Error: UPGRADE FAILED: {written}")]}
        assert found == {error.name}, written


def test_the_table_names_rules_and_phases_that_exist() -> None:
    rules = {rule.name for rule in all_explained()}
    named = {cause.rule for error in table().errors for cause in causes_of(error) if cause.rule}
    assert named - rules == set()
    assert set(BETWEEN_REVISIONS) - rules == set()
    assert {error.phase for error in table().errors} - set(table().phases) == set()


def test_every_rule_that_an_answer_names_is_a_cause() -> None:
    rules = {rule.name for rule in all_explained()}
    for error in table().errors:
        causes = {cause.rule for cause in causes_of(error)}
        answered = {word for answer in error.answers for word in re.findall(r"[a-z0-9-]+", answer)} & rules
        assert answered - causes - {"apiservice-unavailable-breaks-discovery"} == set(), error.name


def test_every_error_has_a_cause_without_a_condition_or_is_of_one_engine() -> None:
    for error in table().errors:
        assert diagnosed(FIELD.sub("x", error.texts[0]).replace(GAP, " ")).causes, error.name


def test_a_text_begins_with_a_literal_so_that_a_search_is_linear() -> None:
    parts = [part for error in table().errors for text in error.texts for part in text.split(GAP)[:1]]
    assert [part for part in parts if part.startswith("{")] == []


@pytest.mark.parametrize(
    ("clause", "error"),
    [
        ('service "shop-webhook" not found', "webhook-service-not-found"),
        ('no endpoints available for service "shop-webhook"', "webhook-no-endpoints"),
        ("dial tcp 10.0.0.1:443: connect: connection refused", "webhook-connection-refused"),
        ("context deadline exceeded", "webhook-timeout"),
        ("net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "webhook-timeout"),
        ("x509: certificate signed by unknown authority", "webhook-unknown-authority"),
        (
            "x509: certificate signed by unknown authority (possibly because of "
            '"x509: invalid signature: parent certificate cannot sign this kind of certificate")',
            "webhook-another-ca",
        ),
        ("x509: certificate is valid for node-1, not shop-webhook.shop.svc", "webhook-wrong-names"),
    ],
)
def test_webhook_calls_are_told_apart_by_their_last_clause(clause: str, error: str) -> None:
    found = diagnosed(CALL + URL + clause)
    assert found.error == error
    assert found.phase == "admission"


# One line per error: what the tool prints, and the cause that comes first. Names are ours.
HELM = "Error: INSTALLATION FAILED: "
UPGRADE = "Error: UPGRADE FAILED: "
KNOWN = [
    (HELM + 'no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"', "third-party-crd-absent"),
    (HELM + 'no matches for kind "Shop" in version "shop.io/v1"', "crd-and-cr-in-same-templates"),
    (UPGRADE + 'no matches for kind "Shop" in version "shop.io/v2"', "crds-dir-not-upgraded"),
    (HELM + 'no matches for kind "Ingress" in version "extensions/v1beta1"', "removed-api-version"),
    ('Shop/prod/shop dry-run failed: no matches for kind "Shop"', "flux-cr-with-helmrelease-in-one-kustomization"),
    ("The Kubernetes API could not find shop.io/Shop for requested resource prod/shop", "argocd-dryrun-missing-crd"),
    ('creation failed: no matches for kind "ClusterIssuer"', "pulumi-component-unordered-or-unawaited"),
    (CALL + URL + "dial tcp: connect: connection refused", "webhook-not-ready-race"),
    (UPGRADE + CALL + URL + "dial tcp: connect: connection refused", "webhook-backend-rolled-in-same-upgrade"),
    ('failed calling webhook "validate.kyverno.svc-fail"', "webhook-fail-policy-self-block"),
    ("helm uninstall shop: " + CALL + URL + 'service "shop-webhook" not found', "uninstall-operator-before-crs"),
    ("could not update webhook config: ca cert not yet ready", "webhook-tls-not-injected"),
    ("conversion webhook for shop.io/v1, Kind=Shop failed: connection refused", "conversion-webhook-order"),
    (
        "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: the server is currently unable",
        "apiservice-unavailable-breaks-discovery",
    ),
    ('Failed to pull image "auto"', "mutation-webhook-not-registered-yet"),
    (
        UPGRADE + 'cannot patch "shop" with kind Deployment: Deployment.apps "shop" is invalid: spec.selector: Invalid '
        'value: {"matchLabels":{"app":"shop"}}: field is immutable',
        "immutable-selector-change",
    ),
    (
        'Job.batch "m" is invalid: spec.template: Invalid value: core.Pod{}: field is immutable',
        "job-immutable-template",
    ),
    (
        'StatefulSet.apps "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than '
        "'replicas', 'ordinals', 'template' are forbidden",
        "statefulset-immutable-field",
    ),
    (
        'PersistentVolumeClaim "data" is invalid: spec: Forbidden: spec is immutable after creation except '
        "resources.requests",
        "pvc-immutable-spec",
    ),
    ('Service "shop" is invalid: spec.clusterIP: Invalid value: "": field is immutable', "force-replace-side-effects"),
    ("data: Forbidden: field is immutable when `immutable` is set", "other-immutable-field"),
    (
        'Error creating: pods "migrate-" is forbidden: error looking up service account prod/shop: serviceaccount '
        '"shop" not found; Error: failed pre-install: timed out waiting for the condition',
        "pre-hook-needs-release-serviceaccount",
    ),
    (
        HELM + 'failed pre-install: timed out waiting for the condition; Error: secret "shop" not found',
        "pre-hook-needs-release-secret-or-configmap",
    ),
    (UPGRADE + 'Error: configmap "shop" not found', "release-to-hook-flip"),
    (
        'pre-upgrade hooks failed: timed out; secret "shop-secret" not found',
        "pre-upgrade-hook-needs-newly-added-resource",
    ),
    (
        'MountVolume.SetUp failed for volume "cert" : secret "shop-tls" not found',
        "certificate-secret-needs-cert-manager",
    ),
    ('secret "cert-manager-webhook-webhook-tls" not found', "webhook-bootstraps-through-itself"),
    ('pods "a" is forbidden: no PriorityClass with name high was found', "helm-unknown-kind-installed-last"),
    ("Error: failed pre-install: no PriorityClass with name high was found", "pre-hook-needs-release-priorityclass"),
    (HELM + 'create: failed to create: namespaces "shop" not found', "release-namespace-inside-chart"),
    ('one or more objects failed to apply, reason: namespaces "shop" not found', "namespace-before-content"),
    ('namespaces "shop" already exists', "release-namespace-inside-chart"),
    ('warning: Hook pre-upgrade a/b.yaml failed: jobs.batch "m" already exists', "hook-resource-already-exists"),
    (HELM + 'serviceaccounts "shop" already exists', "reinstall-collides-with-leftovers"),
    ('object is being deleted: persistentvolumeclaims "data" already exists', "hook-recreate-races-finalizer"),
    (UPGRADE + "pre-upgrade hooks failed: context deadline exceeded", "hook-recreate-races-finalizer"),
    (
        UPGRADE + 'rendered manifests contain a resource that already exists: Secret "shop" in namespace "prod" exists '
        "and cannot be imported into the current release: invalid ownership metadata; label validation error",
        "ownership-metadata-conflict",
    ),
    (
        'CustomResourceDefinition "shops.shop.io" in namespace "" exists and cannot be imported into the current '
        "release: invalid ownership metadata",
        "crd-moves-crds-to-templates",
    ),
    ('helm rollback shop 1: Error: no ConfigMap with the name "shop" found', "rollback-readds-removed-resource"),
    ('original object ConfigMap with the name "shop" not found', "rollback-readds-removed-resource"),
    (UPGRADE + "another operation (install/upgrade/rollback) is in progress", "pending-release-lock"),
    ("create not allowed while custom resource definition is terminating", "crd-terminating-blocks-recreate"),
    ("status.storedVersions[0]: Invalid value: must appear in spec.versions", "crd-storedversions-block"),
    ("NamespaceFinalizersRemaining: shop.io/finalizer", "uninstall-operator-before-crs"),
    ('Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) a', "rwo-rollingupdate-deadlock"),
    ("if kind is a CRD, it should be installed before calling Start", "operator-starts-before-its-crds"),
    ("password authentication failed for user shop", "random-secret-rotates-on-upgrade"),
    ("The connection to the server localhost:8080 was refused", "hook-credentials-deleted-before-job"),
    ("the server has asked for the client to provide credentials", "before-hook-creation-deletes-live-resource"),
    ("waiting for healthy state of /Service/shop", "wave-blocked-by-never-healthy"),
    ("waiting for healthy state of apps/Deployment/shop", "argocd-postsync-health-deadlock"),
    ("waiting for completion of hook bitnami.com/SealedSecret/shop", "wave-blocked-by-never-healthy"),
    ("isSelectiveSync=true skipHooks=true", "argocd-hook-skipped"),
    ("install retries exhausted", "flux-retries-exhausted"),
    ("[1/3] Finding Pods to direct traffic to", "pulumi-await-deadlock"),
    ("waiting for first consumer to be created before binding", "pvc-wffc-wave-deadlock"),
    ("Failed to determine GroupVersionResource for manifest", "plan-time-crd-lookup"),
    ("unable to build kubernetes object for deleting hook shop/a.yaml", "third-party-crd-absent"),
    ("spec.source.git.uri: Required value", "object-is-invalid"),
    ('jobs is forbidden: User "system:serviceaccount:prod:shop" cannot watch resource', "hook-job-missing-rbac"),
    (
        "uninstallation completed with 1 error(s): post-delete hook: nodes is forbidden: User "
        '"system:serviceaccount:prod:default"',
        "post-delete-hook-cannot-run",
    ),
    ("could not translate host name", "pre-hook-needs-release-database"),
    ("Error: job failed: DeadlineExceeded in pre-delete hook", "pre-delete-hook-blocks-uninstall"),
]


@pytest.mark.parametrize(("text", "rule"), KNOWN, ids=[rule for _, rule in KNOWN])
def test_the_likeliest_cause_comes_first(text: str, rule: str) -> None:
    assert first(text) == rule


def test_what_the_user_states_decides_where_the_text_does_not() -> None:
    refused = CALL + URL + "dial tcp: connect: connection refused"
    assert first(refused, "helm", "upgrade") == "webhook-backend-rolled-in-same-upgrade"
    assert first("field is immutable", "argocd") == "job-immutable-template"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Error: INSTALLATION FAILED: x509: certificate", ("helm", "install", "")),
        ("Error: UPGRADE FAILED: pre-upgrade hooks failed: x509: certificate", ("helm", "upgrade", "pre-upgrade")),
        ("Helm upgrade failed for release prod/shop with chart shop@1: x509: certificate", ("flux", "upgrade", "")),
        ("Kustomization/flux-system/apps: x509: certificate", ("flux", "", "")),
        ("one or more synchronization tasks completed unsuccessfully: x509: certificate", ("argocd", "", "")),
        ("argocd: PreSync: x509: certificate", ("argocd", "", "pre-sync")),
        ("urn:pulumi:dev::infra: x509: certificate", ("pulumi", "", "")),
        ("Error from server (InternalError): x509: certificate", ("kubectl", "", "")),
        ("warning: Hook pre-delete shop/a.yaml failed: x509: certificate", ("helm", "uninstall", "pre-delete")),
        ("x509: certificate", ("", "", "")),
    ],
)
def test_engine_step_and_hook_are_read_from_what_is_around_the_error(text: str, seen: tuple[str, str, str]) -> None:
    context = diagnosed(text).context
    assert (context.engine, context.step, context.hook) == seen


def test_an_error_says_more_than_the_timeout_that_it_leads_to() -> None:
    found = diagnosed('Error: failed pre-install: timed out waiting for the condition\nsecret "shop" not found')
    assert (found.error, found.others) == (
        "secret-not-found",
        ("failed pre-install: timed out waiting for the condition",),
    )


def test_names_of_the_error_are_in_the_object_and_in_the_commands() -> None:
    found = diagnosed(
        'pods "m-" is forbidden: error looking up service account prod/shop: serviceaccount "shop" not found'
    )
    assert found.object == "ServiceAccount/prod/shop"
    assert found.decide == "kubectl get serviceaccount shop -n prod -o yaml"


def test_a_name_that_is_more_than_a_name_does_not_get_into_a_command() -> None:
    found = diagnosed('secret "$(reboot)" not found')
    assert "reboot" not in found.decide + found.check


@pytest.mark.parametrize(
    "shape",
    [
        'Warning  Failed  3s  kubelet  Error: \x1b[31mconfigmap "shop-config"\x1b[0m not found',
        '{"level":"error","ts":"2026-01-01","msg":"Reconciler error","error":"configmap \\"shop-config\\" not found"}',
        'time="2026-01-01" level=error msg="sync failed: configmap \\"shop-config\\" not found"',
        'message: "failed: configmap \\\\\\"shop-config\\\\\\" not found"',
        'Error: configmap\n    "shop-config"\n    not found',
        'Error: configmap "shop-con\nfig" not fo\nund',
        "Error: configmap `shop-config` not found",
        "Error: configmap “shop-config” not found",
        '│ Error: configmap\n│ "shop-config" not found\n╵',
        "CONFIGMAP shop-config NOT FOUND",
        "noise\r\n" * 50 + 'Error: configmap "shop-config" not found\r\n',
    ],
)
def test_texts_are_read_in_the_shapes_in_which_tools_print_them(shape: str) -> None:
    found = diagnosed(shape)
    assert (found.error, found.object) == ("configmap-not-found", "ConfigMap/shop-config")


def test_a_gap_does_not_reach_into_the_next_message() -> None:
    one, other = CALL + URL + "connect: connection refused", CALL.replace("validate", "mutate") + URL + "EOF"
    found = diagnosed(f"{other}\n{one}")
    assert found.excerpt.startswith('failed calling webhook "validate.shop.io"')


def test_of_a_long_log_the_end_is_read() -> None:
    log = "x" * pasted.TEXT_MAX + '\nsecret "shop" not found'
    assert diagnosed(log).cut
    assert diagnose('secret "shop" not found' + "\n" * pasted.TEXT_MAX) is None


@pytest.mark.parametrize(
    "hostile",
    ['failed calling webhook "' * 40_000, "a" * 1_000_000, '"' * 1_000_000, "\\" * 1_000_000, "{" * 1_000_000 + "}"],
    ids=["beginnings", "one word", "quotes", "backslashes", "braces"],
)
def test_hostile_input_is_read_in_linear_time(hostile: str) -> None:
    found = diagnose(hostile)
    assert found is None or found.error == "webhook-failed"


def test_an_unknown_text_is_answered_with_similar_ones() -> None:
    assert diagnose("the widget has no wobble") is None
    assert nearest("the widget has no wobble") == []
    assert 'no matches for kind "{kind}" in version "{version}"' in nearest('no match for kind "Shop" in version v1')
