"""What rules and invariants find in rehearsals: one finding for each hazard. Knows neither files nor lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace

from seatrial.evidence.alike import in_newest, once_for_crds
from seatrial.evidence.causes import without_covered
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.explained import one_for_all_versions, with_other_versions
from seatrial.evidence.fetched import softened
from seatrial.evidence.hidden import with_hidden
from seatrial.evidence.unfollowed import lowered
from seatrial.model.finding import Finding, Reviewed, Rule, agreed, gravity, hazard
from seatrial.model.fingerprint import fingerprint
from seatrial.model.release import Case
from seatrial.model.timeline import SCHEDULES, Rehearsal
from seatrial.rules import all_invariants


def findings(
    seen: Sequence[ComparedRehearsal], rules: Sequence[Rule], schedules: Collection[str] = SCHEDULES
) -> list[Finding]:
    """What these rules find in rehearsals, and the breaches of invariants that they do not explain.

    What all `schedules` show is certain.
    """
    reviewed = [_reviewed(one.rehearsal, one.case, rules) for one in seen]
    found = one_for_all_versions(list(_one_for_all_cases(agreed(_findings(_trials(reviewed)), schedules))))
    return once_for_crds(found)


def _reviewed(rehearsal: Rehearsal, case: Case, rules: Sequence[Rule]) -> Reviewed:
    found = (finding for rule in rules for finding in rule.check(rehearsal, case))
    named = (identified(finding, case) for finding in found)
    return Reviewed(rehearsal, case, with_other_versions(without_covered(named, rehearsal, rules), rehearsal, case))


def _findings(trials: list[list[Reviewed]]) -> Iterator[Finding]:
    """What the rules found, and the breaches of invariants that none of it explains."""
    reviewed = [one for trial in trials for one in trial]
    for one in reviewed:
        known = (lowered(softened(finding, one.rehearsal), one.rehearsal) for finding in one.findings)
        yield from (in_newest(finding, one.rehearsal, one.case) for finding in known)
    for trial in map(_beside(reviewed), trials):
        for invariant in all_invariants():
            checked = (_sure(finding, trial) for finding in invariant.check(trial))
            found = (identified(finding, trial[0].case) for finding in checked)
            yield from (in_newest(finding, trial[0].rehearsal, trial[0].case) for finding in found)


def _sure(finding: Finding, trial: list[Reviewed]) -> Finding:
    """A breach with the certainty that its rehearsal allows: the first that shows it."""
    shown = (one.rehearsal for one in trial if one.rehearsal.schedule in finding.schedules[:1])
    return lowered(softened(finding, trial[0].rehearsal), next(shown, trial[0].rehearsal))


def identified(finding: Finding, case: Case) -> Finding:
    return replace(finding, case=case.name, fingerprint=fingerprint(finding, case))


def _beside(reviewed: list[Reviewed]) -> Callable[[list[Reviewed]], list[Reviewed]]:
    """Adds to the rehearsals of a trial what the rules found in other cases with the same engine."""

    def joined(trial: list[Reviewed]) -> list[Reviewed]:
        others = (one for one in reviewed if one.rehearsal.engine == trial[0].rehearsal.engine)
        elsewhere = tuple(f for one in others if one.case.name != trial[0].case.name for f in one.findings)
        return [replace(one, elsewhere=elsewhere) for one in trial]

    return joined


def _trials(reviewed: list[Reviewed]) -> list[list[Reviewed]]:
    """The rehearsals of each case with each engine, which differ in their schedule and follow each other."""
    trials: list[list[Reviewed]] = []
    for one in reviewed:
        last = trials[-1] if trials else []
        alike = all((o.case, o.rehearsal.engine) == (one.case, one.rehearsal.engine) for o in last)
        if last and alike and one.rehearsal.schedule not in [o.rehearsal.schedule for o in last]:
            last.append(one)
        else:
            trials.append([one])
    return [list(with_hidden(trial)) for trial in trials]


def _one_for_all_cases(findings: list[Finding]) -> Iterator[Finding]:
    """Report a finding that several cases share once: where it is gravest, then preferably for the default case."""
    reported: set[object] = set()
    for finding in sorted(findings, key=lambda f: (gravity(f), f.case != "")):
        if hazard(finding) not in reported:
            reported.add(hazard(finding))
            yield finding
