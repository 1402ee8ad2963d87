"""Expressions in CEL: what they say of data, in whose words they fail, and where they end."""

from __future__ import annotations

import pytest

from seatrial import cel

DATA = {"metadata": {"generation": 2, "name": "é"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize(
    "text",
    [
        "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
        "status.conditions.exists(e, e.type == 'Ready') && !has(status.phase)",
        "status.?phase.orValue('none') == 'none' && !status.?phase.hasValue()",
        "status.conditions.map(e, e.type).join(',').lowerAscii() == 'ready'",
        "sets.contains(['a', 'b'], ['a']) && sets.equivalent(['a'], ['a', 'a']) && !sets.intersects(['a'], ['b'])",
        "base64.encode(b'a') == 'YQ==' && size(metadata.name) == 1 && metadata.generation > 1.5",
        "status.nowhere == 1 || true",
    ],
)
def test_what_controllers_in_go_find_true_is_true(text: str) -> None:
    assert cel.is_true(text, DATA) is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("status.phase == 'Ready'", "no such key: phase"),
        ("data.ready.now == true", "no such attribute(s): data.ready.now"),
        ("data.items.exists(e, e.ready)", "no such attribute(s): data.items"),
        ("status.conditions[3].type == 'Ready'", "index out of bounds: 3"),
        ("metadata.generation > '1'", "no such overload"),
    ],
)
def test_what_cannot_be_evaluated_is_told_as_cel_go_tells_it(text: str, words: str) -> None:
    whole = f"failed to evaluate the CEL expression '{text}': {words}"
    assert cel.is_true(text, DATA) == cel.Fault(whole, why=words)


def test_what_is_neither_true_nor_false_is_no_answer() -> None:
    words = "failed to evaluate CEL expression as boolean: 'metadata.name'"
    assert cel.is_true("metadata.name", DATA) == cel.Fault(words)


def test_what_does_not_parse_is_shown_with_its_place() -> None:
    expected = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    words = f"Syntax error: mismatched input '<EOF>' expecting {expected}IDENTIFIER}}\n | a ==\n | ....^"
    assert cel.fault_of("a ==") == cel.Fault(f"failed to parse the CEL expression 'a ==': ERROR: <input>:1:5: {words}")


def test_one_with_types_must_be_about_its_variables_and_true_or_false() -> None:
    assert cel.fault_of_typed("dep.status.ready == true", ("dep",)) is None
    mismatch = "CEL expression output type mismatch: expected bool, got dyn"
    assert cel.fault_of_typed("dep.status.ready", ("dep",)) == cel.Fault(mismatch)
    fault = cel.fault_of_typed("other == 1", ("dep",))
    assert fault is not None
    assert "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')" in fault.words


@pytest.mark.parametrize(
    "text",
    [
        f"{'[1].map(a, ' * 17}a{')' * 17} == []",
        f"optional.of('a'){'.optMap(x, x + x)' * 20}.hasValue()",
        "'a'" + ".replace('a', 'aaaaaaaaaa')" * 20 + " == 'a'",
        f"{'(' * 500}true{')' * 500}",
        f"{'true && ' * 1000}true",
    ],
)
def test_what_might_not_end_is_not_begun(text: str) -> None:
    assert cel.fault_of(text) == cel.Fault(cel.BEYOND, is_ours=True)


def test_loops_in_loops_are_ended() -> None:
    many = f"[{', '.join('1' * 100)}]"
    text = f"{many}.all(a, {many}.all(b, {many}.all(c, a + b + c > 0)))"
    assert cel.is_true(text, {}) == cel.Fault(cel.BEYOND, is_ours=True)
