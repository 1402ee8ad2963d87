"""Previews and stack exports of Pulumi: what is read from them, and the errors of unusable ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.sources import MANIFESTS, PROGRAM, kind_of
from seatrial.sources.pulumi import read_program

Write = Callable[[Any], str]

STACK = "urn:pulumi:dev::app::pulumi:pulumi:Stack::app-dev"
ENCRYPTED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}
SHOWN = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": '{"key": "dg=="}'}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a recording and returns its path."""
    monkeypatch.chdir(tmp_path)

    def written(content: Any) -> str:
        text = content if isinstance(content, str) else json.dumps(content, indent=4)
        (tmp_path / "stack.json").write_text(text)
        return "stack.json"

    return written


def exported(*states: Body, version: int = 3, **more: Any) -> Body:
    root = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"}
    return {"version": version, "deployment": {"manifest": {}, "resources": [root, *states], **more}}


def state(kind: str, name: str, **more: Any) -> Body:
    type_ = f"kubernetes:core/v1:{kind}"
    inputs = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}}
    return {
        "urn": f"urn:pulumi:dev::app::{type_}::{name}",
        "custom": True,
        "id": f"default/{name}",
        "type": type_,
        "parent": STACK,
        **more,
        "inputs": {**inputs, **more.get("inputs", {})},
    }


def read(path: str) -> Release:
    assert kind_of(path) == PROGRAM
    return read_program(path)


def test_resources_have_the_recorded_dependencies_and_options(write: Write) -> None:
    first = state("ConfigMap", "a", protect=True, customTimeouts={"create": 90})
    again = state("ConfigMap", "b", dependencies=[first["urn"]], propertyDependencies={"data": [first["urn"]]})
    replaced = {**state("ConfigMap", "a"), "delete": True}
    theirs = state("ConfigMap", "c", external=True)
    release = read(write(exported(first, replaced, again, theirs)))
    assert (release.name, release.program and release.program.stack) == ("app", "dev")
    assert release.program is not None
    a, b, c = release.program.registrations
    assert (a.options.protect, a.options.create_timeout, a.dependencies) == (True, "90s", ())
    assert (b.dependencies, b.property_dependencies) == ((a.urn,), {"data": (a.urn,)})
    assert c.reads == "default/c"
    assert [str(resource.ref) for resource in release.resources] == ["ConfigMap/default/a", "ConfigMap/default/b"]
    assert str(a.place) == "stack.json:12"


def test_a_place_in_the_program_is_used_if_the_file_exists(write: Write, tmp_path: Path) -> None:
    (tmp_path / "index.ts").write_text("\n\nnew ConfigMap()\n")
    here = state("ConfigMap", "a", sourcePosition="project:///index.ts#3,1")
    gone = state("ConfigMap", "b", sourcePosition="project:///other.ts#3,1")
    program = read(write(exported(here, gone))).program
    assert program is not None
    assert [str(one.place) for one in program.registrations] == ["index.ts:3", "stack.json:28"]


def test_an_encrypted_secret_has_the_keys_that_other_objects_refer_to(write: Write) -> None:
    of_key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}
    pod = state("Pod", "p", inputs={"spec": {"containers": [{"name": "c", "image": "i", "env": [of_key]}]}})
    release = read(write(exported(state("Secret", "s", inputs={"data": ENCRYPTED}), pod)))
    assert release.resources[0].body["data"] == {"token": "W3NlY3JldF0="}
    assert release.program and release.program.warnings == (
        "Secret/default/s: data cannot be read; assuming that all keys exist that other objects refer to",
    )


def test_decrypted_secrets_are_read(write: Write) -> None:
    release = read(write(exported(state("Secret", "s", inputs={"data": SHOWN}))))
    assert release.resources[0].body["data"] == {"key": "dg=="}


def test_a_generated_name_may_change(write: Write) -> None:
    meta = {"name": "a-1f2e3d4c", "annotations": {"pulumi.com/autonamed": "true"}}
    program = read(write(exported(state("ConfigMap", "a", inputs={"metadata": meta}), state("ConfigMap", "b")))).program
    assert program and [one.auto_named for one in program.registrations] == [True, False]
    assert program.registrations[0].object and program.registrations[0].object["metadata"]["name"] == "a-1f2e3d4c"


def test_resources_that_a_preview_deletes_are_left_out(write: Write) -> None:
    kept, gone = state("ConfigMap", "kept"), state("ConfigMap", "gone")
    steps = [
        {"op": "create", "urn": kept["urn"], "newState": kept},
        {"op": "replace", "urn": kept["urn"], "oldState": kept, "newState": kept},
        {"op": "delete", "urn": gone["urn"], "oldState": gone},
    ]
    release = read(write({"config": {}, "steps": steps, "changeSummary": {"create": 1, "replace": 1, "delete": 1}}))
    assert [str(resource.ref) for resource in release.resources] == ["ConfigMap/default/kept"]


def test_an_interrupted_operation_is_a_warning(write: Write) -> None:
    made = state("ConfigMap", "a")
    program = read(write(exported(made, pending_operations=[{"type": "creating", "resource": made}]))).program
    assert program and program.warnings == (
        "stack.json: creating ConfigMap a was interrupted; its outcome is not in the export",
    )


def test_a_stack_without_resources_is_nothing_to_check(write: Write) -> None:
    with pytest.raises(NothingToCheck, match=r"stack.json: contains no resources"):
        read(write(exported()))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            json.dumps(exported(state("ConfigMap", "a")))[:250],
            "not valid JSON: error at line 1, column 251",
        ),
        (exported(version=2), "version 2 of stack exports is not supported, only 3 and 4"),
        ({"version": 3, "deployment": None}, "the deployment is empty"),
        (exported({"custom": True}), "a resource has no URN or no type"),
        (
            exported(state("Pod", "p", inputs={"spec": ENCRYPTED})),
            "spec of Pod p is an encrypted secret; export it with: pulumi stack export --show-secrets",
        ),
        (
            {"config": {}, "steps": [{"op": "create", "newState": state("Pod", "p", inputs={"spec": "[secret]"})}]},
            "spec of Pod p is an encrypted secret; a preview never contains secrets",
        ),
        (
            {"config": {}, "diagnostics": [{"severity": "error", "message": "boom\n"}], "changeSummary": {}},
            "the preview itself failed: boom",
        ),
    ],
)
def test_an_unusable_recording_is_one_sentence(write: Write, content: Any, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read(write(content))
    assert str(raised.value) == f"stack.json: read the Pulumi output: {words}"


def test_other_json_is_not_a_recording(write: Write) -> None:
    path = write({"apiVersion": "v1", "kind": "List", "items": []})
    assert kind_of(path) == MANIFESTS
    with pytest.raises(CannotContinue, match="not the output of `pulumi preview --json` or `pulumi stack export`"):
        read_program(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            exported(state("ConfigMap", "a", dependencies=7)),
            "ConfigMap a does not have the format of Pulumi: Expected `array",
        ),
        (
            exported(state("ConfigMap", "a", aliases="b")),
            "ConfigMap a does not have the format of Pulumi: Expected `array",
        ),
        (
            exported(state("ConfigMap", "a", customTimeouts=7)),
            "ConfigMap a does not have the format of Pulumi: Expected `obj",
        ),
        (
            exported(pending_operations=[{"resource": 7}]),
            "it does not have the format of Pulumi: Expected `object | null`",
        ),
        (
            {"config": {}, "steps": 7},
            "it does not have the format of Pulumi: Expected `array | null`, got `int`",
        ),
        (
            {"config": {}, "steps": [], "diagnostics": [7]},
            "it does not have the format of Pulumi: Expected `object`",
        ),
        ('{"version": 3, "deployment": ' + "[" * 100_000, "nested too deeply"),
        (exported(state("ConfigMap", "a", inputs=json.loads('{"data":' * 700 + "1" + "}" * 700))), "nested too deeply"),
    ],
)
def test_a_recording_in_another_format_is_refused(write: Write, content: Any, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read(write(content))
    assert str(raised.value).startswith("stack.json: read the Pulumi output: ") and words in str(raised.value)


def test_optional_fields_of_a_recording_are_read(write: Write) -> None:
    """A byte order mark, null instead of a list, and a secret that is not JSON."""
    secret = {**SHOWN, "plaintext": "no JSON"}
    lax = state(
        "ConfigMap", "a", dependencies=None, propertyDependencies={"data": None}, inputs={"data": {"b": secret}}
    )
    (resource,) = read(write("\ufeff" + json.dumps(exported(lax)))).resources
    assert resource.body["data"] == {"b": "[secret]"}
