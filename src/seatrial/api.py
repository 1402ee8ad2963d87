"""seatrial as a library: five names, which stay as they are within a major version.

from seatrial.api import Options, check

result = check(Options(inputs=("charts/shop",), old="git:main"))
for finding in result.findings:
    print(finding.rule, finding.certainty, finding.damage, finding.message)
"""

from __future__ import annotations

from collections.abc import Callable

from seatrial.check import run
from seatrial.fleet.folder import check_all
from seatrial.model.finding import Finding
from seatrial.model.options import CheckOptions as Options
from seatrial.model.result import Result
from seatrial.model.timeline import ORDINARY, Rehearsal, Schedule

__all__ = ["Finding", "Options", "Result", "check", "rehearse"]


def check(options: Options, *, since: str = "", progress: Callable[[str], None] = lambda said: None) -> Result:
    """Rehearse everything under every schedule and apply the rules, as `seatrial check` does. Prints nothing."""
    return check_all(options, since, progress)


def rehearse(options: Options, schedule: Schedule = ORDINARY) -> Rehearsal:
    """Rehearse the first case of the input once, as `seatrial run` does: steps, outcomes and the whole timeline."""
    return run(options, schedule).rehearsal
