"""Everything one `check` found out, ready to be reported. Pure data."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from seatrial.model.finding import Certainty, Damage, Finding
from seatrial.model.resource import Body, Place, Ref
from seatrial.model.timeline import Rehearsal

Verdict = Literal["ok", "ok at a retry", "fails", "hangs", "may fail", "may hang"]
"""`may`: in a slow cluster only."""
Required = Literal["definition", "service", "endpoint", "ca-bundle", "url"]
Act = Literal["made", "deleted"]
Served = Literal["served", "not served"]
Presence = Literal["there", "missing"]
Readiness = Literal["ready", "none"]
Then = Literal["asked", "refused", "refused otherwise", "not registered", "let through", "never sent"]
"""What became of the write; `not registered` and `let through` are those of which the webhook never heard."""


class Prerequisite(Struct, frozen=True, omit_defaults=True, order=True):
    """Something outside the release that it needs, and that was assumed to be there."""

    object: str
    """`Kind/namespace/name`, where it usually is."""
    why: str
    ref: Ref | None = None
    """The object that was created for it before the first step."""


class Difference(Struct, frozen=True, omit_defaults=True, order=True):
    """An object that is not the same however the chart is rendered."""

    object: str
    states: tuple[tuple[str, str], ...]
    """Where, and what it is there: `("on upgrade", "a hook")`, `("tls=false", "absent")`."""
    place: Place
    asks: str = ""
    """What its template asks that it comes out so: `.Release.IsInstall`."""
    asked: Place | None = None
    case: str = ""


class Ending(Struct, frozen=True):
    """How one step of a trial ends under one engine, in a slow cluster and in a quick one."""

    verdict: Verdict
    leaves: int = 0
    """Objects that stay behind where all of them were to go."""


class Stop(Struct, frozen=True):
    """What keeps an engine up: an object and why, or the engine's own words."""

    why: str
    object: str = ""


class Standing(Struct, frozen=True):
    """How one engine gets through a trial: how each step ends, and what stops it first."""

    engine: str
    endings: tuple[Ending, ...]
    stopped_by: Stop | None = None


class About(Struct, frozen=True):
    """Objects that a webhook is asked about, and when."""

    operations: tuple[str, ...]
    """None of a conversion, which any use asks for."""
    objects: tuple[str, ...]
    pods: bool = False
    """It is asked about the pods of these."""


class Requirement(Struct, frozen=True):
    """One thing that has to be there before an object can be made and its webhook can answer."""

    what: Required
    objects: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """Of a definition, which it has to serve."""
    by: str = ""
    """Who brings it: `release`, or who was seen to write it; empty where nobody does."""


class Asked(Struct, frozen=True):
    """What was there when an engine first wrote or deleted something that a webhook is about."""

    engine: str
    act: Act
    then: Then
    step: int | None = None
    object: str = ""
    definition: Served | None = None
    """After the first step where nothing was sent. None, here and below, where there is nothing that could be there."""
    service: Presence | None = None
    endpoint: Readiness | None = None
    ca_bundle: Presence | None = None


class Gate(Struct, frozen=True):
    """A webhook that is asked about objects of the releases."""

    webhook: str
    owner: str
    policies: tuple[str, ...]
    """Its failurePolicy, and what it became in the course of the trial; a conversion has none."""
    rules: tuple[Body, ...]
    """As they are written in the configuration."""
    about: tuple[About, ...]
    needs: tuple[Requirement, ...]
    moments: tuple[Asked, ...]
    place: Place | None


class Consumer(Struct, frozen=True, omit_defaults=True, order=True):
    """A chart that uses a library: which changed templates it calls, and what becomes of its objects."""

    chart: str
    helpers: tuple[str, ...] = ()
    flipped: tuple[Difference, ...] = ()
    """Objects that appear, vanish, or flip between plain and hook."""
    changed: tuple[str, ...] = ()
    """Objects that only read otherwise."""


class Dependence(Struct, frozen=True, order=True):
    """What one resource of a Pulumi program names in `dependsOn`, and what it depends on in the end."""

    resource: str
    """`Entry pull-secret`"""
    asked: tuple[str, ...]
    now: tuple[str, ...]
    before: tuple[str, ...] | None
    """In the previous program; None where there is none, or where it has no such resource."""
    place: Place


class Judged(Struct, frozen=True):
    """What a rule says of an object."""

    certainty: Certainty
    damage: Damage


class Change(Struct, frozen=True):
    """What became of the findings of one rule about some objects; one that stayed has both."""

    rule: str
    code: str
    objects: tuple[str, ...]
    before: Judged | None
    now: Judged | None


class Edge(Struct, frozen=True, order=True):
    """One thing depends on another."""

    user: str
    object: str


class Comparison(Struct, frozen=True):
    """Two inputs, rehearsed by the same trial, each on a cluster of its own."""

    old: str
    new: str
    before: tuple[Standing, ...]
    now: tuple[Standing, ...]
    changes: tuple[Change, ...]
    gained: tuple[Edge, ...]
    lost: tuple[Edge, ...]


class Played(Struct, frozen=True):
    """One rehearsal, and the values case it was played with (empty for the plain one)."""

    case: str
    rehearsal: Rehearsal


class Result(Struct, frozen=True):
    played: tuple[Played, ...]
    findings: tuple[Finding, ...]
    """Worst first."""
    prerequisites: tuple[Prerequisite, ...] = ()
    not_modelled: tuple[str, ...] = ()
    """`Widget.example.com`"""
    missing_dependencies: tuple[str, ...] = ()
    """Charts that Chart.yaml lists and that are not there; the rest was checked."""
    objects: int = 0
    files: int = 0
    excerpts: dict[Place, str] = {}
    """The source line at each place that a finding names, as far as it could be read."""
    differences: tuple[Difference, ...] = ()
    contrasts: tuple[Difference, ...] = ()
    """Objects that the engines of this check do not treat alike."""
    standings: tuple[Standing, ...] = ()
    """The engines of this check side by side, where there are several."""
    gates: tuple[Gate, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    """What was left out, and other sentences about the check itself."""
