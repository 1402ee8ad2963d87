"""What a well-known chart brings whose content is not at hand. The facts are in operators.toml (`brings`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal

from msgspec import Struct

from seatrial.kinds.operators.table import OperatorEntry, operator_kinds, table
from seatrial.model.release import AbsentChart
from seatrial.model.resource import Body, dig

Place = Literal["crds", "templates", "start"]


class Installation(Struct, frozen=True):
    """One line of `brings`."""

    operator: OperatorEntry
    chart: str
    place: Place
    """Where the CRDs come from: crds/ of the chart, its templates, or the operator when it starts."""
    runs: bool
    """Whether the chart also installs the operator."""
    switches: tuple[tuple[str, bool], ...]
    """Values that decide whether the CRDs come, with their defaults."""


def installation(absent: AbsentChart) -> Installation | None:
    """What a chart or file that is not at hand is known to bring; None if that is not known."""
    if absent.url:
        return _of_file(absent.url)
    return _installations().get(absent.chart.rstrip("/").rpartition("/")[2])


def brings_crds(absent: AbsentChart) -> bool:
    """Whether a chart is known to bring the CRDs of its operator, with the values that are known."""
    known = installation(absent)
    if known is None or (known.place == "crds" and absent.skips_crds):
        return False
    given = {path: _value(absent.values, path) for path, _ in known.switches}
    if not absent.all_values and any(value is None for value in given.values()):
        return False
    on = [path for path, default in known.switches if default]
    off = [path for path, default in known.switches if not default]
    return all(given[path] is not False for path in on) and (not off or any(given[path] is True for path in off))


def is_of(absent: AbsentChart, operator: str) -> bool:
    """Whether a chart is known to bring this operator, and not one whose kind the object itself is."""
    known = installation(absent)
    own = operator_kinds().get((absent.by.group, absent.by.kind)) if absent.by else None
    return known is not None and known.operator.name == operator and not (own and own[0].name == operator)


def _of_file(url: str) -> Installation | None:
    """What the manifest of an operator's release brings, by the repository in its address."""
    at = url.partition("://")[2].replace("raw.githubusercontent.com/", "github.com/")
    named = (one for one in table().values() if at.startswith(f"{one.source.partition(',')[0]}/"))
    operator = next(named, None)
    if operator is None or not at.endswith((".yaml", ".yml")):
        return None
    return Installation(operator, "", "templates", "crd" not in at.lower(), ())


@cache
def _installations() -> dict[str, Installation]:
    return {one.chart: one for operator in table().values() for one in _of(operator)}


def _of(operator: OperatorEntry) -> Iterator[Installation]:
    for line in operator.brings:
        chart, place, *rest = line.split()
        switches = tuple((path, default == "true") for path, _, default in (w.partition("=") for w in rest if "=" in w))
        where: Place = "crds" if place == "crds" else "templates" if place == "templates" else "start"
        yield Installation(operator, chart, where, "only" not in rest, switches)


def _value(values: Body, path: str) -> object:
    return dig(values, *path.split("."))
