"""The stable, versioned JSON report: a result converted to the types of the contract."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from seatrial.model.acceptance import Ignored
from seatrial.model.finding import Finding, Fix
from seatrial.model.interruption import Interrupted
from seatrial.model.resource import Place, Ref
from seatrial.model.result import (
    Change,
    Comparison,
    Dependence,
    Gate,
    Judged,
    Played,
    RenderedDifference,
    Result,
    Standing,
)
from seatrial.model.timeline import Event, Operation, Rehearsal, StepResult
from seatrial.report.contract import (
    VERSION,
    JsonAbout,
    JsonChange,
    JsonComparison,
    JsonConsumer,
    JsonDependence,
    JsonDifference,
    JsonEdge,
    JsonEnding,
    JsonEngineAgreement,
    JsonExplored,
    JsonGate,
    JsonInterrupted,
    JsonInterruption,
    JsonJudged,
    JsonMoment,
    JsonNotRehearsed,
    JsonOperation,
    JsonPlayed,
    JsonPrerequisite,
    JsonRequirement,
    JsonStanding,
    JsonState,
    JsonStep,
    JsonStop,
    JsonSummary,
    JsonSyncTask,
    Report,
)
from seatrial.report.contract_finding import (
    JsonEdit,
    JsonEvent,
    JsonFix,
    JsonHazard,
    JsonIgnored,
    JsonLocation,
    JsonShownBy,
)
from seatrial.report.page import Page
from seatrial.report.proof import Proof, proof_of


def render(result: Result, page: Page) -> str:
    report = Report(
        version=VERSION,
        rehearsals=[_played(one.rehearsal, case=one.case) for one in result.played],
        findings=[_hazard(finding, proof_of(finding, result)) for finding in result.findings],
        prerequisites=[JsonPrerequisite(one.object, one.why) for one in result.prerequisites],
        not_modelled=list(result.not_modelled),
        summary=JsonSummary(result.objects, len(result.played), len(result.findings)),
        missing_dependencies=list(result.missing_dependencies),
        unknown_images=list(result.unknown_images),
        differences=[_difference(found) for found in result.differences],
        contrasts=[_difference(found) for found in result.contrasts],
        consumers=[
            JsonConsumer(one.chart, list(one.helpers), [_difference(flip) for flip in one.flipped], list(one.changed))
            for one in result.consumers
        ],
        notes=list(result.notes),
        dependencies=[_dependence(found) for found in result.dependences],
        standings=[_standing(found) for found in result.standings],
        gates=[_gate(found) for found in result.gates],
        comparison=_comparison(result.comparison) if result.comparison else None,
        agreements=[msgspec.convert(one, JsonEngineAgreement, from_attributes=True) for one in result.agreements],
        explored=[
            JsonExplored(str(one.engine), one.case, one.open_pairs, one.tried_pairs, one.objects, one.rehearsals)
            for one in result.explored
        ],
        interrupted=[_interrupted(one) for one in result.interrupted],
        not_rehearsed=[JsonNotRehearsed(one.case, one.step, one.reason) for one in result.not_rehearsed],
        ignored=[_ignored(one, result) for one in result.ignored],
    )
    return _written(report)


def _written(report: Report) -> str:
    # ASCII, since the reader's encoding is unknown and an object's name may hold half a surrogate pair.
    return json.dumps(msgspec.to_builtins(report), indent=2) + "\n"


def _played(rehearsal: Rehearsal, *, case: str = "") -> JsonPlayed:
    return JsonPlayed(str(rehearsal.engine), rehearsal.schedule, [_step(step) for step in rehearsal.steps], case=case)


def _step(step: StepResult) -> JsonStep:
    return JsonStep(
        action=step.action,
        release=step.release,
        source=step.source,
        outcome=step.outcome,
        error=step.error,
        created=_names(step.created),
        deleted=_names(step.deleted),
        recreated=_names(step.recreated),
        missing=_names(step.missing),
        orphans=_names(step.orphans),
        warnings=list(step.warnings),
        again=step.again,
        operations=[_operation(operation) for operation in step.operations],
        next_version=step.next_version,
    )


def _operation(operation: Operation) -> JsonOperation:
    tasks = [
        JsonSyncTask(str(t.object), t.phase, t.wave, t.hook, t.prune, t.status, t.state, t.message, t.health)
        for t in operation.tasks
    ]
    return JsonOperation(
        app=operation.app,
        phase=operation.phase,
        message=operation.message,
        attempts=operation.attempts,
        waits_for=_names(operation.waits_for),
        conditions=list(map(str, operation.conditions)),
        tasks=tasks,
    )


def _hazard(finding: Finding, proof: Proof | None) -> JsonHazard:
    return JsonHazard(
        rule=finding.rule,
        code=finding.code,
        fingerprint=finding.fingerprint,
        certainty=finding.certainty,
        damage=finding.damage,
        engines=[*map(str, finding.engines)],
        action=finding.action,
        objects=_names(finding.objects),
        message=finding.message,
        locations=[_location(place) for place in finding.places],
        evidence=list(finding.evidence),
        fix=_fix(finding.fix),
        shown_by=_shown_by(proof.played) if proof else None,
        events=[_event(event) for event in proof.events] if proof else [],
        details=list(finding.details),
        confirm=finding.confirm,
        schedules=list(finding.schedules),
        case=finding.case,
        after=list(finding.after),
        schedule=finding.schedule,
        removal=finding.removal,
        known=finding.known,
    )


def _interrupted(one: Interrupted) -> JsonInterrupted:
    moments = [
        JsonInterruption(
            moment.write,
            moment.verb,
            str(moment.object),
            moment.aftermath,
            moment.error,
            _names(moment.lost),
            _names(moment.left),
            list(moment.way_out),
            [f"{ref}: {path}" for ref, path in moment.fields],
        )
        for moment in one.moments
    ]
    of, safe = (str(one.engine), one.case, one.step, one.action, one.release, one.writes), len(one.having("safe"))
    return JsonInterrupted(*of, safe, one.untried, moments, one.answer)


def _ignored(found: Ignored, result: Result) -> JsonIgnored:
    finding = _hazard(found.finding, proof_of(found.finding, result))
    return JsonIgnored(finding, found.by.source, _location(found.by.place), found.by.reason)


def _shown_by(played: Played) -> JsonShownBy:
    rehearsal = played.rehearsal
    return JsonShownBy(str(rehearsal.engine), rehearsal.schedule, played.case, list(rehearsal.repaired))


def _event(event: Event) -> JsonEvent:
    return JsonEvent(event.index, event.step, event.actor, event.verb, str(event.object), event.effect, event.message)


def _difference(found: RenderedDifference) -> JsonDifference:
    return JsonDifference(
        object=found.object,
        states=[JsonState(where, what) for where, what in found.states],
        location=_location(found.place),
        asks=found.asks,
        asked=_location(found.asked) if found.asked else None,
        case=found.case,
    )


def _dependence(found: Dependence) -> JsonDependence:
    before = None if found.before is None else list(found.before)
    return JsonDependence(found.resource, list(found.asked), list(found.now), _location(found.place), before)


def _standing(found: Standing) -> JsonStanding:
    stopped = found.stopped_by
    return JsonStanding(
        engine=found.engine,
        steps=[JsonEnding(one.verdict, one.leaves) for one in found.endings],
        stopped_by=JsonStop(stopped.why, stopped.object) if stopped else None,
    )


def _gate(found: Gate) -> JsonGate:
    return JsonGate(
        webhook=found.webhook,
        owner=found.owner,
        failure_policies=list(found.policies),
        rules=list(found.rules),
        about=[JsonAbout(list(one.operations), list(one.objects), one.pods) for one in found.about],
        needs=[JsonRequirement(one.what, list(one.objects), one.by, list(one.versions)) for one in found.needs],
        moments=[msgspec.convert(one, JsonMoment, from_attributes=True) for one in found.moments],
        location=_location(found.place) if found.place else None,
    )


def _comparison(found: Comparison) -> JsonComparison:
    return JsonComparison(
        old=found.old,
        new=found.new,
        before=[_standing(one) for one in found.before],
        now=[_standing(one) for one in found.now],
        findings=[_change(one) for one in found.changes],
        gained=[JsonEdge(one.user, one.object) for one in found.gained],
        lost=[JsonEdge(one.user, one.object) for one in found.lost],
    )


def _change(found: Change) -> JsonChange:
    return JsonChange(found.rule, found.code, list(found.objects), _judged(found.before), _judged(found.now))


def _judged(found: Judged | None) -> JsonJudged | None:
    return None if found is None else JsonJudged(found.certainty, found.damage)


def _location(place: Place) -> JsonLocation:
    return JsonLocation(place.file, place.line, place.sure)


def _fix(fix: Fix | None) -> JsonFix | None:
    if fix is None:
        return None
    edits = [msgspec.convert(edit, JsonEdit, from_attributes=True) for edit in fix.edits]
    return JsonFix(fix.title, fix.safe, fix.proven, fix.why_unsafe, edits, list(fix.steps), list(fix.rejected))


def _names(refs: Iterable[Ref]) -> list[Any]:
    return [str(ref) for ref in refs]
