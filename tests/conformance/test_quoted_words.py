"""The API server's messages that the references quote (helm, argocd, hazards), each in its situation. On both arms.

If a real API server differs from the quote, the expected text is the server's, with the quote beside it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from arms import Arm, Here, config, deployment
from msgspec import Struct
from situations import (
    SERVICE,
    Situation,
    applied_with_unknown_field,
    changed,
    claim,
    created_with_unknown_field,
    definition_twice,
    forgotten_version,
    in_a_namespace_that_goes,
    made_again_while_going,
    made_twice,
    made_while_its_definition_goes,
    no_namespace,
    not_there,
    plain,
    replica_set_without_account,
    two_appliers,
    unknown_resource,
    webhook_of,
    why_a_namespace_stays,
    without_account,
    without_class,
)


class Quote(Struct, frozen=True):
    words: str
    """The whole message; NS stands for the namespace of the test."""
    places: str
    """Where it is quoted: the reference and its numbers."""
    situation: Situation
    quoted: str = ""
    """The text of the reference, if the experiment differs."""
    waits: bool = False
    """Whether controllers must act first."""
    needs_routing: bool = False
    """Whether a real API server needs `--enable-aggregator-routing`: others dial the Service's cluster IP."""


JOB_POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}
JOB = plain("Job", "migrate", "batch/v1", spec={"template": {"spec": JOB_POD}})
LABELS = {"app": "db"}
SET = plain(
    "StatefulSet",
    "db",
    "apps/v1",
    spec={"serviceName": "db", "selector": {"matchLabels": LABELS}, "template": deployment("db")["spec"]["template"]},
)
FROZEN_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
OTHER = {"matchLabels": {"app": "other"}}
OTHER_IMAGE = {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}
CALLING = (
    'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: '
    'Post "https://hook.NS.svc:443/check?timeout=10s": '
)

QUOTES = (
    Quote(
        'namespaces "nowhere" not found',
        "argocd 3.6; helm 2.1; hazards 31, 75",
        no_namespace,
    ),
    Quote('jobs.batch "migrate" already exists', "helm 2.4; hazards 21", made_twice(JOB)),
    Quote('serviceaccounts "web" already exists', "hazards 21", made_twice(plain("ServiceAccount", "web"))),
    Quote('secrets "web" already exists', "hazards 78", made_twice(plain("Secret", "web"))),
    Quote('namespaces "default" already exists', "helm 2.1; hazards 75", made_twice(plain("Namespace", "default"))),
    Quote('jobs.batch "web-migrate" not found', "hazards 35", not_there("Job", "web-migrate")),
    Quote('persistentvolumeclaims "data" not found', "hazards 60", not_there("PersistentVolumeClaim", "data")),
    Quote(
        'object is being deleted: persistentvolumeclaims "data" already exists',
        "helm 5.4, 12; hazards 60",
        made_again_while_going,
    ),
    Quote(
        'configmaps "late" is forbidden: unable to create new content in namespace NS because it is being terminated',
        "helm 5.6",
        in_a_namespace_that_goes,
    ),
    Quote(
        "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
        "example.com/hold in 1 resource instances",
        "hazards 1",
        why_a_namespace_stays("NamespaceFinalizersRemaining"),
        waits=True,
    ),
    Quote(
        'Deployment.apps "web" is invalid: spec.selector: Invalid value: ...: field is immutable',
        "hazards 7",
        changed(
            deployment(),
            {"spec": {"selector": OTHER, "template": {"metadata": {"labels": {"app": "other"}}}}},
            "spec.selector: Invalid value:",
        ),
    ),
    Quote(
        'Job.batch "migrate" is invalid: spec.template: Invalid value: ...: field is immutable',
        "argocd 7; hazards 8",
        changed(JOB, {"spec": OTHER_IMAGE}, "spec.template: Invalid value:"),
    ),
    Quote(
        f'StatefulSet.apps "db" is invalid: spec: Forbidden: {FROZEN_SET}',
        "hazards 9",
        changed(SET, {"spec": {"serviceName": "other"}}),
    ),
    Quote(
        'ConfigMap "app" is invalid: data: Forbidden: field is immutable when `immutable` is set',
        "hazards 80",
        changed({**config(data={"a": "1"}), "immutable": True}, {"data": {"a": "2"}}),
    ),
    Quote(
        "failed to create typed patch object (/web; apps/v1, Kind=Deployment): "
        ".spec.sise: field not declared in schema",
        "helm 2.4",
        applied_with_unknown_field,
        quoted="unknown fields are rejected",
    ),
    Quote(
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "spec.sise"',
        "hazards 6",
        created_with_unknown_field,
    ),
    Quote(
        'Apply failed with 1 conflict: conflict with "helm": .data.a',
        "helm 2.2",
        two_appliers,
    ),
    Quote(
        'pods "web" is forbidden: error looking up service account NS/web: serviceaccount "web" not found',
        "hazards 14",
        without_account,
    ),
    Quote(
        'FailedCreate: pods "web-HASH-" is forbidden: error looking up service account NS/web: '
        'serviceaccount "web" not found',
        "hazards 14",
        replica_set_without_account,
        waits=True,
    ),
    Quote(
        'pods "web" is forbidden: no PriorityClass with name high was found',
        "hazards 58, 82",
        without_class,
    ),
    Quote(f'{CALLING}service "hook" not found', "hazards 1, 50", webhook_of(service=False)),
    Quote(
        f'{CALLING}no endpoints available for service "hook"',
        "hazards 3",
        webhook_of(service=True),
        needs_routing=True,
    ),
    Quote("the server could not find the requested resource", "argocd 9; hazards 22", unknown_resource),
    Quote(
        'customresourcedefinitions.apiextensions.k8s.io "widgets.NS.example.com" already exists',
        "helm 5.4",
        definition_twice,
    ),
    Quote(
        'CustomResourceDefinition.apiextensions.k8s.io "widgets.NS.example.com" is invalid: '
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage '
        "version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 "
        "and removes v1 from status.storedVersions",
        "hazards 92",
        forgotten_version,
        quoted="status.storedVersions[0]: Invalid value: must appear in spec.versions",
    ),
    Quote(
        'widgets.NS.example.com "late" is forbidden: '
        "create not allowed while custom resource definition is terminating",
        "hazards 76",
        made_while_its_definition_goes,
        waits=True,
    ),
    Quote(
        'Service "hook" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set',
        "hazards 48",
        changed(plain("Service", "hook", spec=SERVICE), {"spec": {"clusterIP": "None"}}),
        quoted='spec.clusterIP: Invalid value: "": field is immutable; today an empty one is taken for the one it has',
    ),
    Quote(
        'PersistentVolumeClaim "data" is invalid: spec: Forbidden: '
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        "hazards 83",
        lambda here: changed(claim("data"), {"spec": {"accessModes": ["ReadWriteMany"]}})(here).partition("\n")[0],
        quoted="spec: Forbidden: spec is immutable after creation except resources.requests",
    ),
)

ELSEWHERE = {
    "connect: connection refused": "conformance/unanswering.py",
    "context deadline exceeded": "conformance/unanswering.py",
    "x509: certificate signed by unknown authority": "conformance/unanswering.py",
    "conversion webhook for": "kinds/test_webhook_backends.py",
    "the server is currently unable to handle the request": "unit/test_api_services.py",
    "DiscoveryFailed": "unit/test_api_services.py",
    'secrets is forbidden: User "{ACCOUNT}" cannot list resource "secrets"': "conformance/test_access.py",
    "MountVolume.SetUp failed for volume": "kinds/test_pod.py",
    "CreateContainerConfigError": "kinds/test_pod.py",
    "couldn't find key k in Secret": "kinds/test_pod.py",
    "Multi-Attach error for volume": "kinds/test_pod.py",
    "BackoffLimitExceeded": "kinds/test_jobs.py",
    "ensure CRDs are installed first": "conformance/test_helm_sdk.py",
    "invalid ownership metadata": "conformance/test_helm_sdk.py",
}
"""Other quoted messages and the tests that check them: webhooks with a backend, kubelets, controllers, Helm."""


@pytest.mark.parametrize("words", ELSEWHERE)
def test_other_quotes_have_their_own_test(words: str) -> None:
    assert words in (Path(__file__).parents[1] / ELSEWHERE[words]).read_text()


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote.words[:60])
def test_the_message_in_its_situation(arm: Arm, here: Here, quote: Quote) -> None:
    if quote.waits and not arm.has_controllers:
        pytest.skip("the real API server that was given has no controller manager beside it")
    message = quote.situation(here)
    if quote.needs_routing and "dial tcp" in message:
        pytest.skip("the real API server that was given dials Services at their own address")
    assert message == quote.words.replace("NS", here.name)
