"""Trying fixes: which are proposed, which of them are proven, and what they lead to together.

A fix is proven if the whole trial, rehearsed with it and with the fixes accepted before it, no longer has its finding
and has no new one that is as grave. Proposals are tried in the order of the findings, worst first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from seatrial.fix.diff import diff_of
from seatrial.fix.fixers import fixers
from seatrial.fix.plans import plan_for
from seatrial.fix.proposal import ByHand, Edits, Problem, Proposal, TextEdit
from seatrial.model.finding import CERTAINTIES, DAMAGES, FileEdit, Finding, Fix, gravity
from seatrial.model.limit import reaches
from seatrial.model.options import NO_DETOUR, Detour
from seatrial.model.release import Case, Resource
from seatrial.model.result import Fixing, Patch, Played, Result
from seatrial.phrases.outcome import first_named
from seatrial.sources.places import place_of
from seatrial.text.source import Text, edited

NOT_FOUND = (True, len(CERTAINTIES), len(DAMAGES))
"""Less grave than any finding."""
BACK = "rollback"
"""A plan leads forward; what a rollback then does is a warning."""
EVENTS_OF_A_SMALL_CHART = 100
"""In one rehearsal."""

Texts = dict[str, str]


class Recheck(Protocol):
    """The result of the same check with these files; None if that fails, for example because nothing renders."""

    def __call__(self, texts: Texts, detour: Detour = NO_DETOUR) -> Result | None: ...


def mended(
    result: Result, cases: Sequence[Case], fixing: Fixing, why_not: Callable[[str], str], recheck: Recheck
) -> Result:
    """A result with a fix for each finding that has one, and with the files that the fixes change."""
    trying = _Trying(result, fixing, recheck)
    found = [trying.with_fix(one, _problem(one, cases, why_not, result.played)) for one in result.findings]
    return replace(
        result,
        findings=tuple(replace(one, fix=trying.went.get(one.fingerprint, one.fix)) for one in found),
        patches=tuple(_patches(trying.accepted)),
        mended=trying.result if trying.accepted else None,
        notes=tuple(sorted({*result.notes, *trying.notes()})),
    )


def _cost(result: Result) -> int:
    """What one more check costs, in rehearsals of a small chart."""
    events = sum(len(played.rehearsal.timeline) for played in result.played)
    return max(len(result.played), events // EVENTS_OF_A_SMALL_CHART, 1)


class _Accepted(Struct, frozen=True):
    rule: str
    fix: Fix
    edits: Edits


class _Trying:
    """The fixes accepted so far and what they lead to."""

    def __init__(self, result: Result, fixing: Fixing, recheck: Recheck) -> None:
        self.accepted: list[_Accepted] = []
        self.went: dict[str, Fix] = {}
        """The accepted fix that made a finding go, by its fingerprint."""
        self.result = result
        self._fixing = fixing
        self._wanted = fixing.wanted(result) if fixing.wanted else {one.fingerprint for one in result.findings}
        self._recheck = recheck
        limit, each = fixing.rehearsals_max, _cost(result)
        self._left = min(fixing.tries_max, limit // each) if limit else fixing.tries_max
        self._not_tried = 0

    def with_fix(self, finding: Finding, problem: Problem | None) -> Finding:
        own = fixers().get(finding.rule, ())
        if (
            (not own and plan_for(finding) is None)
            or problem is None
            or finding.after
            or finding.fingerprint not in self._wanted
        ):
            return finding
        if self._fixing.least and not reaches(finding, self._fixing.least):
            return finding
        if not _has(self.result, finding):
            return finding  # `mended` adds the fix that made it go.
        proposals = [_guarded(proposal, problem) for fixer in own for proposal in fixer.propose(problem)]
        return replace(finding, fix=self._tried(finding, proposals) or _by_hand(finding, proposals) or finding.fix)

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
            after = self._with(proposal.change)
            if why := _rejection(self.result, after, finding):
                rejected.append(f"{proposal.title}: {why}")
            elif after is not None:
                return self._taken(finding, proposal, proposal.change, after, rejected)
        return self._planned(finding, rejected)

    def _planned(self, finding: Finding, rejected: Sequence[str]) -> Fix | None:
        """What leads out if no edit does: commands that were rehearsed, or the words of the rule."""
        plan = plan_for(finding)
        if plan is not None and self._left:
            self._left -= 1
            texts = _texts([edit for one in self.accepted for edit in one.edits])
            after = self._recheck(texts or {}, plan.detour)
            ahead = replace(after, findings=tuple(f for f in after.findings if f.action != BACK)) if after else None
            if after is not None and not _rejection(self.result, ahead, finding):
                back = next((new for new in _coming(self.result, after, finding) if new.action == BACK), None)
                warned = (f"Do not roll back behind this upgrade: {back.message}.",) if back else ()
                steps = (*plan.steps, *warned)
                return Fix(plan.title, False, True, plan.meanwhile, steps=steps, rejected=tuple(rejected))
        return replace(finding.fix, rejected=tuple(rejected)) if rejected and finding.fix else None

    def _with(self, edits: Edits) -> Result | None:
        """The result with these edits beside those that are accepted."""
        texts = _texts([*(edit for one in self.accepted for edit in one.edits), *edits])
        return self._recheck(texts) if texts is not None else None

    def _taken(self, finding: Finding, proposal: Proposal, edits: Edits, after: Result, rejected: list[str]) -> Fix:
        fix = Fix(
            title=proposal.title,
            safe=not proposal.why_unsafe,
            proven=True,
            why_unsafe=proposal.why_unsafe,
            edits=tuple(_file_edit(edit) for edit in edits),
            diff=diff_of(_patched(edits, {})),
            rejected=tuple(rejected),
        )
        if fix.safe or self._fixing.unsafe:
            self.accepted.append(_Accepted(finding.rule, fix, edits))
            self.went |= {one.fingerprint: fix for one in self.result.findings if not _has(after, one)}
            self.result = after
        return fix


def _rejection(before: Result, after: Result | None, finding: Finding) -> str:
    """Why a change is no fix; empty if it is one."""
    if after is None:
        return "the input can then no longer be checked"
    if _has(after, finding):
        return "the finding remains"
    worse = next(_coming(before, after, finding), None)
    return f"{worse.rule}: {worse.message}" if worse else ""


def _problem(
    finding: Finding, cases: Sequence[Case], why_not: Callable[[str], str], played: Sequence[Played]
) -> Problem | None:
    """The case that shows a finding; with several inputs, the one with its objects."""
    own = [case for case in cases if case.name == finding.case]
    wanted = set(finding.objects)
    has = (case for case in own if any(resource.ref in wanted for resource in case.all_resources()))
    case = next(has, None)
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
            why = f"Change it by hand: {proposal.change.why}."
            if finding.fix is not None:
                return replace(finding.fix, steps=(*finding.fix.steps, why), proposed=True)
            return Fix(proposal.title, not proposal.why_unsafe, False, proposal.why_unsafe, steps=(why,), proposed=True)
    return None


def _has(result: Result, finding: Finding) -> bool:
    """Whether a result has the same finding, in the same file: a rollback to an older chart may still have it there."""
    return any(_same(other) == _same(finding) for other in result.findings)


def _same(finding: Finding) -> tuple[str, str]:
    return finding.fingerprint, finding.places[0].file if finding.places else ""


def _coming(before: Result, after: Result, fixed: Finding) -> Iterator[Finding]:
    """Findings as grave as the fixed one that are new, or have become graver.

    What a removal does by design does not count: it shows as soon as a trial gets that far.
    """
    known = {finding.fingerprint: gravity(finding) for finding in reversed(before.findings)}
    for new in after.findings:
        graver = gravity(new) < known.get(new.fingerprint, NOT_FOUND)
        if graver and gravity(new) <= gravity(fixed) and (fixed.removal or not new.removal):
            yield new


def _texts(edits: Sequence[TextEdit]) -> Texts | None:
    """The files with these edits; None if two of them overlap."""
    try:
        return {patch.file: patch.after for patch in _patched(edits, {})}
    except ValueError:
        return None


def _patches(accepted: Sequence[_Accepted]) -> list[Patch]:
    said: dict[str, list[str]] = {}
    for one in accepted:
        for file in dict.fromkeys(edit.text.path for edit in one.edits):
            said.setdefault(file, []).append(f"{one.rule}: {one.fix.title}")
    return list(_patched([edit for one in accepted for edit in one.edits], said))


def _patched(edits: Sequence[TextEdit], said: dict[str, list[str]]) -> Iterator[Patch]:
    texts: dict[str, Text] = {edit.text.path: edit.text for edit in edits}
    for file in sorted(texts):
        own = dict.fromkeys(edit.edit for edit in edits if edit.text.path == file)
        after = edited(texts[file], own).content
        yield Patch(file, texts[file].content, after, tuple(said.get(file, ())))


def _file_edit(one: TextEdit) -> FileEdit:
    text, span = one.text, one.edit.span
    start, end = (text.line(span.start), text.column(span.start)), (text.line(span.end), text.column(span.end))
    return FileEdit(text.path, *start, *end, one.edit.new)
