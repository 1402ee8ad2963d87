"""Pulumi programs in Python: what they register, and that running one can do no harm."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import CannotContinue, NothingToCheck
from seatrial.registration import Program, short
from seatrial.sources.pulumi import python, read_program
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


def registered(path: str) -> Program:
    program = read_program(path).program
    assert program is not None
    return program


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
        ("import nowhere\n", "app/__main__.py:1: run the program: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_program_that_leaves_is_told_of(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert str(raised.value).splitlines()[0] == words


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
        ("import subprocess\nsubprocess.run(['true'])\n", "without a network and without processes: subprocess.Popen"),
        ("open('made', 'w')\n", "write no file: made"),
        ("import os\nos.remove('__main__.py')\n", "change no file: os.remove __main__.py"),
    ],
)
def test_a_program_starts_nothing_and_changes_nothing(write: Write, code: str, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read_program(write(code))
    assert words in str(raised.value)


def test_a_program_sees_nothing_of_the_user(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("key")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    path = write(f"import os\nassert 'AWS_SECRET_ACCESS_KEY' not in os.environ\nopen('{home}/.aws/credentials')\n")
    with pytest.raises(CannotContinue, match="read nothing of your home"):
        read_program(path)


def test_a_runtime_that_is_not_known_is_said_so(write: Write, tmp_path: Path) -> None:
    path = write("")
    (tmp_path / "app" / "Pulumi.yaml").write_text("name: app\nruntime: {name: go}\n")
    with pytest.raises(CannotContinue, match="programs for go cannot be run here"):
        read_program(path)
