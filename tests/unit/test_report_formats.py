"""What all formats have in common: every one renders every result, and text of charts stays text."""

import re

import pytest
from msgspec.structs import replace
from rehearsed import CLEAN, FINDING, FIXED, LAZY, RESULT, STEPS, TIMELINE

from seatrial.model.finding import CERTAINTIES, DAMAGES, Fix
from seatrial.model.resource import Place, Ref
from seatrial.model.result import NotRehearsed, Played, Result
from seatrial.report import FORMATS, Output, render
from seatrial.report.page import Page
from seatrial.report.severity import severity

NASTY = (
    "\x1b]0;title\x07\x1b[31m\r\x00\x85\u202e\u2066\ud83d\uffff\x7f\n::error::x\n##[error]x <script>alert(1)</script>"
)
HARMLESS = re.compile(r"[\n\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ALL_NASTY = replace(
    RESULT,
    findings=(
        replace(
            FINDING,
            objects=(Ref("ConfigMap", "default", NASTY),),
            message=NASTY,
            details=(NASTY, NASTY),
            places=(Place(NASTY, 1), Place(NASTY, 2)),
            confirm=NASTY,
            fix=Fix(NASTY, safe=False, proven=False),
            case=NASTY,
            action=NASTY,
            after=(NASTY,),
        ),
        replace(FINDING, objects=(), places=(), action=NASTY),
    ),
    played=(
        Played("", replace(LAZY, steps=(replace(STEPS[0], source=NASTY, action=NASTY, release=NASTY, error=NASTY),))),
    ),
    continued=(
        Played(
            NASTY,
            replace(LAZY, repaired=(NASTY,), timeline=tuple(replace(e, message=NASTY, actor=NASTY) for e in TIMELINE)),
        ),
    ),
    notes=(NASTY,),
    not_rehearsed=(NotRehearsed(NASTY, NASTY, NASTY), NotRehearsed(NASTY)),
    missing_dependencies=(NASTY,),
    not_modelled=(NASTY,),
)


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("result", [CLEAN, RESULT, replace(RESULT, findings=(FIXED,), played=())])
def test_every_format_ends_with_one_newline(output: Output, result: Result) -> None:
    text = render(output, result, Page())
    assert text.endswith("\n") and not text.endswith("\n\n")


@pytest.mark.parametrize("output", FORMATS)
def test_no_format_contains_control_characters(output: Output) -> None:
    text = render(output, ALL_NASTY, Page(verbose=True))
    left = set(HARMLESS.sub("", text))
    # The command line writes these as \\ud83d, since no encoding has them.
    assert left <= ({"\ud83d", "\uffff"} if output in ("full", "concise") else set())


@pytest.mark.parametrize("certainty", CERTAINTIES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_error_is_what_fails_a_check_by_default(certainty: str, damage: str) -> None:
    found = replace(FINDING, certainty=certainty, damage=damage)
    fails = certainty in ("will", "likely") and damage != "nuisance"
    assert (severity(found) == "error") is fails
    assert severity(replace(found, removal=True)) == "note"


def test_doubt_and_small_damage_lower_the_severity() -> None:
    assert severity(replace(FINDING, certainty="may")) == "warning"
    assert severity(replace(FINDING, damage="nuisance")) == "warning"
    assert severity(replace(FINDING, certainty="may", damage="nuisance")) == "note"
