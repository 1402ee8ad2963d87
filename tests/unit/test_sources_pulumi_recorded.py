"""Files that Pulumi wrote: what is read from them, and the one sentence for those of which nothing can be made."""

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
    """Writes a file as Pulumi does, and says where it is."""
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


def test_resources_have_the_dependencies_and_options_that_are_on_record(write: Write) -> None:
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


def test_a_place_in_the_program_is_shown_where_the_program_is(write: Write, tmp_path: Path) -> None:
    (tmp_path / "index.ts").write_text("\n\nnew ConfigMap()\n")
    here = state("ConfigMap", "a", sourcePosition="project:///index.ts#3,1")
    gone = state("ConfigMap", "b", sourcePosition="project:///other.ts#3,1")
    program = read(write(exported(here, gone))).program
    assert program is not None
    assert [str(one.place) for one in program.registrations] == ["index.ts:3", "stack.json:28"]


def test_keys_of_a_secret_that_is_encrypted_are_those_that_others_name(write: Write) -> None:
    of_key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}
    pod = state("Pod", "p", inputs={"spec": {"containers": [{"name": "c", "image": "i", "env": [of_key]}]}})
    release = read(write(exported(state("Secret", "s", inputs={"data": ENCRYPTED}), pod)))
    assert release.resources[0].body["data"] == {"token": "W3NlY3JldF0="}
    assert release.program and release.program.warnings == (
        "Secret/default/s: its data cannot be read; each key that others name is taken to be there",
    )


def test_secrets_that_are_shown_are_read(write: Write) -> None:
    release = read(write(exported(state("Secret", "s", inputs={"data": SHOWN}))))
    assert release.resources[0].body["data"] == {"key": "dg=="}


def test_a_name_that_pulumi_gave_may_be_given_anew(write: Write) -> None:
    meta = {"name": "a-1f2e3d4c", "annotations": {"pulumi.com/autonamed": "true"}}
    program = read(write(exported(state("ConfigMap", "a", inputs={"metadata": meta}), state("ConfigMap", "b")))).program
    assert program and [one.auto_named for one in program.registrations] == [True, False]
    assert program.registrations[0].object and program.registrations[0].object["metadata"]["name"] == "a-1f2e3d4c"


def test_what_a_preview_deletes_is_not_there_afterwards(write: Write) -> None:
    kept, gone = state("ConfigMap", "kept"), state("ConfigMap", "gone")
    steps = [
        {"op": "create", "urn": kept["urn"], "newState": kept},
        {"op": "replace", "urn": kept["urn"], "oldState": kept, "newState": kept},
        {"op": "delete", "urn": gone["urn"], "oldState": gone},
    ]
    release = read(write({"config": {}, "steps": steps, "changeSummary": {"create": 1, "replace": 1, "delete": 1}}))
    assert [str(resource.ref) for resource in release.resources] == ["ConfigMap/default/kept"]


def test_what_was_interrupted_is_said(write: Write) -> None:
    made = state("ConfigMap", "a")
    program = read(write(exported(made, pending_operations=[{"type": "creating", "resource": made}]))).program
    assert program and program.warnings == (
        "stack.json: creating ConfigMap a was interrupted: what became of it is not on record",
    )


def test_a_stack_without_resources_is_nothing_to_check(write: Write) -> None:
    with pytest.raises(NothingToCheck, match=r"stack.json: there is no resource in it"):
        read(write(exported()))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            json.dumps(exported(state("ConfigMap", "a")))[:250],
            "it is no whole JSON document: it breaks off at line 1, column 251",
        ),
        (exported(version=2), "version 2 of stack exports is not known, only 3 and 4"),
        ({"version": 3, "deployment": None}, "its deployment is empty"),
        (exported({"custom": True}), "there is a resource without a URN or a type in it"),
        (
            exported(state("Pod", "p", inputs={"spec": ENCRYPTED})),
            "spec of Pod p is a secret and not readable; export it with: pulumi stack export --show-secrets",
        ),
        (
            {"config": {}, "steps": [{"op": "create", "newState": state("Pod", "p", inputs={"spec": "[secret]"})}]},
            "spec of Pod p is a secret and not readable; a preview never shows it",
        ),
        (
            {"config": {}, "diagnostics": [{"severity": "error", "message": "boom\n"}], "changeSummary": {}},
            "the preview itself failed: boom",
        ),
    ],
)
def test_one_sentence_says_why_a_file_is_of_no_use(write: Write, content: Any, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read(write(content))
    assert str(raised.value) == f"stack.json: read what Pulumi wrote: {words}"


def test_other_json_is_not_taken_for_pulumis(write: Write) -> None:
    path = write({"apiVersion": "v1", "kind": "List", "items": []})
    assert kind_of(path) == MANIFESTS
    with pytest.raises(CannotContinue, match="neither `pulumi preview --json` nor `pulumi stack export` writes such"):
        read_program(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (exported(state("ConfigMap", "a", dependencies=7)), "ConfigMap a is not as Pulumi writes it: Expected `array"),
        (exported(state("ConfigMap", "a", aliases="b")), "ConfigMap a is not as Pulumi writes it: Expected `array"),
        (exported(state("ConfigMap", "a", customTimeouts=7)), "ConfigMap a is not as Pulumi writes it: Expected `obj"),
        (exported(pending_operations=[{"resource": 7}]), "it is not as Pulumi writes it: Expected `object | null`"),
        (
            {"config": {}, "steps": 7},
            "it is not as Pulumi writes it: Expected `array | null`, got `int`",
        ),
        (
            {"config": {}, "steps": [], "diagnostics": [7]},
            "it is not as Pulumi writes it: Expected `object`",
        ),
        ('{"version": 3, "deployment": ' + "[" * 100_000, "it is nested too deeply"),
        (exported(state("ConfigMap", "a", inputs=json.loads('{"data":' * 700 + "1" + "}" * 700))), "nested too deeply"),
    ],
)
def test_what_pulumi_never_writes_is_told_in_one_sentence(write: Write, content: Any, words: str) -> None:
    with pytest.raises(CannotContinue) as raised:
        read(write(content))
    assert str(raised.value).startswith("stack.json: read what Pulumi wrote: ") and words in str(raised.value)


def test_what_pulumi_may_write_is_read(write: Write) -> None:
    """A mark that Windows puts first, nothing where a list could be, and a secret that is no JSON."""
    secret = {**SHOWN, "plaintext": "no JSON"}
    lax = state(
        "ConfigMap", "a", dependencies=None, propertyDependencies={"data": None}, inputs={"data": {"b": secret}}
    )
    (resource,) = read(write("\ufeff" + json.dumps(exported(lax)))).resources
    assert resource.body["data"] == {"b": "[secret]"}
