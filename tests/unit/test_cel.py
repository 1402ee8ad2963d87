"""CEL expressions: their results, their errors and their limits."""

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
def test_expressions_are_true_as_in_cel_go(text: str) -> None:
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
def test_evaluation_errors_read_as_in_cel_go(text: str, words: str) -> None:
    whole = f"failed to evaluate the CEL expression '{text}': {words}"
    assert cel.is_true(text, DATA) == cel.CelError(whole, why=words)


def test_a_result_that_is_not_a_boolean_is_an_error() -> None:
    words = "failed to evaluate CEL expression as boolean: 'metadata.name'"
    assert cel.is_true("metadata.name", DATA) == cel.CelError(words)


def test_a_parse_error_shows_its_position() -> None:
    expected = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    words = f"Syntax error: mismatched input '<EOF>' expecting {expected}IDENTIFIER}}\n | a ==\n | ....^"
    assert cel.fault_of("a ==") == cel.CelError(
        f"failed to parse the CEL expression 'a ==': ERROR: <input>:1:5: {words}"
    )


def test_a_typed_expression_uses_its_variables_and_returns_a_boolean() -> None:
    assert cel.fault_of_typed("dep.status.ready == true", ("dep",)) is None
    mismatch = "CEL expression output type mismatch: expected bool, got dyn"
    assert cel.fault_of_typed("dep.status.ready", ("dep",)) == cel.CelError(mismatch)
    fault = cel.fault_of_typed("other == 1", ("dep",))
    assert fault is not None
    assert "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')" in fault.message


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
def test_expressions_that_are_too_large_are_not_evaluated(text: str) -> None:
    assert cel.fault_of(text) == cel.CelError(cel.BEYOND, is_ours=True)


def test_nested_loops_are_stopped() -> None:
    many = f"[{', '.join('1' * 100)}]"
    text = f"{many}.all(a, {many}.all(b, {many}.all(c, a + b + c > 0)))"
    assert cel.is_true(text, {}) == cel.CelError(cel.BEYOND, is_ours=True)


@pytest.mark.parametrize(
    "text",
    [
        "[s].all(a, [a+a].all(b, [b+b].all(c, [c+c].all(d, [d+d].all(e, [e+e].all(f, [f+f].all(g, g+g != g)))))))",
        "size(s.replace('a', s).replace('a', s)) > 0",
        "[s, s, s, s, s, s].map(a, [s, s, s, s, s, s].map(b, a + b + a + b)) == []",
    ],
)
def test_an_expression_that_needs_any_amount_of_memory_is_stopped(text: str) -> None:
    found = cel.is_true(text, {"s": "a" * 3_000_000})
    assert isinstance(found, cel.CelError) and found.is_ours
    assert cel.is_true("s.replace('a', 'b') == 'b'", {"s": "a"}) is True
