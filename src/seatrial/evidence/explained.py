"""Whether a finding explains why a step failed, and what other versions of the engine add to that. Knows no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from seatrial.evidence.causes import COMPARES
from seatrial.evidence.failures import StepFailure, failures, reason_of
from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.release import Case
from seatrial.model.timeline import ORDINARY, Rehearsal

LAST = 1_000_000


def explains(finding: Finding, failure: StepFailure) -> bool:
    """Whether a finding of the same rehearsal is about this failure."""
    if finding.rule in COMPARES or finding.damage == "nuisance":
        return False
    if not {event.index for event in failure.events}.isdisjoint(finding.evidence):
        return True
    about = {*failure.objects, *failure.lacking}
    evidence = [event for event in failure.moment.rehearsal.timeline if event.index in finding.evidence]
    if any(event.object in about for event in evidence if event.step == failure.step):
        return True
    if any(reason_of(event) in failure.reasons for event in evidence if event.effect == "refused"):
        return True
    if finding.step != failure.step:
        return False
    of_step = finding.damage == "failed-deploy" and finding.action == failure.moment.ended.action
    return not about.isdisjoint(finding.objects) or (not about and of_step)


def in_order_of_error(seen: Iterable[tuple[Rehearsal, Case]]) -> Callable[[Finding], int]:
    """How soon the first error of the default case names an object of a finding; `LAST` if that does not explain it."""
    first: dict[EngineId, StepFailure | None] = {}
    for rehearsal, case in seen:
        if rehearsal.schedule == ORDINARY and rehearsal.engine not in first:
            first[rehearsal.engine] = next(failures(rehearsal, case), None)

    def place(finding: Finding) -> int:
        failed = next((first[engine] for engine in finding.engines if engine in first), None)
        if failed is None or finding.after or failed.moment.case.name != finding.case or not explains(finding, failed):
            return LAST
        named = (number for number, ref in enumerate(failed.objects) if ref in finding.objects)
        return next(named, len(failed.objects))

    return place


def with_other_versions(findings: Sequence[Finding], rehearsal: Rehearsal, case: Case) -> tuple[Finding, ...]:
    """A step that fails with one version only is one finding: the explanation also says which version works."""

    def explained(finding: Finding, compared: Finding) -> bool:
        return any(explains(finding, failure) for failure in failed if failure.step == compared.step)

    failed = list(failures(rehearsal, case)) if any(finding.rule in COMPARES for finding in findings) else []
    return tuple(_folded(findings, explained))


def one_for_all_versions(findings: Sequence[Finding]) -> list[Finding]:
    """The same for a failure that only an invariant reports: the finding about the same objects in the same step."""

    def same(finding: Finding, compared: Finding) -> bool:
        about = not set(finding.objects).isdisjoint(compared.objects)
        return about and (finding.case, finding.step, finding.damage) == (compared.case, compared.step, compared.damage)

    return _folded(findings, same)


def _folded(findings: Sequence[Finding], belong: Callable[[Finding, Finding], bool]) -> list[Finding]:
    found = list(findings)
    for compared in [finding for finding in findings if finding.rule in COMPARES]:
        others = (finding for finding in found if finding.rule not in COMPARES)
        explained = next((finding for finding in others if belong(finding, compared)), None)
        if explained is not None:
            why = (words for words in compared.details[-1:] if "Helm 3" in words and "Helm 4" in words)
            added = dict.fromkeys((*explained.details, f"{compared.message}.", *why))
            found[found.index(explained)] = replace(explained, details=tuple(added))
            found.remove(compared)
    return found
