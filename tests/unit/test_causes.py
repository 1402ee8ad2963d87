"""One cause, one finding: which of two findings about the same event is reported."""

from __future__ import annotations

from msgspec.structs import replace
from rehearsed import CONFIG, FINDING, LAZY, WEB

from seatrial.evidence.causes import Cause, causes_of, overlaps, without_covered
from seatrial.model.finding import Finding, Rule
from seatrial.model.timeline import Rehearsal

REFUSED = replace(FINDING, rule="quota-exceeded", step=2, evidence=(12,), damage="failed-deploy")
SAME = replace(REFUSED, rule="object-is-invalid", objects=(WEB,))
OTHER = replace(REFUSED, rule="release-to-hook-flip", step=1, evidence=(5, 11))


def _rule(name: str, *before: str) -> Rule:
    return Rule("ST999", name, lambda rehearsal, case: iter(()), before)


def _left(rehearsal: Rehearsal, *findings: Finding, rules: tuple[Rule, ...]) -> list[str]:
    return [finding.rule for finding in without_covered(findings, rehearsal, rules)]


def test_the_cause_of_a_finding_is_the_rejection_or_deletion_of_its_own_step() -> None:
    assert causes_of(REFUSED, LAZY) == {Cause(2, CONFIG, 12)}
    assert causes_of(OTHER, LAZY) == {Cause(1, CONFIG, 5), Cause(1, CONFIG, 11)}
    assert causes_of(replace(OTHER, step=0), LAZY) == frozenset()


def test_the_cause_of_a_hang_is_what_the_awaited_object_lacks() -> None:
    step = replace(LAZY.steps[2], outcome="hung", waits_for=(WEB,), lacking=(CONFIG,))
    hung = replace(LAZY, steps=(*LAZY.steps[:2], step, *LAZY.steps[3:]))
    about = replace(REFUSED, evidence=(), objects=(WEB, CONFIG))
    assert causes_of(about, hung) == {Cause(2, CONFIG)}
    assert causes_of(replace(about, objects=(WEB,)), hung) == {Cause(2, WEB)}


def test_two_rules_that_report_one_rejection_overlap() -> None:
    assert [(a.rule, b.rule) for a, b in overlaps((REFUSED, SAME, OTHER), LAZY)] == [
        ("quota-exceeded", "object-is-invalid")
    ]


def test_a_rule_that_comes_before_another_replaces_its_finding_about_the_same_cause() -> None:
    ordered = (_rule("quota-exceeded", "object-is-invalid", "release-to-hook-flip"), _rule("object-is-invalid"))
    assert _left(LAZY, SAME, REFUSED, OTHER, rules=ordered) == ["quota-exceeded", "release-to-hook-flip"]
    assert _left(LAZY, SAME, REFUSED, rules=(_rule("quota-exceeded"),)) == ["object-is-invalid", "quota-exceeded"]


def test_a_comparison_with_another_engine_version_overlaps_with_nothing() -> None:
    assert not list(overlaps((REFUSED, replace(SAME, rule="helm-version-differs")), LAZY))
