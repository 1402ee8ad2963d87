"""How grave a finding is for tools that know three levels. `error` is what fails a check unless --fail-on is given."""

from __future__ import annotations

from typing import Literal

from seatrial.model.finding import Finding

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def severity(finding: Finding) -> Severity:
    """`may` and `nuisance` each lower it by one level; what a removal does by design, or is known, is a note."""
    if finding.removal or finding.known:
        return "note"
    return SEVERITIES[(finding.certainty == "may") + (finding.damage == "nuisance")]
