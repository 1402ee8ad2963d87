"""Whether a change is a fix: its finding goes, none as grave comes, and no step fails that worked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rehearsed import FINDING, RESULT

from seatrial.fix.comparing import coming
from seatrial.model.engine import EngineId
from seatrial.model.result import Played, Result
from seatrial.model.timeline import ORDINARY, Outcome, Rehearsal, StepResult

HELM = EngineId("helm", "4.2.3")
LOSS = replace(FINDING, damage="data-loss", certainty="will")
FAILS = replace(
    FINDING, rule="step-fails", fingerprint="other", damage="failed-deploy", engines=(HELM,), step=0, case=""
)


def ended(outcome: Outcome) -> Result:
    step = StepResult("upgrade", "web", "default", "v2", outcome)
    return replace(RESULT, findings=(), played=(Played("", Rehearsal(HELM, ORDINARY, (step,), ())),))


@pytest.mark.parametrize(("before", "comes"), [("ok", [FAILS]), ("failed", [])])
def test_a_step_that_worked_must_not_fail_although_a_loss_is_graver(before: Outcome, comes: list[object]) -> None:
    """If the step failed before, the lesser finding only shows what comes next."""
    after = replace(ended("failed"), findings=(FAILS,))
    assert list(coming(replace(ended(before), findings=(LOSS,)), after, LOSS)) == comes


def test_a_lesser_finding_of_a_step_that_still_works_may_come() -> None:
    lesser = replace(FAILS, damage="nuisance")
    assert list(coming(replace(ended("ok"), findings=(LOSS,)), replace(ended("ok"), findings=(lesser,)), LOSS)) == []
