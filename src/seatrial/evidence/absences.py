"""Objects that lack another one which the user excludes: `needed-object-missing` reports that."""

from __future__ import annotations

from seatrial.evidence.moment import Moment
from seatrial.graph import needs_of
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal


def lacks_absent(rehearsal: Rehearsal, case: Case, step: int, user: Ref) -> bool:
    """Whether an object lacks another that is not in the cluster because the user says so."""
    moment = Moment(rehearsal, case, step)
    absent = (one.ref for one in case.absent if one.ref is not None and moment.live(one.ref) is None)
    return any(needs(case, step, user, ref) for ref in absent)


def needs(case: Case, step: int, user: Ref, ref: Ref) -> bool:
    """Whether an object of a step certainly needs another."""
    written = case.written(step, user)
    return any(n.object == ref and not (n.optional or n.guess) for n in (needs_of(written) if written else ()))
