"""Binaries of the user in the sandbox: what they reach, see and write. The binaries here are Python scripts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from test_helm_binary import program

from seatrial.cli import main
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.engines.kubectl.process import find
from seatrial.play.over_http import OverHttp
from seatrial.sandbox.client import Binary, BinaryRun, on_path

NAMESPACES = "/api/v1/namespaces"
VERSION = '{"clientVersion": {"gitVersion": "v1.99.0"}}'
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"


def run(folder: Path, script: str, stdin: str = "") -> BinaryRun:
    """A Python script as a binary, run to its end against an empty cluster."""
    path = folder / "client"
    path.write_text(f"#!{sys.executable} -I\nimport os, sys, urllib.request\n{script}\n")
    path.chmod(0o755)
    with ApiServer(Cluster()) as server:
        api = OverHttp(Cluster(), server)
        python = {sys.prefix, sys.base_prefix}
        binary = Binary(str(path), "1.0.0")
        client = BinaryRun(binary, [server.url], kubeconfig="", door=api.door(), stdin=stdin, reads=python)
        assert client.wait(30)
        client.close()
    return client


def test_the_cluster_is_reached_from_the_sandbox(tmp_path: Path) -> None:
    client = run(tmp_path, f"print(urllib.request.urlopen(sys.argv[1] + {NAMESPACES!r}).status)")
    assert (client.stdout, client.stderr, client.failed) == ("200\n", "", False)


@pytest.mark.skipif(not Path("/proc/self/ns/net").exists(), reason="the sandbox needs namespaces, which only Linux has")
@pytest.mark.usefixtures("namespaces")
def test_nothing_else_is_reached_or_written(tmp_path: Path) -> None:
    with ApiServer(Cluster()) as other:
        reach = f"urllib.request.urlopen('{other.url}{NAMESPACES}')"
        write = f"open({str(tmp_path / 'mark')!r}, 'w')"
        script = "".join(f"try: {what}\nexcept OSError as error: print(error)\n" for what in (reach, write))
        client = run(tmp_path, script)
    assert "refused" in client.stdout or "Permission denied" in client.stdout
    assert "Read-only file system" in client.stdout


def test_it_gets_standard_input_and_no_user_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/user/.kube/config")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    client = run(tmp_path, "print(sys.stdin.read(), sorted(os.environ))", stdin="text")
    given = "['HOME', 'KUBECACHEDIR', 'KUBECONFIG', 'LANG', 'PATH', 'TMPDIR']"
    assert client.stdout == f"text {given}\n"


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("v1.34.2", "is not kubectl: `kubectl version --client` printed 'v1.34.2'"),
        ("", "is not kubectl: `kubectl version --client` printed nothing"),
    ],
)
def test_other_programs_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, says: str
) -> None:
    path = program(tmp_path, "kubectl", version=version)
    (tmp_path / "app.yaml").write_text(CONFIG)
    assert main(["check", str(tmp_path / "app.yaml"), "--kubectl-binary", path]) == 2
    assert capsys.readouterr() == ("", f"seatrial: --kubectl-binary {path}: {says}\n")


def test_the_binary_must_fit_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = program(tmp_path, "kubectl", version=VERSION.replace('"', '\\"'))
    assert find(path).version == "1.99.0"
    (tmp_path / "app.yaml").write_text(CONFIG)
    flags = [str(tmp_path / "app.yaml"), "--engine", "kubectl@1.34", "--kubectl-binary", path]
    assert main(["check", *flags]) == 2
    assert capsys.readouterr().err == (f"seatrial: --engine kubectl@1.34: --kubectl-binary {path} is kubectl 1.99.0\n")


def test_relative_entries_of_the_path_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "kubectl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join((".", "")))
    assert on_path("kubectl") == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert on_path("kubectl") == path
