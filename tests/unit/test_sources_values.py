from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from chartfolder import CHART, write

from seatrial.helm import sdk as helmsdk
from seatrial.model.errors import CannotContinue
from seatrial.model.options import ValueFlags
from seatrial.model.resource import Body
from seatrial.sources.charts.values import merged_values

GIVEN = """\
a: [1, {b: x, c: [1, 2]}, three]
m: {k: {deep: 1, other: "1"}, empty: {}, none: []}
s: text
nil: null
dotted.key: {x: 1}
"""
BASE: Body = {
    "a": [1, {"b": "x", "c": [1, 2]}, "three"],
    "m": {"k": {"deep": 1, "other": "1"}, "empty": {}, "none": []},
    "s": "text",
    "nil": None,
    "dotted.key": {"x": 1},
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"given.yaml": GIVEN, "file.txt": "one, two=three\n"})
    monkeypatch.chdir(tmp_path)


# What `helm template -f given.yaml` of Helm 4.3 makes of each, as far as it changes.
EXPRESSIONS: list[tuple[str, str, Body]] = [
    ("set", "a[0]=y", {"a": ["y", {"b": "x", "c": [1, 2]}, "three"]}),
    ("set", "a[4]=y", {"a": [1, {"b": "x", "c": [1, 2]}, "three", None, "y"]}),
    ("set", "a[1].b=y", {"a": [1, {"b": "y", "c": [1, 2]}, "three"]}),
    ("set", "a[1].c[1]=9,a[1].d=8", {"a": [1, {"b": "x", "c": [1, 9], "d": 8}, "three"]}),
    ("set", "a[0].q=1", {"a": [{"q": 1}, {"b": "x", "c": [1, 2]}, "three"]}),
    ("set", "a={1,2}", {"a": [1, 2]}),
    ("set", "a=null", {"a": None}),
    ("set", "m.k.deep=01", {"m": {"k": {"deep": "01", "other": "1"}, "empty": {}, "none": []}}),
    ("set", "m.k=5", {"m": {"k": 5, "empty": {}, "none": []}}),
    ("set", "m.empty.x=true", {"m": {"k": {"deep": 1, "other": "1"}, "empty": {"x": True}, "none": []}}),
    ("set", "m.none[1]=x", {"m": {"k": {"deep": 1, "other": "1"}, "empty": {}, "none": [None, "x"]}}),
    ("set", r"dotted\.key.y=2", {"dotted.key": {"x": 1, "y": 2}}),
    ("set", r"new=a\,b,other.x[1].y=1", {"new": "a,b", "other": {"x": [None, {"y": 1}]}}),
    ("set", "s=1,s=2", {"s": 2}),
    ("set_string", "a[0]=1,nil=null", {"a": ["1", {"b": "x", "c": [1, 2]}, "three"], "nil": "null"}),
    ("set_json", 'a[1]={"z":[1]},s=null', {"a": [1, {"z": [1]}, "three"], "s": None}),
    ("set_json", 'm.k={"y":1.5}', {"m": {"k": {"y": 1.5}, "empty": {}, "none": []}}),
    ("set_json", '{"m":{"k":{"deep":9}}}', {"m": {"k": {"deep": 9, "other": "1"}, "empty": {}, "none": []}}),
    ("set_file", "a[0]=file.txt", {"a": ["one, two=three\n", {"b": "x", "c": [1, 2]}, "three"]}),
    ("set_file", "new={file.txt,file.txt}", {"new": ["one, two=three\n", "one, two=three\n"]}),
    ("set_literal", "a[1].c[0]=x,y=z", {"a": [1, {"b": "x", "c": ["x,y=z", 2]}, "three"]}),
    ("set_literal", "new[1]={a}", {"new": [None, "{a}"]}),
]


@pytest.mark.parametrize(("flag", "expression", "changed"), EXPRESSIONS)
def test_an_expression_changes_only_the_keys_it_names(flag: str, expression: str, changed: Body) -> None:
    flags: dict[str, Any] = {"files": ("given.yaml",), flag: (expression,)}
    assert merged_values(ValueFlags(**flags)) == BASE | changed


def test_flags_have_precedence_by_kind_then_by_order() -> None:
    flags = ValueFlags(
        set_literal=("a=literal",),
        set_file=("a=file.txt", "b=file.txt"),
        set_string=("b=string", "c=string"),
        set=("c=set", "d=set", "d=later"),
        set_json=('d="json"', 'e="json"'),
    )
    assert merged_values(flags) == {"a": "literal", "b": "one, two=three\n", "c": "string", "d": "later", "e": "json"}


def test_later_files_win_and_a_null_deletes_the_default_of_the_chart(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "one.yaml": "m: {a: 1, b: {c: 2}}\nlist: [1]\n",
            "two.yaml": "m: {b: null, d: 3}\n---\nlist: [2]\n",
            "chart/Chart.yaml": CHART,
            "chart/values.yaml": "m: {b: {default: true}, e: 4}\n",
            "chart/templates/v.yaml": "{{ .Values | toJson }}",
        },
    )
    values = merged_values(ValueFlags(files=("one.yaml", "two.yaml")))
    assert values == {"m": {"a": 1, "b": None, "d": 3}, "list": [2]}
    with helmsdk.Chart.load("chart") as chart:
        rendered = helmsdk.render(chart, values, name="r", namespace="d")["demo/templates/v.yaml"]
    assert json.loads(rendered) == {"m": {"a": 1, "d": 3, "e": 4}, "list": [2]}


def test_values_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    assert merged_values(ValueFlags(files=("-",))) == {"a": 1}


COMPLAINTS: list[tuple[str, str, str]] = [
    ("files", "nope.yaml", "nope.yaml: read the values file: no such file or directory"),
    ("files", "broken.yaml", "broken.yaml:2: cannot read the YAML: mapping values are not allowed in this context"),
    ("files", "list.yaml", "list.yaml:2: read the values file: not a mapping of names to values"),
    ("files", "latin.yaml", "latin.yaml:2: read the values file: not UTF-8 text"),
    ("set", "a", '--set a: failed parsing --set data: key "a" has no value'),
    (
        "set_string",
        "s.x=1",
        "--set-string s.x=1: failed parsing --set-string data: unable to parse key: "
        "interface conversion: interface {} is string, not map[string]interface {}",
    ),
    ("set", "q={a,b", "--set q={a,b: failed parsing --set data: list must terminate with '}'"),
    ("set_json", "a={", "--set-json a={: failed parsing --set-json data: unexpected EOF"),
    ("set_file", "a=nope", "nope: read the file of --set-file a=nope: no such file or directory"),
]


@pytest.mark.parametrize(("flag", "given", "sentence"), COMPLAINTS)
def test_unreadable_values_are_one_sentence(flag: str, given: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, {"broken.yaml": "a: 1\nb: c: d\n", "list.yaml": "# a list\n- a\n"})
    (tmp_path / "latin.yaml").write_bytes("a: 1\nb: é\n".encode("latin-1"))
    flags: dict[str, Any] = {"files": ("given.yaml",)} | {flag: ("given.yaml", given) if flag == "files" else (given,)}
    with pytest.raises(CannotContinue) as complaint:
        merged_values(ValueFlags(**flags))
    assert str(complaint.value) == sentence
