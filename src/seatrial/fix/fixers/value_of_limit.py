"""A limit whose value is empty gets one, in the values of the chart."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.chart_values import TEMPLATES, asked_value, with_chart_value
from seatrial.fix.lines import Line, key_line
from seatrial.fix.proposal import Fixer, Problem, Proposal

TTL = ("spec", "ttlSecondsAfterFinished")
SECONDS = 3600


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    job = problem.newest(ref)
    if job is None or TEMPLATES not in job.file or TTL[-1] not in _fields(problem):
        return
    line = key_line(job, *TTL)
    if isinstance(line, Line) and (keys := asked_value(line)):
        for value in (str(SECONDS), f'"{SECONDS}"'):  # A schema may accept only one of them.
            yield Proposal(
                f"set {'.'.join(keys)} to {value} in values.yaml",
                with_chart_value(job, keys, value),
                why_unsafe="finished Jobs are then deleted after an hour",
            )


def _fields(problem: Problem) -> set[str]:
    return {str(one.path[-1]) for one in problem.finding.pointers if hasattr(one, "path") and one.path}


FIXER = Fixer(("null-means-no-limit",), propose)
