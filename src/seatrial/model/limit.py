"""`--fail-on`: how bad a finding must be to fail a check."""

from __future__ import annotations

from msgspec import Struct

from seatrial.model.finding import CERTAINTIES, DAMAGES, Certainty, Damage, Finding


class Limit(Struct, frozen=True):
    certainty: Certainty = "likely"
    damage: Damage = "failed-deploy"
    removal: bool = False
    """Whether what a removal does by design counts."""
    unrehearsed: bool = False
    """Whether a part of the input that was not rehearsed fails a check as well."""

    def __str__(self) -> str:
        return f"--fail-on {self.certainty}:{self.damage}"


def reaches(finding: Finding, limit: Limit) -> bool:
    if finding.known or (finding.removal and not limit.removal):
        return False
    certain = CERTAINTIES.index(finding.certainty) <= CERTAINTIES.index(limit.certainty)
    return certain and DAMAGES.index(finding.damage) <= DAMAGES.index(limit.damage)
