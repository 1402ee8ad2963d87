"""Unknown fields: refused, warned of, or dropped. On both arms."""

from __future__ import annotations

import json

import pytest
from arms import Here, config, deployment

from seatrial.model.resource import Body

UNKNOWN: Body = {**config(), "colour": "red"}
DEEP: Body = deployment()
DEEP["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"


def test_strict_refuses_unknown_fields(here: Here) -> None:
    words = 'cannot be handled as a ConfigMap: strict decoding error: unknown field "colour"'
    assert here.create(UNKNOWN, fieldValidation="Strict").refusal == (
        f'400 BadRequest: ConfigMap in version "v1" {words}'
    )
    assert here.create(DEEP, fieldValidation="Strict").refusal == (
        '400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown '
        'field "spec.template.spec.containers[0].imagePullPolice"'
    )


@pytest.mark.parametrize("asked", [{}, {"fieldValidation": "Warn"}], ids=["by default", "Warn"])
def test_warn_drops_unknown_fields_with_a_warning(here: Here, asked: dict[str, str | int]) -> None:
    made = here.create(UNKNOWN, **asked)
    assert (made.code, made.warnings) == (201, ('unknown field "colour"',))
    assert "colour" not in made.body
    made = here.create(DEEP, **asked)
    assert made.warnings == ('unknown field "spec.template.spec.containers[0].imagePullPolice"',)


def test_ignore_drops_unknown_fields_silently(here: Here) -> None:
    made = here.create(UNKNOWN, fieldValidation="Ignore")
    assert (made.code, made.warnings) == (201, ())
    assert "colour" not in made.body


def test_updates_and_patches_are_validated_the_same_way(here: Here) -> None:
    here.create(config())
    assert here.put(UNKNOWN).warnings == ('unknown field "colour"',)
    assert here.patch("ConfigMap", "app", {"colour": "red"}).warnings == ('unknown field "colour"',)
    refused = here.patch("ConfigMap", "app", {"colour": "red"}, fieldValidation="Strict")
    assert refused.code == 422
    assert refused.body["message"].endswith(': strict decoding error: unknown field "colour"')


def test_an_apply_always_refuses_unknown_fields(here: Here) -> None:
    assert here.apply(UNKNOWN).refusal == (
        "500 : failed to create typed patch object (/app; /v1, Kind=ConfigMap): .colour: field not declared in schema"
    )


def test_a_duplicate_field_is_reported(here: Here) -> None:
    text = json.dumps(config(data={"a": "1"})).replace('"data": {"a": "1"}', '"data": {"a": "1", "a": "2"}').encode()
    made = here.api.post(here.at("ConfigMap"), text)
    assert (made.code, made.warnings, made.body["data"]) == (201, ('duplicate field "data.a"',), {"a": "2"})


WRONG_TYPES: dict[str, tuple[Body, str]] = {
    "a text for a number": (
        {"replicas": "one"},
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a number for a text": (
        {"template": {"spec": {"containers": [{"name": "main", "image": "app", "env": [{"name": "A", "value": 1}]}]}}},
        "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type "
        "string",
    ),
    "a truth for a text": (
        {"template": {"spec": {"containers": [{"name": "main", "image": "app", "command": [True]}]}}},
        "json: cannot unmarshal bool into Go struct field Container.spec.template.spec.containers.command of type "
        "string",
    ),
}


@pytest.mark.parametrize("given", WRONG_TYPES)
def test_a_value_of_the_wrong_type_is_always_refused(here: Here, given: str) -> None:
    spec, words = WRONG_TYPES[given]
    body = {**deployment(), "spec": {**deployment()["spec"], **spec}}
    refused = here.create(body, fieldValidation="Ignore").refusal
    assert refused == f'400 BadRequest: Deployment in version "v1" cannot be handled as a Deployment: {words}'
