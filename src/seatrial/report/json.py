"""The stable, versioned report for programs. Its shapes are the contract; docs/output.schema.json is made from them.

Every key of the contract is always there, in this order. Keys that came later (`case`, `details`, `confirm`,
`schedules`, `warnings`, `again`, `operations`, `missing_dependencies`, `differences`, `contrasts`, `consumers`,
`notes`, `dependencies`) are left out where they would be empty, and always stand last. Within one version keys are
added, never removed or given another meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from seatrial.findings import Certainty, Damage, Finding
from seatrial.findings import Fix as FoundFix
from seatrial.report.page import Page
from seatrial.resource import Place, Ref, Sure
from seatrial.result import Dependence as FoundDependence
from seatrial.result import Difference as FoundDifference
from seatrial.result import Result
from seatrial.timeline import Effect, OperationPhase, Outcome, Rehearsal, Schedule
from seatrial.timeline import Event as RecordedEvent
from seatrial.timeline import Operation as PlayedOperation
from seatrial.timeline import StepResult as PlayedStep

VERSION = 1

Object = Annotated[str, Meta(description="`Kind/namespace/name`, or `Kind/name` when cluster-scoped.")]


class SyncTask(Struct, frozen=True):
    """One object in one phase of an Argo CD sync."""

    object: Object
    phase: str
    wave: Annotated[
        int, Meta(description="The one it ran in, or would have: not always the one that is written on it.")
    ]
    hook: bool
    prune: bool
    status: Annotated[str, Meta(description="Synced, SyncFailed, Pruned, PruneSkipped; empty where never reached.")]
    state: Annotated[str, Meta(description="Running, Succeeded, Failed, Error; empty while pending.")]
    message: str
    health: str


class Operation(Struct, frozen=True):
    """One sync operation of Argo CD, as its Application would show it."""

    app: str
    phase: Annotated[OperationPhase, Meta(description="`Running` is one that never ends.")]
    message: Annotated[str, Meta(description="Argo CD's own words.")]
    attempts: int
    waits_for: list[Object]
    conditions: list[str]
    tasks: list[SyncTask]


class Step(Struct, frozen=True, omit_defaults=True):
    """How one step ended, and what it did to the objects that people wrote."""

    action: str
    release: str
    source: str
    outcome: Outcome
    error: Annotated[str, Meta(description="The engine's own words; empty where the step is ok.")]
    created: list[Object]
    deleted: list[Object]
    recreated: list[Object]
    missing: list[Object]
    orphans: list[Object]
    warnings: list[str] = []
    again: Annotated[Outcome | None, Meta(description="How it ended when it was tried again as it is.")] = None
    operations: Annotated[list[Operation], Meta(description="Of Argo CD: one for each Application.")] = []


class Event(Struct, frozen=True):
    """One request that a client made, or one move that a controller made."""

    index: int
    step: Annotated[int, Meta(description="From 0; -1 for what was there before the first step.")]
    actor: str
    verb: str
    object: Object
    effect: Effect
    message: str
    cause: int | None


class Played(Struct, frozen=True, omit_defaults=True):
    """One trial played by one engine under one schedule."""

    engine: str
    schedule: Schedule
    steps: list[Step]
    timeline: Annotated[list[Event] | None, Meta(description="Only from `seatrial run`.")] = None
    case: Annotated[str, Meta(description="What sets the case apart (`ci/ha-values.yaml`, `--wait`).")] = ""


class Location(Struct, frozen=True):
    """A place in a file of the user's, and how sure it is."""

    file: str
    line: int
    sure: Sure


class Fix(Struct, frozen=True):
    """What would remove the finding."""

    title: str
    safe: bool
    proven: bool


class Hazard(Struct, frozen=True, omit_defaults=True):
    """One hazard: which objects, at which step, why, and where it was written."""

    rule: str
    code: str
    certainty: Certainty
    damage: Damage
    engines: list[str]
    action: str
    objects: list[Object]
    message: str
    locations: list[Location]
    evidence: Annotated[
        list[int], Meta(description="Events in the timeline of the first rehearsal of the first engine that shows it.")
    ]
    fix: Fix | None
    details: list[str] = []
    confirm: Annotated[str, Meta(description="The one command that would show it on a cluster.")] = ""
    schedules: list[str] = []
    case: str = ""


class Prerequisite(Struct, frozen=True):
    """Something outside the release that it needs, and that was assumed to be there."""

    object: Object
    why: str


class State(Struct, frozen=True):
    """What an object is under some values, or in one act."""

    where: Annotated[str, Meta(description="`on install`, `on upgrade`, `under argocd@3.5`, or values: `tls=true`.")]
    what: Annotated[str, Meta(description="`plain`, `a hook` or `absent`.")]


class Difference(Struct, frozen=True, omit_defaults=True):
    """An object that is not the same however the chart is rendered."""

    object: Object
    states: list[State]
    location: Location
    asks: Annotated[str, Meta(description="What its template asks that makes it so: `.Release.IsInstall`.")] = ""
    asked: Location | None = None
    case: str = ""


class Consumer(Struct, frozen=True):
    """A chart that uses the library which was checked."""

    chart: str
    helpers: Annotated[list[str], Meta(description="Named templates that changed and that it calls.")]
    flipped: Annotated[list[Difference], Meta(description="Objects that appear, vanish, or flip to or from a hook.")]
    changed: Annotated[list[Object], Meta(description="Objects that only read otherwise.")]


class Dependence(Struct, frozen=True, omit_defaults=True):
    """A resource of a Pulumi program, and what it depends on as the engine gets it."""

    resource: str
    asked: Annotated[list[str], Meta(description="What it names in `dependsOn`.")]
    depends_on: list[str]
    location: Location
    before: Annotated[list[str] | None, Meta(description="In the program of --from.")] = None


class Summary(Struct, frozen=True):
    """What was seen."""

    objects: int
    rehearsals: int
    findings: int


class Report(Struct, frozen=True, omit_defaults=True):
    """What `seatrial check -o json` writes."""

    version: int
    rehearsals: list[Played]
    findings: list[Hazard]
    prerequisites: list[Prerequisite]
    not_modelled: list[str]
    summary: Summary
    missing_dependencies: list[str] = []
    differences: list[Difference] = []
    contrasts: list[Difference] = []
    consumers: list[Consumer] = []
    notes: Annotated[list[str], Meta(description="What was left out.")] = []
    dependencies: list[Dependence] = []


class Run(Struct, frozen=True):
    """What `seatrial run -o json` writes."""

    version: int
    rehearsals: list[Played]
    not_modelled: list[str]


def render(result: Result, page: Page) -> str:
    report = Report(
        version=VERSION,
        rehearsals=[_played(one.rehearsal, case=one.case) for one in result.played],
        findings=[_hazard(finding) for finding in result.findings],
        prerequisites=[Prerequisite(one.object, one.why) for one in result.prerequisites],
        not_modelled=list(result.not_modelled),
        summary=Summary(result.objects, len(result.played), len(result.findings)),
        missing_dependencies=list(result.missing_dependencies),
        differences=[_difference(found) for found in result.differences],
        contrasts=[_difference(found) for found in result.contrasts],
        consumers=[
            Consumer(one.chart, list(one.helpers), [_difference(flip) for flip in one.flipped], list(one.changed))
            for one in result.consumers
        ],
        notes=list(result.notes),
        dependencies=[_dependence(found) for found in result.dependences],
    )
    return _written(report)


def render_run(rehearsal: Rehearsal) -> str:
    played = msgspec.structs.replace(_played(rehearsal), timeline=[_event(event) for event in rehearsal.timeline])
    return _written(Run(VERSION, [played], list(rehearsal.not_modelled)))


def schema() -> str:
    """The JSON Schema of both reports, as published in docs/output.schema.json."""
    (report, run), shapes = msgspec.json.schema_components((Report, Run), ref_template="#/$defs/{name}")
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What seatrial check -o json and seatrial run -o json write",
        "anyOf": [report, run],
        "$defs": shapes,
    }
    return json.dumps(document, indent=2) + "\n"


def _written(report: Report | Run) -> str:
    # In ASCII, since the reader's encoding is not known; an object's name may hold half a surrogate pair.
    return json.dumps(msgspec.to_builtins(report), indent=2) + "\n"


def _played(rehearsal: Rehearsal, *, case: str = "") -> Played:
    return Played(rehearsal.engine, rehearsal.schedule, [_step(step) for step in rehearsal.steps], case=case)


def _step(step: PlayedStep) -> Step:
    return Step(
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
    )


def _operation(operation: PlayedOperation) -> Operation:
    tasks = [
        SyncTask(str(t.object), t.phase, t.wave, t.hook, t.prune, t.status, t.state, t.message, t.health)
        for t in operation.tasks
    ]
    return Operation(
        app=operation.app,
        phase=operation.phase,
        message=operation.message,
        attempts=operation.attempts,
        waits_for=_names(operation.waits_for),
        conditions=list(operation.conditions),
        tasks=tasks,
    )


def _event(event: RecordedEvent) -> Event:
    return Event(
        index=event.index,
        step=event.step,
        actor=event.actor,
        verb=event.verb,
        object=str(event.object),
        effect=event.effect,
        message=event.message,
        cause=event.cause,
    )


def _hazard(finding: Finding) -> Hazard:
    return Hazard(
        rule=finding.rule,
        code=finding.code,
        certainty=finding.certainty,
        damage=finding.damage,
        engines=list(finding.engines),
        action=finding.action,
        objects=_names(finding.objects),
        message=finding.message,
        locations=[_location(place) for place in finding.places],
        evidence=list(finding.evidence),
        fix=_fix(finding.fix),
        details=list(finding.details),
        confirm=finding.confirm,
        schedules=list(finding.schedules),
        case=finding.case,
    )


def _difference(found: FoundDifference) -> Difference:
    return Difference(
        object=found.object,
        states=[State(where, what) for where, what in found.states],
        location=_location(found.place),
        asks=found.asks,
        asked=_location(found.asked) if found.asked else None,
        case=found.case,
    )


def _dependence(found: FoundDependence) -> Dependence:
    before = None if found.before is None else list(found.before)
    return Dependence(found.resource, list(found.asked), list(found.now), _location(found.place), before)


def _location(place: Place) -> Location:
    return Location(place.file, place.line, place.sure)


def _fix(fix: FoundFix | None) -> Fix | None:
    return None if fix is None else Fix(fix.title, fix.safe, fix.proven)


def _names(refs: Iterable[Ref]) -> list[Any]:
    return [str(ref) for ref in refs]
