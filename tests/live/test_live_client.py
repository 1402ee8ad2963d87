"""The client of real clusters, over HTTP against the embedded API, with faults in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import yaml
from faultproxy import FOREVER, Fault
from worlds import World, opened

from seatrial.live import access, discovery
from seatrial.live.client import Client
from seatrial.live.kubeconfig import ClusterAccess, find_target
from seatrial.live.transport import RETRIES_MAX, RefusedRequest
from seatrial.live.watching import WatchedChange, follow
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, name_of


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


def config(name: str, **data: str) -> Body:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def secret(name: str, value: str) -> Body:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": value}}


def test_objects_are_applied_read_listed_and_deleted(world: World) -> None:
    applied = world.put(config("app", color="red"))
    found = world.client.get(world.kind("configmaps"), "default", "app")
    assert found is not None
    assert found["data"] == {"color": "red"}
    assert "app" in world.names("cm", "default")
    uid = applied["metadata"]["uid"]
    assert world.client.delete(world.kind("cm"), "default", "app", uid=uid)
    assert not world.client.delete(world.kind("cm"), "default", "app", uid=uid)
    assert world.client.get(world.kind("cm"), "default", "app") is None


def test_a_dry_run_changes_nothing(world: World) -> None:
    reply = world.client.apply(config("app"), "tester", dry_run=True)
    assert name_of(reply.body) == "app"
    assert world.client.get(world.kind("cm"), "default", "app") is None


def test_a_deletion_spares_another_object_of_the_same_name(world: World) -> None:
    world.put(config("app"))
    with pytest.raises(RefusedRequest) as refused:
        world.client.delete(world.kind("cm"), "default", "app", uid="another")
    assert refused.value.code == 409
    assert "app" in world.names("cm", "default")


def test_a_conflict_of_server_side_apply_names_its_fields(world: World) -> None:
    world.put(config("app", color="red"))
    with pytest.raises(RefusedRequest) as refused:
        world.client.apply(config("app", color="blue"), "other")
    assert [cause.field for cause in refused.value.refusal.causes] == [".data.color"]


@pytest.mark.parametrize("accept", [discovery.AGGREGATED, "application/json"])
def test_kinds_are_found_by_both_forms_of_discovery(world: World, accept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "AGGREGATED", accept)
    deployment = world.client.served().find("apps", "Deployment")
    assert deployment is not None
    assert (deployment.plural, deployment.namespaced, "deploy" in deployment.short_names) == ("deployments", True, True)
    assert "scale" in deployment.subresources
    assert world.client.served().find("", "Namespace", "v2") is None


def test_a_long_list_comes_in_pages(world: World) -> None:
    world.fill(config(f"c-{number:04}") for number in range(1001))
    world.proxy.seen.clear()
    assert len(world.names("cm", "default")) >= 1001
    assert world.proxy.count("/configmaps", "limit=500") == 3
    assert world.proxy.count("/configmaps", "continue=") == 2


def test_a_list_that_expires_goes_on_with_what_is_there_now(world: World) -> None:
    world.fill(config(f"c-{number:04}") for number in range(1001))
    world.proxy.faults.append(Fault("continue=", 410, resumable=True))
    assert len(set(world.names("cm", "default"))) == 1002
    world.proxy.faults.append(Fault("continue=", 410))
    with pytest.raises(RefusedRequest):
        world.names("cm", "default")


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_refusal_that_passes_is_retried(world: World, code: int) -> None:
    world.kind("cm")
    world.proxy.faults.append(Fault("GET /api/v1/namespaces/default/configmaps", code, times=2, retry_after="0"))
    assert world.names("cm", "default") == ["kube-root-ca.crt"]
    assert [seen.code for seen in world.proxy.seen][-3:] == [code, code, 200]


def test_retries_are_bounded(world: World) -> None:
    kind = world.kind("cm")
    world.proxy.faults.append(Fault("configmaps", 429, times=FOREVER, retry_after="0", message="too many"))
    with pytest.raises(RefusedRequest, match="GET /api/v1/configmaps: too many"):
        list(world.client.list(kind))
    assert world.proxy.count("configmaps") == RETRIES_MAX + 1


def test_a_forbidden_list_names_the_missing_permission(world: World) -> None:
    kind = world.kind("deploy")
    world.proxy.faults.append(Fault("/deployments", 403, times=FOREVER))
    with pytest.raises(RefusedRequest):
        list(world.client.list(kind, "shop"))
    assert [access.sentence(denial) for denial in world.client.denials] == ["list deployments.apps in namespace shop"]


def test_data_of_secrets_is_never_requested(world: World) -> None:
    world.put(secret("login", "hunter2"))
    world.proxy.seen.clear()
    kind = world.kind("secrets")
    found = [*world.client.list(kind, "default"), world.client.get(kind, "default", "login")]
    assert [sorted(body or {}) for body in found] == [["apiVersion", "kind", "metadata"]] * len(found)
    assert all("PartialObjectMetadata" in seen.accept for seen in world.proxy.seen)


def test_the_copy_that_kubectl_leaves_in_a_secret_is_dropped(world: World) -> None:
    body = secret("login", "x")
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "kept": "yes"}
    world.put({**body, "metadata": {**body["metadata"], "annotations": annotations}})
    found = world.client.get(world.kind("secrets"), "default", "login")
    assert found is not None
    assert found["metadata"]["annotations"] == {"kept": "yes"}


def test_permissions_are_reviewed(world: World) -> None:
    assert world.client.may("create", "apps", "deployments", "shop")
    nobody = Client(ClusterAccess(world.proxy.url, acts_as="nobody"))
    assert not nobody.may("create", "apps", "deployments", "shop")


def take(changes: Iterator[WatchedChange], count: int) -> list[tuple[str, str]]:
    return [(change.type, name_of(change.body)) for change in islice(changes, count)]


def test_changes_are_followed(world: World) -> None:
    changes = follow(world.client, world.kind("cm"), "default", seconds=30, fields="metadata.name=app")
    assert take(changes, 1) == [("SYNCED", "")]
    world.put(config("app", color="red"))
    world.put(config("app", color="blue"))
    world.client.delete(world.kind("cm"), "default", "app")
    assert take(changes, 3) == [("ADDED", "app"), ("MODIFIED", "app"), ("DELETED", "app")]


def test_a_watch_that_is_cut_off_is_resumed_where_it_was(world: World) -> None:
    world.proxy.faults.append(Fault("watch=true", cut_after_events=1))
    changes = follow(world.client, world.kind("cm"), "default", seconds=30, labels="mine")
    assert take(changes, 1) == [("SYNCED", "")]
    for name in ("a", "b", "c"):
        body = config(name)
        world.put({**body, "metadata": {**body["metadata"], "labels": {"mine": "yes"}}})
    assert take(changes, 3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert (world.proxy.count("limit=500"), world.proxy.count("watch=true")) == (1, 2)


def test_after_an_expired_watch_a_list_says_what_is_gone(world: World) -> None:
    world.put(config("kept"))
    world.put(config("lost"))
    world.proxy.faults.append(Fault("watch=true", expired=True))
    changes = follow(world.client, world.kind("cm"), "default", seconds=30)
    assert {name for _, name in take(changes, 4)} == {"kept", "lost", "kube-root-ca.crt", ""}
    world.client.delete(world.kind("cm"), "default", "lost")
    assert sorted(take(changes, 4)) == [
        ("DELETED", "lost"),
        ("MODIFIED", "kept"),
        ("MODIFIED", "kube-root-ca.crt"),
        ("SYNCED", ""),
    ]


def test_a_watch_that_is_forbidden_ends(world: World) -> None:
    kind = world.kind("cm")
    world.proxy.faults.append(Fault("watch=true", 403))
    changes = follow(world.client, kind, "default", seconds=30)
    with pytest.raises(RefusedRequest):
        list(changes)
    assert [denial.verbs for denial in world.client.denials] == [("watch",)]


def test_closing_the_client_ends_a_watch_in_another_thread(world: World) -> None:
    synced, ended = threading.Event(), threading.Event()

    def read() -> None:
        for change in follow(world.client, world.kind("cm"), "default", seconds=300):
            if change.type == "SYNCED":
                synced.set()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    assert synced.wait(20)
    while not world.proxy.count("watch=true"):
        synced.wait(0.01)
    world.client.transport.close()
    assert ended.wait(20)


def test_a_cluster_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(CannotContinue, match=r"GET /api at http://127.0.0.1:1: .*refused"):
        Client(ClusterAccess("http://127.0.0.1:1")).served()


def test_roles_that_would_grant_what_is_missing(world: World) -> None:
    for path in ("/secrets", "/configmaps", "/nodes"):
        world.proxy.faults.append(Fault(path, 403, times=FOREVER))
    for kind, namespace in (("secrets", "shop"), ("cm", "shop"), ("nodes", "")):
        with pytest.raises(RefusedRequest):
            list(world.client.list(world.kind(kind), namespace))
    assert access.roles(world.client.denials) == [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "seatrial"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "seatrial", "namespace": "shop"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list"]}],
        },
    ]


def written(folder: Path, name: str, **config: object) -> str:
    file = folder / name
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_kubeconfig_files_are_merged_and_the_first_one_wins(tmp_path: Path) -> None:
    first = written(tmp_path, "one", contexts=[{"name": "a", "context": {"cluster": "c", "namespace": "shop"}}])
    second = written(
        tmp_path,
        "two",
        **{"current-context": "a"},
        clusters=[{"name": "c", "cluster": {"server": "https://c:6443/", "certificate-authority": "ca.crt"}}],
        contexts=[{"name": "a", "context": {"cluster": "other"}}, {"name": "b", "context": {"cluster": "c"}}],
    )
    listed = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}::{second}"}
    target = find_target(environment=listed)
    assert (target.context, target.server, target.namespace) == ("a", "https://c:6443", "shop")
    assert target.authority.file == str(tmp_path / "ca.crt")
    assert find_target(environment=listed, namespace="mine").namespace == "mine"
    assert find_target(environment=listed, context="b").namespace == "default"
    with pytest.raises(CannotContinue, match=r"no context 'z' \(it has: a, b\)"):
        find_target(environment=listed, context="z")


def test_a_pod_uses_its_service_account_unless_there_is_a_kubeconfig(tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("t")
    (account / "namespace").write_text("shop\n")
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    target = find_target(environment=inside, account=account)
    assert (target.server, target.namespace) == ("https://[fd00::1]:443", "shop")
    with pytest.raises(CannotContinue, match="no kubeconfig sets a current context"):
        find_target(environment={"HOME": str(tmp_path)}, account=account)


PLUGIN = """#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$GIVEN-$1'"}}'
"""


def test_a_plugin_prints_the_token(tmp_path: Path) -> None:
    from seatrial.live.credentials import Credentials

    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plugin",
        "args": ["x"],
        "env": [{"name": "GIVEN", "value": "given"}],
    }
    file = written(
        tmp_path,
        "config",
        **{"current-context": "a"},
        clusters=[{"name": "c", "cluster": {"server": "https://c"}}],
        users=[{"name": "u", "user": {"exec": plugin}}],
        contexts=[{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    )
    assert Credentials(find_target(kubeconfig=file)).headers() == [("Authorization", "Bearer given-x")]
