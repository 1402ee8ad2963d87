"""Everything one `check` found out, ready to be reported. Pure data."""

from __future__ import annotations

from msgspec import Struct

from seatrial.findings import Finding
from seatrial.resource import Place
from seatrial.timeline import Rehearsal


class Prerequisite(Struct, frozen=True, order=True):
    """Something outside the release that it needs, and that was assumed to be there."""

    object: str
    """`Kind/namespace/name`."""
    why: str


class Difference(Struct, frozen=True, order=True):
    """An object that is not the same however the chart is rendered."""

    object: str
    states: tuple[tuple[str, str], ...]
    """Where, and what it is there: `("on upgrade", "a hook")`, `("tls=false", "absent")`."""
    place: Place
    asks: str = ""
    """What its template asks that it comes out so: `.Release.IsInstall`."""
    asked: Place | None = None
    case: str = ""


class Standing(Struct, frozen=True):
    """How one engine gets through a trial: a word for each step, and what stops it first."""

    engine: str
    words: tuple[str, ...]
    stopped_by: str = ""


class Asked(Struct, frozen=True):
    """What a webhook needs, as it was when an engine first wrote or deleted something that it is about."""

    engine: str
    act: str
    """made, deleted"""
    definition: str
    service: str
    endpoint: str
    ca_bundle: str
    then: str
    """What became of the write."""


class Gate(Struct, frozen=True):
    """A webhook that is asked about objects of the releases."""

    webhook: str
    owner: str
    policy: str
    """`failurePolicy Fail`, or that a conversion has none."""
    about: tuple[str, ...]
    needs: tuple[str, ...]
    moments: tuple[Asked, ...]
    place: Place | None


class Consumer(Struct, frozen=True, order=True):
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
    notes: tuple[str, ...] = ()
    """What was left out, and other sentences about the check itself."""
