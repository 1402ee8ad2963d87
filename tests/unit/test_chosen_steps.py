"""`--steps`: the steps of a default trial, in the words of any engine."""

from __future__ import annotations

import pytest

from seatrial.engines.engine import load
from seatrial.model.errors import CannotContinue
from seatrial.plan.chosen_steps import chosen


def steps(engine: str, *words: str) -> list[str]:
    return [step.action for step in chosen(load(engine).default_trial("new", "old", 0), words, engine)]


def test_without_words_all_steps_are_rehearsed() -> None:
    assert steps("helm") == ["install", "upgrade", "upgrade", "rollback", "uninstall", "install"]


@pytest.mark.parametrize(
    ("engine", "words", "expected"),
    [
        ("helm", ("install", "upgrade"), ["install", "upgrade", "upgrade"]),
        ("helm", ("install", "uninstall"), ["install", "uninstall", "install"]),
        ("helm", ("up",), ["install", "upgrade", "upgrade"]),
        ("helm", ("upgrade", "destroy"), ["upgrade", "upgrade", "uninstall"]),
        ("argocd", ("install", "upgrade"), ["sync"] * 4),
        ("flux", ("reconcile",), ["sync"] * 4),
        ("pulumi", ("up",), ["up"] * 4),
        ("pulumi", ("uninstall",), ["destroy"]),
        ("kubectl", ("apply",), ["apply"] * 4),
    ],
)
def test_words_of_any_engine_choose_steps(engine: str, words: tuple[str, ...], expected: list[str]) -> None:
    assert steps(engine, *words) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("instal",), "--steps instal: no such step; did you mean install?"),
        (("42",), "--steps 42: no such step; known steps: install, upgrade, rollback, uninstall, test"),
        (
            ("test",),
            "--steps test: the default trial of helm has no such step (it has install, upgrade, rollback, uninstall)",
        ),
    ],
)
def test_other_words_are_refused(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CannotContinue) as refused:
        steps("helm", *words)
    assert str(refused.value) == sentence
