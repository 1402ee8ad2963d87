"""Trying fixes: which are proposed, which of them are proven, and what they lead to together.

A fix is proven if the whole trial, rehearsed with it and with the fixes accepted before it, no longer has its finding
and has no new one that is as grave. Proposals are tried in the order of the findings, worst first.

A step that no longer fails shows what comes after it. If a fix shows something as grave, the fix of that is tried with
it, as one change; or alone, where that is enough. In the end, fixes that others make needless are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from seatrial.fix.comparing import BACK, ResultWithCases, ahead, coming, has, is_of_a_fault, rejection, same, works
from seatrial.fix.edits import Texts, patched, texts_after, with_edits
from seatrial.fix.fixers import fixers
from seatrial.fix.plans import plan_for
from seatrial.fix.proposal import ByHand, Edits, Problem, Proposal, TextEdit
from seatrial.fix.rebasing import rebased
from seatrial.fix.writing import OUTSIDE
from seatrial.model.finding import Finding, Fix
from seatrial.model.limit import reaches
from seatrial.model.options import NO_DETOUR, Detour
from seatrial.model.release import Case, Resource
from seatrial.model.result import Fixing, Patch, Played, Result
from seatrial.phrases.outcome import first_named
from seatrial.sources.files import reading_instead
from seatrial.sources.places import place_of

EVENTS_OF_A_SMALL_CHART = 100
"""In one rehearsal."""

LINKS_MAX = 4
"""Fixes that are tried as one change."""
LEFT_OUT_MAX = 3
"""Up to so many accepted fixes, each is tried without."""


class Recheck(Protocol):
    """The same check with these files; None if that fails, for example because nothing renders.

    Only the `whole` check goes on behind what stops a trial.
    """

    def __call__(self, texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None: ...


def mended(checked: ResultWithCases, fixing: Fixing, why_not: Callable[[str], str], recheck: Recheck) -> Result:
    """A result with a fix for each finding that has one, and with the files that the fixes change."""
    result = checked.result
    beside = [finding for finding in result.findings if is_of_a_fault(finding)]
    own = tuple(finding for finding in result.findings if finding not in beside)
    trying = _Trying(replace(checked, result=replace(result, findings=own)), fixing, why_not, recheck)
    found = [trying.with_fix(finding) for finding in own]
    if fixing.least is None:
        trying.go_on()
        trying.leave_out_needless()
        trying.look_behind()
    fixed = (replace(one, fix=trying.went.get(one.fingerprint, one.fix)) for one in found)
    return replace(
        result,
        findings=tuple(one if one in beside else next(fixed) for one in result.findings),
        patches=tuple(_patches(trying.accepted)),
        mended=_with_faults(trying.result, result, beside) if trying.accepted else None,
        notes=tuple(sorted({*result.notes, *trying.notes()})),
    )


def _with_faults(after: Result, before: Result, beside: Sequence[Finding]) -> Result:
    """What remains, with what was found beside: nothing was killed or explored again."""
    findings = (*after.findings, *beside)
    return replace(after, findings=findings, interrupted=before.interrupted, explored=before.explored)


def _cost(result: Result) -> int:
    """What one more check costs, in rehearsals of a small chart."""
    events = sum(len(played.rehearsal.timeline) for played in result.played)
    return max(len(result.played), events // EVENTS_OF_A_SMALL_CHART, 1)


class _Accepted(Struct, frozen=True):
    finding: Finding
    fix: Fix
    edits: Edits
    before: ResultWithCases
    """Without it, and without those accepted after it."""


class _Trying:
    """The fixes accepted so far and what they lead to."""

    def __init__(
        self, checked: ResultWithCases, fixing: Fixing, why_not: Callable[[str], str], recheck: Recheck
    ) -> None:
        self.accepted: list[_Accepted] = []
        self.went: dict[str, Fix] = {}
        """The accepted fix that made a finding go, by its fingerprint."""
        self._now = checked
        """With what is accepted."""
        self._fixing = fixing
        self._why_not = why_not
        self._recheck = recheck
        self._seen: dict[str, int] = {}
        """How many fixes were accepted when a finding was last tried, by its fingerprint."""
        result = checked.result
        self._behind = [replace(finding, certainty="will") for finding in result.findings if finding.after]
        """What stands behind other faults at first: it is not new when it shows, nor graver when it is certain."""
        limit, each = fixing.rehearsals_max, _cost(result)
        self._left = min(fixing.tries_max, limit // each) if limit else fixing.tries_max
        self._not_tried = 0
        self._demanded = NO_DETOUR
        """Values and flags that accepted fixes demand."""

    @property
    def result(self) -> Result:
        return self._now.result

    @property
    def _known(self) -> Result:
        return replace(self.result, findings=(*self._behind, *self.result.findings))

    def with_fix(self, finding: Finding) -> Finding:
        if finding.after:
            return finding  # It is tried when what stands before it is fixed.
        self._seen[finding.fingerprint] = len(self.accepted)
        fixable = finding.rule in fixers() or plan_for(finding) is not None
        if not fixable or not self._is_wanted(finding):
            return finding
        if self._fixing.least and not reaches(finding, self._fixing.least):
            return finding
        now = next((one for one in self.result.findings if same(one) == same(finding)), None)
        if now is None:
            return finding  # `mended` adds the fix that made it go.
        proposals = self._proposals(now, self._now, self._edits())
        if proposals is None:
            return finding
        return replace(finding, fix=self._tried(now, proposals) or _by_hand(finding, proposals) or finding.fix)

    def go_on(self) -> None:
        """Try fixes of what shows only with those that are accepted, or was tried without them, until none is left."""
        while self._left and (new := [one for one in self.result.findings if self._is_new(one)]):
            for finding in new:
                self.with_fix(finding)

    def leave_out_needless(self) -> None:
        """Without each accepted fix but the last: is everything that went still gone?"""
        for one in self.accepted[:-1] if len(self.accepted) <= LEFT_OUT_MAX else ():
            rest = self._without(one)
            texts = texts_after([edit for other in rest for edit in other.edits])
            if not self._left or texts is None:
                continue
            self._left -= 1
            after = self._recheck(texts, self._demanded)
            if after is not None and all(has(self.result, finding) for finding in after.result.findings):
                now = {other.fix.title: other.fix for other in rest}
                self.went = {key: now.get(fix.title, rest[-1].fix) for key, fix in self.went.items()}
                self.accepted, self._now = rest, after

    def look_behind(self) -> None:
        """What remains is reported as a check would: with what stands behind a step that still fails."""
        if not self.accepted or all(step.outcome == "ok" for one in self.result.played for step in one.rehearsal.steps):
            return
        texts = texts_after(self._edits())
        after = self._recheck(texts, self._demanded, whole=True) if texts and self._fixing.writes else None
        self._now = after or self._now

    def _without(self, one: _Accepted) -> list[_Accepted]:
        """The other accepted fixes; those after it as they are proposed where it is not."""
        at = self.accepted.index(one)
        first = self.accepted[:at]
        edits = tuple(edit for other in first for edit in other.edits)
        return [*first, *(self._again(other, one.before, edits) for other in self.accepted[at + 1 :])]

    def _again(self, other: _Accepted, before: ResultWithCases, edits: Edits) -> _Accepted:
        proposals = self._proposals(other.finding, before, edits) or ()
        changed = (_edits_of(one) for one in proposals if one.title == other.fix.title)
        now = next(changed, ()) or other.edits
        return replace(other, edits=now, fix=with_edits(other.fix, now))

    def _is_new(self, finding: Finding) -> bool:
        return not finding.after and self._seen.get(finding.fingerprint, -1) < len(self.accepted)

    def _is_wanted(self, finding: Finding) -> bool:
        wanted = self._fixing.wanted
        return wanted is None or finding.fingerprint in wanted(self.result)

    def _proposals(self, finding: Finding, checked: ResultWithCases, edits: Edits) -> list[Proposal] | None:
        """What the fixer of a finding proposes, after `edits`; None if no case shows it."""
        problem = _problem(finding, checked.cases, self._why_not, checked.result.played)
        if problem is None:
            return None
        own = fixers().get(finding.rule, ())
        with reading_instead(texts_after(edits) or {}):
            proposals = [_guarded(proposal, problem) for fixer in own for proposal in fixer.propose(problem)]
        return [_rebased(proposal, edits) for proposal in proposals]

    def _edits(self) -> Edits:
        return tuple(edit for one in self.accepted for edit in one.edits)

    def notes(self) -> Iterator[str]:
        if self._not_tried:
            what = "1 fix was" if self._not_tried == 1 else f"{self._not_tried} fixes were"
            yield f"{what} not tried: each takes another rehearsal of everything; --diff tries more"

    def _tried(self, finding: Finding, proposals: Iterable[Proposal]) -> Fix | None:
        """The first proposal that is proven; otherwise the way out, with what was tried."""
        rejected: list[str] = []
        for proposal in proposals:
            if isinstance(proposal.change, ByHand) or not proposal.change:
                continue
            if not self._left:
                self._not_tried += 1
                return None
            self._left -= 1
            after = self._with(proposal)
            whole = self._onward(finding, proposal, ahead(after) if proposal.flags else after) if after else None
            if proposal.values and self._with(replace(proposal, values=())) is not None:
                rejected.append(f"{proposal.title}: the input renders without it")
            elif whole is None:
                rejected.append(f"{proposal.title}: {rejection(self._known, after, finding)}")
            else:
                return self._taken(finding, *whole, rejected)
        return self._planned(finding, rejected)

    def _onward(
        self, finding: Finding, proposal: Proposal, after: ResultWithCases, links: int = 1
    ) -> tuple[Proposal, ResultWithCases] | None:
        """A proposal, together with those for what it shows; None if that is no fix."""
        if has(after.result, finding):
            return None
        worse = next(coming(self._known, after.result, finding), None)
        if worse is None:
            return proposal, after
        edits = (*self._edits(), *_edits_of(proposal))
        for more in (self._proposals(worse, after, edits) or ()) if links < LINKS_MAX else ():
            if not _edits_of(more) or not self._left:
                continue
            if alone := self._alone(finding, worse, more):
                return alone
            self._left -= 1
            both = _both(proposal, more)
            then = self._with(both)
            if then is not None and not has(then.result, worse):
                return self._onward(finding, both, then, links + 1)
        return None

    def _alone(self, finding: Finding, shown: Finding, more: Proposal) -> tuple[Proposal, ResultWithCases] | None:
        """The fix of what another fix shows of the same objects, without that other one, if it is enough."""
        if not set(finding.objects) & set(shown.objects):
            return None
        for one in self._proposals(shown, self._now, self._edits()) or ():
            if one.title != more.title or not _edits_of(one) or not self._left:
                continue
            self._left -= 1
            after = self._with(one)
            if after is not None and not rejection(self._known, after, finding):
                return one, after
        return None

    def _planned(self, finding: Finding, rejected: Sequence[str]) -> Fix | None:
        """What leads out if no edit does: commands that were rehearsed, or the words of the rule."""
        plan = plan_for(finding)
        if plan is not None and self._left:
            self._left -= 1
            after = self._recheck(texts_after(self._edits()) or {}, _with_both(plan.detour, self._demanded))
            works_out = after is not None and works(after.result, plan.detour.before)
            if after is not None and works_out and not rejection(self._known, ahead(after), finding):
                back = next((new for new in coming(self._known, after.result, finding) if new.action == BACK), None)
                warned = (f"Do not roll back behind this upgrade: {back.message}.",) if back else ()
                steps = (*plan.steps, *warned)
                return Fix(plan.title, False, True, plan.meanwhile, steps=steps, rejected=tuple(rejected))
        return replace(finding.fix, rejected=tuple(rejected)) if rejected and finding.fix else None

    def _with(self, proposal: Proposal) -> ResultWithCases | None:
        """The check with a proposal, and with the values that it demands, beside those that are accepted."""
        texts = texts_after([*self._edits(), *_edits_of(proposal)])
        detour = _with_both(self._demanded, Detour(flags=proposal.flags, values=proposal.values))
        return self._recheck(texts, detour) if texts is not None else None

    def _taken(self, finding: Finding, proposal: Proposal, after: ResultWithCases, rejected: list[str]) -> Fix:
        edits = _edits_of(proposal)
        fix = Fix(
            title=proposal.title,
            safe=not proposal.why_unsafe,
            proven=True,
            why_unsafe=proposal.why_unsafe,
            rejected=tuple(rejected),
        )
        fix = with_edits(fix, edits)
        if fix.safe or self._fixing.unsafe:
            self.accepted.append(_Accepted(finding, fix, edits, self._now))
            self._demanded = _with_both(self._demanded, Detour(flags=proposal.flags, values=proposal.values))
            gone = [one for one in self.result.findings if not one.after and not has(after.result, one)]
            self.went |= {one.fingerprint: fix for one in gone}
            self._now = after
        return fix


def _both(first: Proposal, then: Proposal) -> Proposal:
    """Two proposals as one change."""
    unsafe = dict.fromkeys(filter(None, (first.why_unsafe, then.why_unsafe)))
    title = f"{first.title}, and {then.title}"
    values, flags = (*first.values, *then.values), (*first.flags, *then.flags)
    return Proposal(title, (*_edits_of(first), *_edits_of(then)), "; ".join(unsafe), values, flags)


def _with_both(first: Detour, then: Detour) -> Detour:
    flags = tuple(dict.fromkeys((*first.flags, *then.flags)))
    return replace(first, flags=flags, values=(*first.values, *then.values))


def _edits_of(proposal: Proposal) -> Edits:
    return () if isinstance(proposal.change, ByHand) else proposal.change


def _rebased(proposal: Proposal, edits: Edits) -> Proposal:
    if isinstance(proposal.change, ByHand):
        return proposal
    return replace(proposal, change=rebased(proposal.change, edits))


def _problem(
    finding: Finding, cases: Sequence[Case], why_not: Callable[[str], str], played: Sequence[Played]
) -> Problem | None:
    """The case that shows a finding; with several inputs, the one with its objects, unless these are left out."""
    own = [case for case in cases if case.name == finding.case]
    wanted = set(finding.objects)
    has = (case for case in own if not wanted or any(resource.ref in wanted for resource in case.all_resources()))
    case = next(has, own[0] if own and all(one is own[0] for one in own) else None)
    shown = [one.rehearsal for one in played if one.case == finding.case and one.rehearsal.engine in finding.engines]
    return Problem(finding, case, why_not, cases, shown) if case else None


def _guarded(proposal: Proposal, problem: Problem) -> Proposal:
    """A proposal whose files may all be changed, or the reason why not. What it changes beside is not safe."""
    if isinstance(proposal.change, ByHand):
        return proposal
    if why := next((why for edit in proposal.change if (why := problem.why_not(edit.text.path))), ""):
        return replace(proposal, change=ByHand(why))
    shared = list(dict.fromkeys(words for edit in proposal.change for words in _also_changed(edit, problem)))
    return replace(proposal, why_unsafe="; ".join(filter(None, (proposal.why_unsafe, *shared)))) if shared else proposal


def _also_changed(one: TextEdit, problem: Problem) -> Iterator[str]:
    """Which other objects have their line from the named template that an edit changes."""
    if not one.template:
        return
    others = {
        resource.ref
        for case in problem.cases
        for resource in case.all_resources()
        if resource.ref not in problem.finding.objects and _is_written_at(resource, one)
    }
    if others:
        yield f"{one.template} also writes this of {first_named(sorted(others))}"


def _is_written_at(resource: Resource, one: TextEdit) -> bool:
    place = place_of(resource.place(*one.path))
    return (place.file, place.line, place.sure) == (one.text.path, one.line, "exact")


def _by_hand(finding: Finding, proposals: Sequence[Proposal]) -> Fix | None:
    """The way out with the reason why it is not an edit, if the text of the first proposal is not certain."""
    for proposal in proposals[:1]:
        if isinstance(proposal.change, ByHand):
            if finding.fix is not None and proposal.change.why.endswith(OUTSIDE):
                return None  # A revision that is there already is not edited by hand either.
            why = f"Change it by hand: {proposal.change.why}."
            if finding.fix is not None:
                return replace(finding.fix, steps=(*finding.fix.steps, why), proposed=True)
            return Fix(proposal.title, not proposal.why_unsafe, False, proposal.why_unsafe, steps=(why,), proposed=True)
    return None


def _patches(accepted: Sequence[_Accepted]) -> list[Patch]:
    said: dict[str, list[str]] = {}
    for one in accepted:
        for file in dict.fromkeys(edit.text.path for edit in one.edits):
            said.setdefault(file, []).append(f"{one.finding.rule}: {one.fix.title}")
    return list(patched([edit for one in accepted for edit in one.edits], said))
