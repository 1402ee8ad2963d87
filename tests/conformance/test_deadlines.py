"""Deadlines: a rollout that makes no progress, a Job that runs too long. On both arms."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from arms import Here, deployment
from situations import plain

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.cluster.server.http import ApiServer
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import Schedule
from seatrial.readiness.argocd.builtin import check_for
from seatrial.readiness.kstatus import status as kstatus

pytestmark = pytest.mark.needs_controllers
MISSING = [{"name": "config", "configMap": {"name": "missing"}}]
SCHEDULES: tuple[Schedule, ...] = ("eager", "lazy", "seeded")
WEB = Ref("Deployment", "default", "web", "apps")


def stuck(seconds: int = 1, **more: object) -> Body:
    """A Deployment whose pod never starts: here a ConfigMap is missing; an API server alone has no kubelet."""
    body = deployment()
    template = body["spec"]["template"]
    template = {**template, "spec": {**template["spec"], "volumes": MISSING}}
    return {**body, "spec": {**body["spec"], "template": template, "progressDeadlineSeconds": seconds, **more}}


def condition(body: Body, type_: str) -> str:
    """A condition: `True Reason: message`."""
    found = next((c for c in listed(body, "status", "conditions") if c["type"] == type_), None)
    return "" if found is None else f"{found['status']} {found['reason']}: {found['message']}"


def test_a_rollout_without_progress_fails(here: Here) -> None:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    here.create(stuck())
    here.wait_out("Deployment", "web", 1)
    body = here.soon(lambda: _when(here.get("Deployment", "web").body, "Progressing", "False"))
    (made,) = here.names("ReplicaSet")
    assert condition(body, "Progressing") == (
        f'False ProgressDeadlineExceeded: ReplicaSet "{made}" has timed out progressing.'
    )
    assert condition(body, "Available").startswith("False MinimumReplicasUnavailable: ")
    assert body["status"]["unavailableReplicas"] == 1


def test_a_new_template_restarts_the_deadline(here: Here) -> None:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    here.create(stuck())
    here.wait_out("Deployment", "web", 1)
    here.soon(lambda: _when(here.get("Deployment", "web").body, "Progressing", "False"))
    later = {"progressDeadlineSeconds": 600, "template": {"metadata": {"labels": {"app": "web", "more": "1"}}}}
    here.patch("Deployment", "web", {"spec": later})
    body = here.soon(lambda: _when(here.get("Deployment", "web").body, "Progressing", "True ReplicaSetUpdated:"))
    assert condition(body, "Progressing").startswith("True ReplicaSetUpdated: ReplicaSet ")


def test_a_job_that_runs_too_long_fails(here: Here) -> None:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}], "volumes": MISSING}
    here.create(plain("Job", "migrate", "batch/v1", spec={"activeDeadlineSeconds": 1, "template": {"spec": spec}}))
    here.wait_out("Job", "migrate", 1)
    body = here.soon(lambda: _when(here.get("Job", "migrate").body, "FailureTarget", "True"))
    words = "True DeadlineExceeded: Job was active longer than specified deadline"
    assert condition(body, "FailureTarget") == words


def _when(body: Body, type_: str, words: str) -> Body:
    """The object once it has this condition; empty before."""
    return body if condition(body, type_).startswith(words) else {}


def _cluster(schedule: Schedule, body: Body) -> Cluster:
    """An idle cluster in which a client waits for a Deployment."""
    cluster = Cluster(schedule=schedule)
    assert cluster.request(Request("create", "apps", "v1", "deployments", "default", body=body)).code == 201
    cluster.awaits([WEB])
    cluster.settle()
    return cluster


def _stored(cluster: Cluster) -> Body:
    body = cluster.store.get(WEB)
    assert body is not None
    return body


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_deadline_passes_only_if_the_client_waits_long_enough(schedule: Schedule) -> None:
    cluster = _cluster(schedule, stuck(600))
    assert cluster.outwait([WEB], 599) == {}
    assert condition(_stored(cluster), "Progressing").startswith("True ")
    assert kstatus(_stored(cluster)) == "InProgress"
    assert cluster.outwait([WEB], 600) == {WEB: 600}
    assert condition(_stored(cluster), "Progressing").startswith("False ProgressDeadlineExceeded: ")
    assert cluster.outwait([WEB], 10_000) == {}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_engines_report_a_late_rollout_as_failed(schedule: Schedule) -> None:
    cluster = _cluster(schedule, stuck(600))
    cluster.outwait([WEB], 600)
    assert kstatus(_stored(cluster)) == "Failed"
    check = check_for("apps", "Deployment", (3, 5))
    assert check is not None
    verdict = check(_stored(cluster))
    assert (verdict.status, verdict.message) == ("Degraded", 'Deployment "web" exceeded its progress deadline')


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_late_rollout_continues_when_its_config_map_is_created(schedule: Schedule) -> None:
    cluster = _cluster(schedule, stuck(600))
    cluster.outwait([WEB], 600)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "missing"}}
    cluster.request(Request("create", "", "v1", "configmaps", "default", body=config))
    cluster.settle()
    assert condition(_stored(cluster), "Progressing").startswith("True NewReplicaSetAvailable: ")
    assert condition(_stored(cluster), "Progressing").endswith(" has successfully progressed.")
    assert cluster.outwait([WEB], 10_000) == {}


@pytest.mark.parametrize("body", [stuck(2**31 - 1), stuck(600, paused=True)], ids=["wants none", "is paused"])
def test_a_deployment_that_is_paused_or_without_deadline_never_fails(body: Body) -> None:
    cluster = _cluster("eager", body)
    assert cluster.outwait([WEB], 2**31) == {}


def test_kubectl_rollout_status_ends_with_the_deadline(kubectl_binary: str, tmp_path: Path) -> None:
    cluster = _cluster("eager", stuck(600))
    with ApiServer(cluster) as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        words = (kubectl_binary, f"--kubeconfig={tmp_path / 'kubeconfig'}", "rollout", "status", "deployment/web")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as kubectl:
            assert kubectl.stdout is not None
            first = kubectl.stdout.readline()
            cluster.outwait([WEB], 600)
            _, error = kubectl.communicate(timeout=60)
    assert first == 'Waiting for deployment "web" rollout to finish: 0 of 1 updated replicas are available...\n'
    assert (kubectl.returncode, error) == (1, 'error: deployment "web" exceeded its progress deadline\n')
