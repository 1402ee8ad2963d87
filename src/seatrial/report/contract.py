"""The types of the JSON report: the contract. docs/output.schema.json is generated from them.

A key without a default is always present; a key with a default is omitted when it has that value. Keys are in the order
of these types. Within one version keys and values are added, never removed or given another meaning.

Version 2 added the certainty `likely`, and for each finding its `fingerprint`, the `events` that prove it and the
rehearsal that they are from (`shown_by`).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from seatrial.model.finding import Certainty, Damage
from seatrial.model.result import Act, Presence, Readiness, Required, Served, Then, Verdict
from seatrial.model.timeline import OperationPhase, Outcome, Schedule
from seatrial.report.contract_finding import JsonHazard, JsonIgnored, JsonLocation, Object

VERSION = 2


class JsonSyncTask(Struct, frozen=True):
    """One object in one phase of an Argo CD sync."""

    object: Object
    phase: str
    wave: Annotated[int, Meta(description="The wave it ran in, or would have: not always the one in its annotation.")]
    hook: bool
    prune: bool
    status: Annotated[str, Meta(description="Synced, SyncFailed, Pruned, PruneSkipped; empty if never reached.")]
    state: Annotated[str, Meta(description="Running, Succeeded, Failed, Error; empty while pending.")]
    message: str
    health: str


class JsonOperation(Struct, frozen=True):
    """One sync operation of Argo CD, as the status of its Application shows it."""

    app: str
    phase: Annotated[OperationPhase, Meta(description="`Running`: the operation never ends.")]
    message: Annotated[str, Meta(description="The message of Argo CD.")]
    attempts: int
    waits_for: list[Object]
    conditions: list[str]
    tasks: list[JsonSyncTask]


class JsonStep(Struct, frozen=True, omit_defaults=True):
    """How one step ended, and what it did to the objects of the release."""

    action: str
    release: str
    source: str
    outcome: Outcome
    error: Annotated[str, Meta(description="The error of the engine; empty if the step is ok.")]
    created: list[Object]
    deleted: list[Object]
    recreated: list[Object]
    missing: list[Object]
    orphans: list[Object]
    warnings: list[str] = []
    again: Annotated[Outcome | None, Meta(description="How the step ended when it was retried unchanged.")] = None
    operations: Annotated[list[JsonOperation], Meta(description="Argo CD: one for each Application.")] = []
    next_version: Annotated[
        str, Meta(description="The version to which the chart of `source` is raised in memory; empty for it as it is.")
    ] = ""


class JsonPlayed(Struct, frozen=True, omit_defaults=True):
    """One trial, rehearsed with one engine under one schedule."""

    engine: str
    schedule: Schedule
    steps: list[JsonStep]
    case: Annotated[
        str, Meta(description="The variant (`ci/ha-values.yaml`, `--wait`, `a.b=true`); empty: default.")
    ] = ""


class JsonPrerequisite(Struct, frozen=True):
    """An object that the release needs and does not contain; the rehearsal assumes that it exists."""

    object: Object
    why: str


class JsonState(Struct, frozen=True):
    """What an object is with some values, in one action, or under one engine."""

    where: Annotated[str, Meta(description="`on install`, `on upgrade`, `under argocd@3.5`, or values: `tls=true`.")]
    what: Annotated[str, Meta(description="`regular`, `a hook` or `absent`; for engines, what each does with it.")]


class JsonDifference(Struct, frozen=True, omit_defaults=True):
    """An object that differs between renderings of the chart, or between engines."""

    object: Object
    states: list[JsonState]
    location: JsonLocation
    asks: Annotated[str, Meta(description="The condition in its template: `.Release.IsInstall`.")] = ""
    asked: JsonLocation | None = None
    case: str = ""


class JsonConsumer(Struct, frozen=True):
    """A chart that uses the library chart that was checked."""

    chart: str
    helpers: Annotated[list[str], Meta(description="Changed named templates that it calls.")]
    flipped: Annotated[
        list[JsonDifference], Meta(description="Objects that appear, vanish, or flip to or from a hook.")
    ]
    changed: Annotated[list[Object], Meta(description="Objects of which only the content changes.")]


class JsonDependence(Struct, frozen=True, omit_defaults=True):
    """A resource of a Pulumi program, and what it depends on as Pulumi sees it."""

    resource: str
    asked: Annotated[list[str], Meta(description="The resources in its `dependsOn`.")]
    depends_on: list[str]
    location: JsonLocation
    before: Annotated[list[str] | None, Meta(description="The same in the program of --from.")] = None


class JsonEnding(Struct, frozen=True, omit_defaults=True):
    """How one step ends under one engine, over all schedules."""

    verdict: Annotated[
        Verdict,
        Meta(
            description="`fails`, `hangs`: on every cluster. `likely`: on an ordinary one. `may`: only on a very slow "
            "or a very fast one (lazy and eager schedule)."
        ),
    ]
    leaves: Annotated[int, Meta(description="Objects that remain after a step that should delete all of them.")] = 0


class JsonStop(Struct, frozen=True, omit_defaults=True):
    """What stops an engine."""

    why: Annotated[str, Meta(description="The error of the API server or the engine, shortened.")]
    object: Object = ""


class JsonStanding(Struct, frozen=True):
    """How one engine completes the trial, in the default case."""

    engine: str
    steps: list[JsonEnding]
    stopped_by: Annotated[JsonStop | None, Meta(description="What stops it first; null if nothing does.")]


class JsonAbout(Struct, frozen=True, omit_defaults=True):
    """Objects of the releases that a webhook is called for."""

    operations: Annotated[
        list[str], Meta(description="CREATE, UPDATE, DELETE; empty for a conversion webhook: any request calls it.")
    ]
    objects: list[Object]
    pods: Annotated[bool, Meta(description="It is called for the pods of these objects, not for the objects.")] = False


class JsonRequirement(Struct, frozen=True, omit_defaults=True):
    """What must exist before the objects can be created and the webhook can answer."""

    what: Annotated[
        Required,
        Meta(
            description="`definition`: a CRD, established and serving `versions`. `endpoint`: a ready pod of "
            "`objects`. `ca-bundle`: in the webhook configuration, for the API server to verify the webhook."
        ),
    ]
    objects: list[str]
    by: Annotated[
        str,
        Meta(
            description="`release`: one of the rehearsed releases. `before`: it exists before the first step. "
            "Otherwise the client that wrote it (`cert-manager`, a controller); empty if none did."
        ),
    ]
    versions: list[str] = []


class JsonMoment(Struct, frozen=True):
    """The first request of an engine that a webhook is called for, on an ordinary cluster.

    No pod becomes ready there between two requests, unless the engine waits.
    """

    engine: str
    act: Act
    step: Annotated[int | None, Meta(description="From 0; null if the engine never sent such a request.")]
    object: Annotated[Object, Meta(description="The object that was refused, else the first; may be empty.")]
    definition: Annotated[
        Served | None,
        Meta(
            description="The CRD, in the version of the object; if nothing was sent, after the first step. Null for "
            "built-in kinds."
        ),
    ]
    service: Presence | None
    endpoint: Readiness | None
    ca_bundle: Presence | None
    then: Annotated[
        Then,
        Meta(
            description="`refused`: the call failed. `refused otherwise`: for another reason. `not registered`: the "
            "webhook configuration did not exist. `let through`: the call failed, and failurePolicy is Ignore."
        ),
    ]


class JsonGate(Struct, frozen=True, omit_defaults=True):
    """An admission or conversion webhook that is called for objects of the releases."""

    webhook: str
    owner: Annotated[Object, Meta(description="The webhook configuration; for a conversion webhook, the CRD.")]
    failure_policies: Annotated[
        list[str],
        Meta(description="The first, and each change during the trial; empty for a conversion webhook."),
    ]
    rules: Annotated[
        list[dict[str, Any]], Meta(description="As in the webhook configuration; empty for a conversion webhook.")
    ]
    about: list[JsonAbout]
    needs: list[JsonRequirement]
    moments: list[JsonMoment]
    location: JsonLocation | None = None


class JsonJudged(Struct, frozen=True):
    """How a rule rates some objects."""

    certainty: Certainty
    damage: Damage


class JsonChange(Struct, frozen=True):
    """How the findings of one rule about some objects changed."""

    rule: str
    code: str
    objects: list[Object]
    before: Annotated[JsonJudged | None, Meta(description="In the old input; null if the finding is new.")]
    now: Annotated[JsonJudged | None, Meta(description="In the new input; null if the finding is gone.")]


class JsonEdge(Struct, frozen=True):
    """One dependency: between objects, or between resources of a Pulumi program as Pulumi sees them."""

    user: str
    object: str


class JsonComparison(Struct, frozen=True):
    """The input and that of --compare, rehearsed with the same trial, each on its own cluster."""

    old: str
    new: str
    before: Annotated[list[JsonStanding], Meta(description="How the old input completes the trial.")]
    now: list[JsonStanding]
    findings: list[JsonChange]
    gained: list[JsonEdge]
    lost: list[JsonEdge]


class JsonEngineDifference(Struct, frozen=True):
    """Where the engine of seatrial and that of the user differ."""

    step: Annotated[int, Meta(description="From 0; -1 for an object at the end of the trial.")]
    what: Literal["outcome", "error", "event", "object"]
    model: Annotated[str, Meta(description="Empty if only the real engine has it.")]
    real: Annotated[str, Meta(description="Empty if only the model has it.")]


class JsonEngineAgreement(Struct, frozen=True):
    """One trial under one schedule, with the engine of seatrial and with that of the user."""

    model: str
    real: str
    schedule: str
    case: str
    steps: int
    events: int
    objects: int
    differences: list[JsonEngineDifference]


class JsonInterruption(Struct, frozen=True):
    """A moment at which a step was killed: after one of its writes, whose answer it did not get."""

    write: int
    verb: str
    object: str
    aftermath: Annotated[
        str, Meta(description="What repeating the step does: safe, locked, fails, hangs, loses or leaves (or fields).")
    ]
    error: str
    lost: list[str]
    left: list[str]
    way_out: Annotated[list[str], Meta(description="Commands that help, rehearsed.")]
    fields: Annotated[list[str], Meta(description="Fields left over: `Deployment/default/web: spec.replicas`.")]


class JsonInterrupted(Struct, frozen=True):
    """A step that was killed after its writes, and repeated."""

    engine: str
    case: str
    step: int
    action: str
    release: str
    writes: int
    safe: int
    untried: Annotated[int, Meta(description="Moments that were not tried, because there are too many.")]
    moments: list[JsonInterruption]
    answer: Annotated[
        str,
        Meta(description="With --explore: one write gets a 500 (not done), 504 (done) or 429; or cut: then a watch."),
    ]


class JsonExplored(Struct, frozen=True):
    """How many orders between a slow and a fast cluster were tried."""

    engine: str
    case: str
    open_pairs: Annotated[int, Meta(description="Pairs of which one reads what the other writes.")]
    tried_pairs: Annotated[int, Meta(description="Those of which both orders were tried.")]
    objects: int
    rehearsals: int


class JsonNotRehearsed(Struct, frozen=True):
    """A part of the input that was not rehearsed."""

    case: Annotated[str, Meta(description="A values file; of a folder, the chart. Empty: missing in every case.")]
    step: Annotated[str, Meta(description="`upgrade from git:v3`. Empty: more than one step.")]
    reason: Annotated[str, Meta(description="With the command that gets what is missing, if there is one.")]


class JsonSummary(Struct, frozen=True):
    """Counts."""

    objects: int
    rehearsals: int
    findings: int


class Report(Struct, frozen=True, omit_defaults=True):
    """What `seatrial check -o json` writes."""

    version: int
    rehearsals: list[JsonPlayed]
    findings: list[JsonHazard]
    prerequisites: list[JsonPrerequisite]
    not_modelled: list[str]
    summary: JsonSummary
    missing_dependencies: list[str] = []
    unknown_images: Annotated[
        list[str], Meta(description="Of Jobs and init containers: assumed to succeed and to change nothing.")
    ] = []
    differences: list[JsonDifference] = []
    contrasts: list[JsonDifference] = []
    consumers: list[JsonConsumer] = []
    notes: Annotated[list[str], Meta(description="What was assumed, simulated or left out.")] = []
    dependencies: list[JsonDependence] = []
    standings: Annotated[list[JsonStanding], Meta(description="The engines compared, if there are several.")] = []
    gates: list[JsonGate] = []
    comparison: JsonComparison | None = None
    agreements: Annotated[list[JsonEngineAgreement], Meta(description="With --compare-engines.")] = []
    explored: Annotated[list[JsonExplored], Meta(description="With --explore.")] = []
    interrupted: Annotated[list[JsonInterrupted], Meta(description="With --interrupted.")] = []
    not_rehearsed: Annotated[
        list[JsonNotRehearsed], Meta(description="The parts of the input that no finding is about.")
    ] = []
    ignored: Annotated[list[JsonIgnored], Meta(description="Findings that the user ignores.")] = []


def schema() -> str:
    """The JSON Schema of the report, as published in docs/output.schema.json."""
    (report,), shapes = msgspec.json.schema_components((Report,), ref_template="#/$defs/{name}")
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What seatrial check -o json writes",
        "anyOf": [report],
        "$defs": shapes,
    }
    return json.dumps(document, indent=2) + "\n"
