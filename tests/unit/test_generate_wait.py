"""Generated gate Jobs: the script in a real shell, the rights, and the rehearsal of the manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from seatrial.check import check
from seatrial.generate.wait import WaitJob, wait
from seatrial.graph.linking import Graph, graph_of
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.sources.manifests.reading import read_manifests
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

FAKES = {
    "kubectl": """#!{sh}
echo "kubectl $*" >> "$LOG"
echo x >> "$LOG.$1.$2"
tries=0
while read -r _; do tries=$((tries + 1)); done < "$LOG.$1.$2"
if [ "$tries" -lt 3 ]; then
  echo "Error from server (InternalError): failed calling webhook" >&2
  exit 1
fi
echo True
""",
    "nc": '#!{sh}\necho "nc $*" >> "$LOG"\n',
    "curl": '#!{sh}\necho "curl $*" >> "$LOG"\necho 403\n',
    "sleep": '#!{sh}\necho "sleep $*" >> "$LOG"\n',
}
TARGETS = {
    "webhook/gate": "helm",
    "webhook/lock=canal/lock-service": "argocd",
    "crd/gates.canal.example": "flux",
    "secret/shop/db:password": "argocd",
    "image/registry.example/shop/app:1.2": "pulumi",
    "imagestreamtag/shop/app:1.2": "kubectl",
    "database/db.shop.svc:5432": "helm",
    "bucket/https://s3.example/backups": "kubectl",
}
INPUT = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: gate}
webhooks:
- name: gates.canal.example
  sideEffects: None
  clientConfig: {service: {name: gate, namespace: shop}}
  rules: [{operations: [CREATE], apiGroups: [canal.example], apiVersions: [v1], resources: [gates]}]
---
apiVersion: canal.example/v1
kind: Gate
metadata: {name: north, labels: {side: north}, annotations: {secret: "no"}}
spec: {note: "it's {{ odd }}", open: true}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    (tmp_path / "input.yaml").write_text(INPUT)
    return graph_of([read_manifests(str(tmp_path / "input.yaml"), namespace="shop")])


def bodies(text: str) -> list[dict[str, Any]]:
    return [document.body for document in documents(Text("gate.yaml", text))]


def job_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = next(body for body in bodies(text) if body["kind"] == "Job")
    return found


def rules_of(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    found = [body for body in bodies(text) if body["kind"] in ("Role", "ClusterRole")]
    return [(body["kind"], body["metadata"].get("namespace", ""), rule) for body in found for rule in body["rules"]]


def run(text: str, folder: Path) -> list[str]:
    """Run the script of the Job in a real shell that finds only the programs of the image; what it called."""
    shell = shutil.which("sh")
    assert shell is not None
    container = job_of(text)["spec"]["template"]["spec"]["containers"][0]
    script = container["args"][0]
    assert subprocess.run([shell, "-n", "-c", script], check=False).returncode == 0
    (folder / "bin").mkdir(exist_ok=True)
    for name, fake in FAKES.items():
        (folder / "bin" / name).write_text(fake.replace("{sh}", shell))
        (folder / "bin" / name).chmod(0o755)
    variables = {entry["name"]: entry["value"] for entry in container.get("env", ())}
    log = folder / "log"
    environment = {"PATH": str(folder / "bin"), "LOG": str(log), "LANG": os.environ.get("LANG", "C"), **variables}
    ended = subprocess.run([shell, "-c", script], env=environment, check=False, timeout=60, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    return log.read_text().splitlines()


@pytest.mark.parametrize("target", TARGETS)
def test_the_script_ends_in_a_real_shell_when_the_answer_is_right(target: str, graph: Graph, tmp_path: Path) -> None:
    calls = run(wait([target], WaitJob("kubectl", "shop"), graph), tmp_path)
    asked = [call for call in calls if not call.startswith("sleep")]
    assert asked
    if asked[0].startswith("kubectl"):
        assert calls[:5] == [asked[0], "sleep 2", asked[0], "sleep 2", asked[0]]


def test_a_webhook_that_denies_the_probe_has_answered(graph: Graph, tmp_path: Path) -> None:
    text = wait(["webhook/gate"], WaitJob("kubectl", "shop"), graph)
    calls = run(text, tmp_path)
    assert calls[-1] == "kubectl create --dry-run=server --output name --filename -"
    assert 'name":"north-probe"' in job_of(text)["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_script_may_do_exactly_what_it_does(target: str, graph: Graph, tmp_path: Path) -> None:
    text = wait([target], WaitJob("kubectl", "shop"), graph)
    asked = {call for call in run(text, tmp_path) if call.startswith("kubectl")}
    granted = [(verb, rule["resources"][0]) for _, _, rule in rules_of(text) for verb in rule["verbs"]]
    assert len(granted) == len({(call.split()[1], call.split()[2].partition(".")[0]) for call in asked})
    assert all(rule.get("resourceNames") or "get" not in rule["verbs"] for _, _, rule in rules_of(text))
    assert all("*" not in (rule["resources"] + rule["verbs"] + rule["apiGroups"]) for _, _, rule in rules_of(text))


def test_a_job_that_asks_no_api_server_has_no_token(graph: Graph) -> None:
    text = wait(["database/db:5432"], WaitJob("argocd", "shop"), graph)
    assert [body["kind"] for body in bodies(text)] == ["Job"]
    assert job_of(text)["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_braces_of_the_input_are_no_actions_of_a_template(graph: Graph) -> None:
    text = wait(["webhook/gate"], WaitJob("helm", "shop"), graph)
    assert r'it\'s {{ "{{" }} odd }}'.replace("\\", "") in text


@pytest.mark.parametrize(("target", "engine"), TARGETS.items())
def test_manifests_are_valid_and_pass_the_check(target: str, engine: str, tmp_path: Path) -> None:
    source = graph_of([read_manifests(str(_written(tmp_path, INPUT.replace("{{ odd }}", "odd"))), namespace="shop")])
    text = wait([target], WaitJob(engine, "shop"), source)
    for body in bodies(text):
        kubernetes_validate.validate(body, "1.34", strict=True)
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    engines = ("argocd",) if engine == "argocd" else ("kubectl",)
    result = check(CheckOptions(inputs=(str(path),), engines=engines))
    assert [finding.message for finding in result.findings] == []


@pytest.mark.parametrize(
    "target",
    ["webhook/gone", "crd/gates", "secret/db", "database/db", "bucket/x", "image/app", "pod/x", "secret/a/b;rm -rf /"],
)
def test_what_is_no_target_is_refused_with_its_form(target: str, graph: Graph) -> None:
    with pytest.raises(CannotContinue):
        wait([target], WaitJob("helm"), graph)


def _written(folder: Path, text: str) -> Path:
    (folder / "input.yaml").write_text(text)
    return folder / "input.yaml"
