"""JUnit XML, read back with a parser that others use for it."""

from junitparser import Failure, JUnitXml, Skipped
from msgspec.structs import replace
from rehearsed import CLEAN, EAGER, FINDING, FIXED, LAZY, RESULT, WEB

from seatrial.model.engine import EngineId
from seatrial.model.resource import Place, Ref
from seatrial.model.result import Played, Result
from seatrial.report.junit import render
from seatrial.report.page import Page


def suites(result: Result) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """Each suite with its test cases: class, name, outcome and message."""
    read = JUnitXml.fromstring(render(result, Page()).encode())
    return [
        (
            suite.name,
            [
                (case.classname, case.name, type(case.result[0]).__name__, case.result[0].message)
                if case.result
                else (case.classname, case.name, "", "")
                for case in suite
            ],
        )
        for suite in read
    ]


def test_each_finding_and_each_step_that_ends_well_is_a_test_case() -> None:
    late = replace(FINDING, certainty="may", objects=(WEB,), message="late")
    assert suites(replace(RESULT, findings=(FINDING, late))) == [
        (
            "helm@4.2.3",
            [
                (
                    "seatrial.helm",
                    "release-to-hook-flip: ConfigMap/default/web-config",
                    "Failure",
                    "ConfigMap/default/web-config became a hook, and the upgrade that makes it one leaves it deleted",
                ),
                ("seatrial.helm", "release-to-hook-flip: Deployment/default/web", "Skipped", "late"),
                ("seatrial.helm", "step 1, install web ./v1", "", ""),
                ("seatrial.helm", "step 2, upgrade web ./v2", "", ""),
                ("seatrial.helm", "step 4, uninstall web", "", ""),
            ],
        )
    ]


def test_a_failure_has_its_place_and_what_happens() -> None:
    (suite,) = JUnitXml.fromstring(render(replace(RESULT, findings=(FIXED,)), Page()).encode())
    case = next(iter(suite))
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.type == "will, outage"
    assert case._elem.get("file") == "v2/templates/configmap.yaml"
    assert failure.text.splitlines()[:5] == [
        "release-to-hook-flip (ST201) will, outage: ConfigMap/default/web-config became a hook, and the upgrade that "
        "makes it one leaves it deleted",
        "Where: v2/templates/configmap.yaml:7",
        "Step 2, upgrade ./v2:",
        "  helm delete ConfigMap/default/web-config: deleted",
        "  helm apply ConfigMap/default/web-config: created",
    ]


def test_counts_are_those_of_the_test_cases() -> None:
    read = JUnitXml.fromstring(
        render(replace(RESULT, findings=(FIXED, replace(FINDING, removal=True))), Page()).encode()
    )
    (suite,) = read
    for counted in (read, suite):
        assert (counted.tests, counted.failures, counted.skipped, counted.errors) == (5, 1, 1, 0)
    written = [case for case in suite if case.result]
    assert [isinstance(case.result[0], Skipped) for case in written] == [False, True]


def test_engines_and_cases_are_suites_of_their_own() -> None:
    argocd = replace(LAZY, engine=EngineId("argocd", "3.5"))
    played = (Played("", LAZY), Played("", EAGER), Played("ci/ha-values.yaml", LAZY), Played("", argocd))
    found = replace(FINDING, case="ci/ha-values.yaml")
    read = suites(replace(RESULT, played=played, findings=(found,)))
    assert [name for name, _ in read] == ["helm@4.2.3", "helm@4.2.3, ci/ha-values.yaml", "argocd@3.5"]
    assert [len(cases) for _, cases in read] == [3, 4, 3]
    assert read[1][1][0][0] == "seatrial.helm, ci/ha-values_yaml"


def test_names_are_unique() -> None:
    many = tuple(Ref("ConfigMap", "default", name) for name in "abcde")
    found = replace(FINDING, objects=many)
    (_, cases), *_ = suites(replace(RESULT, findings=(found, found), played=(Played("", LAZY), Played("", LAZY))))
    assert [name for _, name, *_ in cases] == [
        "release-to-hook-flip: ConfigMap/default/a, ConfigMap/default/b, ConfigMap/default/c and 2 more",
        "release-to-hook-flip: ConfigMap/default/a, ConfigMap/default/b, ConfigMap/default/c and 2 more (2)",
        "step 1, install web ./v1",
        "step 2, upgrade web ./v2",
        "step 4, uninstall web",
        "step 1, install web ./v1 (2)",
        "step 2, upgrade web ./v2 (2)",
        "step 4, uninstall web (2)",
    ]


def test_text_of_charts_is_escaped() -> None:
    odd = replace(FINDING, message="<b> & ]]> \x1b\ud83d", places=(Place("a&b<c>.yaml", 1),), details=("<!--",))
    (_, cases), *_ = suites(replace(RESULT, findings=(odd,)))
    assert cases[0][3] == "<b> & ]]> ␛\ufffd"


def test_a_finding_without_a_rehearsal_is_not_lost() -> None:
    assert [name for name, cases in suites(replace(CLEAN, played=(), findings=(FINDING,)))] == ["helm@4.2.3"]
    assert suites(replace(CLEAN, played=())) == []
