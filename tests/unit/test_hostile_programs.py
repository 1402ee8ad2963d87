"""Programs that mean harm: what the sandbox leaves them, and when they are not run at all."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from programsread import complaint, python_program

from seatrial import sandbox
from seatrial.sandbox import confined, fences
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
    "signal a process": "kill -0 {pid} && echo hunter2",
    "write to its own files": "rm -f {outside}/kept; echo changed > {outside}/kept",
}
NOBODY = 65534
NO_NAMESPACES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh")
"""Root in a container whose kernel allows no further user namespaces."""
PLACES: dict[str, tuple[str, ...]] = {
    "root, everything": (),
    "root without user namespaces": NO_NAMESPACES,
    "an ordinary user": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.chdir(tmp_path)
    return partial(python_program, tmp_path)


@pytest.fixture(params=["namespaces and Landlock", "namespaces", "Landlock"])
def fence(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the kernel allows: everything, no Landlock and seccomp, or no user namespaces, as in most containers."""
    given: str = request.param
    if "namespaces" in given:
        request.getfixturevalue("namespaces")
    if "Landlock" in given and fences.version() < fences.STRICT_VERSION:
        pytest.skip("this kernel has no Landlock that can stand alone")
    _with_fence(monkeypatch, tmp_path, given)
    return given


@pytest.mark.parametrize("attack", ESCAPES)
def test_a_shell_in_the_sandbox_changes_nothing_and_reads_no_home(
    attack: str, fence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, outside, scratch = (tmp_path / name for name in ("home", "outside", "scratch"))
    for folder in (home, outside, scratch):
        folder.mkdir()
    (home / "token").write_text("hunter2")
    (outside / "kept").write_text("kept")
    monkeypatch.setenv("HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {"home": home, "outside": outside, "pid": os.getpid()}
        script = ESCAPES[attack].format(**names, port=server.getsockname()[1])
        done = _sandboxed(["/bin/bash", "-c", f"echo began; {script}"], scratch)
    assert done.stdout.startswith("began")
    assert "hunter2" not in done.stdout
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (home / "token").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("attack", ESCAPES)
def test_the_same_programs_change_and_read_nothing_in_each_place(
    attack: str, place: str, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns of docs/security.md, on the kernel of this machine as it is."""
    monkeypatch.setenv("HOME", str(world / "home"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {"home": world / "home", "outside": world / "outside", "pid": os.getpid()}
        script = ESCAPES[attack].format(**names, port=server.getsockname()[1])
        done = _sandboxed(["/bin/bash", "-c", f"echo began; {script}"], world / "scratch", PLACES[place])
    assert done.stdout.startswith("began"), done.stderr
    assert "hunter2" not in done.stdout
    assert {path.name: path.read_text() for path in (world / "outside").iterdir()} == {"kept": "kept"}
    assert (world / "home/token").exists()


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folders of the user who runs the program, with a home to read and files to change."""
    place = request.node.callspec.params["place"]
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can run a program as root and as another user")
    if "without" in place:
        request.getfixturevalue("namespaces")
        if fences.version() < fences.STRICT_VERSION:
            pytest.skip("this kernel has no Landlock that can stand alone")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("home", "outside", "scratch"):
            Path(folder, name).mkdir()
        Path(folder, "home/token").write_text("hunter2")
        Path(folder, "outside/kept").write_text("kept")
        if "ordinary" in place:
            _hand_over(Path(folder), monkeypatch)
        yield Path(folder)


def _hand_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an ordinary user the folder, and a sandbox and a Python that this user can read wherever the tree lies."""
    shutil.copytree(sandbox.CONFINED.parent, folder / "sandbox")
    monkeypatch.setattr(sandbox, "CONFINED", folder / "sandbox/confined.py")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    pythons = [python for python in (sys.executable, "/usr/bin/python3") if _runs(python, folder)]
    if not pythons:
        pytest.skip("no Python on this machine can be run by an ordinary user")
    monkeypatch.setattr(sys, "executable", pythons[0])


def _runs(python: str, folder: Path) -> bool:
    """True if an ordinary user can run this Python with its own library, in the oldest version that is supported."""
    proof = "import os, sys, sysconfig; os.listdir(sysconfig.get_path('stdlib')); sys.exit(sys.version_info < (3, 11))"
    command = [*PLACES["an ordinary user"], python, "-I", "-c", proof]
    if not Path(python).exists():
        return False
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.usefixtures("fence")
def test_nothing_in_the_sandbox_has_or_gains_a_privilege(tmp_path: Path) -> None:
    """Also as root: no capability is left, none can be gained, and no further user namespace is allowed."""
    (tmp_path / "scratch").mkdir()
    shell = 'read -r all < /proc/self/stat; while read -r line; do echo "$line"; done < /proc/self/status'
    done = _sandboxed(["/bin/bash", "-c", f"{shell}; unshare -U true && echo entered"], tmp_path / "scratch")
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


@pytest.mark.usefixtures("fence")
def test_a_program_runs_in_each_sandbox(write: Callable[[str], str]) -> None:
    path = write("import pulumi\nimport pulumi_kubernetes as k\nk.core.v1.ConfigMap('a', data={'b': 'c'})\n")
    assert [one.ref.kind for one in read_program(path).resources] == ["ConfigMap"]


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("import socket\nsocket.socket(socket.AF_UNIX).connect('/run/docker.sock')", "Operation not permitted"),
        ("import socket\nsocket.socket()", "Operation not permitted"),
        ("import os\nos.kill(os.getppid(), 0)", "Operation not permitted"),
        ("import os\nos.setsid()", "Operation not permitted"),
        ("print(open('/etc/shadow').read())", "Permission denied"),
        ("print(open('/proc/1/environ').read())", "Permission denied"),
        ("import os\nos.mkfifo('made')", "Permission denied"),
    ],
)
def test_without_namespaces_landlock_and_seccomp_hold_alone(
    attack: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fences.version() < fences.STRICT_VERSION:
        pytest.skip("this kernel has no Landlock that can stand alone")
    _with_fence(monkeypatch, tmp_path, "Landlock")
    (tmp_path / "scratch").mkdir()
    done = _sandboxed([sys.executable, "-I", "-c", attack], tmp_path / "scratch")
    assert done.returncode == 1
    assert words in done.stderr


def test_without_a_sandbox_a_program_runs_only_if_it_is_trusted(
    write: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel allows no user namespaces and has no Landlock, or is that of macOS."""
    _with_fence(monkeypatch, tmp_path, "")
    path = write("raise SystemExit('it ran')\n")
    refused = complaint(path)
    assert "it ran" not in refused
    assert refused == (
        "app: run the program: this system has no sandbox for it (it needs Linux with user namespaces or Landlock); "
        "pass --trust if you trust the program, or check the output of pulumi preview --json"
    )
    with pytest.raises(Exception, match="it ran"):
        read_program(path, trust=True)


def _with_fence(monkeypatch: pytest.MonkeyPatch, folder: Path, allowed: str) -> None:
    """Run the sandbox as where the kernel allows only this."""
    folder = folder / "sandbox"
    folder.mkdir()
    for path, word, before, instead in (
        (sandbox.CONFINED, "namespaces", "if libc.unshare(", "if True or ("),
        (sandbox.CONFINED.with_name("fences.py"), "Landlock", "return max(0, found)", "return 0"),
    ):
        text = path.read_text()
        assert before in text
        (folder / path.name).write_text(text if word in allowed else text.replace(before, instead))
    if "Landlock" not in allowed:
        file = folder / "fences.py"
        file.write_text(file.read_text().replace("machine = MACHINES.get(os.uname().machine)", "machine = None"))
    monkeypatch.setattr(sandbox, "CONFINED", folder / "confined.py")


def _sandboxed(command: list[str], scratch: Path, within: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    line = [*within, *confined(command, home=os.path.realpath(scratch), seen=(), required=True)]
    return subprocess.run(line, capture_output=True, text=True, timeout=30, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.usefixtures("namespaces")
def test_an_interpreter_in_the_home_does_not_show_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "token").write_text("hunter2")
    shutil.copy("/bin/bash", home / "bin/bash")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = _sandboxed(
        [str(home / "bin/bash"), "-c", f"echo began; read -r all < {home}/token; echo $all"], tmp_path / "scratch"
    )
    assert done.stdout == "began\n\n"
