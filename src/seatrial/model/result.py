"""The result of one `check`, ready to be reported. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from msgspec import Struct

from seatrial.model.acceptance import Ignored, WrittenObject
from seatrial.model.engine import EngineId
from seatrial.model.finding import Certainty, Damage, Finding
from seatrial.model.interruption import Interrupted
from seatrial.model.limit import Limit
from seatrial.model.resource import Body, Place, Ref
from seatrial.model.timeline import Rehearsal, Schedule

Verdict = Literal["ok", "ok at a retry", "fails", "hangs", "likely fails", "likely hangs", "may fail", "may hang"]
"""`likely`: on an ordinary cluster. `may`: only on a very slow or a very fast one."""
Required = Literal["definition", "service", "endpoint", "ca-bundle", "url"]
Act = Literal["made", "deleted"]
Served = Literal["served", "not served"]
Presence = Literal["there", "missing"]
Readiness = Literal["ready", "none"]
Then = Literal["asked", "refused", "refused otherwise", "not registered", "let through", "never sent"]
"""What happened to the write. With `not registered` and `let through` the webhook was never called."""

DEFAULT_VALUES = "default values"
"""The case without a values file, where a sentence names it."""


class Prerequisite(Struct, frozen=True, omit_defaults=True, order=True):
    """An object outside the release that the release needs, assumed to exist."""

    object: str
    """`Kind/namespace/name`, at its usual place."""
    why: str
    ref: Ref | None = None
    """The object that was created for it before the first step."""
    operator: str = ""
    """For the workload of an operator, which may also run under another name: `flux (helm-controller)`."""
    brought_by: str = ""
    """The operator that installs it, if that is known: `external-secrets`."""


class NotRehearsed(Struct, frozen=True, omit_defaults=True, order=True):
    """A part of the input that was not rehearsed. No report calls it ok."""

    reason: str
    case: str = ""
    """Its values file; in a folder of charts, its chart. Empty if it is missing in every case."""
    step: str = ""
    """The step that is left out: `upgrade from git:v3`. Empty if more than a step is."""

    def __str__(self) -> str:
        """`ci/ha-values.yaml, upgrade from git:v3: the old chart does not render`"""
        about = ", ".join(filter(None, (self.case, self.step)))
        return self.reason if self.reason.startswith(about) else f"{about}: {self.reason}"

    def is_about(self, case: str) -> bool:
        """Whether a case lacks it. The cases of a folder are `charts/shop` and `charts/shop (ci/ha-values.yaml)`."""
        default = f"{case} ({DEFAULT_VALUES})" if case else DEFAULT_VALUES
        return self.case in ("", case, default) or case.startswith(f"{self.case} (")


class RenderedDifference(Struct, frozen=True, omit_defaults=True, order=True):
    """An object that differs between renderings of the chart."""

    object: str
    states: tuple[tuple[str, str], ...]
    """The condition and the state: `("on upgrade", "a hook")`, `("tls=false", "absent")`."""
    place: Place
    asks: str = ""
    """The condition in its template: `.Release.IsInstall`."""
    asked: Place | None = None
    case: str = ""


class Ending(Struct, frozen=True):
    """How one step of a trial ends with one engine, under all schedules."""

    verdict: Verdict
    leaves: int = 0
    """Objects that remain although all should be deleted."""


class Stop(Struct, frozen=True):
    """What stops an engine: an object and why, or the engine's error."""

    why: str
    object: str = ""


class Standing(Struct, frozen=True):
    """How one engine completes a trial: how each step ends, and what stops it first."""

    engine: str
    endings: tuple[Ending, ...]
    stopped_by: Stop | None = None


class CalledFor(Struct, frozen=True):
    """Objects that a webhook is called for, and when."""

    operations: tuple[str, ...]
    """Empty for a conversion, which every use needs."""
    objects: tuple[str, ...]
    pods: bool = False
    """It is called for the pods of these."""


class Requirement(Struct, frozen=True):
    """Something that must exist before an object can be created and its webhook can respond."""

    what: Required
    objects: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """For a CRD, the versions it must serve."""
    by: str = ""
    """What creates it: `release`, or the actor that wrote it; empty if nothing does."""


class Asked(Struct, frozen=True):
    """What existed when an engine first wrote or deleted an object that a webhook is called for."""

    engine: str
    act: Act
    then: Then
    step: int | None = None
    object: str = ""
    definition: Served | None = None
    """After the first step if nothing was sent. None, here and below, if there is nothing to check."""
    service: Presence | None = None
    endpoint: Readiness | None = None
    ca_bundle: Presence | None = None


class Gate(Struct, frozen=True):
    """A webhook that is called for objects of the releases."""

    webhook: str
    owner: str
    policies: tuple[str, ...]
    """Its failurePolicy, and later values of it during the trial; empty for a conversion."""
    rules: tuple[Body, ...]
    """As in the configuration."""
    about: tuple[CalledFor, ...]
    needs: tuple[Requirement, ...]
    moments: tuple[Asked, ...]
    place: Place | None


class Consumer(Struct, frozen=True, omit_defaults=True, order=True):
    """A chart that uses a library: which changed templates it calls, and how its objects change."""

    chart: str
    helpers: tuple[str, ...] = ()
    flipped: tuple[RenderedDifference, ...] = ()
    """Objects that appear, disappear, or change between regular resource and hook."""
    changed: tuple[str, ...] = ()
    """Objects whose content differs."""


class Dependence(Struct, frozen=True, order=True):
    """What a resource of a Pulumi program names in `dependsOn`, and its real dependencies."""

    resource: str
    """`Entry pull-secret`"""
    asked: tuple[str, ...]
    now: tuple[str, ...]
    before: tuple[str, ...] | None
    """In the previous program; None if there is none, or if it has no such resource."""
    place: Place


class Judged(Struct, frozen=True):
    """A finding about an object."""

    certainty: Certainty
    damage: Damage


class Change(Struct, frozen=True):
    """How the findings of one rule about some objects changed; one that remains has both."""

    rule: str
    code: str
    objects: tuple[str, ...]
    before: Judged | None
    now: Judged | None


class Dependency(Struct, frozen=True, order=True):
    """One thing depends on another."""

    user: str
    object: str


class Comparison(Struct, frozen=True):
    """Two inputs, rehearsed with the same trial, each on its own cluster."""

    old: str
    new: str
    before: tuple[Standing, ...]
    now: tuple[Standing, ...]
    changes: tuple[Change, ...]
    gained: tuple[Dependency, ...]
    lost: tuple[Dependency, ...]


class EngineDifference(Struct, frozen=True):
    """Where the engine of seatrial and that of the user differ. Empty text: only the other one has this."""

    step: int
    """From 0; -1 for an object at the end of the trial."""
    what: Literal["outcome", "error", "event", "object"]
    model: str
    real: str


class EngineAgreement(Struct, frozen=True):
    """One trial under one schedule, with the engine of seatrial (`model`) and with that of the user (`real`)."""

    model: str
    real: str
    schedule: Schedule
    case: str
    steps: int
    events: int
    objects: int
    differences: tuple[EngineDifference, ...]


class Explored(Struct, frozen=True):
    """How many orders between the bounds were tried for one trial."""

    engine: EngineId
    case: str
    open_pairs: int
    """Pairs of which one reads what the other writes."""
    tried_pairs: int
    """Those of which both orders were tried."""
    objects: int
    """Objects that have controllers."""
    rehearsals: int


class StepNumber(Struct, frozen=True):
    """Objects that a table of steps counts under one word for one reason."""

    word: str
    """missing, recreated, left behind."""
    objects: tuple[Ref, ...]
    why: str


class Played(Struct, frozen=True):
    """One rehearsal and its values case (empty for the default one)."""

    case: str
    rehearsal: Rehearsal
    numbers: tuple[tuple[StepNumber, ...], ...] = ()
    """For each step: the objects that are missing, recreated or left behind, and why."""


class Exit(Struct, frozen=True):
    """The exit code of a check, and why."""

    code: int
    reason: str
    """`1 finding reaches --fail-on likely:failed-deploy`"""
    failing: tuple[Finding, ...] = ()
    """The findings that reach `--fail-on`."""


class Fixing(Struct, frozen=True):
    """Which fixes a check tries by rehearsing again."""

    least: Limit | None = None
    """Only of findings that reach it."""
    tries_max: int = 20
    rehearsals_max: int = 0
    """How many rehearsals all tries may take together; 0 for any number."""
    unsafe: bool = False
    """Whether unsafe fixes are applied as well."""
    writes: bool = False
    """Whether files will be written: then those that cannot be are left alone."""
    wanted: Callable[[Result], Collection[str]] | None = None
    """The fingerprints of the findings that the user wants to see; all if it is None."""


class Patch(Struct, frozen=True, order=True):
    """A file of the user with proven fixes, and as it was read."""

    file: str
    before: str
    after: str
    fixes: tuple[str, ...]
    """What was changed: `release-to-hook-flip: add ... to ...`."""
    secret: frozenset[str] = frozenset()
    """Lines with values of Secrets: a diff has none of them as context."""


class Result(Struct, frozen=True):
    played: tuple[Played, ...]
    findings: tuple[Finding, ...]
    """Worst first."""
    prerequisites: tuple[Prerequisite, ...] = ()
    not_modelled: tuple[str, ...] = ()
    """`Widget.example.com`"""
    unknown_images: tuple[str, ...] = ()
    """Images of Jobs and init containers that are assumed to succeed and to change nothing."""
    missing_dependencies: tuple[str, ...] = ()
    """Charts that Chart.yaml lists and that are missing; `not_rehearsed` names them as well."""
    objects: int = 0
    files: int = 0
    excerpts: dict[Place, str] = {}
    """The source line at each place that a finding names, if it could be read."""
    sources: dict[Ref, Place] = {}
    """Where each object of the releases is written; of several revisions, in the last one."""
    pages: dict[str, str] = {}
    """The page of each rule that found something, by its name."""
    differences: tuple[RenderedDifference, ...] = ()
    contrasts: tuple[RenderedDifference, ...] = ()
    """Objects that the engines of this check treat differently."""
    standings: tuple[Standing, ...] = ()
    """The engines of this check side by side, if there are several."""
    gates: tuple[Gate, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    comparison: Comparison | None = None
    agreements: tuple[EngineAgreement, ...] = ()
    """Engines compared with those of the user, if that was asked for."""
    notes: tuple[str, ...] = ()
    """What was assumed, and other notes on the check."""
    not_rehearsed: tuple[NotRehearsed, ...] = ()
    """The parts of the input that were not rehearsed: the first lines of every report."""
    continued: tuple[Played, ...] = ()
    """Rehearsals that assume obstacles to be repaired; findings with `after` are from these."""
    hollow: bool = False
    """Whether nothing of the input but objects of the engine itself could be rehearsed."""
    charts: int = 0
    """How many charts were checked, if the input is a folder of charts."""
    broken: int = 0
    """How many of them could not be checked; `not_rehearsed` has the reasons."""
    written: tuple[WrittenObject, ...] = ()
    """The objects of the newest revision of the input."""
    ignored: tuple[Ignored, ...] = ()
    """Findings that the user ignores."""
    not_selected: int = 0
    """How many findings are of rules that the user does not want to see."""
    configuration: str = ""
    """The seatrial.yaml that was used."""
    toggled: tuple[str, ...] = ()
    """The cases with a toggled flag that the change is about."""
    explored: tuple[Explored, ...] = ()
    """Which orders between the bounds were tried, if that was asked for."""
    interrupted: tuple[Interrupted, ...] = ()
    """Steps that were killed after each of their writes, if that was asked for."""
    patches: tuple[Patch, ...] = ()
    """The files that proven fixes change."""
    mended: Result | None = None
    """The result of the same check with these fixes."""
    exit: Exit | None = None
    """Set where `--fail-on` is known (`model.verdict`)."""
