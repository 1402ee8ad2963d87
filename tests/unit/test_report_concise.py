"""One line per finding."""

from msgspec.structs import replace
from rehearsed import CLEAN, FINDING, RESULT

from seatrial.model.result import Exit
from seatrial.report.concise import render
from seatrial.report.page import Page


def test_each_finding_is_one_line_with_a_place() -> None:
    findings = (
        replace(FINDING, message="it is\ngone"),
        replace(FINDING, certainty="may", damage="nuisance", message="late", places=(), case="ci/ha-values.yaml"),
        replace(FINDING, message="nowhere", places=(), objects=()),
    )
    assert (
        render(replace(RESULT, findings=findings, prerequisites=(), not_modelled=()), Page())
        == """\
v2/templates/configmap.yaml:7: release-to-hook-flip will outage it is gone
ConfigMap/default/web-config: release-to-hook-flip may nuisance late [ci/ha-values.yaml]
upgrade: release-to-hook-flip will outage nowhere
3 objects from 2 files · 2 rehearsals · helm@4.2.3 · 3 findings (2 will, 1 may)
"""
    )


def test_quiet_without_findings_writes_nothing() -> None:
    assert render(replace(CLEAN, exit=Exit(0, "no findings")), Page(quiet=True)) == ""


def test_a_check_that_fails_says_so_even_if_quiet() -> None:
    failed = replace(RESULT, exit=Exit(1, "1 finding reaches --fail-on may:nuisance", RESULT.findings))
    assert render(failed, Page(quiet=True)).endswith("\nexit 1: 1 finding reaches --fail-on may:nuisance\n")
