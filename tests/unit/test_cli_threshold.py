"""`--fail-on`: which findings make the exit code 1."""

import pytest
from msgspec.structs import replace
from rehearsed import CLEAN, FINDING, RESULT

from seatrial.cli.threshold import parse
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Certainty, Damage
from seatrial.model.limit import Limit
from seatrial.model.result import Exit, NotRehearsed
from seatrial.model.verdict import exit_of


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("", Limit("likely", "failed-deploy")),
        ("may", Limit("may", "failed-deploy")),
        ("outage", Limit("likely", "outage")),
        ("will:nuisance", Limit("will", "nuisance")),
        ("data-loss:may", Limit("may", "data-loss")),
    ],
)
def test_the_threshold_takes_a_certainty_a_damage_or_both(text: str, threshold: Limit) -> None:
    assert parse(text) == threshold


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mya", "--fail-on mya: 'mya' is not a certainty or a damage level; did you mean may?"),
        (
            "will:outrage",
            "--fail-on will:outrage: 'outrage' is not a certainty or a damage level; did you mean outage?",
        ),
        (
            "42",
            "--fail-on 42: '42' is not a certainty or a damage level; "
            "use one of will, likely, may, data-loss, outage, failed-deploy, nuisance, or a pair such as will:outage",
        ),
    ],
)
def test_other_words_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(CannotContinue) as refused:
        parse(text)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("certainty", "damage", "fail_on", "fails"),
    [
        ("will", "failed-deploy", "", True),
        ("will", "data-loss", "", True),
        ("will", "nuisance", "", False),
        ("may", "data-loss", "", False),
        ("likely", "failed-deploy", "", True),
        ("likely", "failed-deploy", "will", False),
        ("may", "outage", "may", True),
        ("will", "outage", "may", True),
        ("may", "nuisance", "may", False),
        ("will", "outage", "data-loss", False),
        ("will", "nuisance", "nuisance", True),
    ],
)
def test_findings_fail_from_the_threshold_on(certainty: Certainty, damage: Damage, fail_on: str, fails: bool) -> None:
    result = replace(RESULT, findings=(replace(FINDING, certainty=certainty, damage=damage),))
    ended = exit_of(result, parse(fail_on))
    assert ended.code == int(fails)
    assert ended.failing == (result.findings if fails else ())


def test_what_a_removal_does_by_design_fails_only_on_request() -> None:
    result = replace(RESULT, findings=(replace(FINDING, certainty="will", damage="data-loss", removal=True),))
    assert exit_of(result, parse("")).code == 0
    assert exit_of(result, parse("may:nuisance")).code == 0
    assert exit_of(result, Limit(removal=True)).code == 1


def test_no_findings_and_all_steps_ok_does_not_fail() -> None:
    assert exit_of(CLEAN, Limit()) == Exit(0, "no findings")


def test_the_reason_names_the_threshold() -> None:
    two = replace(RESULT, findings=(FINDING, FINDING))
    assert exit_of(two, parse("")).reason == "2 findings reach --fail-on likely:failed-deploy"
    assert exit_of(two, parse("data-loss")).reason == "no finding reaches --fail-on likely:data-loss"
    assert (
        exit_of(two, parse(""), zero=True).reason == "--exit-zero, but 2 findings reach --fail-on likely:failed-deploy"
    )
    assert exit_of(replace(CLEAN, hollow=True), parse("")) == Exit(3, "nothing could be rehearsed")


def test_what_was_not_rehearsed_fails_only_on_request() -> None:
    partial = replace(CLEAN, not_rehearsed=(NotRehearsed("OLD does not render", "ci/ha-values.yaml", "upgrade"),))
    assert exit_of(partial, Limit()) == Exit(0, "no findings in what was rehearsed")
    asked = Limit(unrehearsed=True)
    assert exit_of(partial, asked) == Exit(1, "not everything was rehearsed (--fail-on-unrehearsed)")
    assert exit_of(CLEAN, asked) == Exit(0, "no findings")
    hollow = replace(partial, hollow=True)
    assert exit_of(hollow, Limit()) == Exit(3, "nothing could be rehearsed")
    assert exit_of(hollow, asked).code == 1
    broken = replace(partial, charts=2, broken=1)
    assert exit_of(broken, asked) == Exit(2, "1 of 2 charts could not be checked")


def test_a_finding_is_the_reason_before_what_was_not_rehearsed() -> None:
    partial = replace(RESULT, findings=(FINDING,), not_rehearsed=(NotRehearsed("not on disk"),))
    assert exit_of(partial, Limit(unrehearsed=True)).failing == (FINDING,)
