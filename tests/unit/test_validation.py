"""Validation errors of the API server.

`recorded/*.jsonl` has the responses of a real kube-apiserver (v1.34.10) to the same bodies, created with `dryRun=All`.
A line is a base, or one change to a base and the response; an empty response is a creation.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.cluster.discovery.served import Discovery
from seatrial.cluster.refusal import Refused
from seatrial.cluster.validation.custom import rules_in_cel
from seatrial.cluster.validation.pipeline import (
    applied,
    decoded,
    duplicate_fields,
    patched,
    problems,
    refuse_invalid,
)
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body

RECORDED = Path(__file__).parent / "recorded"
GIZMO = ServedKind("example.com", "v1", "Gizmo", "gizmos", "gizmo", True, subresources=("status",))
DISCOVERY = Discovery("1.34")
DISCOVERY.add([GIZMO])


def lines(name: str) -> list[Body]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


def cases(name: str) -> list[Any]:
    read = lines(name)
    bases = {line["base"]: line["body"] for line in read if "base" in line and "body" in line}
    reported = [line for line in read if "case" in line]
    return [pytest.param(line, text_of(line, bases), id=line["case"]) for line in reported]


def text_of(line: Body, bases: dict[str, Body]) -> bytes:
    if "text" in line:
        return str(line["text"]).encode()
    if "body" in line:
        return json.dumps(line["body"]).encode()
    body = json.loads(json.dumps(bases[line["base"]]))
    *way, last = line["at"]
    there = body
    for step in way:
        there = there[step]
    if "value" in line:
        there[last] = line["value"]
    else:
        del there[last]
    return json.dumps(body).encode()


def kind_of(resource: str) -> ServedKind:
    found = re.fullmatch(r"/api(?:s/([^/]+))?/([^/]+)/([^/]+)", resource)
    assert found
    kind = DISCOVERY.find(found[1] or "", found[2], found[3])
    assert kind
    return kind


def answer(line: Body, text: bytes, schema: Schema | None) -> tuple[str, list[str]]:
    kind, body = kind_of(line["resource"]), json.loads(text)
    try:
        found = decoded(kind, body, "1.34", schema, line.get("validation", "Strict"), duplicate_fields(text, body))
        refuse_invalid(kind, found.body, schema)
    except Refused as refused:
        return refused.message, []
    return "", list(found.warnings)


@pytest.mark.parametrize(("line", "text"), cases("creations.jsonl"))
def test_creations_are_validated_as_by_a_real_server(line: Body, text: bytes) -> None:
    assert answer(line, text, None) == (line["says"], line.get("warnings", []))


@pytest.mark.parametrize(("line", "text"), cases("custom.jsonl"))
def test_custom_resources_are_validated_as_by_a_real_server(line: Body, text: bytes) -> None:
    schema = as_schema(lines("custom.jsonl")[0]["schema"])
    assert answer(line, text, schema) == (line["says"], line.get("warnings", []))


def kind(group: str, name: str) -> ServedKind:
    found = DISCOVERY.of_kind(group, name)
    assert found
    return found


def refusal(exception: pytest.ExceptionInfo[Refused]) -> tuple[int, str]:
    return exception.value.code, exception.value.message


DEPLOYMENT: Body = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}},
}


def test_nulls_count_as_not_set() -> None:
    body = {**DEPLOYMENT, "spec": {"replicas": None, "template": {"spec": {"containers": [None]}}}}
    found = decoded(kind("apps", "Deployment"), body, "1.34")
    assert found.body["spec"] == {"template": {"spec": {"containers": [{}]}}}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": None}}
    assert decoded(kind("", "ConfigMap"), data, "1.34").body["data"] == {"key": ""}


def test_a_valid_body_is_returned_unchanged() -> None:
    assert decoded(kind("apps", "Deployment"), DEPLOYMENT, "1.34").body is DEPLOYMENT


def test_unknown_fields_are_dropped_with_a_warning() -> None:
    body = {**DEPLOYMENT, "spec": {"replicas": 1, "replcas": 2}}
    found = decoded(kind("apps", "Deployment"), body, "1.34", validation="Warn")
    assert found.body["spec"] == {"replicas": 1}
    assert found.warnings == ('unknown field "spec.replcas"',)
    assert body["spec"] == {"replicas": 1, "replcas": 2}


def test_a_strategic_patch_is_refused_with_the_converters_error() -> None:
    patch: Body = {"spec": {"replicas": "1"}}
    result = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": "1"}}
    with pytest.raises(Refused) as exception:
        patched(kind("apps", "Deployment"), result, patch, "strategic", "1.34")
    words = ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:1]]": unrecognized type: int32'
    assert refusal(exception) == (422, words)


def test_a_merge_patch_is_refused_with_the_whole_result() -> None:
    result = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "foo": 1}
    with pytest.raises(Refused) as exception:
        patched(kind("", "ConfigMap"), result, {"foo": 1}, "merge", "1.34", validation="Strict")
    shown = r"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"foo\":1}"
    words = f' "" is invalid: patch: Invalid value: "{shown}": strict decoding error: unknown field "foo"'
    assert refusal(exception) == (422, words)


def test_an_applied_object_is_refused_where_it_cannot_be_converted() -> None:
    body = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 1.5}}
    with pytest.raises(Refused) as exception:
        applied(kind("apps", "Deployment"), body, "1.34")
    assert refusal(exception) == (
        500,
        "failed to convert new object (/web; apps/v1, Kind=Deployment) to proper version: unable to convert "
        "unstructured object to apps/v1, Kind=Deployment: cannot convert float64 to int32",
    )


def test_a_config_map_is_limited_to_one_mebibyte() -> None:
    body = {"metadata": {"name": "a"}, "data": {"key": "x" * 1048576}}
    assert list(problems(kind("", "ConfigMap"), body)) == []
    body["data"]["key"] += "x"
    found = list(problems(kind("", "ConfigMap"), body))
    assert found == ["[]: Too long: may not be more than 1048576 bytes"]


def test_annotations_are_limited_to_256_kibibytes() -> None:
    body = {"metadata": {"name": "a", "annotations": {"k": "ä" * 131072}}}
    found = list(problems(kind("", "ConfigMap"), body))
    assert found == ["metadata.annotations: Too long: may not be more than 262144 bytes"]


def test_duplicate_keys_are_found_at_any_depth() -> None:
    text = b'{"a": {"b": 1, "b": 2}, "c": [{"d": 1}, {"d": 1, "d": "x\\":"}]}'
    assert duplicate_fields(text, json.loads(text)) == ("a.b", "c[1].d")
    once = b'{"a": {"b": "\\"b\\": 1"}}'
    assert duplicate_fields(once, json.loads(once)) == ()


def test_custom_resources_get_the_defaults_of_their_schema() -> None:
    schema = as_schema(lines("custom.jsonl")[0]["schema"])
    body = {"metadata": {"name": "g"}, "spec": {"size": 1, "kind": "a", "name": None, "map": [{"name": "x"}]}}
    found = decoded(GIZMO, body, "1.34", schema)
    assert found.body["spec"] == {
        "size": 1,
        "kind": "a",
        "map": [{"name": "x", "v": 3}],
        "on": True,
        "nodef": {"deep": "x"},
    }


def test_rules_in_cel_are_collected() -> None:
    schema = lines("custom.jsonl")[0]["schema"]
    assert [rule["rule"] for rule, _ in rules_in_cel(schema)] == ["self.x > 3"]
    body = {"metadata": {"name": "g"}, "spec": {"size": 1, "kind": "a", "cel": {"x": 1}}}
    assert list(problems(GIZMO, body, as_schema(schema))) == []


def test_an_older_server_quotes_labels_as_go_source() -> None:
    template = {
        "metadata": {"labels": {"app": "other", "a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    body = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": template}}
    with pytest.raises(Refused) as exception:
        refuse_invalid(kind("apps", "Deployment"), body, minor=33)
    assert refusal(exception) == (
        422,
        'Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value: '
        'map[string]string{"a":"b", "app":"other"}: `selector` does not match template `labels`',
    )
