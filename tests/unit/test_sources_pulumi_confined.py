"""Pulumi programs in Python: that running one can do no harm, and ends."""

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
    """Writes a program, and says where it is."""
    monkeypatch.chdir(tmp_path)
    return partial(python_program, tmp_path)


@pytest.fixture
def namespaces() -> None:
    """Skips where the kernel does not let everyone have namespaces of their own."""
    if subprocess.run(["unshare", "--user", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("needs a kernel that lets everyone enter new namespaces")


def test_a_program_that_hangs_is_ended(write: Write) -> None:
    project = read_project(write("while True:\n    pass\n"))
    with pytest.raises(CannotContinue) as raised:
        python.run(project, Monitor(project, Charts(project.folder)), seconds=2.0)
    assert str(raised.value) == "app: run the program: it did not end within 2 seconds"


def test_a_program_reaches_no_network(write: Write) -> None:
    """Not even what listens on this machine, though it tells nobody that it tries."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        path = write(
            f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 2)\nexcept OSError:\n    pass\n"
        )
        with pytest.raises(NothingToCheck):
            read_program(path)
        with pytest.raises(BlockingIOError):  # Nobody has knocked.
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
        ("open('made', 'w')\n", "seatrial lets this program write no file: made"),
        ("import os\nos.remove('__main__.py')\n", "seatrial lets this program change no file: os.remove __main__.py"),
        ("import sqlite3\nsqlite3.connect('made')\n", "lets this program change no file: sqlite3.connect made"),
        ("open('/proc/1/environ')\n", "read nothing of yours beside its project: /proc/1/environ"),
        ("import os\nos.open('/', os.O_RDONLY)\n", "read nothing of yours beside its project: /"),
        ("open('/dev/shm/made', 'w')\n", "seatrial lets this program write no file: /dev/shm/made"),
    ],
)
def test_a_program_starts_nothing_and_changes_nothing(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert words in str(raised.value)


@pytest.mark.usefixtures("namespaces")
def test_what_no_hook_hears_of_cannot_write_to_the_disk_either(write: Write) -> None:
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
        (GARBAGE, "it writes into a pipe that is not its own"),
        (f"{FORGED}forge({{'do': 'register', 'type': 'a:b:C', 'name': 'c', 'dependencies': 7}})\n", "a pipe that is"),
        (f"{FORGED}forge({{'do': 'register', 'name': 'c'}})\n", "a pipe that is not its own"),
        (f"{FORGED}forge({{'do': 'raised'}})\n", "a pipe that is not its own"),
    ],
)
def test_a_program_that_is_too_much_is_ended_and_told_of(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert words in str(raised.value).splitlines()[0]


def test_a_program_may_register_only_so_much(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MESSAGES_MAX", 20)
    with pytest.raises(CannotContinue) as raised:
        read_program(write(MADE + "for number in range(30): Made(f'a{number}')\n"))
    assert str(raised.value) == "app: run the program: registers more than 20 resources, or 200000000 characters"


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("within", ["home", "home/tmp"])
def test_what_no_hook_hears_of_sees_nothing_of_the_user_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    """Not the home of the user but for the project in it, and no other process: from a program without guards."""
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
    farewell = process.run(lambda *pipes: command, {}, lambda asked: {}, folder=project, seconds=20)
    seen, made = farewell.said.splitlines()
    assert "secret" not in seen
    assert "own False" in seen
    assert "made" in made
    assert list((tmp_path / within).glob("seatrial-*")) == []


def running(marker: str) -> bool:
    """Whether the program itself runs that has been given this word, and not only what is about to become it."""
    listed = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return any(line.endswith(f" {marker}") and "confined.py" not in line for line in listed)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is told of the end of whoever started him")
def test_a_program_ends_with_whoever_runs_it(tmp_path: Path) -> None:
    """Also where that one is ended so that it can tell nobody."""
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
def test_what_a_program_manages_to_start_ends_with_it(tmp_path: Path) -> None:
    """A daemon in a session of its own, from a program that nothing guards from within."""
    marker = f"daemon-{tmp_path.name}"
    command = [sys.executable, "-c", DAEMON, marker]
    process.run(lambda *pipes: command, {}, lambda asked: {}, folder=tmp_path, seconds=20)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed


def test_a_program_sees_nothing_of_the_user(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("key")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    path = write(f"import os\nassert 'AWS_SECRET_ACCESS_KEY' not in os.environ\nopen('{home}/.aws/credentials')\n")
    with pytest.raises(CannotContinue, match="read nothing of yours beside its project"):
        read_program(path)
