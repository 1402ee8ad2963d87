"""Admission, and the error of each refusal: webhooks, limits, classes. On both arms."""

from __future__ import annotations

import pytest
from apiclient import Reply
from arms import Here, config, deployment
from situations import SERVICE, message, plain, pod, webhook
from unanswering import REFUSING, SILENT, UNKNOWN, Backend, listening

from seatrial.model.resource import Body

LABEL = "should be a domain with at least three segments separated by dots"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
RANGE = {
    "type": "Container",
    "max": {"cpu": "1", "memory": "512Mi"},
    "min": {"cpu": "50m"},
    "default": {"cpu": "500m", "memory": "256Mi"},
    "defaultRequest": {"cpu": "100m"},
}


def hooks(here: Here, *names: str, kind: str = KINDS[0]) -> Body:
    """A configuration whose webhooks are never called: they select a namespace that does not exist."""
    body = webhook(here.name)
    nowhere = {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}}
    return {
        **body,
        "kind": kind,
        "webhooks": [{**body["webhooks"][0], "name": n, "namespaceSelector": nowhere} for n in names],
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["check"], f'webhooks[0].name: Invalid value: "check": {LABEL}'),
        (["a.b"], f'webhooks[0].name: Invalid value: "a.b": {LABEL}'),
        ([""], "webhooks[0].name: Required value"),
        (["Check.Example.com"], f'webhooks[0].name: Invalid value: "Check.Example.com": {SUBDOMAIN}'),
        (["a.b.c", "a_b.example.com"], f'webhooks[1].name: Invalid value: "a_b.example.com": {SUBDOMAIN}'),
        (["a.b.c", "d.e.f", "a.b.c"], 'webhooks[2].name: Duplicate value: "a.b.c"'),
    ],
)
def test_a_webhook_name_is_unique_and_has_a_domain(here: Here, kind: str, names: list[str], why: str) -> None:
    body = hooks(here, *names, kind=kind)
    said = f'{kind}.admissionregistration.k8s.io "{body["metadata"]["name"]}" is invalid: {why}'
    assert here.create(body, dryRun="All").refusal == f"422 Invalid: {said}"


def test_webhooks_may_be_renamed_and_removed(here: Here) -> None:
    """No name is immutable: an update is validated like a creation."""
    made = here.create(hooks(here, "a.b.c", "d.e.f")).body["metadata"]
    name = made["name"]

    def put(*names: str) -> Reply:
        version = here.get(KINDS[0], name).body["metadata"]["resourceVersion"]
        return here.put({**hooks(here, *names), "metadata": {"name": name, "resourceVersion": version}})

    assert [hook["name"] for hook in put("x.b.c", "d.e.f").body["webhooks"]] == ["x.b.c", "d.e.f"]
    start = f'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{name}" is invalid: webhooks[1].name:'
    assert message(put("x.b.c", "x.b.c")) == f'{start} Duplicate value: "x.b.c"'
    assert message(put("x.b.c", "short")) == f'{start} Invalid value: "short": {LABEL}'
    added = {"webhooks": hooks(here, "y.b.c")["webhooks"]}
    merged = here.patch(KINDS[0], name, added, "strategic").body["webhooks"]
    assert sorted(hook["name"] for hook in merged) == ["d.e.f", "x.b.c", "y.b.c"]
    assert not put().body.get("webhooks")
    here.delete(KINDS[0], name)


@pytest.mark.parametrize("backend", [REFUSING, UNKNOWN, SILENT], ids=lambda backend: backend.name)
def test_an_unreachable_webhook_refuses_with_the_network_error(
    here: Here, backend: Backend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with listening(here, backend, tmp_path_factory.mktemp("hook")) as (client, url, why):
        body = webhook(here.name)
        body["webhooks"] = [{**body["webhooks"][0], "clientConfig": client, "timeoutSeconds": 2}]
        here.create(body)
        reply = here.soon(lambda: _refused(here))
        here.delete(body["kind"], body["metadata"]["name"])
    said = f'failed calling webhook "check.example.com": failed to call webhook: Post "{url}?timeout=2s": {why}'
    assert reply == f"500 InternalError: Internal error occurred: {said}"


def test_an_unreachable_webhook_with_failure_policy_ignore_admits(here: Here) -> None:
    body = webhook(here.name)
    body["webhooks"] = [{**body["webhooks"][0], "failurePolicy": "Ignore"}]
    here.create(body)
    assert here.create(config()).code == 201
    here.delete(body["kind"], body["metadata"]["name"])


def test_a_missing_service_port_of_a_webhook_is_reported(here: Here) -> None:
    here.create(plain("Service", "hook", spec=SERVICE))
    body = webhook(here.name)
    client = {"service": {"name": "hook", "namespace": here.name, "path": "/check", "port": 8443}}
    body["webhooks"] = [{**body["webhooks"][0], "clientConfig": client}]
    here.create(body)
    reply = here.soon(lambda: _refused(here))
    here.delete(body["kind"], body["metadata"]["name"])
    assert reply.endswith(
        f'Post "https://hook.{here.name}.svc:8443/check?timeout=10s": no service port 8443 found for service "hook"'
    )


def test_a_quota_counts_and_refuses(here: Here) -> None:
    here.create(plain("ResourceQuota", "q", spec={"hard": {"services": "1", "services.loadbalancers": "0"}}))
    used = here.soon(lambda: here.get("ResourceQuota", "q").body.get("status", {}).get("used"))
    assert used == {"services": "0", "services.loadbalancers": "0"}
    assert here.create(plain("Service", "a", spec=SERVICE)).code == 201
    balancer = {**SERVICE, "type": "LoadBalancer"}
    assert here.create(plain("Service", "b", spec=balancer)).refusal == (
        '403 Forbidden: services "b" is forbidden: exceeded quota: q, requested: services=1,services.loadbalancers=1, '
        "used: services=1,services.loadbalancers=0, limited: services=1,services.loadbalancers=0"
    )


def test_a_quota_on_requests_requires_requests_in_every_container(with_account: Here) -> None:
    here = with_account
    here.create(plain("ResourceQuota", "q", spec={"hard": {"requests.cpu": "1", "limits.memory": "2Gi"}}))
    here.soon(lambda: here.get("ResourceQuota", "q").body.get("status", {}).get("used"))
    assert here.create(pod()).refusal == (
        '403 Forbidden: pods "web" is forbidden: failed quota: q: must specify limits.memory for: main; '
        "requests.cpu for: main"
    )
    asks = {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}
    assert here.create(pod(containers=[{"name": "main", "image": "app:1", "resources": asks}])).refusal == (
        '403 Forbidden: pods "web" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, '
        "limited: requests.cpu=1"
    )


def test_a_limit_range_sets_defaults_and_refuses(with_account: Here) -> None:
    here = with_account
    here.create(plain("LimitRange", "limits", spec={"limits": [RANGE]}))
    made = here.soon(lambda: _limited(here))
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "256Mi"},
        "requests": {"cpu": "100m", "memory": "256Mi"},
    }
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
        )
    }
    asks = {"requests": {"cpu": "10m"}, "limits": {"cpu": "2"}}
    assert here.create(pod(containers=[{"name": "main", "image": "app:1", "resources": asks}])).refusal == (
        '403 Forbidden: pods "web" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, '
        "maximum cpu usage per Container is 1, but limit is 2]"
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
        ({"serviceAccountName": "nope"}, 'error looking up service account NS/nope: serviceaccount "nope" not found'),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
    ],
)
def test_objects_that_a_pod_names_must_exist(with_account: Here, spec: Body, why: str) -> None:
    words = f'pods "web" is forbidden: {why.replace("NS", with_account.name)}'
    assert with_account.create(pod(**spec)).refusal == f"403 Forbidden: {words}"


def test_a_pod_without_an_account_gets_the_default_one(with_account: Here) -> None:
    spec = with_account.create(pod(), dryRun="All").body["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


def test_a_pod_is_admitted_once_its_account_exists(here: Here) -> None:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    body = pod(serviceAccountName="late")
    assert here.create(body).code == 403
    here.create(plain("ServiceAccount", "late"))
    assert here.soon(lambda: here.create(body, dryRun="All").code == 201)


def test_a_namespace_enforces_pod_security(with_account: Here) -> None:
    here = with_account
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline"}
    here.api.patch(f"/api/v1/namespaces/{here.name}", {"metadata": {"labels": labels}})
    refused = here.soon(lambda: _forbidden(here))
    assert refused == (
        '403 Forbidden: pods "web" is forbidden: violates PodSecurity "restricted:latest": '
        'allowPrivilegeEscalation != false (container "main" must set '
        "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
        '"main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "main" '
        'must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )
    taken = here.create(deployment())
    assert taken.code == 201


def test_invalid_pod_security_labels_are_refused(here: Here) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "one"}
    body = plain("Namespace", "strict")
    body["metadata"]["labels"] = labels
    assert here.create(body, dryRun="All").refusal == (
        '422 Invalid: Namespace "strict" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid '
        'value: "strict": must be one of privileged, baseline, restricted, '
        'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "one": must be "latest" or "v1.x"]'
    )


@pytest.fixture
def with_account(here: Here) -> Here:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    return here


def _refused(here: Here) -> str:
    reply = here.create(config(), dryRun="All")
    return reply.refusal if reply.code != 201 else ""


def _limited(here: Here) -> Body:
    """A pod as it would be stored, once the limits are known."""
    body: Body = here.create(pod(), dryRun="All").body
    return body if "annotations" in body["metadata"] else {}


def _forbidden(here: Here) -> str:
    reply = here.create(pod(), dryRun="All")
    return reply.refusal if reply.code == 403 else ""
