"""Programs that mean harm: what the sandbox leaves them, and when they are not run at all."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from programsread import complaint, python_program

from seatrial.sandbox import confined
from seatrial.sources.pulumi import read_program

ESCAPES = {
    "remount the disk": "mount -o remount,rw /; mount -o remount,rw,bind /; touch {outside}/made",
    "uncover the home": "umount -l {home}; cat {home}/token",
    "write a file": "touch {outside}/made; mkfifo {outside}/made; ln -s / {outside}/made; mkdir {outside}/made",
    "rename or link a file": "mv {outside}/kept {outside}/made; ln {outside}/kept {outside}/made",
    "another user namespace": (
        "unshare -Urm sh -c 'mount -o remount,rw,bind /; umount -l {home}; cat {home}/token; touch {outside}/made'"
    ),
    "read the home": "cat {home}/token",
    "reach the network": "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo hunter2",
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.chdir(tmp_path)
    return partial(python_program, tmp_path)


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("attack", ESCAPES)
def test_a_shell_in_the_sandbox_changes_nothing_and_reads_no_home(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, outside, scratch = (tmp_path / name for name in ("home", "outside", "scratch"))
    for folder in (home, outside, scratch):
        folder.mkdir()
    (home / "token").write_text("hunter2")
    (outside / "kept").write_text("kept")
    monkeypatch.setenv("HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = ESCAPES[attack].format(home=home, outside=outside, port=server.getsockname()[1])
        done = _sandboxed(["/bin/bash", "-c", script], scratch)
    assert "hunter2" not in done.stdout
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (home / "token").exists()


@pytest.mark.usefixtures("namespaces")
def test_nothing_in_the_sandbox_has_or_gains_a_privilege(tmp_path: Path) -> None:
    """Also as root: no capability is left, none can be gained, and no further user namespace is allowed."""
    done = _sandboxed(["/bin/sh", "-c", "cat /proc/self/status; unshare -U true && echo entered"], tmp_path)
    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    sets = {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert sets == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert "entered" not in done.stdout


@pytest.mark.parametrize("virtualenv", ["evil", ".venv"])
def test_an_interpreter_of_the_project_is_not_run(write: Callable[[str], str], tmp_path: Path, virtualenv: str) -> None:
    path = write("pass\n")
    python = tmp_path / path / virtualenv / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/made\n")
    python.chmod(0o755)
    options = "name: app\nruntime: {name: python, options: {virtualenv: evil}}\n"
    (tmp_path / path / "Pulumi.yaml").write_text(options if virtualenv == "evil" else "name: app\nruntime: python\n")
    assert f"app/{virtualenv}/bin/python is a file of the project" in complaint(path)
    assert not (tmp_path / "made").exists()


def test_a_node_of_the_project_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node = tmp_path / "app/node_modules/.bin/node"
    node.parent.mkdir(parents=True)
    node.write_text(f"#!/bin/sh\ntouch {tmp_path}/made\n")
    node.chmod(0o755)
    (tmp_path / "app/Pulumi.yaml").write_text("name: app\nruntime: nodejs\n")
    (tmp_path / "app/index.js").write_text("")
    monkeypatch.setenv("PATH", f"{node.parent}{os.pathsep}{os.environ['PATH']}")
    assert "app/node_modules/.bin/node is a file of the project" in complaint("app")
    assert not (tmp_path / "made").exists()


def test_without_a_sandbox_a_program_runs_only_if_it_is_trusted(
    write: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel allows no user namespaces, as in most containers."""
    _without_namespaces(monkeypatch, tmp_path)
    path = write("raise SystemExit('it ran')\n")
    refused = complaint(path)
    assert "it ran" not in refused
    assert refused == (
        "app: run the program: this system has no sandbox for it (it needs Linux with user namespaces); "
        "pass --trust if you trust the program, or check the output of pulumi preview --json"
    )
    with pytest.raises(Exception, match="it ran"):
        read_program(path, trust=True)


def _without_namespaces(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Run the sandbox as where unshare is forbidden."""
    import seatrial.sandbox as sandbox

    text = sandbox.CONFINED.read_text().replace("if libc.unshare(", "if True or (")
    other = folder / "confined.py"
    other.write_text(text)
    monkeypatch.setattr(sandbox, "CONFINED", other)


def _sandboxed(command: list[str], scratch: Path) -> subprocess.CompletedProcess[str]:
    line = confined(command, home=os.path.realpath(scratch), seen=())
    return subprocess.run(line, capture_output=True, text=True, timeout=30, check=False, stdin=subprocess.DEVNULL)
