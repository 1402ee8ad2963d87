"""Rules in CEL of custom resources: where they apply, their errors, and which are not evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.cluster.validation.expressions import is_evaluated, rule_problems
from seatrial.model.resource import Body

CEL = "x-kubernetes-validations"
TEXT: Body = {"type": "string"}
GROWS = {"rule": "self.v >= oldSelf.v", "message": "only up"}
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"rule": "self.low <= self.high"}, 'spec: Invalid value: "object": failed rule: self.low <= self.high'),
        ({"rule": "self.low <= self.high\n", "message": " low first "}, 'spec: Invalid value: "object": low first'),
        (
            {
                "rule": "self.low <= self.high",
                "messageExpression": "string(self.low) + ' is too high'",
                "message": "no",
            },
            'spec: Invalid value: "object": 5 is too high',
        ),
        (
            {"rule": "self.low <= self.high", "fieldPath": ".low", "reason": "FieldValueForbidden", "message": "no"},
            "spec.low: Forbidden: no",
        ),
        (
            {"rule": "has(self.name)", "fieldPath": ".name", "reason": "FieldValueRequired", "message": "say who"},
            "spec.name: Required value: say who",
        ),
        (
            {"rule": "self.low < 1", "reason": "FieldValueDuplicate", "message": "no"},
            'spec: Duplicate value: "object"',
        ),
        (
            {"rule": "self.name == 'a'", "message": "be a"},
            'spec: Invalid value: "object": no such key: name evaluating rule: be a',
        ),
        ({"rule": "self.low >= self.high"}, ""),
        ({"rule": "quantity(self.name).isInteger()"}, ""),
    ],
)
def test_a_rule_refuses_with_the_api_servers_error(rule: Body, words: str) -> None:
    node = _object(spec={**_object(low={"type": "integer"}, high={"type": "integer"}, name=TEXT), CEL: [rule]})
    assert list(rule_problems({"spec": {"low": 5, "high": 3}}, None, node)) == ([words] if words else [])


def test_rules_apply_to_the_root_and_to_every_item_and_entry() -> None:
    short = {**TEXT, CEL: [{"rule": "self.size() < 3", "message": "too long"}]}
    node = {
        **_object(names={"type": "array", "items": short}, by={"type": "object", "additionalProperties": short}),
        CEL: [{"rule": "self.metadata.name.startsWith('a')", "message": "begin with a"}],
    }
    body = {"metadata": {"name": "b"}, "names": ["ok", "long"], "by": {"x.y": "longer"}}
    assert list(rule_problems(body, None, node)) == [
        '<nil>: Invalid value: "object": begin with a',
        'names[1]: Invalid value: "string": too long',
        'by[x.y]: Invalid value: "string": too long',
    ]


def test_names_are_escaped_and_numbers_are_floats() -> None:
    fields = {"namespace": TEXT, "kebab-case": TEXT, "ratio": {"type": "number"}}
    rule = "self.__namespace__ == 'a' && self.kebab__dash__case == 'b' && self.ratio / 2.0 == 0.5"
    node = {**_object(**fields), CEL: [{"rule": rule}]}
    assert list(rule_problems({"namespace": "a", "kebab-case": "b", "ratio": 1}, None, node)) == []


def test_a_transition_rule_needs_an_old_value() -> None:
    item = {**_object(name={"type": "string"}, v={"type": "integer"}), CEL: [GROWS]}
    node = _object(spec=_object(steps={**KEYED, "items": item}))
    before = {"spec": {"steps": [{"name": "a", "v": 2}, {"name": "b", "v": 2}]}}
    after = {"spec": {"steps": [{"name": "b", "v": 1}, {"name": "c", "v": 0}]}}
    assert list(rule_problems(after, None, node)) == []
    assert list(rule_problems(after, before, node)) == ['spec.steps[0]: Invalid value: "object": only up']


def test_unchanged_invalid_values_are_accepted() -> None:
    small = {"type": "integer", CEL: [{"rule": "self < 3", "message": "small"}]}
    node = _object(spec=_object(a=small, list={"type": "array", "items": small}))
    before = {"spec": {"a": 9, "list": [9]}}
    assert list(rule_problems({"spec": {"a": 9, "list": [9]}}, before, node)) == []
    assert list(rule_problems({"spec": {"a": 8, "list": [9, 1]}}, before, node)) == [
        'spec.a: Invalid value: "integer": small',
        'spec.list[0]: Invalid value: "integer": small',
    ]


def test_the_order_of_a_set_is_not_a_change() -> None:
    names = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    node = _object(names={**names, CEL: [{"rule": "self == oldSelf", "message": "fixed"}]})
    assert list(rule_problems({"names": ["b", "a"]}, {"names": ["a", "b"]}, node)) == []
    assert list(rule_problems({"names": ["b"]}, {"names": ["a", "b"]}, node)) == [
        'names: Invalid value: "array": fixed'
    ]


@pytest.mark.parametrize(
    ("rule", "evaluated"),
    [
        ({"rule": "has(self.name) && self.name.matches('^[a-z]+$')"}, True),
        ({"rule": "self.name != 'quantity(1)'"}, True),
        ({"rule": "isURL(self.name)"}, False),
        ({"rule": "self.when < timestamp('2030-01-01T00:00:00Z')"}, False),
        ({"rule": "self.when == self.when"}, False),
        ({"rule": "oldSelf.hasValue()", "optionalOldSelf": True}, False),
    ],
)
def test_unsupported_rules_are_not_evaluated(rule: Body, evaluated: bool) -> None:
    node = _object(name={"type": "string"}, when={"type": "string", "format": "date-time"})
    assert is_evaluated(rule, node) is evaluated


def _object(**fields: Any) -> Body:
    return {"type": "object", "properties": fields}
