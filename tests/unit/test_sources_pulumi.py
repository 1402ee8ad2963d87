"""Pulumi programs in Python: what they register, and the errors of broken ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from programsread import MADE, complaint, python_program, registered

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.program import short
from seatrial.sources.pulumi import read_program

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program and returns its path."""
    monkeypatch.chdir(tmp_path)
    return partial(python_program, tmp_path)


def test_inputs_that_use_outputs_and_depends_on_are_dependencies(write: Write) -> None:
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


def test_a_dependency_on_a_component_means_its_current_children(write: Write) -> None:
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


def test_resources_of_another_cluster_are_listed_and_left_out(write: Write) -> None:
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
    assert program.unknown == ("the provider edge is for another cluster: ConfigMap far is not rehearsed",)
    near = next(one for one in program.registrations if one.name == "near")
    assert [short(urn) for urn in near.dependencies] == ["ConfigMap far"] and near.manner.mutable_configs


def test_aliases_include_those_that_follow_from_the_parent(write: Write) -> None:
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


def test_the_program_gets_the_stack_configuration_without_secrets(write: Write, tmp_path: Path) -> None:
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
    with pytest.raises(NothingToCheck, match="app: the program registers no resources"):
        read_program(write("import pulumi\n"))


def test_an_exception_is_reported_with_the_frames_of_the_program(write: Write, tmp_path: Path) -> None:
    path = write("import parts\nparts.build({})\n")
    (tmp_path / "app" / "parts.py").write_text("def build(sizes):\n    return sizes['large']\n")
    with pytest.raises(CannotContinue) as raised:
        read_program(path)
    assert str(raised.value) == (
        "app/parts.py:2: run the program: KeyError: 'large'\n"
        "  app/__main__.py:2 in <module>: parts.build({})\n"
        "  app/parts.py:2 in build: return sizes['large']"
    )


def test_frames_of_python_itself_are_left_out(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("raise ValueError('no')\n")
    monkeypatch.chdir(tmp_path / "app")
    with pytest.raises(CannotContinue) as raised:
        read_program(".")
    assert str(raised.value) == (
        "__main__.py:1: run the program: ValueError: no\n  __main__.py:1 in <module>: raise ValueError('no')"
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys\nsys.exit(3)\n", "app/__main__.py:2: run the program: it called sys.exit(3)"),
        ("import os\nos._exit(3)\n", "app: run the program: it exited before it was done"),
    ],
)
def test_a_program_that_exits_early_is_one_sentence(write: Write, code: str, words: str) -> None:
    assert complaint(write(code)).splitlines()[0] == words


def test_a_missing_package_names_the_python_that_lacks_it(write: Write) -> None:
    assert complaint(write("import nowhere\n")).splitlines()[0] == (
        "app/__main__.py:1: run the program: ModuleNotFoundError: No module named 'nowhere'; it ran with "
        f"{sys.executable}; set virtualenv in app/Pulumi.yaml to use another"
    )


@pytest.mark.parametrize("runtime", ["go", "dotnet", "{name: java}"])
def test_an_unsupported_runtime_suggests_a_preview(write: Write, tmp_path: Path, runtime: str) -> None:
    path = write("")
    (tmp_path / "app" / "Pulumi.yaml").write_text(f"name: app\nruntime: {runtime}\n")
    named = runtime.strip("{}").removeprefix("name: ")
    assert complaint(path) == (
        f"app/Pulumi.yaml: the runtime {named} is not supported; pass the output of Pulumi instead: pulumi preview "
        "--json --show-sames > preview.json, or for the deployed stack: pulumi stack export > stack.json"
    )


def test_the_virtualenv_of_a_workspace_is_found_in_a_parent_folder(
    write: Write, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """But not above the repository, and not if it has no Pulumi: then it belongs to something else."""
    path = write("")
    (tmp_path / ".git").touch()
    interpreter = tmp_path / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    installed = tmp_path_factory.mktemp("installed") / "python"
    installed.write_text("#!/bin/sh\necho no python\n")
    installed.chmod(0o755)
    interpreter.symlink_to(installed)
    with pytest.raises(NothingToCheck):
        read_program(path)
    (tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "pulumi").mkdir(parents=True)
    assert complaint(path) == "app: run the program: it exited before it was done: no python"


def test_missing_configuration_is_named_and_can_be_set(write: Write) -> None:
    path = write(MADE + "Made('a', data={'size': pulumi.Config().require('size')})\n")
    assert complaint(path) == (
        "app/__main__.py:6: run the program: it needs the configuration value app:size, which is not set; pass --set "
        "app:size=VALUE, or set it in app/Pulumi.dev.yaml\n"
        "  app/__main__.py:6 in <module>: Made('a', data={'size': pulumi.Config().require('size')})"
    )
    for given in ({"size": 3}, {"app:size": "3"}):
        release = read_program(path, config=given)
        assert release.resources[0].body["data"] == {"size": "3"}


def test_outputs_of_a_real_run_are_unknown_and_listed(write: Write) -> None:
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
        "StackReference acme/network/prod: the outputs of another stack are unknown",
        "ConfigMap a: its name or namespace is unknown; assuming 'unknown'",
    )
