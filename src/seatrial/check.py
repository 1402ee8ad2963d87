"""Plan, rehearse and apply the rules: from options to a `Result`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import or_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.compare.engine_differences import ComparedRehearsal, contrasts, not_contrasted
from seatrial.evidence.compare.engine_outcomes import standings
from seatrial.evidence.compare.inputs import Side, comparison, marked
from seatrial.evidence.compare.real_engine import agreement
from seatrial.evidence.explained import in_order_of_error
from seatrial.evidence.obstacles import only_new, repairs_of, stopped
from seatrial.evidence.placeholders import uninstallable
from seatrial.evidence.pulumi.dependencies import dependences
from seatrial.evidence.unfollowed import unfollowed_notes
from seatrial.evidence.unknown_images import unknown_images
from seatrial.evidence.webhooks.gates import gates
from seatrial.evidence.written import written
from seatrial.faults.exploring import explore
from seatrial.faults.interrupting import aftermaths, first_cases, interrupt
from seatrial.faults.toggling import toggle, toggle_notes
from seatrial.fix.comparing import ResultWithCases
from seatrial.fix.proving import mended
from seatrial.fix.ways import with_way_out
from seatrial.fix.writing import guard
from seatrial.judging import findings, identified
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue, NothingToCheck, TryAgain
from seatrial.model.finding import Finding, worst_first
from seatrial.model.masking import mask_of
from seatrial.model.mix import Mix
from seatrial.model.options import NO_DETOUR, CheckOptions, Detour
from seatrial.model.release import Case
from seatrial.model.repair import Repairs
from seatrial.model.resource import Place, Ref
from seatrial.model.result import EngineAgreement, NotRehearsed, Played, RenderedDifference, Result
from seatrial.model.timeline import ORDINARY, SCHEDULES, Rehearsal, Schedule
from seatrial.model.trial import Expected
from seatrial.phrases.alike import one_for_each_line
from seatrial.phrases.step_numbers import step_numbers
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans, simulated_plans
from seatrial.plan.toggles import toggled_plans
from seatrial.play import stored
from seatrial.play.heard import Heard
from seatrial.play.other_version import compared
from seatrial.play.rehearse import rehearse
from seatrial.play.trials import NOT_BEGUN, Begun, PlayedPlan, played, rehearsed
from seatrial.rules import all_explained, all_rules, page
from seatrial.sources import MANIFESTS, TRIAL, InputKind, git, kind_of, line_at
from seatrial.sources.files import reading_instead
from seatrial.sources.places import place_of

OF_WHAT_REALLY_HAPPENS = ("object-lost", "not-as-written", "others-touched", "not-idempotent")
"""Invariants that no rule explains are not reported of a rehearsal with repairs: a repair breaches them as well."""
REPAIRS_MAX = 10
"""How often a trial is rehearsed again as if what stops it were repaired."""
ROUNDS_MAX = 20
"""How often all trials of a check are."""


def check(options: CheckOptions, progress: Callable[[str], None] = lambda said: None) -> Result:
    """Rehearse every case with every engine under every schedule, and apply rules and invariants to the timelines."""
    if not options.compare:
        done = _checked(options, progress)
        return _masked(_Checked(done.seen, _with_fixes(options, done, progress)))
    kind = _comparable(options)
    new = _checked(options, progress)
    with _on_disk(options, kind) as before:
        old = _checked(before, progress)
    was = Side(options.compare, old.seen, old.result.findings)
    now = Side(options.inputs[0], new.seen, new.result.findings)
    known = tuple(marked(was.findings, now.findings))
    result = replace(new.result, findings=known, comparison=comparison(was, now))
    return _masked(_Checked([*new.seen, *old.seen], result))


def check_stored(paths: Sequence[str]) -> Result:
    """Apply rules and invariants to stored rehearsals. Plans and rehearses nothing."""
    found = [stored.read(path) for path in paths]
    order = list(dict.fromkeys((one.rehearsal.engine, one.case.name) for one in found))
    found.sort(key=lambda one: (order.index((one.rehearsal.engine, one.case.name)), _bound(one.rehearsal)))

    def line(place: Place) -> str | None:
        return next((text for one in found if (text := one.excerpt(place)) is not None), None)

    seen = [ComparedRehearsal(one.rehearsal, one.case) for one in found]
    result = _judged(seen, findings(seen, all_rules()), line)
    return _masked(_Checked(seen, replace(result, notes=tuple(sorted({*result.notes, *_unbounded(seen)})))))


class _Checked(Struct, frozen=True):
    seen: list[ComparedRehearsal]
    result: Result
    begun: Begun = NOT_BEGUN


def _with_fixes(options: CheckOptions, done: _Checked, progress: Callable[[str], None]) -> Result:
    """The result with proven fixes, if they are asked for."""
    if options.fixing is None or not done.result.findings:
        return done.result

    def recheck(texts: dict[str, str], detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        progress("try a fix")
        values = replace(options.values, set_string=(*options.values.set_string, *detour.values))
        again = replace(
            options, interrupted=False, explore=0, detour=detour, values=values, toggled=done.result.toggled
        )
        try:
            with reading_instead({**texts, **dict(detour.files)}):
                return _with_cases(_checked(again, progress, done.begun, onward=whole))
        except TryAgain:
            raise
        except (CannotContinue, NothingToCheck):
            return None

    inputs = (*options.inputs, *((options.consumers,) if options.consumers else ()))
    why_not = guard(inputs, options.repos, writes=options.fixing.writes)
    return mended(_with_cases(done), options.fixing, why_not, recheck)


def _with_cases(done: _Checked) -> ResultWithCases:
    return ResultWithCases(done.result, [one.case for one in done.seen])


def _masked(checked: _Checked) -> Result:
    """The result without values of Secrets: reports end up in logs."""
    mask = mask_of((one.rehearsal, one.case) for one in checked.seen)
    shown: Result = mask.whole(checked.result)
    return replace(
        shown,
        excerpts={place: mask.line(text) for place, text in checked.result.excerpts.items()},
        patches=tuple(replace(patch, secret=mask.lines(patch.before)) for patch in shown.patches),
    )


def _comparable(options: CheckOptions) -> InputKind:
    """The kind of both inputs, which must be the same."""
    if len(options.inputs) > 1 or options.old:
        raise CannotContinue("--compare OLD needs exactly one input, and does not work with --from")
    kind = kind_of(options.inputs[0])
    if not git.is_ref(options.compare) and (other := kind_of(options.compare)) != kind:
        both = f"{options.inputs[0]} is {kind.words}, {options.compare} is {other.words}"
        raise CannotContinue(f"--compare needs two inputs of the same kind: {both}")
    return kind


@contextmanager
def _on_disk(options: CheckOptions, kind: InputKind) -> Iterator[CheckOptions]:
    """The same trial with the old input; a trial file has its own steps. Manifests of a commit are written to disk."""
    if kind == TRIAL:
        yield replace(options, inputs=(options.compare,))
    elif kind == MANIFESTS and git.is_ref(options.compare):
        with git.on_disk(options.compare, options.inputs[0]) as path:
            yield replace(options, instead=path)
    else:
        yield replace(options, instead=options.compare)


def _checked(
    options: CheckOptions, progress: Callable[[str], None], begun: Begun = NOT_BEGUN, *, onward: bool = True
) -> _Checked:
    """`onward` looks behind what stops a trial."""
    trials = list(_trials(list(plans(options, goes_on=True)), progress, begun))
    trials, options, notes = _installable(trials, options, progress)
    seen = [one for trial in trials for one in trial.seen]
    found = findings(seen, all_rules())
    continued: list[ComparedRehearsal] = []
    for again, more in _continued(trials, found, progress) if onward else ():
        continued.extend(again)
        found.extend(more)
    usual = [trial.played for trial in trials]
    toggles = list(toggled_plans(options, [one.plan for one in usual]))
    tested = list(toggle(toggles, usual, found, _shown, progress, begun))
    found.extend(finding for one in tested for finding in one.findings)
    first = first_cases([(trial.played.plan, trial.played.heard) for trial in trials])
    broken = tuple(interrupt(first, options, progress))
    found.extend(aftermaths(broken, first, identified))
    new = partial(_only_new, known=found)
    tried = [explore(*one, options.explore, new, progress) for one in first if options.explore]
    found.extend(finding for one in tried for finding in one.findings)
    continued.extend(seen for one in tried for seen in one.seen)
    explored = tuple(one.explored for one in tried)
    seen = [*seen, *(one for trial in tested for one in trial.seen)]
    judged = _judged(seen, found, line_at, continued, locates_all=options.locates_all)
    every_note = tuple(sorted({*judged.notes, *notes, *toggle_notes(toggles, tested)}))
    toggled = tuple(dict.fromkeys(plan.toggle for plan in toggles))
    result = replace(judged, interrupted=broken, explored=explored, notes=every_note, toggled=toggled)
    if options.compare_engines:
        simulated = simulated_plans(options, [trial.played.plan for trial in trials])
        result = replace(result, agreements=tuple(_agreements(_trials(list(simulated), progress), trials)))
    return _Checked(seen, result, dict(one.begun for one in (*usual, *(trial.played for trial in tested))))


def _installable(
    trials: list[_Trial], options: CheckOptions, progress: Callable[[str], None]
) -> tuple[list[_Trial], CheckOptions, tuple[str, ...]]:
    """The trials without what cannot be installed, their options, and notes. Of several inputs, nothing is left out."""
    found = uninstallable([trial.seen[0] for trial in trials])
    if not found or len(options.inputs) > 1:
        return trials, options, ()
    without = replace(options, placeholders=bool(found.notes), without_old=found.old)
    planned = list(plans(without, goes_on=True))
    known = {_deploys(trial.played.plan): trial for trial in trials}
    new = _trials([plan for plan in planned if _deploys(plan) not in known], progress)
    return [known.get(_deploys(plan)) or next(new) for plan in planned], without, found.notes


def _deploys(plan: Plan) -> tuple[object, ...]:
    return plan.engine, plan.case.name, *(one.step.source for one in plan.steps)


def _agreements(simulated: Iterable[_Trial], real: Iterable[_Trial]) -> Iterator[EngineAgreement]:
    for model, trial in zip(simulated, real, strict=True):
        for one, other in zip(model.seen, trial.seen, strict=True):
            yield agreement(one.rehearsal, other.rehearsal, other.case)


class _Trial(Struct, frozen=True):
    """A plan and what rules see of its rehearsals."""

    played: PlayedPlan
    seen: list[ComparedRehearsal]
    """The ordinary one first."""

    @property
    def name(self) -> str:
        """The name of its case."""
        return self.played.plan.case.name


def _trials(planned: list[Plan], progress: Callable[[str], None], begun: Begun = NOT_BEGUN) -> Iterator[_Trial]:
    for one in played(planned, progress, begun):
        yield _Trial(one, [ComparedRehearsal(rehearsal, one.plan.case) for rehearsal in one.rehearsals])


def _continued(
    trials: list[_Trial], known: list[Finding], progress: Callable[[str], None]
) -> Iterator[tuple[list[ComparedRehearsal], list[Finding]]]:
    """The same trials again and again, each time as if what stopped them were repaired, until nothing new does.

    A trial that is stopped by what stopped an earlier one with the same engine goes on from where that one ended.
    """
    ended: list[tuple[EngineId, Repairs]] = []
    left = ROUNDS_MAX
    for trial in trials:
        plan, seen, heard = trial.played.plan, trial.seen, trial.played.heard
        for _ in range(min(REPAIRS_MAX, left)):
            repairs = reduce(or_, (repairs_of(one.rehearsal, one.case) for one in seen), plan.repairs)
            alike = (other for engine, other in ended if engine == plan.engine and other.shares(repairs))
            repairs = reduce(or_, alike, repairs)
            if repairs == plan.repairs:
                break
            left -= 1
            plan = replace(plan, repairs=repairs)
            heard = heard.without({step for one in seen for step in stopped(one.rehearsal, one.case)})
            seen, found = _as_if_repaired(plan, heard, known, progress)
            yield seen, found
        ended.append((plan.engine, plan.repairs))


def _as_if_repaired(
    plan: Plan, heard: Heard, known: list[Finding], progress: Callable[[str], None]
) -> tuple[list[ComparedRehearsal], list[Finding]]:
    """A trial with repairs on an ordinary cluster, and what it shows.

    On a slow and on a fast one only if it must be known whether that happens there as well.
    """
    seen = [ComparedRehearsal(rehearsed(plan, ORDINARY, heard, progress), plan.case)]
    found = _only_new(seen, known)
    others = tuple(schedule for schedule in SCHEDULES if schedule != ORDINARY)
    if all(finding.certainty != "will" or finding.timeless for finding in found):
        return seen, [replace(finding, hidden=others) for finding in found]
    seen += [ComparedRehearsal(rehearsed(plan, schedule, heard, progress), plan.case) for schedule in others]
    return seen, _only_new(seen, known)


def _shown(seen: list[ComparedRehearsal]) -> list[Finding]:
    return findings(seen, all_rules(), {one.rehearsal.schedule for one in seen})


def _only_new(seen: list[ComparedRehearsal], known: list[Finding]) -> list[Finding]:
    return list(only_new((one for one in _shown(seen) if one.rule not in OF_WHAT_REALLY_HAPPENS), known, seen))


def _judged(
    seen: list[ComparedRehearsal],
    found: list[Finding],
    line: Callable[[Place], str | None],
    continued: Sequence[ComparedRehearsal] = (),
    *,
    locates_all: bool = True,
) -> Result:
    """The result of rehearsals with what rules and invariants found; `line` reads the line at a place."""
    named = in_order_of_error((one.rehearsal, one.case) for one in seen)
    ordered = sorted(found, key=lambda one: (one.certainty == "may", one.removes, named(one), *worst_first(one)))
    placed = one_for_each_line(map(_placed, ordered))
    result = _result(seen, tuple(with_way_out(finding, (one.case for one in seen)) for finding in placed), line)
    return replace(
        result,
        continued=tuple(Played(one.case.name, one.rehearsal) for one in continued),
        sources=_sources(one.case for one in seen) if locates_all else {},
    )


def _bound(rehearsal: Rehearsal) -> int:
    """The order of schedules in a check; a seeded one comes last."""
    return SCHEDULES.index(rehearsal.schedule) if rehearsal.schedule in SCHEDULES else len(SCHEDULES)


def _unbounded(seen: list[ComparedRehearsal]) -> Iterator[str]:
    """Which schedules are not stored: without all of them nothing is certain."""
    given: dict[EngineId, set[Schedule]] = {}
    for one in seen:
        given.setdefault(one.rehearsal.engine, set()).add(one.rehearsal.schedule)
    for engine, schedules in given.items():
        if lacking := [schedule for schedule in SCHEDULES if schedule not in schedules]:
            without = "`will` or `likely`" if ORDINARY in lacking else "`will`"
            named = " and the ".join(lacking)
            yield f"{engine}: no rehearsal of the {named} schedule given, so no finding is {without}"


def _placed(finding: Finding) -> Finding:
    """A finding with the lines that its rule points at."""
    return replace(finding, places=tuple(dict.fromkeys(map(place_of, finding.pointers))))


def _result(
    seen: list[ComparedRehearsal], findings: tuple[Finding, ...], line: Callable[[Place], str | None]
) -> Result:
    cases = [one.case for one in seen]
    resources = {resource.ref: resource for case in cases for resource in case.given_resources()}
    prerequisites = {(one.object, one.why): one for case in cases for one in case.assumed}
    places = {place for finding in findings for place in finding.places}
    unfollowed = unfollowed_notes(one.rehearsal for one in seen)
    return Result(
        played=tuple(Played(one.case.name, one.rehearsal, step_numbers(one.rehearsal)) for one in seen),
        findings=findings,
        prerequisites=tuple(prerequisites[key] for key in sorted(prerequisites)),
        not_modelled=tuple(sorted({kind for one in seen for kind in one.rehearsal.not_modelled})),
        unknown_images=tuple(unknown_images(cases)),
        missing_dependencies=tuple(sorted({name for case in cases for name in case.missing_dependencies})),
        objects=len(resources),
        files=len({resource.file for resource in resources.values()}),
        differences=_differences(cases),
        contrasts=tuple(contrasts(seen, place_of)),
        standings=tuple(standings(seen)),
        gates=tuple(gates(seen, place_of)),
        consumers=tuple(sorted({case.consumer for case in cases if case.consumer})),
        dependences=tuple(dict.fromkeys(one for case in cases for one in dependences(case))),
        notes=tuple(sorted({*(note for case in cases for note in case.notes), *not_contrasted(seen), *unfollowed})),
        not_rehearsed=tuple(_not_rehearsed(cases)),
        hollow=bool(cases) and all(case.hollow for case in cases),
        written=tuple(written(seen, place_of)),
        excerpts={place: text for place in sorted(places) if (text := line(place)) is not None},
        pages={rule.name: page(rule) for rule in all_explained() if rule.name in {found.rule for found in findings}},
    )


def _not_rehearsed(cases: list[Case]) -> Iterator[NotRehearsed]:
    """Dependencies that are not on disk first: other parts may be missing because of them."""
    if lacking := sorted({name for case in cases for name in case.missing_dependencies}):
        named = ", ".join(lacking)
        yield NotRehearsed(f"dependencies in Chart.yaml that are not in charts/ (run helm dependency build): {named}")
    yield from dict.fromkeys(part for case in cases for part in case.not_rehearsed)


def _sources(cases: Iterable[Case]) -> dict[Ref, Place]:
    """The place of every object. Takes another rendering of each chart, and all nodes of its documents."""
    resources = {resource.ref: resource for case in cases for resource in case.given_resources()}
    return {ref: place_of(resource.place()) for ref, resource in resources.items()}


def _differences(cases: list[Case]) -> tuple[RenderedDifference, ...]:
    """Each difference once, preferably for the default case."""
    found: dict[tuple[object, ...], RenderedDifference] = {}
    for difference in sorted({d for case in cases for d in case.differences}, key=lambda d: (d.case, d.object)):
        found.setdefault((difference.object, difference.states), difference)
    return tuple(found.values())


class One(Struct, frozen=True):
    """One rehearsal and its case: what `run` shows."""

    rehearsal: Rehearsal
    case: Case
    expected: Expected = Expected()


def run(options: CheckOptions, schedule: Schedule, *, seed: int = 0, mix: Mix | None = None) -> One:
    """Rehearse the first case of the input once."""
    plan = next(plans(options, goes_on=True))
    rehearsal = rehearse(plan, schedule, seed=seed, mix=mix)
    return One(mask_of([(rehearsal, plan.case)]).whole(rehearsal), plan.case, plan.expected)


def run_both(options: CheckOptions, schedule: Schedule, **pace: Any) -> tuple[One, EngineAgreement]:
    """The same with the user's binary and without it, compared."""
    one = run(options, schedule, **pace)
    plan = next(simulated_plans(options, [next(plans(options, goes_on=True))]))
    return one, agreement(rehearse(plan, schedule, **pace), one.rehearsal, one.case)


def run_to_store(options: CheckOptions, schedule: Schedule, **pace: Any) -> One:
    """The same with everything that a check has, the engine's other major version included."""
    plan = next(plans(options, goes_on=True))
    return One(compared(rehearse(plan, schedule, **pace), plan), plan.case)
