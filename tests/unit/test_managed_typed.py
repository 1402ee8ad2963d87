"""Objects that do not fit their schema are refused before an apply, with the errors of a real API server (1.34)."""

from typing import Any

import pytest

from seatrial.cluster.discovery.schema import builtin_schema
from seatrial.cluster.fields.managed import server_side_apply
from seatrial.cluster.refusal import Refused
from seatrial.model.resource import Body


def refusal_of(body: Body) -> Refused:
    group, _, version = body["apiVersion"].rpartition("/")
    schema = builtin_schema("1.34", group, version, body["kind"])
    with pytest.raises(Refused) as refused:
        server_side_apply(None, body, manager="helm", force=False, schema=schema, time="T1")
    return refused.value


def deployment(*containers: Any, **spec: Any) -> Body:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers), **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "demo"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def test_a_misfit_is_an_error_without_a_reason() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": {}}
    assert refusal_of(body).status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .spec: field not declared in schema",
        "code": 500,
    }


@pytest.mark.parametrize(
    ("containers", "fault"),
    [
        ([{"name": "a"}, {"name": "a"}], 'containers: duplicate entries for key [name="a"]'),
        (
            [{"name": "a", "env": [{"name": "A"}, {"name": "A", "value": "x"}]}],
            'containers[name="a"].env: duplicate entries for key [name="A"]',
        ),
        (
            [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}],
            'containers[name="a"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
        ),
        ([None], "containers: element 0: associative list with keys may not have a null element"),
        (["a"], "containers: element 0: associative list with keys may not have non-map elements"),
        ([{"name": 1}], "containers[name=1].name: expected string, got &value.valueUnstructured{Value:1}"),
        (
            [{"name": "a", "command": ["a", 1]}],
            'containers[name="a"].command[1]: expected string, got &value.valueUnstructured{Value:1}',
        ),
        ([{"name": "a", "stdin": "yes"}], 'containers[name="a"].stdin: expected boolean, got &{yes}'),
        (
            [{"name": "a", "resources": {"limits": {"cpu": {"a": 1}}}}],
            'containers[name="a"].resources.limits.cpu: expected any scalar, got &{map[a:1]}',
        ),
    ],
)
def test_a_problem_of_a_container_has_its_path(containers: list[Any], fault: str) -> None:
    assert refusal_of(deployment(*containers)).message == (
        f"failed to create typed patch object (demo/d; apps/v1, Kind=Deployment): .spec.template.spec.{fault}"
    )


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"terminationGracePeriodSeconds": "30"}, "expected numeric (int or float), got string"),
        ({"hostNetwork": 1}, "expected boolean, got &{1}"),
        ({"volumes": {"a": 1}}, "expected list, got &{map[a:1]}"),
        ({"nodeSelector": "a"}, "expected map, got &{a}"),
        ({"hostname": True}, "expected string, got &value.valueUnstructured{Value:true}"),
        ({"hostname": 1.5}, "expected string, got &value.valueUnstructured{Value:1.5}"),
        ({"hostname": [1, "a"]}, 'expected string, got &value.valueUnstructured{Value:[]interface {}{1, "a"}}'),
        (
            {"hostname": {"a": None}},
            'expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":interface {}(nil)}}',
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_quoted_as_go_prints_it(spec: Body, fault: str) -> None:
    (field,) = spec
    assert refusal_of(deployment(**spec)).message == (
        f"failed to create typed patch object (demo/d; apps/v1, Kind=Deployment): .spec.template.spec.{field}: {fault}"
    )


def test_several_problems_are_listed() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "finalizers": ["x/a", "x/a"], "shape": "round"},
        "data": {"n": 1},
    }
    assert refusal_of(body).message == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): errors:\n"
        '  .metadata.finalizers: duplicate entries for key [="x/a"]\n'
        "  .metadata.shape: field not declared in schema\n"
        "  .data.n: expected string, got &value.valueUnstructured{Value:1}"
    )


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"a": 1}, "associative list without keys has an element that's a map type"),
        ([1], "not supported: associative list with lists as elements"),
        (None, "associative list without keys has an element that's an explicit null"),
    ],
)
def test_items_of_a_set_must_be_scalars(item: Any, words: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": [item]}}
    assert refusal_of(body).message == (
        f"failed to create typed patch object (/a; /v1, Kind=ConfigMap): .metadata.finalizers: element 0: {words}"
    )


def test_a_container_without_a_name_is_left_to_validation() -> None:
    body = deployment({"image": "x"})
    schema = builtin_schema("1.34", "apps", "v1", "Deployment")
    applied = server_side_apply(None, body, manager="helm", force=False, schema=schema, time="T1")
    assert applied["spec"] == body["spec"]
