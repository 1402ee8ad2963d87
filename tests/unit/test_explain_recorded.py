"""Errors of recorded rehearsals, explained by their text alone: the rule that finds the cause is among the causes."""

from __future__ import annotations

import pytest
import yaml
from recordings import FOLDER, NAMES, recorded

from seatrial.explain.diagnosis import diagnose

FOUND = yaml.safe_load((FOLDER.parent / "findings.yaml").read_text())
STEPS = ("install", "upgrade", "rollback", "uninstall")
FIRST_AT_LEAST = 29
"""Of 35 recordings with an error. In the others, the text is the same for two causes."""


def causes(name: str) -> list[str] | None:
    """The causes of the first error in a recording; None if there is none."""
    rehearsal = recorded(name).rehearsal
    failed = next((step for step in rehearsal.steps if step.error), None)
    if failed is None or name not in FOUND:
        return None
    step = failed.action if failed.action in STEPS else ""
    explained = diagnose(failed.error, rehearsal.engine.name, step)
    return [cause.rule for cause in explained.causes] if explained else []


@pytest.mark.parametrize("name", NAMES)
def test_the_cause_of_a_recorded_error_is_among_those_of_its_text(name: str) -> None:
    found = causes(name)
    if found is not None:
        assert {one["rule"] for one in FOUND[name]} & set(found)


def test_the_cause_of_most_recorded_errors_comes_first() -> None:
    explained = {name: found for name in NAMES if (found := causes(name))}
    right = [name for name, found in explained.items() if found[0] in {one["rule"] for one in FOUND[name]}]
    assert len(right) >= FIRST_AT_LEAST, sorted(set(explained) - set(right))
