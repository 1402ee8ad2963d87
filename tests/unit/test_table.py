"""The tables of `kubectl get`. `recorded/tables.jsonl` has rows of a real kube-apiserver (v1.34.10)."""

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.cluster.discovery.served import Discovery
from seatrial.cluster.tables.age import since
from seatrial.cluster.tables.table import as_table, wants_table
from seatrial.kinds.core.jsonpath import find
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body

RECORDED = Path(__file__).parent / "recorded" / "tables.jsonl"
DISCOVERY = Discovery("1.34")
THING = ServedKind("example.com", "v1", "Thing", "things", "thing", True)
NOW = "2026-11-15T12:00:00Z"


def rows() -> list[Any]:
    read = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return [pytest.param(row, id=f"{row['kind']}/{row['object']['metadata']['name']}") for row in read]


@pytest.mark.parametrize("row", rows())
def test_rows_equal_those_of_a_real_server(row: Body) -> None:
    kind = DISCOVERY.of_kind(row["group"], row["kind"])
    assert kind
    table = as_table(kind, {"metadata": {}, "items": [row["object"]]}, row["now"])
    assert table["rows"][0]["cells"] == row["cells"]


def test_a_table_of_one_object() -> None:
    kind = DISCOVERY.of_kind("", "ConfigMap")
    assert kind
    meta = {"name": "a", "resourceVersion": "7", "creationTimestamp": "2026-11-15T11:57:30Z"}
    assert as_table(kind, {"kind": "ConfigMap", "metadata": meta, "data": {"x": "y"}}, NOW) == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "Name", "priority": 0},
            {"name": "Data", "type": "string", "format": "", "description": "Data", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "Age", "priority": 0},
        ],
        "rows": [
            {
                "cells": ["a", 1, "2m30s"],
                "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta},
            }
        ],
    }


def test_include_object_selects_what_is_sent_with_rows() -> None:
    body: Body = {"metadata": {"name": "a"}, "spec": {}}
    assert as_table(THING, body, NOW, include="Object")["rows"] == [{"cells": ["a", "<unknown>"], "object": body}]
    assert as_table(THING, body, NOW, include="None")["rows"] == [{"cells": ["a", "<unknown>"]}]


def test_a_custom_kind_has_its_printer_columns() -> None:
    ready = '.status.conditions[?(@.type=="Ready")].status'
    columns: list[Body] = [
        {"name": "Ready", "type": "string", "jsonPath": ready},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Shape", "type": "string", "jsonPath": ".spec.shape"},
        {"name": "Since", "type": "date", "jsonPath": ".status.at"},
    ]
    body = {
        "metadata": {"name": "a"},
        "spec": {"size": 3, "shape": {"b": 1, "a": "x"}},
        "status": {"at": "2026-11-15T06:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    table = as_table(THING, body, NOW, columns)
    assert table["rows"][0]["cells"] == ["a", "True", 3, '{"a":"x","b":1}', "6h"]
    assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 1, 0, 0]
    assert as_table(THING, {"metadata": {"name": "b"}}, NOW, columns)["rows"][0]["cells"] == [
        "b",
        None,
        None,
        None,
        None,
    ]


def test_built_in_kinds_without_columns_show_their_creation_time() -> None:
    kind = DISCOVERY.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
    assert kind
    body = {"metadata": {"name": "a", "creationTimestamp": "2026-11-15T11:00:00Z"}}
    assert as_table(kind, body, NOW)["rows"][0]["cells"] == ["a", "2026-11-15T11:00:00Z"]


@pytest.mark.parametrize(
    ("then", "shown"),
    [
        ("2026-11-15T12:00:05Z", "<invalid>"),
        ("2026-11-15T12:00:01Z", "0s"),
        ("2026-11-15T11:58:01Z", "119s"),
        ("2026-11-15T11:55:00Z", "5m"),
        ("2026-11-15T11:54:30Z", "5m30s"),
        ("2026-11-15T09:30:00Z", "150m"),
        ("2026-11-15T07:30:00Z", "4h30m"),
        ("2026-11-14T03:30:00Z", "32h"),
        ("2026-11-12T09:00:00Z", "3d3h"),
        ("2026-10-01T12:00:00Z", "45d"),
        ("2023-11-10T12:00:00Z", "3y6d"),
        ("2016-01-01T12:00:00Z", "10y"),
        ("", "<unknown>"),
    ],
)
def test_ages_are_shown_as_in_kubectl(then: str, shown: str) -> None:
    assert since(then, NOW) == shown


def test_jsonpaths_of_columns() -> None:
    body = {"a": {"b.c/d": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]}}
    assert find(r".a.b\.c/d", body) == [1]
    assert find(".a['b.c/d']", body) == [1]
    assert find("{.a.list[1].v}", body) == [2]
    assert find(".a.list[-1].v", body) == [2]
    assert find(".a.list[*].n", body) == ["x", "y"]
    assert find('.a.list[?(@.n!="x")].v', body) == [2]
    assert find(".a.none[0]", body) == []
    assert find("..", body) == []


def test_tables_are_sent_only_on_request() -> None:
    kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    assert wants_table(kubectl)
    assert not wants_table("application/json, */*")
