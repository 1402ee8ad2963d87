"""A finished hook Job stays for an hour, so that the engine sees its result."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_value
from seatrial.fix.proposal import Fixer, Problem, Proposal

FIELD = ("spec", "ttlSecondsAfterFinished")
SECONDS = 3600


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    job = problem.newest(ref)
    if job is not None:
        yield Proposal(f"set {FIELD[-1]} of {ref} to {SECONDS}", with_value(job, FIELD, str(SECONDS)))


FIXER = Fixer(("hook-job-ttl-zero-lost-result",), propose)
