"""The real kubectl against the embedded API: everyday commands work and print their usual output."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.guard import Guard
from seatrial.cluster.server.http import ApiServer

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1"}]}}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {color: COLOR}\n"


class Kubectl:
    """The local kubectl, in one namespace of a cluster that all tests of this file share."""

    def __init__(self, binary: str, config: Path, namespace: str) -> None:
        self._words = (binary, f"--kubeconfig={config}", f"--cache-dir={config.parent}", f"--namespace={namespace}")
        self.namespace = namespace

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Its output on both streams."""
        ended = subprocess.run(
            (*self._words, *words), input=stdin, capture_output=True, text=True, check=False, timeout=60
        )
        return (ended.stdout + ended.stderr).strip()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with ApiServer(Cluster(explains=True), guard=Guard("secret")) as server:
        file = tmp_path_factory.mktemp("kubectl") / "kubeconfig"
        file.write_text(server.kubeconfig())
        yield file


@pytest.fixture
def kubectl(kubectl_binary: str, served: Path, request: pytest.FixtureRequest) -> Kubectl:
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    Kubectl(kubectl_binary, served, "default")("create", "namespace", name)
    return Kubectl(kubectl_binary, served, name)


def test_apply_creates_configures_and_leaves_unchanged(kubectl: Kubectl) -> None:
    said = [kubectl("apply", "-f", "-", stdin=CONFIG.replace("COLOR", color)) for color in ("red", "red", "blue")]
    assert said == ["configmap/app created", "configmap/app unchanged", "configmap/app configured"]
    assert kubectl("get", "configmap", "app", "-o", "jsonpath={.data.color}") == "blue"


def test_server_side_apply_conflicts_in_kubectls_words(kubectl: Kubectl) -> None:
    first, second = (CONFIG.replace("COLOR", color) for color in ("red", "blue"))
    server_side = ("apply", "--server-side", "-f", "-")
    assert kubectl(*server_side, "--field-manager=one", stdin=first) == "configmap/app serverside-applied"
    refused = kubectl(*server_side, "--field-manager=two", stdin=second)
    assert 'Apply failed with 1 conflict: conflict with "one": .data.color' in refused
    forced = kubectl(*server_side, "--field-manager=two", "--force-conflicts", stdin=second)
    assert forced == "configmap/app serverside-applied"


def test_get_shows_tables_and_whole_objects(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    header, row = kubectl("get", "deployments").splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row.split()[:4] == ["web", "2/2", "2", "2"]
    wide = kubectl("get", "deployments", "-o", "wide").split()
    assert wide[5:8] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert yaml.safe_load(kubectl("get", "deployment", "web", "-o", "yaml"))["status"]["readyReplicas"] == 2
    assert kubectl("get", "deployment", "none") == 'Error from server (NotFound): deployments.apps "none" not found'


def test_rollouts_scales_and_waits_end(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    assert kubectl("rollout", "status", "deployment/web") == 'deployment "web" successfully rolled out'
    assert kubectl("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled"
    met = "deployment.apps/web condition met"
    assert kubectl("wait", "--for=condition=Available", "deployment/web") == met
    assert kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web") == met


def test_delete_cascades_or_orphans(kubectl: Kubectl) -> None:
    for cascade, left in (("background", 0), ("foreground", 0), ("orphan", 1)):
        kubectl("apply", "-f", "-", stdin=WEB)
        said = kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--wait")
        assert said in (
            'deployment.apps "web" deleted',
            f'deployment.apps "web" deleted from {kubectl.namespace} namespace',
        )
        assert len(kubectl("get", "replicasets", "-o", "name").split()) == left


def test_wait_for_delete_ends_when_it_is_gone(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CONFIG)
    kubectl("delete", "configmap", "app", "--wait=false")
    assert kubectl("wait", "--for=delete", "configmap/app", "--timeout=5s") == ""


def test_labels_annotations_and_the_three_patches(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CONFIG)
    assert kubectl("label", "configmap", "app", "tier=one") == "configmap/app labeled"
    assert kubectl("annotate", "configmap", "app", "note=yes") == "configmap/app annotated"
    for type_, patch in (
        ("merge", '{"data":{"a":"1"}}'),
        ("strategic", '{"data":{"b":"2"}}'),
        ("json", '[{"op":"add","path":"/data/c","value":"3"}]'),
    ):
        assert kubectl("patch", "configmap", "app", f"--type={type_}", "-p", patch) == "configmap/app patched"
    assert kubectl("get", "configmap", "app", "-o", "jsonpath={.data.a}{.data.b}{.data.c}") == "123"


def test_create_run_and_expose(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "made", "--from-literal=a=1") == "configmap/made created"
    again = 'error: failed to create configmap: configmaps "made" already exists'
    assert kubectl("create", "configmap", "made") == again
    assert kubectl("run", "lone", "--image=nginx", "--port=80") == "pod/lone created"
    assert kubectl("expose", "pod", "lone") == "service/lone exposed"
    assert kubectl("logs", "lone") == ""


def test_describe_shows_events(kubectl: Kubectl) -> None:
    missing = WEB.replace("spec: {containers", "spec: {serviceAccountName: absent, containers")
    kubectl("apply", "-f", "-", stdin=missing)
    reported = kubectl("describe", "replicasets")
    assert 'serviceaccount "absent" not found' in reported
    assert "FailedCreate" in kubectl("get", "events")


def test_api_resources_and_explain(kubectl: Kubectl) -> None:
    assert "deployments" in kubectl("api-resources", "--api-group=apps", "-o", "name")
    explained = kubectl("explain", "deployment.spec.replicas")
    assert explained.startswith("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1")


def test_diff_changes_nothing(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CONFIG.replace("COLOR", "red"))
    reported = kubectl("diff", "-f", "-", stdin=CONFIG.replace("COLOR", "blue"))
    assert "-  color: red" in reported
    assert "+  color: blue" in reported
    assert kubectl("get", "configmap", "app", "-o", "jsonpath={.data.color}") == "red"
