"""The types of one finding in the JSON report: part of the contract."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.model.finding import Certainty, Damage
from seatrial.model.resource import Sure
from seatrial.model.timeline import Effect, Schedule

Object = Annotated[str, Meta(description="`Kind/namespace/name`, or `Kind/name` when cluster-scoped.")]


class JsonLocation(Struct, frozen=True):
    """A place in a file of the user, and how certain it is."""

    file: str
    line: int
    sure: Sure


class JsonEdit(Struct, frozen=True):
    """Text for a range of a file. Lines and columns count characters from 1; the end is not included."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class JsonFix(Struct, frozen=True):
    """The way out of a finding: edits that remove it, or what to do by hand."""

    title: str
    safe: bool
    proven: Annotated[bool, Meta(description="Everything was rehearsed again with it, and nothing as grave comes.")]
    why_unsafe: Annotated[str, Meta(description="What else it changes; empty if it is safe.")]
    edits: list[JsonEdit]
    steps: Annotated[list[str], Meta(description="What to do by hand, in this order, after the title.")]
    rejected: Annotated[list[str], Meta(description="What was tried and is not enough, with the reason.")]


class JsonShownBy(Struct, frozen=True, omit_defaults=True):
    """The rehearsal that shows a finding."""

    engine: str
    schedule: Schedule
    case: str = ""
    after: Annotated[list[str], Meta(description="Obstacles that it assumes to be repaired.")] = []


class JsonEvent(Struct, frozen=True, omit_defaults=True):
    """One request of a client, or one action of a controller."""

    index: Annotated[int, Meta(description="Its place in the timeline of the rehearsal.")]
    step: Annotated[int, Meta(description="From 0; -1 before the first step.")]
    actor: Annotated[str, Meta(description="An engine (`helm`), a controller, `kubelet`, or `user`.")]
    verb: str
    object: Object
    effect: Annotated[
        Effect, Meta(description="`deleting`: it has a deletionTimestamp and remains because of finalizers.")
    ]
    message: Annotated[str, Meta(description="The exact error of the API server, or what a controller says.")] = ""


class JsonHazard(Struct, frozen=True, omit_defaults=True):
    """One finding: which objects, at which step, why, and the place to change."""

    rule: str
    code: str
    fingerprint: Annotated[
        str,
        Meta(
            description="The same for the same hazard in another revision of the input: of the rule, the file and the "
            "objects, not of lines, certainty, engines or wording."
        ),
    ]
    certainty: Annotated[
        Certainty,
        Meta(
            description="`will`: on every cluster. `likely`: on an ordinary one. `may`: only on a very slow or a very "
            "fast one, or if something that is not known is so."
        ),
    ]
    damage: Damage
    engines: list[str]
    action: str
    objects: list[Object]
    message: str
    locations: list[JsonLocation]
    evidence: Annotated[
        list[int], Meta(description="Indices of the events that prove it, in the timeline of `shown_by`.")
    ]
    fix: JsonFix | None
    shown_by: Annotated[JsonShownBy | None, Meta(description="The rehearsal that `evidence` and `events` are about.")]
    events: Annotated[list[JsonEvent], Meta(description="The events that `evidence` lists.")]
    details: list[str] = []
    confirm: Annotated[str, Meta(description="A command that shows it on a real cluster.")] = ""
    schedule: Annotated[
        str, Meta(description="With --explore: the schedule that shows it, for `seatrial run --schedule FILE`.")
    ] = ""
    schedules: list[str] = []
    case: str = ""
    after: Annotated[
        list[str], Meta(description="Obstacles that stop the trial before; the finding shows once they are repaired.")
    ] = []
    removal: Annotated[
        bool,
        Meta(
            description="What uninstall, delete or destroy does by design; fails a check only with --fail-on-removal."
        ),
    ] = False
    known: Annotated[
        bool, Meta(description="The baseline or the old version has it as well; it does not fail the check.")
    ] = False


class JsonIgnored(Struct, frozen=True, omit_defaults=True):
    """A finding that a comment, an annotation or an entry of seatrial.yaml ignores."""

    finding: JsonHazard
    by: Literal["comment", "annotation", "entry"]
    location: Annotated[JsonLocation, Meta(description="Where that is written.")]
    reason: str = ""
