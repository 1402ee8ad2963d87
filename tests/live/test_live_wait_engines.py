"""`seatrial wait` for Argo CD Applications, Flux Kustomizations and HelmReleases; and the command itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from room import Action, Room, custom, deployment, embedded

from seatrial.cli import main
from seatrial.model.resource import Body


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


@pytest.fixture
def kubeconfig(room: Room, tmp_path: Path) -> str:
    return room.kubeconfig(tmp_path)


def application(**status: object) -> Body:
    meta = {"name": "shop", "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta, "status": status}


def kustomization(observed: int, ready: str, message: str = "") -> Body:
    meta = {"name": "apps", "namespace": "flux-system"}
    condition = {"type": "Ready", "status": ready, "reason": "HealthCheckFailed", "message": message}
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": meta,
        "status": {"observedGeneration": observed, "conditions": [condition]},
    }


def test_an_application_is_usable_when_synced_healthy_and_no_operation_runs(room: Room) -> None:
    room.namespace("argocd")
    room.put(custom("argoproj.io", "Application", "v1alpha1"))
    synced = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
    bad = {"kind": "Deployment", "namespace": "shop", "name": "web", "health": {"status": "Degraded", "message": "no"}}
    steps: list[tuple[str, Action]] = [
        ("does not exist", lambda: room.put(application())),
        ("not compared yet", lambda: room.put(application(operationState={"phase": "Running", "message": "wave 2"}))),
        ("a sync is Running: wave 2", lambda: room.put(application(**synced | {"health": {"status": "Degraded"}}))),
        (
            "its health is Degraded",
            lambda: room.put(application(**synced | {"health": {"status": "Degraded"}, "resources": [bad]})),
        ),
        ("Deployment/shop/web is Degraded: no", lambda: room.put(application(**synced))),
    ]
    assert room.wait("app/shop", then=steps)[0].verdict.usable


def test_a_kustomization_is_usable_when_it_is_ready_for_its_generation(room: Room) -> None:
    room.namespace("flux-system")
    room.put(custom("kustomize.toolkit.fluxcd.io", "Kustomization"))
    steps: list[tuple[str, Action]] = [
        ("does not exist", lambda: room.put(kustomization(0, "True"))),
        ("has not seen the last change", lambda: room.put(kustomization(1, "False", "Deployment/shop/web not ready"))),
        ("HealthCheckFailed: Deployment/shop/web not ready", lambda: room.put(kustomization(1, "True"))),
    ]
    assert room.wait("kustomization/apps", then=steps)[0].verdict.usable


def test_a_suspended_helmrelease_that_was_never_ready_says_so(room: Room) -> None:
    room.namespace("flux-system")
    room.put(custom("helm.toolkit.fluxcd.io", "HelmRelease", "v2"))
    meta = {"name": "db", "namespace": "flux-system"}
    room.put(
        {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": meta, "spec": {"suspend": True}}
    )
    assert room.missing("helmrelease/db").endswith("is suspended: Flux does not reconcile it")


def test_the_command_exits_0_when_everything_is_usable(
    room: Room, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(deployment())
    assert main(["wait", "deploy/web", "--kubeconfig", kubeconfig]) == 0
    assert capsys.readouterr().out.startswith("usable   deploy/web (")


def test_the_command_exits_1_with_the_sentence_the_permissions_and_the_role(
    room: Room, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    room.proxy.faults.append(Fault("/deployments", 403, "no", FOREVER))
    assert main(["wait", "deploy/web", "cm/a", "--timeout", "300ms", "--kubeconfig", kubeconfig]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "missing  deploy/web after 300ms: Deployment/default/web was not looked at: reading it is forbidden",
        "missing  cm/a after 300ms: ConfigMap/default/a does not exist",
        "Missing permissions:",
        "  list deployments.apps in namespace default",
        "  watch deployments.apps in namespace default",
    ]
    assert "kind: Role" in lines


def test_the_command_shows_what_is_at_the_root(room: Room, kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    room.put(deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}]))
    assert main(["wait", "deploy/web", "--timeout", "100ms", "-q", "--kubeconfig", kubeconfig]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "         because ConfigMap/default/absent: does not exist"


def test_the_command_waits_for_manifests(
    room: Room, kubeconfig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
        + "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"
    )
    assert main(["wait", "-f", str(file), "--timeout", "300ms", "-q", "--kubeconfig", kubeconfig]) == 1
    assert capsys.readouterr().out == "missing  ConfigMap/default/a after 300ms: ConfigMap/default/a does not exist\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "wait needs a target, such as deployment/web, webhook/NAME or -f FILE"),
        (["web"], "wait web: not a target; name it as KIND/NAME, such as deployment/web or webhook/NAME"),
        (["deploy/web", "--timeout", "soon"], "--timeout soon: not a length of time; write it as 30s, 5m or 1h30m"),
    ],
)
def test_a_wrong_command_line_exits_2_with_one_sentence(
    kubeconfig: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wait", *arguments, "--kubeconfig", kubeconfig]) == 2
    assert capsys.readouterr().err == f"seatrial: {sentence}\n"
