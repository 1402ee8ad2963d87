"""`seatrial wait` over HTTP against the embedded API, with faults in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from faultproxy import FOREVER, Fault
from room import (
    SECONDS_MAX,
    SHORT_SECONDS,
    Action,
    Room,
    config,
    crd,
    deployment,
    embedded,
    record,
    replicas,
    secret,
    service,
    webhook,
)

from seatrial.helm.ownership import owned_by
from seatrial.live.built import full_name
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching, _Failed, _Synced
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.seen import Read, Seen
from seatrial.live.transport import Disconnected
from seatrial.live.waiting import Progress, wait_for
from seatrial.live.wanted import manifest_targets
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


def test_a_deployment_is_waited_for_until_it_is_available(room: Room) -> None:
    found = room.wait("deploy/web", then=[("does not exist", lambda: room.put(deployment()))])
    assert found[0].verdict.usable
    assert room.said[0] == "Deployment/default/web does not exist"


def test_what_is_missing_at_the_deadline_is_one_sentence(room: Room) -> None:
    room.put(deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}]))
    assert room.missing("deployment/web").startswith("Deployment/default/web: 0 of 1 replicas are available")


def test_a_failed_job_is_not_waited_for(room: Room) -> None:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 3"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    meta = {"name": "migrate", "namespace": "default"}
    room.put(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"backoffLimit": 0, "template": template}}
    )
    found = room.wait("job/migrate")[0].verdict
    assert found.final
    assert found.missing.startswith("Job/default/migrate: it failed")


def test_a_webhook_needs_its_service_ready_endpoints_a_certificate_and_an_answer(room: Room) -> None:
    steps: list[tuple[str, Action]] = [
        ("no webhook configuration", lambda: room.put(webhook(bundle=""))),
        ("Service/default/web does not exist", lambda: room.put(service())),
        ("no ready endpoint", lambda: room.put(deployment())),
        ("its caBundle is empty", lambda: room.put(webhook())),
    ]
    assert room.wait("webhook/guard", then=steps)[0].verdict.usable
    assert room.proxy.count("POST", "/configmaps", "dryRun=All") == 1
    with room.cluster.lock:
        assert room.cluster.store.get(Ref("ConfigMap", "default", "seatrial-probe")) is None


def test_a_webhook_can_be_named_by_itself(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    assert room.wait("webhook/guard.example.com")[0].verdict.usable


def test_a_webhook_that_never_answers_is_not_usable(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    silent = 'failed calling webhook "guard.example.com": failed to call webhook: Post "https://web": deadline exceeded'
    room.proxy.faults.append(Fault("POST /api/v1/namespaces/default/configmaps", 500, silent, FOREVER))
    assert room.missing("webhook/guard") == f"webhook guard.example.com does not answer: {silent}"


def test_a_webhook_that_answers_late_is_called_again(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    refused = 'failed calling webhook "guard.example.com": connect: connection refused'
    room.proxy.faults.append(Fault("POST /api/v1/namespaces/default/configmaps", 500, refused, 2))
    assert room.wait("webhook/guard")[0].verdict.usable
    assert any("connection refused" in said for said in room.said)


def test_a_webhook_that_denies_the_probe_has_answered(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    denial = 'admission webhook "guard.example.com" denied the request: no'
    room.proxy.faults.append(Fault("POST /api/v1/namespaces/default/configmaps", 403, denial, FOREVER))
    assert room.wait("webhook/guard")[0].verdict.usable


def test_a_webhook_that_no_dry_run_can_show_is_usable_with_a_note(room: Room) -> None:
    for body in (service(), deployment(), webhook(failurePolicy="Ignore")):
        room.put(body)
    found = room.wait("webhook/guard")[0].verdict
    assert found.usable
    assert "failurePolicy is Ignore" in found.notes[0]


def test_endpoints_that_flap_are_waited_for_again(room: Room) -> None:
    """The webhook is not usable while another target is waited for, so both are looked at again."""
    for body in (service(), deployment(), webhook()):
        room.put(body)
    steps: list[tuple[str, Action]] = [
        ("usable", lambda: room.put(replicas(0))),
        ("no ready endpoint", lambda: room.put(secret("late"))),
        ("no ready endpoint usable", lambda: room.put(replicas(1))),
    ]
    found = room.wait("webhook/guard", "secret/late", then=steps)
    assert [one.verdict.missing for one in found] == ["", ""]


def test_a_crd_must_be_established_and_in_discovery(room: Room) -> None:
    room.proxy.faults.append(Fault("GET /apis/example.com/v1", 404, "not there yet", 2))
    found = room.wait("crd/widgets.example.com", then=[("does not exist", lambda: room.put(crd()))])
    assert found[0].verdict.usable
    assert any("example.com/v1 does not serve Widget" in said for said in room.said)


def test_a_crd_that_does_not_serve_the_version_says_which_it_serves(room: Room) -> None:
    room.put(crd())
    assert room.missing("crd/widgets.example.com:v2") == (
        "CustomResourceDefinition/widgets.example.com does not serve version v2, only v1"
    )


def test_a_custom_resource_is_found_once_its_kind_is_served(room: Room) -> None:
    body: Body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
    left = [crd(), body]

    def report(progress: Sequence[Progress]) -> None:
        while left:
            room.put(left.pop(0))

    with Client(ClusterAccess(room.proxy.url)) as client, Fetching(client, Seen(), SECONDS_MAX) as fetching:
        wanted = manifest_targets([(Ref("Widget", "default", "a", "example.com"), body)])
        assert wait_for(wanted, fetching, report)[0].verdict.usable


def test_a_secret_and_its_keys(room: Room) -> None:
    steps: list[tuple[str, Action]] = [
        ("Secret/default/db does not exist", lambda: room.put(secret("db", user="a"))),
        ("has no key password", lambda: room.put(secret("db", user="a", password="b"))),
    ]
    assert room.wait("secret/db:user,password", then=steps)[0].verdict.usable


def test_a_pvc_of_a_class_that_waits_for_a_pod_is_usable_until_a_pod_uses_it(room: Room) -> None:
    late: Body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "late"}
    meta = {"name": "data", "namespace": "default"}
    claim: Body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    room.put(claim)
    assert (
        room.missing("pvc/data") == "PersistentVolumeClaim/default/data is not bound: StorageClass/late does not exist"
    )
    room.put(late)
    found = room.wait("pvc/data")[0].verdict
    assert found.usable
    assert found.notes == ("PersistentVolumeClaim/default/data binds when a pod uses it (WaitForFirstConsumer)",)
    room.put(deployment(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))
    assert room.wait("pvc/data")[0].verdict.notes == ()


def test_an_image_is_running_when_a_ready_pod_runs_it(room: Room) -> None:
    found = room.wait(
        "image/docker.io/library/nginx:2",
        then=[("no pod in namespace default", lambda: room.put(deployment(image="nginx:2")))],
    )
    assert found[0].verdict.usable


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("bitnami/redis:7", "docker.io/bitnami/redis:7"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        ("ghcr.io/a/b:1@sha256:0", "ghcr.io/a/b@sha256:0"),
    ],
)
def test_image_names_are_compared_in_full(given: str, full: str) -> None:
    assert full_name(given) == full


def test_a_helm_release_is_usable_when_it_is_deployed_and_its_objects_are_ready(room: Room) -> None:
    manifest = deployment(volumes=[{"name": "a", "configMap": {"name": "late"}}])
    room.put(owned_by(manifest, "shop", "default"))
    room.put(record("shop", 1, "pending-install", manifest))
    steps: list[tuple[str, Action]] = [
        ("revision 1 has status pending-install", lambda: room.put(record("shop", 1, "deployed", manifest))),
        ("is deployed, but Deployment/default/web: 0 of 1", lambda: room.put(config("late"))),
    ]
    assert room.wait("release/shop", then=steps)[0].verdict.usable


def test_watches_that_are_cut_or_expire_are_resumed(room: Room) -> None:
    room.proxy.faults += [Fault("GET /apis/apps/v1", cut_after_events=0), Fault("watch=true", expired=True)]
    found = room.wait("deploy/web", then=[("does not exist", lambda: room.put(deployment()))])
    assert found[0].verdict.usable


def test_a_busy_or_failing_server_is_asked_again(room: Room) -> None:
    room.proxy.faults += [
        Fault("GET /apis/apps/v1/namespaces/default/deployments", 429, retry_after="0", times=1),
        Fault("GET /apis/apps/v1/namespaces/default/deployments", 500, times=2),
    ]
    room.put(deployment())
    assert room.wait("deploy/web")[0].verdict.usable


def test_an_api_server_that_goes_away_is_read_again_when_it_is_back(room: Room) -> None:
    """After as many failures as a watch endures, the list begins again, as long as the deadline allows."""
    read = Read("Deployment", "apps", "default", "web")
    with Client(ClusterAccess(room.proxy.url)) as client, Fetching(client, Seen(), SECONDS_MAX) as fetching:
        fetching._take(_Synced(read, []))
        fetching._take(_Failed(read, Disconnected("connection reset")))
        fetching.seen.get(Ref("Deployment", "default", "web", "apps"))
        assert fetching.seen.unread == {read}
        with pytest.raises(CannotContinue, match="connection reset"):
            fetching._take(_Failed(Read("Pod", "", "default"), Disconnected("connection reset")))


def test_one_list_and_one_watch_per_kind(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    room.proxy.seen.clear()
    room.wait("deploy/web", "deploy/other", "webhook/guard", "service/web", seconds=SHORT_SECONDS)
    for plural in ("deployments", "services", "endpointslices", "validatingwebhookconfigurations"):
        lists = [seen for seen in room.proxy.seen if f"/{plural}?" in seen.url]
        assert [("watch=true" in seen.url) for seen in lists] == [False, True], plural


def test_forbidden_kinds_are_named_and_the_rest_is_checked(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    room.proxy.faults.append(Fault("/endpointslices", 403, "no", FOREVER))
    found = room.wait("webhook/guard")[0].verdict
    assert found.usable
    assert found.notes == (
        "the endpoints of Service/default/web were not checked: listing EndpointSlices is forbidden",
    )
    assert [(denial.verbs, denial.resource, denial.group, denial.namespace) for denial in room.denials] == [
        (("list",), "endpointslices", "discovery.k8s.io", "default"),
        (("watch",), "endpointslices", "discovery.k8s.io", "default"),
    ]


def test_what_may_not_be_read_at_all_is_never_usable(room: Room) -> None:
    room.put(deployment())
    room.proxy.faults.append(Fault("/deployments", 403, "no", FOREVER))
    assert "forbidden" in room.missing("deploy/web")
