import json
import time
from typing import Any

import pytest
from helm_python import HelmError
from helm_python import _native as native
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model.resource import Place
from seatrial.text.source import Text, edited
from seatrial.text.yamlfile import BrokenYaml, Document, documents, parse, without_items
from seatrial.text.yamlnode import InvalidYaml, body_of, nodes, resolve_path, value_of

# The value that Kubernetes reads; the test below compares it with Helm.
SCALARS: dict[str, Any] = {
    **dict.fromkeys(("y", "Yes", "on", "TRUE"), True),
    **dict.fromkeys(("n", "No", "off", "False"), False),
    **dict.fromkeys(("~", "null", "NULL", ""), None),
    "yEs": "yEs",
    "1:30": "1:30",
    "2001-01-01": "2001-01-01",
    "2001-01-01T01:02:03Z": "2001-01-01T01:02:03Z",
    "=": "=",
    "<<": "<<",
    "1e3": 1000,
    "1.0": 1,
    "1.5": 1.5,
    "-0.0": 0,
    ".5": 0.5,
    "+.5": 0.5,
    "5.": 5,
    "1.e3": 1000,
    "1e400": "1e400",
    "0o17": 15,
    "017": 15,
    "08": 8,
    "0o8": "0o8",
    "0x1F": 31,
    "-0X10": -16,
    "0b11": 3,
    "1_000": 1000,
    "1_000.5": 1000.5,
    ".1_5": 0.15,
    ".1__5": ".1__5",
    "_1": "_1",
    "+12": 12,
    '"1"': "1",
    "'yes'": "yes",
    "!!str 12": "12",
    '!!int "3"': 3,
    "!!float 3": 3,
    "!!binary aGVsbG8=": "hello",
    "!mine x": "x",
}


def _read(written: str) -> Any:
    return parse(Text("f.yaml", written)).body


def _read_by_helm(written: str) -> Any:
    return json.loads(native.call_string("helm_values_from_yaml", written))


@pytest.mark.parametrize("written", SCALARS)
def test_scalars_are_read_as_kubernetes_reads_them(written: str) -> None:
    meant = {"k": SCALARS[written]}
    found = _read(f"k: {written}")
    assert (found, type(found["k"])) == (meant, type(meant["k"]))
    assert _read_by_helm(f"k: {written}") == meant


def test_integers_are_exact_within_64_bits() -> None:
    # As apimachinery's util/json does. Helm's own values are floats, so Helm cannot confirm this.
    found = [_read(f"k: {n}")["k"] for n in ("9223372036854775807", "12345678901234567890", "1" + "0" * 30)]
    assert found == [9223372036854775807, 12345678901234567890.0, 1e30]
    assert [type(n) for n in found] == [int, float, float]


@pytest.mark.parametrize(
    "written", ["1.5", "1e3", "1e6", "100000000.5", "1e-5", "-2.5", "0x10", "017", "yes", "3.4e39"]
)
def test_keys_become_strings_as_in_kubernetes(written: str) -> None:
    assert _read(f"{written}: x") == _read_by_helm(f"{written}: x")


MAPPINGS = {
    "the last of two equal keys wins": ("a: 1\na: 2\n", {"a": 2}),
    "a merge goes over what stands before it": ("x: &x {a: 2}\nk: {a: 1, <<: *x}\n", {"x": {"a": 2}, "k": {"a": 2}}),
    "a merge goes under what stands after it": ("x: &x {a: 2}\nk: {<<: *x, a: 1}\n", {"x": {"a": 2}, "k": {"a": 1}}),
    "of several merges the first wins": (
        "x: &x {a: 2}\nz: &z {a: 3, b: 4}\nk:\n  <<: [*x, *z]\n",
        {"x": {"a": 2}, "z": {"a": 3, "b": 4}, "k": {"a": 2, "b": 4}},
    ),
    "an anchor may be written again": ("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", {"a": 1, "b": 1, "c": 2, "d": 2}),
    "what follows the first document is not read": ("a: 1\n...\nb: 2\n", {"a": 1}),
    "a byte order mark is no character": ("\ufeffa: 1\n", {"a": 1}),
}


@pytest.mark.parametrize("rule", MAPPINGS)
def test_mappings_are_read_as_helm_reads_them(rule: str) -> None:
    written, meant = MAPPINGS[rule]
    assert _read(written) == meant == _read_by_helm(written)


WORDS = st.text(alphabet="0123456789abxoeE_.-+~nyN fF", min_size=1, max_size=7).map(str.strip)


@settings(max_examples=300, deadline=None)
@given(WORDS)
def test_any_scalar_is_read_as_helm_reads_it(word: str) -> None:
    # A `-` before a space is a list, and go-yaml reads `0b-1` in a second document as a number: neither is a scalar.
    if word.startswith(("- ", "---", "...")) or word in ("", "-") or "0b-" in word or "0b+" in word:
        return
    try:
        helms = _read_by_helm(f"k: {word}\n")
    except HelmError:
        with pytest.raises(BrokenYaml):
            _read(f"k: {word}\n")
        return
    assert _read(f"k: {word}\n") == helms


BROKEN = {
    "a: 1\nb: 'x\nc: 3\n": "f.yaml:2: cannot read the YAML: found unexpected end of stream",
    "a: 1\nb\nc: 3\n": "f.yaml:2: cannot read the YAML: could not find expected ':'",
    "a:\n\tb: c\n": "f.yaml:2: cannot read the YAML: found character that cannot start any token",
    "a: 1\nb: c: d\n": "f.yaml:2: cannot read the YAML: mapping values are not allowed in this context",
    "a: 1\nb: [1, 2\n": "f.yaml:3: cannot read the YAML: did not find expected ',' or ']'",
    "a: 1\nb: *x\n": "f.yaml:2: cannot read the YAML: found undefined alias",
    "a: &x\n  b: *x\n": "f.yaml:1: cannot read the YAML: an anchor's value contains itself",
    "a: é\nb: \x01\n": "f.yaml:2: cannot read the YAML: control characters are not allowed",
    "a: 1\nb: .inf\n": "f.yaml:2: cannot read the YAML: json: unsupported value: +Inf",
    "a: 1\n~: 2\n": "f.yaml:2: cannot read the YAML: unsupported map key of type: null",
    "a: 1\n? [b]\n: 2\n": "f.yaml:2: cannot read the YAML: invalid map key",
    "a: 1\nb: !!int x\n": "f.yaml:2: cannot read the YAML: cannot decode !!str `x` as a !!int",
    "a: 1\nb: {<<: 3}\n": "f.yaml:2: cannot read the YAML: map merge requires map or sequence of maps as the value",
}


@pytest.mark.parametrize("written", BROKEN)
def test_invalid_yaml_is_one_error_with_file_and_line(written: str) -> None:
    with pytest.raises(BrokenYaml) as broken:
        _read(written)
    assert str(broken.value) == BROKEN[written]


@pytest.mark.parametrize("written", ["[" * 100_000, "- " * 100_000, "{a: " * 400 + "1" + "}" * 400])
def test_deep_nesting_is_rejected(written: str) -> None:
    with pytest.raises(BrokenYaml, match="nested more than 300 deep"):
        _read(written)


def test_deeply_nested_aliases_are_rejected() -> None:
    chain = "a0: &a0 1\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 400))
    with pytest.raises(BrokenYaml, match="nested more than 300 deep"):
        _read(chain)


def test_a_billion_laughs_document_is_rejected() -> None:
    laughs = "a0: &a0 lol\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    with pytest.raises(BrokenYaml, match=r"^f\.yaml:1: cannot read the YAML: document contains excessive aliasing$"):
        _read(laughs)


OBJECTS = """\
# first
apiVersion: v1
kind: ConfigMap
metadata:
  name: é
  labels: {a: b}
data:
  k: |
    line
    # not a comment

# a comment
list:
  - one
  -
    two: 2
--- # second
kind: Secret
...
"""


def test_every_field_has_a_line() -> None:
    first, second = documents(Text("m.yaml", OBJECTS))
    asked: list[tuple[Document, tuple[str | int, ...]]] = [
        (first, ()),
        (first, ("kind",)),
        (first, ("metadata", "labels", "a")),
        (first, ("data", "k")),
        (first, ("list", 1)),
        (first, ("list", 1, "two")),
        (second, ("kind",)),
    ]
    assert [document.place(*path).line for document, path in asked] == [2, 3, 6, 8, 16, 16, 18]


def test_a_missing_field_has_the_line_of_its_nearest_parent() -> None:
    first, _ = documents(Text("m.yaml", OBJECTS))
    assert first.place("metadata", "annotations", "x") == Place("m.yaml", 4)
    assert first.place("spec") == Place("m.yaml", 2)
    assert first.place("list", 7) == Place("m.yaml", 13)
    assert first.entry("metadata", "annotations") is None


def test_a_merged_key_has_the_line_of_its_anchor() -> None:
    document = parse(Text("m.yaml", "base: &base\n  a: 1\nuse:\n  <<: *base\n  b: 2\n"))
    assert document.place("use", "a") == Place("m.yaml", 2)


def test_an_entry_spans_its_key_and_value() -> None:
    text = Text("m.yaml", OBJECTS)
    first, _ = documents(text)
    spans = [first.entry(*path) for path in (("metadata", "labels"), ("data",), ("list",), ("list", 1))]
    assert [text.within(span) for span in spans if span] == [
        "labels: {a: b}",
        "data:\n  k: |\n    line\n    # not a comment",
        "list:\n  - one\n  -\n    two: 2",
        "two: 2",
    ]
    value = first.value("metadata", "labels")
    assert value and text.within(value) == "{a: b}"


DEPENDENCIES = """\
name: u # it
dependencies:
  # the first
  - name: a
    version: 1
  - name: b   # gone
    version: 2

  - name: c
version: 3
"""


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        (
            {1},
            "name: u # it\ndependencies:\n  # the first\n  - name: a\n    version: 1\n  - name: c\nversion: 3\n",
        ),
        (
            {0, 2},
            "name: u # it\ndependencies:\n  # the first\n  - name: b   # gone\n    version: 2\n\nversion: 3\n",
        ),
        ({0, 1, 2}, "name: u # it\ndependencies:\n  # the first\n   []\nversion: 3\n"),
    ],
)
def test_items_are_removed_from_a_list(removed: set[int], left: str) -> None:
    document = parse(Text("Chart.yaml", DEPENDENCIES))
    assert edited(document.text, without_items(document, ("dependencies",), removed)).content == left


def test_items_are_removed_from_a_flow_list() -> None:
    document = parse(Text("Chart.yaml", "dependencies: [{name: a}, {name: b}, {name: c}] # three\n"))
    without = edited(document.text, without_items(document, ("dependencies",), {1}))
    assert without.content == "dependencies: [{name: a}, {name: c}] # three\n"


def test_an_unindented_list_may_become_empty() -> None:
    document = parse(Text("Chart.yaml", "dependencies:\n- name: a\nname: u\n"))
    without = edited(document.text, without_items(document, ("dependencies",), {0}))
    assert (without.content, parse(without).body) == (
        "dependencies:\n []\nname: u\n",
        {"dependencies": [], "name": "u"},
    )


def test_json_may_contain_tabs_and_surrogates() -> None:
    written = '{\n\t"a": "\\ud83d\\ude00",\n\t"b": 1.0\n}\n{"c": 2}\n'
    first, second = documents(Text("m.json", written))
    assert (first.body, second.body) == ({"a": "\N{GRINNING FACE}", "b": 1}, {"c": 2})
    assert (first.place("b").line, second.place("c").line) == (3, 5)


def test_yaml_may_start_with_a_brace() -> None:
    assert [d.body for d in documents(Text("m.yaml", "{a: 1}\n---\n{b: 2}\n"))] == [{"a": 1}, {"b": 2}]


def test_only_a_comment_may_follow_a_separator() -> None:
    with pytest.raises(BrokenYaml, match=r"^m\.yaml:2: .*: invalid Yaml document separator: kind: b$"):
        list(documents(Text("m.yaml", "a: 1\n---kind: b\n")))


def test_a_thousand_objects_are_read_quickly() -> None:
    one = "---\n" + "".join(f"key{n}:\n  name: value\n  list: [1, two, 'three']\n" for n in range(12))
    text = Text("m.yaml", one * 1000)
    start = time.perf_counter()
    assert len(list(documents(text))) == 1000
    assert time.perf_counter() - start < 3


LINES = (
    "---\n",
    "# Source: a\n",
    "# é\n",
    "\n",
    "  \n",
    "a: 1\n",
    "b: |\n  x  \n",
    "b: |+\n  x\n\n",
    "c: >-\n  y\n",
    "%YAML 1.1\n",
    "...\n",
    "- 1\n",
    "'q\n",
    "f: \u00a0\n",
    "--- |\n  t\n",
    "x",
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=6).map("".join))
def test_what_is_cached_without_separator_and_comments_is_the_same(content: str) -> None:
    def read(reader: Any) -> object:
        try:
            return reader(content)
        except InvalidYaml as invalid:
            return invalid.problem, invalid.index

    assert read(body_of) == read(value_of)


ENTRIES = (
    "metadata:\n  name: x\n  labels: {a: b}\n",
    "spec:\n- a: 1\n- b: 2\n",
    "spec: 'quoted\nmetadata: no key'\n",
    "data: {a: 1,\nspec: 2}\n",
    "data: &d\n  name: y\n",
    "metadata: *d\n",
    "status:\n  <<: *d\n",
    "<<: {metadata: {name: z}}\n",
    '"metadata":\n  name: q\n',
    "kind: |\n  text\n",
    "# metadata: comment\n",
    "\n",
    "---\n",
)
PATHS: tuple[tuple[str | int, ...], ...] = (
    *((), ("metadata",), ("metadata", "name"), ("spec",), ("spec", 1, "b"), ("status", "name")),
    *(("data", "spec"), ("kind",), (0,)),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(ENTRIES), max_size=5).map("".join), st.sampled_from(PATHS))
def test_a_place_is_the_same_whether_the_rest_of_the_document_is_read_or_not(
    content: str, path: tuple[str | int, ...]
) -> None:
    try:
        document = parse(Text("m.yaml", content))
    except BrokenYaml:
        return
    assert document.offset(*path) == resolve_path(nodes(content), path)[0]
