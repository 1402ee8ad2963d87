"""jqPathExpressions against what gojq 0.12.19 makes of them, called as Argo CD calls it; recorded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.engines.argocd.expressions import MULTIPLE, NO_DATA, TIMED_OUT, Unusable, applied, illegal, places
from seatrial.model.resource import Body

RECORDED = msgspec.json.decode((Path(__file__).parent / "recorded" / "gojq-0.12.19.json").read_bytes())
BODY: Body = RECORDED["body"]
CASES: dict[str, Body] = {case.pop("expression"): case for case in RECORDED["cases"]}
REMOVED = "(removed)"
LONG = ("until(true==false; [.] + [1])",)
"""Run until they are stopped; `test_jq` has such programs with a shorter limit."""

RUNS_HERE: dict[str, Body] = {
    # Oniguruma, libjq's engine of regular expressions, knows more than RE2, which gojq uses.
    '.spec.containers[] | select(.name | test("(?=s)s"))': {
        "spec": {"containers": [BODY["spec"]["containers"][0]]},
    },
    '.spec | select(.text | test("WORLD"; "ix")) | .text': {"spec": {"text": REMOVED}},
    '.spec | select(.text | test("(l)\\\\1")) | .text': {"spec": {"text": REMOVED}},
    '.spec | select(.text | test("h(?!x)")) | .text': {"spec": {"text": REMOVED}},
    '.spec | select(.text | test("\\\\h")) | .text': {"spec": {"text": REMOVED}},
    '.spec | select(.text | test("a++")) | .text': {},
    ".spec.list | abs": {"spec": {"list": REMOVED}},
}
"""What gojq fails on at run time, so that it has no effect in Argo CD, and libjq does not."""
FAILS_HERE = (
    # libjq follows no path through a destructuring.
    ". as {spec: {$replicas}} | .spec.replicas",
    ".spec.list as [$a, $b] | .spec.list[$b]",
    # gojq takes a value that is equal to that of the last path for a path.
    ".spec.on == true",
)
"""What has an effect in Argo CD, and none here."""


@pytest.mark.parametrize("expression", [one for one in CASES if one not in LONG])
def test_expressions_behave_as_in_argocd_except_for_known_differences(expression: str) -> None:
    recorded = CASES[expression]
    assert bool(illegal(expression)) == ("illegal" in recorded)
    if "illegal" in recorded:
        return
    if expression in RUNS_HERE:
        assert "error" in recorded
        assert _changes(expression) == RUNS_HERE[expression]
    elif expression in FAILS_HERE or "error" in recorded or "result" in recorded:
        with pytest.raises(Unusable):
            applied(expression, BODY)
    else:
        assert _changes(expression) == recorded["changes"]


def _changes(expression: str) -> Body:
    return _changed(BODY, applied(expression, BODY))


def _changed(before: Body, after: Body) -> Body:
    found: Body = {}
    for key, old in before.items():
        new: Any = after.get(key, REMOVED)
        if new != old:
            found[key] = _changed(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return found


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (".nope[]", "JQ patch returned error: Cannot iterate over null (null)"),
        ('error("x")', "JQ patch returned error: x"),
        (".a) | empty | (.", NO_DATA),
        (".a), (.", MULTIPLE),
        ("." * 70_000, TIMED_OUT),
    ],
)
def test_an_expression_without_effect_has_argocds_error(expression: str, words: str) -> None:
    with pytest.raises(Unusable) as caught:
        applied(expression, BODY)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    "expression",
    ["foo", "foo(1)", "$x", "debug", 'debug("x")', "inputs", "keys_unsorted", "$__loc__", ".a |", ".spec.a-b"],
)
def test_an_expression_that_does_not_compile_has_gojqs_error(expression: str) -> None:
    assert illegal(expression) == CASES.get(expression, {}).get("illegal", "function not defined: keys_unsorted/0")


@pytest.mark.parametrize("expression", ['.data["debug"]', ".input", '.spec | select(.text == "keys_unsorted")'])
def test_a_field_may_have_the_name_of_a_missing_gojq_function(expression: str) -> None:
    assert not illegal(expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (".spec.replicas", [("spec", "replicas")]),
        ('.metadata.labels["b/c"]', [("metadata", "labels", "b/c")]),
        (".spec.containers[].image", [("spec", "containers", 0, "image"), ("spec", "containers", 1, "image")]),
        ('.spec.containers[] | select(.name == "side")', [("spec", "containers", 1)]),
        ('.spec.containers[] | select(any(.env[]?; .name == "A")).image', [("spec", "containers", 0, "image")]),
        (".spec.replicas, .spec.paused", [("spec", "replicas"), ("spec", "paused")]),
        (".spec.list[-1]", [("spec", "list", 2)]),
        (".spec.list[1:]", [("spec", "list", 1), ("spec", "list", 2)]),
        (".spec.list[1:][0]", [("spec", "list", 1)]),
        (".spec.list[9]", []),
        (".webhooks[]?.clientConfig", []),
        (".x) | .spec.json |= (fromjson | del(.auth) | tojson", [("spec", "json")]),
        (".x) | .spec.containers[0].image |= (. + ", [("spec", "containers", 0, "image")]),
        (".x) | del(.spec.replicas", [("spec", "replicas")]),
    ],
)
def test_an_expression_names_fields(expression: str, expected: list[tuple[str | int, ...]]) -> None:
    whole = f'{expression}"!"' if expression.endswith("+ ") else expression
    assert places(whole, BODY) == expected
