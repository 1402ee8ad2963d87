"""The sandbox of Pulumi programs in Python."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from programsread import MADE, python_program

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.sources.pulumi import process, python, read_program
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import read_project

Write = Callable[[str], str]

GARBAGE = """
import os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, b"{}\\n")
    except OSError:
        pass
"""
FORGED = """
import json, os
def forge(message):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, json.dumps(message).encode() + b"\\n")
        except OSError:
            pass
"""
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [sys.argv[1], "-c", "import time; time.sleep(30)"])
time.sleep(0.5)
"""
NO_PROCESSES = "seatrial runs this program without a network and without processes: "


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program and returns its path."""
    monkeypatch.chdir(tmp_path)
    return partial(python_program, tmp_path)


def test_a_program_that_hangs_is_killed(write: Write) -> None:
    project = read_project(write("while True:\n    pass\n"))
    with pytest.raises(CannotContinue) as raised:
        python.run(project, Monitor(project, Charts(project.folder)), seconds=2.0)
    assert str(raised.value) == "app: run the program: it did not end within 2 seconds"


def test_a_program_cannot_use_the_network(write: Write) -> None:
    """Not even a local server, from C code that raises no audit event."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        path = write(
            f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 2)\nexcept OSError:\n    pass\n"
        )
        with pytest.raises(NothingToCheck):
            read_program(path)
        with pytest.raises(BlockingIOError):  # No connection arrived.
            server.accept()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import subprocess\nsubprocess.run(['true'])\n", f"{NO_PROCESSES}subprocess.Popen"),
        ("import os\nos.fork()\n", f"{NO_PROCESSES}os.fork"),
        ("import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()\n", NO_PROCESSES),
        ("import ctypes\nctypes.CDLL(None).fork()\n", f"{NO_PROCESSES}ctypes.dlsym"),
        ("import os\nos.kill(os.getppid(), 9)\n", f"{NO_PROCESSES}os.kill"),
        ("import socket\nsocket.socket(socket.AF_UNIX).connect('/run/docker.sock')\n", f"{NO_PROCESSES}socket.connect"),
        ("open('made', 'w')\n", "seatrial does not let this program write files: made"),
        (
            "import os\nos.remove('__main__.py')\n",
            "seatrial does not let this program change files: os.remove __main__.py",
        ),
        ("import sqlite3\nsqlite3.connect('made')\n", "does not let this program change files: sqlite3.connect made"),
        ("open('/proc/1/environ')\n", "lets this program read only its project: /proc/1/environ"),
        ("import os\nos.open('/', os.O_RDONLY)\n", "lets this program read only its project: /"),
        ("open('/dev/shm/made', 'w')\n", "seatrial does not let this program write files: /dev/shm/made"),
    ],
)
def test_a_program_cannot_start_processes_or_change_files(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert words in str(raised.value)


@pytest.mark.usefixtures("namespaces")
def test_c_code_cannot_write_to_the_disk(write: Write) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write("import os\nos.mkfifo('made')\n"))
    assert "Read-only file system" in str(raised.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("while True: print('x' * 100000)\n", "OSError: [Errno 27] File too large"),
        ("kept = []\nwhile True: kept.append(bytes(100_000_000))\n", "MemoryError: "),
        ("import mmap\nmmap.mmap(-1, 7 << 30)\n", "OSError: [Errno 12] Cannot allocate memory"),
        ("def deep(): deep()\ndeep()\n", "RecursionError: maximum recursion depth exceeded"),
        (GARBAGE, "it sent an invalid message"),
        (
            f"{FORGED}forge({{'do': 'register', 'type': 'a:b:C', 'name': 'c', 'dependencies': 7}})\n",
            "an invalid message",
        ),
        (f"{FORGED}forge({{'do': 'register', 'name': 'c'}})\n", "an invalid message"),
        (f"{FORGED}forge({{'do': 'raised'}})\n", "an invalid message"),
    ],
)
def test_a_program_that_exceeds_a_limit_is_killed_with_a_reason(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert words in str(raised.value).splitlines()[0]


def test_the_number_of_registrations_is_limited(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MESSAGES_MAX", 20)
    with pytest.raises(CannotContinue) as raised:
        read_program(write(MADE + "for number in range(30): Made(f'a{number}')\n"))
    assert str(raised.value) == "app: run the program: it registers more than 20 resources or 200000000 characters"


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("within", ["home", "home/tmp"])
def test_c_code_cannot_read_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str) -> None:
    """Only the project in the user's home is visible, and no other process: from a program without audit hook."""
    home, project = tmp_path / "home", tmp_path / "home" / "work" / "app"
    project.mkdir(parents=True)
    (home / "secret").write_text("key")
    (project / "own").write_text("own")
    (tmp_path / within).mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / within))
    code = (
        "import os\n"
        f"print(os.listdir('{home}'), open('own').read(), os.path.exists('/proc/{os.getpid()}/environ'))\n"
        "open(os.environ['HOME'] + '/made', 'w').write('made')\n"
        "print(os.listdir(os.environ['HOME']))\n"
    )
    command = [sys.executable, "-c", code]
    ended = process.run(lambda *pipes: command, {}, lambda asked: {}, folder=project, seconds=20)
    seen, made = ended.said.splitlines()
    assert "secret" not in seen
    assert "own False" in seen
    assert "made" in made
    assert list((tmp_path / within).glob("seatrial-*")) == []


def running(marker: str) -> bool:
    """Whether the program with this argument runs, and not only the sandbox that will execute it."""
    listed = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return any(line.endswith(f" {marker}") and "confined.py" not in line for line in listed)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the death of a parent")
def test_a_program_ends_with_its_parent(tmp_path: Path) -> None:
    """Even if the parent is killed with SIGKILL."""
    marker = f"lasting-{tmp_path.name}"
    sleeps = f"[sys.executable, '-c', 'import time; time.sleep(60)', '{marker}']"
    code = (
        "import sys, pathlib\nfrom seatrial.sources.pulumi import process\n"
        f"process.run(lambda *pipes: {sleeps}, {{}}, lambda asked: {{}}, folder=pathlib.Path('.'), seconds=60)\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    while not running(marker):
        assert runner.poll() is None
    runner.kill()
    runner.wait()
    for _ in range(100):
        if not running(marker):
            return
    pytest.fail("it is still there")


@pytest.mark.usefixtures("namespaces")
def test_children_of_a_program_end_with_it(tmp_path: Path) -> None:
    """A daemon in its own session, from a program without audit hook."""
    marker = f"daemon-{tmp_path.name}"
    command = [sys.executable, "-c", DAEMON, marker]
    process.run(lambda *pipes: command, {}, lambda asked: {}, folder=tmp_path, seconds=20)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed


def test_a_program_cannot_read_the_home_of_the_user(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("key")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    path = write(f"import os\nassert 'AWS_SECRET_ACCESS_KEY' not in os.environ\nopen('{home}/.aws/credentials')\n")
    with pytest.raises(CannotContinue, match="lets this program read only its project"):
        read_program(path)
