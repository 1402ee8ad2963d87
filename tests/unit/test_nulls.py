"""Nulls in built-in kinds, with the results of a real API server (1.34)."""

from seatrial.cluster.discovery.schema import as_schema, builtin_schema
from seatrial.cluster.verbs.nulls import without_nulls

POD = builtin_schema("1.34", "", "v1", "Pod")


def test_null_fields_are_dropped_at_any_depth() -> None:
    body = {
        "metadata": {"name": "p", "creationTimestamp": None, "labels": None},
        "spec": {"affinity": {"podAffinity": None}, "containers": [{"name": "a", "image": None}, {"name": "b"}]},
    }
    assert without_nulls(body, POD) == {
        "metadata": {"name": "p"},
        "spec": {"affinity": {}, "containers": [{"name": "a"}, {"name": "b"}]},
    }


def test_a_null_in_a_mapping_of_strings_is_the_empty_string() -> None:
    body = {"metadata": {"labels": {"a": None, "b": "1"}}}
    assert without_nulls(body, POD) == {"metadata": {"labels": {"a": "", "b": "1"}}}


def test_a_body_without_nulls_is_returned_unchanged() -> None:
    body = {"metadata": {"labels": {"b": "1"}}, "spec": {"containers": [{"name": "a"}]}}
    assert without_nulls(body, POD) is body


def test_custom_resources_keep_their_nulls() -> None:
    body = {"spec": {"a": None}}
    assert without_nulls(body, as_schema({"type": "object"})) is body
    assert without_nulls(body, None) is body
