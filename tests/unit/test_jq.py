"""libjq in a process of its own: results, faults, and programs that would never end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seatrial import jq
from seatrial.jq import JqFault, fault_of, run


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with a shorter limit, and another one after it."""
    jq._PROCESS.close()
    monkeypatch.setattr(jq, "SECONDS", 0.1)
    yield
    jq._PROCESS.close()


def test_a_program_gives_its_first_two_outputs() -> None:
    assert run(".a", {"a": 1}) == [1]
    assert run(".a[]", {"a": [1, 2, 3]}) == [1, 2]
    assert run("empty", {}) == []


def test_errors_distinguish_compile_from_runtime() -> None:
    assert run(".a[]", {}) == JqFault("Cannot iterate over null (null)")
    found = run("foo", {})
    assert isinstance(found, JqFault) and found.is_illegal and "foo/0 is not defined" in found.words
    assert fault_of("foo") == found
    assert fault_of("error") is None


def test_a_program_sees_neither_the_environment_nor_files() -> None:
    assert run("env", {}) == [{}]
    assert run("$ENV", {}) == [{}]
    assert isinstance(run("input", {}), JqFault)


@pytest.mark.parametrize(
    "program",
    [
        "[range(1e9)]",
        "def f: f; f",
        "def f: 1 + f; f",
        "until(false; [.] + [1])",
        "[path(repeat(.))]",
        "reduce range(1e9) as $i (0; . + 1)",
        '"a" * 1e9',
        "[" * 5_000 + "]" * 5_000,
        "." * (jq.PROGRAM_MAX + 1),
    ],
)
def test_an_endless_program_is_stopped_and_the_next_one_runs(program: str, impatient: None) -> None:
    found = run(program, {})
    assert isinstance(found, JqFault) and found.ran_away
    assert run(".a", {"a": program[:9]}) == [program[:9]]


def test_a_result_that_is_too_large_is_a_fault(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    monkeypatch.setattr(jq, "OUTPUT_MAX", 100)
    assert run('"a" * 200', {}) == JqFault("the result is too large")


def test_threads_share_the_process() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: run(".n + 1", {"n": n}), range(100))) == [[n + 1] for n in range(100)]
