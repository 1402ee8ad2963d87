"""A Pulumi of the user: how it is found, what it is given, what becomes of its state. The binary here is a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from test_helm_binary import program

from seatrial.check import run, run_both
from seatrial.cli import main
from seatrial.engines.pulumi.process import find
from seatrial.engines.pulumi.stage import VERSIONS
from seatrial.model.engine import EngineId
from seatrial.model.options import CheckOptions
from seatrial.plan.real_engines import simulated_engine

PROJECT = """
name: shop
runtime: yaml
resources:
  settings:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: settings, namespace: default}, data: {color: red}}
"""
PULUMI = """
import json, os, socket, subprocess, sys, urllib.request, urllib.error

if sys.argv[1] == "version":
    print("v3.999.0")
    sys.exit()
home = os.environ["HOME"]
state = os.path.join(home, "state/.pulumi/stacks/shop/dev.json")
given = dict(zip(sys.argv[2:], sys.argv[3:]))
settings = json.load(open(given["--config-file"]))
server = next(line.split()[-1] for line in open(os.environ["KUBECONFIG"]) if "server:" in line)
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


said = 201
if sys.argv[1] == "up" and known is None:
    said = send("POST", path, body)
    known = {"resources": [urn]}
elif sys.argv[1] == "destroy":
    send("DELETE", path + "/settings")
    known = None
json.dump({"version": 3, "checkpoint": {"latest": known}}, open(state, "w"))
with open(given["--event-log"], "w") as log:
    if said != 201:
        event = {"urn": urn, "severity": "error", "prefix": "", "message": f"<{{%reset%}}>error: {said}"}
        print(json.dumps({"diagnosticEvent": event}), file=log)
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
    pulumi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "pulumi-resource-kubernetes")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find(pulumi).version == ""
    assert simulated_engine(EngineId("pulumi", "", real=True)) == f"pulumi@{VERSIONS[-1]}"


def test_its_state_is_carried_from_step_to_step(pulumi: str, project: str) -> None:
    """The default trial: up, up and destroy. The second `up` would be refused if the state were empty."""
    one, found = run_both(CheckOptions((project,), pulumi_binary=pulumi, compare_engines=True), "ordinary")
    assert str(one.rehearsal.engine) == "pulumi@4.32.0 (real)"
    assert [step.outcome for step in one.rehearsal.steps] == ["ok", "ok", "ok"]
    steps = [event.verb for event in one.rehearsal.timeline if event.actor == "pulumi" and event.effect != "read"]
    assert steps == ["create", "delete"]
    assert (found.model, found.real, found.steps) == ("pulumi@4.32", "pulumi@4.32.0 (real)", 3)


def test_an_error_names_its_resource(pulumi: str, project: str, tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n")
    options = CheckOptions((project,), pulumi_binary=pulumi, assume=(str(there),), steps=("up",))
    failed = run(options, "ordinary").rehearsal.steps[0]
    assert failed.error == 'kubernetes:core/v1:ConfigMap (settings): error: configmaps "settings" already exists'
    assert [fault.of for fault in failed.failure.faults] == ["not-deployed"]
    assert len(failed.failure.events) == 1


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
    words = f"--pulumi-binary {pulumi}: the newest provider that is installed is 4.32.0"
    assert capsys.readouterr().err == f"seatrial: --engine pulumi@4.30: {words}\n"


def test_a_chart_is_no_program(pulumi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "app.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n")
    assert main(["check", str(manifest), "--engine", "pulumi", "--pulumi-binary", pulumi]) == 2
    words = f"--pulumi-binary needs a folder with a Pulumi program, and {manifest} is none"
    assert capsys.readouterr().err == f"seatrial: {words}\n"
