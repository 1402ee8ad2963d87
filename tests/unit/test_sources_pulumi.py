"""Pulumi programs in Python: what they register, and that running one can do no harm."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from programsread import complaint, registered

from seatrial.errors import CannotContinue, NothingToCheck
from seatrial.registration import short
from seatrial.sources.pulumi import process, python, read_program
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import read_project

Write = Callable[[str], str]

MADE = """
import pulumi
class Made(pulumi.CustomResource):
    def __init__(self, name, opts=None, **props):
        super().__init__("kubernetes:core/v1:ConfigMap", name, props, opts)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program, and says where it is."""
    monkeypatch.chdir(tmp_path)

    def written(code: str) -> str:
        folder = tmp_path / "app"
        folder.mkdir(exist_ok=True)
        (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (folder / "__main__.py").write_text(code)
        return "app"

    return written


def test_inputs_made_of_outputs_are_dependencies_and_so_is_what_is_asked_for(write: Write) -> None:
    path = write(
        MADE
        + """
a = Made("a", metadata={"name": "a"})
b = Made("b", metadata={"name": "b"}, data={"of": a.id})
c = Made("c", pulumi.ResourceOptions(depends_on=[b], protect=True, custom_timeouts={"create": "2m"}))
"""
    )
    program = registered(path)
    assert [(short(one.urn), [short(urn) for urn in one.dependencies]) for one in program.registrations] == [
        ("ConfigMap a", []),
        ("ConfigMap b", ["ConfigMap a"]),
        ("ConfigMap c", ["ConfigMap b"]),
    ]
    first, second, third = program.registrations
    assert first.object == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    assert second.object and second.object["data"] == {"of": "default/a"}
    assert third.auto_named and third.options.protect and third.options.create_timeout == "2m"
    assert str(third.place) == "app/__main__.py:9"


def test_a_component_is_no_dependency_but_what_is_in_it_when_it_is_asked_is(write: Write) -> None:
    path = write(
        MADE
        + """
class Group(pulumi.ComponentResource):
    def __init__(self, name, early):
        super().__init__("app:index:Group", name)
        made = lambda *_: Made(f"{name}-inside", pulumi.ResourceOptions(parent=self))
        early and made() or Made(f"{name}-first").id.apply(made)
for name, early in (("now", True), ("later", False)):
    group = Group(name, early)
    Made(f"after-{name}", pulumi.ResourceOptions(depends_on=[group]))
"""
    )
    program = registered(path)
    found = {one.name: one for one in program.registrations}
    assert [short(urn) for urn in found["after-now"].dependencies] == ["ConfigMap now-inside"]
    assert [short(urn) for urn in found["after-later"].asked] == ["Group later"]
    assert found["after-later"].dependencies == ()


def test_resources_of_another_cluster_are_named_and_left_out(write: Write) -> None:
    path = write(
        MADE
        + """
edge = pulumi.ProviderResource("kubernetes", "edge", {"context": "edge"})
team = pulumi.ProviderResource("kubernetes", "team", {"namespace": "team", "enableConfigMapMutable": True})
far = Made("far", pulumi.ResourceOptions(provider=edge), metadata={"name": "far"})
near = Made("near", pulumi.ResourceOptions(provider=team, depends_on=[far]), metadata={"name": "near"})
here = Made("here", metadata={"name": "here"})
"""
    )
    program = registered(path)
    assert {str(one.ref) for one in program.registrations if one.ref} == {
        "ConfigMap/default/here",
        "ConfigMap/team/near",
    }
    assert program.unknown == ("the provider edge is of another cluster: ConfigMap far is not rehearsed here",)
    near = next(one for one in program.registrations if one.name == "near")
    assert [short(urn) for urn in near.dependencies] == ["ConfigMap far"] and near.manner.mutable_configs


def test_aliases_are_the_names_that_a_resource_had_its_own_and_those_of_its_parent(write: Write) -> None:
    path = write(
        MADE
        + """
class Group(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("app:Group", name, None, opts)
group = Group("group", pulumi.ResourceOptions(aliases=[pulumi.Alias(name="team")]))
Made("group-a", pulumi.ResourceOptions(parent=group), metadata={"name": "a"})
Made("b", pulumi.ResourceOptions(aliases=[pulumi.Alias(name="c"), pulumi.Alias(parent=group)], import_="default/b"))
"""
    )
    program = registered(path)
    aliases = {one.name: [urn.partition("::app::")[2] for urn in one.aliases] for one in program.registrations}
    of = "kubernetes:core/v1:ConfigMap"
    assert aliases == {
        "group": ["app:Group::team"],
        "group-a": [f"app:Group${of}::team-a"],
        "b": [f"{of}::c", f"app:Group${of}::b"],
    }
    assert program.registrations[-1].options.imports == "default/b"


def test_configuration_of_the_stack_is_given_and_its_secrets_are_not(write: Write, tmp_path: Path) -> None:
    path = write(
        MADE
        + """
config = pulumi.Config()
Made("a", data={"size": config.require("size"), "key": config.require_secret("key")})
"""
    )
    (tmp_path / "app" / "Pulumi.dev.yaml").write_text("config:\n  app:size: 3\n  app:key:\n    secure: v1:abc\n")
    (only,) = registered(path).registrations
    assert only.inputs["data"] == {"size": "3", "key": "[secret]"}


def test_a_program_that_registers_nothing_is_nothing_to_check(write: Write) -> None:
    with pytest.raises(NothingToCheck, match="app: the program registers nothing"):
        read_program(write("import pulumi\n"))


def test_what_a_program_raises_is_told_with_its_own_lines(write: Write, tmp_path: Path) -> None:
    path = write("import parts\nparts.build({})\n")
    (tmp_path / "app" / "parts.py").write_text("def build(sizes):\n    return sizes['large']\n")
    with pytest.raises(CannotContinue) as raised:
        read_program(path)
    assert str(raised.value) == (
        "app/parts.py:2: run the program: KeyError: 'large'\n"
        "  app/__main__.py:2 in <module>: parts.build({})\n"
        "  app/parts.py:2 in build: return sizes['large']"
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys\nsys.exit(3)\n", "app/__main__.py:2: run the program: it called sys.exit(3)"),
        ("import os\nos._exit(3)\n", "app: run the program: it ended on its own before it was done"),
    ],
)
def test_a_program_that_leaves_is_told_of(write: Write, code: str, words: str) -> None:
    assert complaint(write(code)).splitlines()[0] == words


def test_a_package_that_is_not_there_is_told_with_the_python_that_lacks_it(write: Write) -> None:
    assert complaint(write("import nowhere\n")).splitlines()[0] == (
        "app/__main__.py:1: run the program: ModuleNotFoundError: No module named 'nowhere'; it was run with "
        f"{sys.executable}, unless virtualenv in app/Pulumi.yaml names another"
    )


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


@pytest.fixture
def namespaces() -> None:
    """Skips where the kernel does not let everyone have namespaces of their own."""
    if subprocess.run(["unshare", "--user", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("needs a kernel that lets everyone enter new namespaces")


@pytest.mark.usefixtures("namespaces")
def test_what_no_hook_hears_of_cannot_write_to_the_disk_either(write: Write) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write("import os\nos.mkfifo('made')\n"))
    assert "Read-only file system" in str(raised.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("while True: print('x' * 100000)\n", "OSError: [Errno 27] File too large"),
        ("kept = []\nwhile True: kept.append(bytearray(100_000_000))\n", "MemoryError: "),
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


@pytest.mark.parametrize("runtime", ["go", "dotnet", "{name: java}"])
def test_of_a_program_that_is_not_run_pulumi_is_to_be_asked(write: Write, tmp_path: Path, runtime: str) -> None:
    path = write("")
    (tmp_path / "app" / "Pulumi.yaml").write_text(f"name: app\nruntime: {runtime}\n")
    named = runtime.strip("{}").removeprefix("name: ")
    assert complaint(path) == (
        f"app/Pulumi.yaml: programs for {named} are not run here; give what Pulumi makes of it in the place of the "
        "folder: pulumi preview --json --show-sames > preview.json, or of what is deployed: pulumi stack export > "
        "stack.json"
    )


def test_the_virtualenv_of_a_workspace_is_found_above_the_program(write: Write, tmp_path: Path) -> None:
    """But not above the repository, and not where it has no Pulumi: that one is somebody else's."""
    path = write("")
    (tmp_path / ".git").touch()
    interpreter = tmp_path / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text("#!/bin/sh\necho no python\n")
    interpreter.chmod(0o755)
    with pytest.raises(NothingToCheck):
        read_program(path)
    (tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "pulumi").mkdir(parents=True)
    assert complaint(path) == "app: run the program: it ended on its own before it was done: no python"


def test_configuration_that_is_lacking_is_named_and_can_be_given(write: Write) -> None:
    path = write(MADE + "Made('a', data={'size': pulumi.Config().require('size')})\n")
    assert complaint(path) == (
        "app/__main__.py:6: run the program: it asks for app:size, which is not configured; give it with --set "
        "app:size=VALUE, or in app/Pulumi.dev.yaml\n"
        "  app/__main__.py:6 in <module>: Made('a', data={'size': pulumi.Config().require('size')})"
    )
    for given in ({"size": 3}, {"app:size": "3"}):
        release = read_program(path, config=given)
        assert release.resources[0].body["data"] == {"size": "3"}


def test_what_only_a_real_run_knows_is_unknown_and_named(write: Write) -> None:
    path = write(
        MADE
        + """
class Secret(pulumi.CustomResource):
    def __init__(self, name, **props):
        super().__init__("kubernetes:core/v1:Secret", name, props)
other = pulumi.StackReference("acme/network/prod")
other.get_output("zone").apply(lambda zone: 1 / 0)
Made("a", metadata={"name": "a", "namespace": other.require_output("zone")}, data={"host": other.get_output("host")})
Secret("b", metadata={"name": "b"}, data={"key": other.get_output("key")})
"""
    )
    release = read_program(path)
    settings, secret = (resource.body for resource in release.resources)
    assert (settings["metadata"]["namespace"], settings["data"]) == ("unknown", {"host": "unknown"})
    assert secret["data"] == {"key": "dW5rbm93bg=="}
    assert release.program and release.program.unknown == (
        "StackReference acme/network/prod: what another stack gives out is not known, and stays so",
        "ConfigMap a: its name or namespace is not known, and taken to be unknown",
    )
