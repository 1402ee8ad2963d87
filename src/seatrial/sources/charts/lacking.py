"""Dependencies of a chart that are not on disk: whether values enable them, and which version the lock file pins.

As `ProcessDependencies` in pkg/chart/v2/util/dependencies.go of Helm 4.2: the first path of `condition` that is a
boolean decides; without one, a true tag enables and false tags disable; otherwise a dependency is enabled.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.release import AbsentChart, Pin
from seatrial.model.resource import Body, dig
from seatrial.sources.charts.values import merged

_EXACT = lazy_re.compile(r"v?\d+\.\d+\.\d+\S*")


class Switch(Struct, frozen=True):
    """What enables one dependency."""

    key: str
    """Its values are under this key: the alias, or the name."""
    condition: str = ""
    tags: tuple[str, ...] = ()


class LackingChart(Struct, frozen=True):
    """A dependency that is listed in Chart.yaml and not in charts/."""

    called: str
    """`redis 19.x (https://charts.example)`, after the names of the charts that it is in."""
    name: str
    version: str
    """The version in the lock file, or an exact one in the list; empty if there is none."""
    switch: Switch
    parents: tuple[tuple[Switch, Body], ...] = ()
    """The charts that it is in, outermost first: what enables each, and its own values."""
    repository: str = ""


def switched_off(lacking: LackingChart) -> str:
    """The setting that disables a dependency: `db.enabled=false`; empty if Chart.yaml names no condition."""
    condition = lacking.switch.condition.split(",")[0].strip()
    return f"{'.'.join((*(switch.key for switch, _ in lacking.parents), condition))}=false" if condition else ""


def exact(version: str) -> str:
    """A version that is not a range; otherwise empty."""
    return version if _EXACT.fullmatch(version) else ""


def pins_of(chart: str, version: str, source: str) -> tuple[Pin, ...]:
    """The pin of a chart that is not at hand, if its version is exact."""
    name = chart.rstrip("/").rpartition("/")[2]
    return (Pin(name, version, source),) if name and exact(version) else ()


def is_enabled(lacking: LackingChart, values: Body) -> bool:
    """Whether the values of the outermost chart enable a dependency and every chart that it is in."""
    return absent_chart(lacking, values) is not None


def absent_chart(lacking: LackingChart, values: Body) -> AbsentChart | None:
    """A dependency with its values, if those of the outermost chart enable it and every chart that it is in."""
    tags, inner = values.get("tags"), values
    for switch, own in lacking.parents:
        if not _is_on(switch, inner, tags):
            return None
        given = inner.get(switch.key)
        inner = merged(own, given if isinstance(given, dict) else {})
    if not _is_on(lacking.switch, inner, tags):
        return None
    given = inner.get(lacking.switch.key)
    inside = given if isinstance(given, dict) else {}
    return AbsentChart(lacking.name, lacking.version, lacking.repository, inside, part=True)


def _is_on(switch: Switch, values: Body, tags: Any) -> bool:
    for path in filter(None, (part.strip() for part in switch.condition.split(","))):
        found = dig(values, *path.split("."))
        if isinstance(found, bool):
            return found
    said = [tags[tag] for tag in switch.tags if isinstance(tags, dict) and isinstance(tags.get(tag), bool)]
    return any(said) if said else True
