"""`seatrial explain --live` over HTTP against the embedded API: the object at the root, and the chain to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from room import Room, as_hook, config, custom, deployment, embedded, record, service, webhook

from seatrial.cli import main
from seatrial.live.causes import WaitCause, parse
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.seen import Seen
from seatrial.model.resource import Body, Ref

SECONDS_MAX = 20.0
USES_SECRET = {"envFrom": [{"secretRef": {"name": "db"}}]}


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


def stuck(room: Room, target: str) -> WaitCause:
    with (
        Client(ClusterAccess(room.proxy.url)) as client,
        Fetching(client, Seen(), SECONDS_MAX, by_name=False) as fetching,
    ):
        why = parse(target, "default")
        fetching.fetch(why)
        return why(fetching.seen)


def objects(found: WaitCause) -> list[str]:
    """The chain, without the hashes of pods and ReplicaSets."""
    names = [str(link.object) for link in found.links]
    return [name.partition("-")[0] if name.startswith(("ReplicaSet", "Pod")) else name for name in names]


def using_secret() -> Body:
    body = deployment()
    containers = [{"name": "main", "image": "nginx:1", **USES_SECRET}]
    template = {**body["spec"]["template"], "spec": {"containers": containers}}
    return {**body, "spec": {**body["spec"], "template": template}}


def external_secret(ready: str, message: str) -> Body:
    condition = {"type": "Ready", "status": ready, "reason": "SecretSyncedError", "message": message}
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": "db-sync", "namespace": "default"},
        "spec": {"secretStoreRef": {"name": "vault"}, "target": {"name": "db"}, "data": []},
        "status": {"conditions": [condition]},
    }


def test_a_release_is_traced_to_the_store_that_its_secret_comes_from(room: Room) -> None:
    room.put(custom("external-secrets.io", "ExternalSecret"))
    room.put(custom("external-secrets.io", "SecretStore"))
    room.put(external_secret("False", "could not get provider client"))
    room.put(using_secret())
    room.put(record("shop", 1, "pending-install", using_secret()))
    found = stuck(room, "release/shop")
    assert objects(found) == [
        "Secret/default/sh.helm.release.v1.shop.v1",
        "Deployment/default/web",
        "ReplicaSet/default/web",
        "Pod/default/web",
        "Secret/default/db",
        "ExternalSecret/default/db-sync",
        "SecretStore/default/vault",
    ]
    assert found.links[0].says == "revision 1 has status pending-install"
    assert 'secret "db" not found' in found.links[3].says
    assert found.links[-1].says == "does not exist"
    assert found.command == "kubectl get secretstore.external-secrets.io -n default"


def test_a_release_whose_objects_are_usable_is_not_stuck(room: Room) -> None:
    room.put(deployment())
    room.put(record("shop", 1, "deployed", deployment()))
    assert stuck(room, "release/shop").links == ()


def test_an_object_that_became_a_hook_and_is_gone_is_explained(room: Room) -> None:
    broken = deployment(volumes=[{"name": "a", "configMap": {"name": "late"}}])
    room.put(broken)
    room.put(record("shop", 1, "superseded", broken, config("late")))
    room.put(record("shop", 2, "deployed", broken, as_hook(config("late"))))
    found = stuck(room, "release/shop")
    assert objects(found)[-1] == "ConfigMap/default/late"
    assert "is a hook since revision 2 and was a regular resource before" in found.notes[0]


def test_a_pod_that_a_webhook_refuses_is_traced_to_the_backend_of_the_webhook(room: Room) -> None:
    pods = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    room.put(service())
    room.put(deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}]))
    room.put(webhook(rules=[pods]))
    room.put(deployment("shop"))
    room.put(record("shop", 1, "deployed", deployment("shop")))
    found = stuck(room, "release/shop")
    assert objects(found)[1:] == [
        "Deployment/default/shop",
        "ReplicaSet/default/shop",
        "Service/default/web",
        "Deployment/default/web",
        "ReplicaSet/default/web",
        "Pod/default/web",
        "ConfigMap/default/absent",
    ]
    assert 'failed calling webhook "guard.example.com"' in found.links[2].says


def test_an_application_is_traced_through_its_unhealthy_resource(room: Room) -> None:
    room.namespace("argocd")
    room.put(custom("argoproj.io", "Application", "v1alpha1"))
    room.put(deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}]))
    resource = {
        "group": "apps",
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "status": "Synced",
        "health": {"status": "Progressing"},
    }
    status = {
        "sync": {"status": "OutOfSync"},
        "operationState": {"phase": "Running", "message": "waiting for healthy state of apps/Deployment/web"},
        "resources": [resource],
    }
    meta = {"name": "shop", "namespace": "argocd"}
    room.put({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta, "status": status})
    found = stuck(room, "app/shop")
    assert objects(found)[0] == "Application/argocd/shop"
    assert "waiting for healthy state" in found.links[0].says
    assert objects(found)[-1] == "ConfigMap/default/absent"


def test_a_kustomization_is_traced_to_the_source_of_what_it_depends_on(room: Room) -> None:
    room.namespace("flux-system")
    room.put(custom("kustomize.toolkit.fluxcd.io", "Kustomization"))
    room.put(custom("source.toolkit.fluxcd.io", "GitRepository"))
    failed = {"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "authentication required"}
    room.put(flux("GitRepository", "source.toolkit.fluxcd.io/v1", "repo", {}, failed))
    waits = {"type": "Ready", "status": "False", "reason": "ArtifactFailed", "message": "Source is not ready"}
    source = {"sourceRef": {"kind": "GitRepository", "name": "repo"}}
    room.put(flux("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "infra", source, waits))
    depends = {"type": "Ready", "status": "False", "reason": "DependencyNotReady", "message": "infra is not ready"}
    room.put(
        flux("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "apps", {"dependsOn": [{"name": "infra"}]}, depends)
    )
    found = stuck(room, "kustomization/apps")
    assert objects(found) == [
        "Kustomization/flux-system/apps",
        "Kustomization/flux-system/infra",
        "GitRepository/flux-system/repo",
    ]
    assert found.links[-1].says == "GitOperationFailed: authentication required"


def flux(kind: str, api_version: str, name: str, spec: Body, condition: Body) -> Body:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": spec,
        "status": {"observedGeneration": 1, "conditions": [condition]},
    }


def test_a_helmrelease_is_traced_through_the_release_that_helm_stored(room: Room) -> None:
    room.namespace("flux-system")
    room.put(custom("helm.toolkit.fluxcd.io", "HelmRelease", "v2"))
    failed = {"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "context deadline exceeded"}
    meta = {"name": "shop", "namespace": "default"}
    status = {"observedGeneration": 1, "conditions": [failed]}
    room.put({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": meta, "status": status})
    broken = deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}])
    room.put(broken)
    room.put(record("shop", 1, "failed", broken))
    found = stuck(room, "helmrelease/default/shop")
    assert objects(found)[:3] == [
        "HelmRelease/default/shop",
        "Secret/default/sh.helm.release.v1.shop.v1",
        "Deployment/default/web",
    ]
    assert objects(found)[-1] == "ConfigMap/default/absent"


def test_a_terminating_namespace_is_traced_to_the_object_with_a_finalizer(room: Room) -> None:
    room.namespace("shop")
    room.put(custom("example.com", "Widget"))
    meta = {"name": "a", "namespace": "shop", "finalizers": ["example.com/cleanup"]}
    room.put({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta})
    namespaces = room.hands.served().find("", "Namespace")
    assert namespaces is not None
    room.hands.delete(namespaces, "", "shop")
    room.cluster.pass_time(60)
    room.cluster.settle()
    found = stuck(room, "namespace/shop")
    assert objects(found) == ["Namespace/shop", "Widget/shop/a"]
    assert found.links[-1].says == "is being deleted and waits for the finalizer example.com/cleanup"
    assert found.command == "kubectl get widget.example.com a -n shop -o jsonpath='{.metadata.finalizers}'"


def test_an_active_namespace_shows_what_is_not_ready(room: Room) -> None:
    room.put(deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}]))
    found = stuck(room, "namespace/default")
    assert found.links[0].says == "1 of its objects is not ready"
    assert found.links[-1].object == Ref("ConfigMap", "default", "absent")


def test_an_active_namespace_shows_the_kustomization_that_is_not_ready(room: Room) -> None:
    room.namespace("flux-system")
    room.put(custom("kustomize.toolkit.fluxcd.io", "Kustomization"))
    message = "kustomization path not found: stat /tmp/apps: no such file or directory"
    waits = {"type": "Ready", "status": "False", "reason": "ArtifactFailed", "message": message}
    room.put(flux("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "apps", {}, waits))
    found = stuck(room, "namespace/flux-system")
    assert objects(found) == ["Namespace/flux-system", "Kustomization/flux-system/apps"]
    assert found.links[0].says == "1 of its objects is not ready"
    assert found.links[-1].says == f"ArtifactFailed: {message}"


def test_an_active_namespace_shows_the_application_that_is_not_synced(room: Room) -> None:
    room.namespace("argocd")
    room.put(custom("argoproj.io", "Application"))
    status = {"sync": {"status": "OutOfSync"}, "health": {"status": "Missing"}}
    meta = {"name": "shop", "namespace": "argocd"}
    room.put({"apiVersion": "argoproj.io/v1", "kind": "Application", "metadata": meta, "status": status})
    found = stuck(room, "namespace/argocd")
    assert objects(found) == ["Namespace/argocd", "Application/argocd/shop"]
    assert found.links[-1].says == "it is OutOfSync"


def test_the_command_prints_the_chain_the_cause_and_the_next_command(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(using_secret())
    room.put(record("shop", 1, "deployed", using_secret()))
    assert main(["explain", "--live", "release/shop", "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "release/shop: what you see first, what is at the root last"
    assert "          Secret/default/db" in lines
    assert "            does not exist" in lines
    assert "Likely cause:" in lines
    assert lines[lines.index("Next:") + 1] == "  $ kubectl get secret -n default"


def test_json_has_the_chain_and_the_diagnosis(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room.put(using_secret())
    room.put(record("shop", 1, "deployed", using_secret()))
    assert main(["explain", "--live", "release/shop", "-o", "json", "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)["explained"][0]
    assert found["topic"] == "stuck"
    assert found["stuck"]["links"][-1]["says"] == "does not exist"


def test_what_may_not_be_read_is_named_and_the_rest_is_explained(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(using_secret())
    room.put(record("shop", 1, "deployed", using_secret()))
    room.proxy.faults.append(Fault("/events", 403, "no", FOREVER))
    assert main(["explain", "--live", "release/shop", "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Secret/default/db" in text
    assert "  list events in namespace default" in text


def test_an_unknown_target_exits_2(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--live", "shop", "--kubeconfig", room.kubeconfig(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("seatrial: explain --live shop: not a target; name it as release/NAME")
