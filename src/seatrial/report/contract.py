"""The shapes of the report for programs: the contract. docs/output.schema.json is made from them.

Every key of the contract is always there, in this order. Keys that came later (`case`, `details`, `confirm`,
`schedules`, `warnings`, `again`, `operations`, `missing_dependencies`, `differences`, `contrasts`, `consumers`,
`notes`, `dependencies`, `standings`, `gates`, `comparison`) are left out where they would be empty, and always stand
last. Within one version keys are added, never removed or given another meaning.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from seatrial.model.finding import Certainty, Damage
from seatrial.model.resource import Sure
from seatrial.model.result import Act, Presence, Readiness, Required, Served, Then, Verdict
from seatrial.model.timeline import Effect, OperationPhase, Outcome, Schedule

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


class Ending(Struct, frozen=True, omit_defaults=True):
    """How one step ends under one engine, by both schedules."""

    verdict: Annotated[Verdict, Meta(description="`may fail`, `may hang`: only in a slow cluster (lazy schedule).")]
    leaves: Annotated[int, Meta(description="Objects that stay behind where all of them were to go.")] = 0


class Stop(Struct, frozen=True, omit_defaults=True):
    """What keeps an engine up."""

    why: Annotated[str, Meta(description="What the sentence of the API server or of the engine comes down to.")]
    object: Object = ""


class Standing(Struct, frozen=True):
    """One engine beside the others, in the plain case of the trial."""

    engine: str
    steps: list[Ending]
    stopped_by: Annotated[Stop | None, Meta(description="What keeps it up first; null where nothing does.")]


class About(Struct, frozen=True, omit_defaults=True):
    """Objects of all releases that a webhook is asked about."""

    operations: Annotated[
        list[str], Meta(description="CREATE, UPDATE, DELETE; empty for a conversion: any use asks for it.")
    ]
    objects: list[Object]
    pods: Annotated[bool, Meta(description="It is asked about the pods of these, not about themselves.")] = False


class Requirement(Struct, frozen=True, omit_defaults=True):
    """What has to be there before the objects can be made and the webhook can answer."""

    what: Annotated[
        Required,
        Meta(
            description="`definition`: established, and serving `versions`. `endpoint`: a ready pod of `objects`. "
            "`ca-bundle`: in the configuration, by which the API server knows who answers."
        ),
    ]
    objects: list[str]
    by: Annotated[
        str,
        Meta(
            description="`release`: one of those that were rehearsed. `before`: there before the first step. Else who "
            "was seen to write it (`cert-manager`, a controller); empty where nobody brings it."
        ),
    ]
    versions: list[str] = []


class Moment(Struct, frozen=True):
    """When an engine first came to the webhook, and what was there, in a slow cluster (lazy schedule).

    Nothing gets ready there unless the engine waits for it, so what is there in the step that made it was waited for.
    """

    engine: str
    act: Act
    step: Annotated[int | None, Meta(description="From 0; null where the engine never got so far.")]
    object: Annotated[Object, Meta(description="The one that was refused, else the first; may be empty.")]
    definition: Annotated[
        Served | None,
        Meta(
            description="In the version of the object; where nothing was sent, after the first step. Null if built in."
        ),
    ]
    service: Presence | None
    endpoint: Readiness | None
    ca_bundle: Presence | None
    then: Annotated[
        Then,
        Meta(
            description="`refused`: the call failed. `refused otherwise`: not by this webhook. `not registered`: its "
            "configuration was not there. `let through`: the call failed, and its failurePolicy ignores that."
        ),
    ]


class Gate(Struct, frozen=True, omit_defaults=True):
    """A webhook, of admission or of conversion, that is asked about objects of the releases."""

    webhook: str
    owner: Annotated[Object, Meta(description="Its configuration; of a conversion, the definition.")]
    failure_policies: Annotated[
        list[str], Meta(description="What it is, and what it becomes in the course of the trial; none of a conversion.")
    ]
    rules: Annotated[list[dict[str, Any]], Meta(description="As the configuration has them; none of a conversion.")]
    about: list[About]
    needs: list[Requirement]
    moments: list[Moment]
    location: Location | None = None


class Judged(Struct, frozen=True):
    """What a rule says of some objects."""

    certainty: Certainty
    damage: Damage


class Change(Struct, frozen=True):
    """What became of the findings of one rule about some objects."""

    rule: str
    code: str
    objects: list[Object]
    before: Annotated[Judged | None, Meta(description="Of what is compared with; null where it is new.")]
    now: Annotated[Judged | None, Meta(description="Null where it is gone.")]


class Edge(Struct, frozen=True):
    """One thing depends on another: objects, or resources of a Pulumi program as its engine gets them."""

    user: str
    object: str


class Comparison(Struct, frozen=True):
    """The input and what --compare names, rehearsed by the same trial, each on a cluster of its own."""

    old: str
    new: str
    before: Annotated[list[Standing], Meta(description="How what is compared with gets through it.")]
    now: list[Standing]
    findings: list[Change]
    gained: list[Edge]
    lost: list[Edge]


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
    standings: Annotated[list[Standing], Meta(description="The engines side by side, where there are several.")] = []
    gates: list[Gate] = []
    comparison: Comparison | None = None


class Run(Struct, frozen=True):
    """What `seatrial run -o json` writes."""

    version: int
    rehearsals: list[Played]
    not_modelled: list[str]


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
