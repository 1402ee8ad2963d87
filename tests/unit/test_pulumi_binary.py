"""A Pulumi of the user: how it is found, what it is given, what becomes of its state. The binary here is a script."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from test_helm_binary import program

from seatrial.check import check, run, run_both
from seatrial.cli import main
from seatrial.engines.pulumi.process import find
from seatrial.engines.pulumi.stage import VERSIONS
from seatrial.model.engine import EngineId
from seatrial.model.options import CheckOptions, ValueFlags
from seatrial.plan.plans import plans
from seatrial.plan.real_engines import simulated_engine

PROJECT = """
name: shop
runtime: yaml
resources:
  settings:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: settings, namespace: default}, data: {color: red}}
"""
WAITING = """
name: shop
runtime: yaml
resources:
  web:
    type: kubernetes:apps/v1:Deployment
    properties:
      metadata: {name: web}
      spec:
        selector: {matchLabels: {app: web}}
        template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}
"""
PULUMI = """
import json, os, re, signal, socket, subprocess, sys, urllib.request, urllib.error

if sys.argv[1] == "version":
    print("v3.999.0")
    sys.exit()
home = os.environ["HOME"]
state = os.path.join(home, "state/.pulumi/stacks/shop/dev.json")
given = dict(zip(sys.argv[2:], sys.argv[3:]))
settings = json.load(open(given["--config-file"]))
server = re.search(r"http://[0-9.:]+", open(os.environ["KUBECONFIG"]).read())[0]
known = json.load(open(state))["checkpoint"]["latest"]
path = "/api/v1/namespaces/default/configmaps"
body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "red"}}
urn = "urn:pulumi:dev::shop::kubernetes:core/v1:ConfigMap::settings"
# Pulumi and its plugins talk to each other on the loopback device.
listening = socket.create_server(("127.0.0.1", 0))
plugin = f"import socket; socket.create_connection({listening.getsockname()!r})"
subprocess.run([sys.executable, "-c", plugin], check=True)
assert os.path.exists(os.path.join(os.environ["PULUMI_HOME"], "plugins", "resource-kubernetes-v4.32.0"))
assert settings == {"config": {"shop:color": "blue"}}, settings


def send(method, where, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(server + where, data, {"Content-Type": "application/json"}, method=method)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return json.load(error)["message"]


def cancelled(*_):
    json.dump({"version": 3, "checkpoint": {"latest": {"pending": path}}}, open(state, "w"))
    sys.exit(1)


said = 201
if sys.argv[1] == "up" and known is None and "web" in open(os.path.join(given["--cwd"], "Pulumi.yaml")).read():
    signal.signal(signal.SIGTERM, cancelled)
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"matchLabels": {"app": "web"}}
    source = {"configMapRef": {"name": "absent"}}
    containers = [{"name": "a", "image": "a", "envFrom": [source]}]
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    send("POST", path, {**body, "spec": {"selector": labels, "template": pods}})
    for line in urllib.request.urlopen(server + path + "?watch=true"):
        pass
elif sys.argv[1] == "up" and known is None:
    said = send("POST", path, body)
    known = {"resources": [urn]}
elif sys.argv[1] == "destroy":
    send("DELETE", path + "/settings")
    known = None
json.dump({"version": 3, "checkpoint": {"latest": known}}, open(state, "w"))
with open(given["--event-log"], "w") as log:
    if said != 201:
        event = {"urn": urn, "severity": "error", "message": f"<{{%reset%}}>error: {said}<{{%reset%}}>\\n"}
        print(json.dumps({"diagnosticEvent": event}), file=log)
        summary = {"severity": "error", "message": "update failed\\n"}
        print(json.dumps({"diagnosticEvent": summary}), file=log)
sys.exit(said != 201)
"""


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "home/plugins/resource-kubernetes-v4.9.1").mkdir(parents=True)
    (tmp_path / "home/plugins/resource-kubernetes-v4.32.0").mkdir()
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.defpath)
    path = tmp_path / "bin" / "pulumi"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable} -I\n{PULUMI}")
    path.chmod(0o755)
    find.cache_clear()
    return str(path)


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra/Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "infra/Pulumi.dev.yaml").write_text("config: {color: blue}\n")
    return str(tmp_path / "infra")


def test_its_version_is_that_of_the_newest_provider(pulumi: str) -> None:
    assert find(pulumi).version == "4.32.0"


def test_a_provider_on_the_path_does_not_tell_its_version(
    pulumi: str, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "pulumi-resource-kubernetes")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find(pulumi).version == ""
    assert str(next(plans(CheckOptions((project,), pulumi_binary=pulumi))).engine) == "pulumi (real)"
    assert simulated_engine(EngineId("pulumi", "", real=True)) == f"pulumi@{VERSIONS[-1]}"


def test_its_state_is_carried_from_step_to_step(pulumi: str, project: str) -> None:
    """The default trial: up, up and destroy. The second `up` would be refused if the state were empty."""
    one, found = run_both(CheckOptions((project,), pulumi_binary=pulumi, compare_engines=True), "ordinary")
    assert str(one.rehearsal.engine) == "pulumi@4.32.0 (real)"
    assert [step.outcome for step in one.rehearsal.steps] == ["ok", "ok", "ok"]
    steps = [event.verb for event in one.rehearsal.timeline if event.actor == "pulumi" and event.effect != "read"]
    assert steps == ["create", "delete"]
    assert (found.model, found.real, found.steps) == ("pulumi@4.32", "pulumi@4.32.0 (real)", 3)


def test_what_people_do_meanwhile_is_not_done_by_it(pulumi: str, project: str, tmp_path: Path) -> None:
    trial = tmp_path / "trial.yaml"
    trial.write_text("engine: pulumi\nsteps:\n  - up: infra\n  - delete: ConfigMap/default/settings\n")
    up, deleted = run(CheckOptions((str(trial),), pulumi_binary=pulumi), "ordinary").rehearsal.steps
    assert (up.outcome, deleted.outcome, deleted.by) == ("ok", "ok", "kubectl")


def test_an_error_names_its_resource(pulumi: str, project: str, tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n")
    options = CheckOptions((project,), pulumi_binary=pulumi, assume=(str(there),), steps=("up",))
    failed = run(options, "ordinary").rehearsal.steps[0]
    assert failed.error == 'kubernetes:core/v1:ConfigMap (settings): error: configmaps "settings" already exists'
    assert [fault.of for fault in failed.failure.faults] == ["not-deployed"]
    assert len(failed.failure.events) == 1


def test_a_wait_that_cannot_end_is_cancelled(pulumi: str, tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra/Pulumi.dev.yaml").write_text("config: {color: blue}\n")
    (tmp_path / "infra/Pulumi.yaml").write_text(WAITING)
    options = CheckOptions((str(tmp_path / "infra"),), pulumi_binary=pulumi, steps=("up",))
    hung, again = run(options, "ordinary").rehearsal.steps
    assert (hung.outcome, again.outcome) == ("hung", "ok")  # The second one finds what the first one wrote down.
    assert hung.error.startswith("waits for Deployment/default/web")
    assert [str(ref) for ref in hung.waits_for] == ["Deployment/default/web"]


def test_one_that_is_killed_has_written_nothing_down(pulumi: str, project: str) -> None:
    up, destroy = check(CheckOptions((project,), pulumi_binary=pulumi, interrupted=True)).interrupted
    (after_create,), (after_delete,) = up.moments, destroy.moments
    assert (after_create.aftermath, after_delete.aftermath) == ("fails", "safe")
    assert 'configmaps "settings" already exists' in after_create.error


def test_what_it_says_before_it_begins_is_an_error_of_its_own(
    tmp_path: Path, pulumi: str, project: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "error: no language plugin 'pulumi-language-yaml' is installed"
    path = program(tmp_path, "pulumi", version="v3.999.0", commands=f'echo "{words}"; exit 255')
    assert main(["check", project, "--pulumi-binary", path]) == 2
    assert capsys.readouterr().err == f"seatrial: step up: pulumi says: {words}\n"


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("3.999.0", "is not Pulumi: `pulumi version` printed '3.999.0'"),
        ("", "is not Pulumi: `pulumi version` printed nothing"),
        ("v3.999.0", "no Kubernetes provider is in {home}/plugins; run pulumi plugin install resource kubernetes"),
    ],
)
def test_other_programs_and_a_missing_provider_are_refused(
    tmp_path: Path,
    project: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    says: str,
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "none"))
    path = program(tmp_path, "pulumi", version=version)
    assert main(["check", project, "--pulumi-binary", path]) == 2
    words = says.format(home=tmp_path / "none")
    assert capsys.readouterr() == ("", f"seatrial: --pulumi-binary {path}: {words}\n")


def test_the_provider_must_be_of_the_version_that_is_asked_for(
    pulumi: str, project: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", project, "--engine", "pulumi@4.30", "--pulumi-binary", pulumi]) == 2
    words = f"--pulumi-binary {pulumi} runs the provider 4.32.0"
    assert capsys.readouterr().err == f"seatrial: --engine pulumi@4.30: {words}\n"


def test_manifests_become_a_program_with_one_component(pulumi: str, tmp_path: Path) -> None:
    manifest = tmp_path / "app.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: '${b}'}\n")
    plan = next(plans(CheckOptions((str(manifest),), engines=("pulumi",), pulumi_binary=pulumi)))
    act = plan.steps[0].act
    files = {name: base64.b64decode(text).decode() for name, text in json.loads(act.stdin).items()}
    assert files["program/manifests.yaml"].endswith("data:\n  a: ${b}\n")
    group = {"type": "kubernetes:yaml/v2:ConfigGroup", "properties": {"files": ["manifests.yaml"]}}
    assert json.loads(files["program/Pulumi.yaml"]) == {"name": "app", "runtime": "yaml", "resources": {"app": group}}
    assert act.arguments[-5:] == ("dev", "--cwd", "{home}/program", "--config-file", "{home}/config.yaml")


def test_a_chart_becomes_a_program_with_one_chart(pulumi: str, tmp_path: Path) -> None:
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/a.yaml": config_map("a")})
    chosen = ValueFlags(set=("note=${x}",))
    options = CheckOptions((str(tmp_path / "chart"),), engines=("pulumi",), pulumi_binary=pulumi, values=chosen)
    act = next(plans(options)).steps[0].act
    program = base64.b64decode(json.loads(act.stdin)["program/Pulumi.yaml"]).decode()
    (chart,) = json.loads(program)["resources"].values()
    assert chart["type"] == "kubernetes:helm.sh/v4:Chart"
    assert chart["properties"]["chart"] == str(tmp_path / "chart")
    assert chart["properties"]["values"] == {"note": "$${x}"}


def test_a_recorded_program_is_refused(pulumi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preview = tmp_path / "preview.json"
    urn = "urn:pulumi:dev::shop::kubernetes:core/v1:ConfigMap::settings"
    state = {"urn": urn, "type": "kubernetes:core/v1:ConfigMap", "inputs": {"metadata": {"name": "settings"}}}
    preview.write_text(json.dumps({"config": {}, "steps": [{"op": "create", "urn": urn, "newState": state}]}))
    assert main(["check", str(preview), "--pulumi-binary", pulumi]) == 2
    words = f"--pulumi-binary runs a program in a folder, and {preview} is none; pass a folder"
    assert capsys.readouterr().err == f"seatrial: {words}\n"
