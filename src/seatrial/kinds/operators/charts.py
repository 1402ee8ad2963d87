"""What a well-known chart brings whose content is not at hand. The facts are in operators.toml (`brings`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.operators.table import OperatorEntry, Version, number, operator_kinds, table
from seatrial.model import lazy_re
from seatrial.model.release import AbsentChart
from seatrial.model.resource import Body, dig

Place = Literal["crds", "hook", "templates", "start", "manifest"]
PLACES: tuple[Place, ...] = ("crds", "hook", "templates", "start", "manifest")

_EXACT = lazy_re.compile(r"v?\d+\.\d+\.\d+([-+].*)?")


class Installation(Struct, frozen=True):
    """One line of `brings`."""

    operator: OperatorEntry
    chart: str
    """For a manifest, how its path ends."""
    place: Place
    """Where the CRDs come from: crds/ of the chart, its hook or its templates, the starting operator, or a manifest."""
    runs: bool
    """Whether the chart also installs the operator."""
    runs_if: str
    """A value, true by default, that decides about that; empty if none does."""
    switches: tuple[tuple[str, bool], ...]
    """Values that decide whether the CRDs come, with their defaults."""
    versions: Version
    """The versions of the chart that the line is for."""
    repository: str
    """A word in the address of the repository, for a name that other charts have as well."""

    @property
    def is_first(self) -> bool:
        """Whether Helm installs the CRDs before the regular objects of the chart."""
        return self.place in ("crds", "hook")


def installation(absent: AbsentChart) -> Installation | None:
    """What a chart or file that is not at hand is known to bring; None if that is not known."""
    if absent.url:
        return _of_file(absent.url)
    lines = _charts().get(absent.chart.rstrip("/").rpartition("/")[2], ())
    lines = tuple(line for line in lines if _is_from(line, absent.repository.lower()))
    if _EXACT.fullmatch(absent.version):
        release = number(absent.version)
        lines = tuple(line for line in lines if line.versions.is_served(release))
    return _common(lines) if lines else None


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


def runs_operator(absent: AbsentChart) -> bool:
    """Whether a chart is known to install its operator, with the values that are known."""
    known = installation(absent)
    if known is None or not known.runs:
        return False
    given = _value(absent.values, known.runs_if) if known.runs_if else True
    return given is not False and (given is not None or absent.all_values)


def is_of(absent: AbsentChart, operator: str) -> bool:
    """Whether a chart is known to bring this operator, and not one whose kind the object itself is."""
    known = installation(absent)
    own = operator_kinds().get((absent.by.group, absent.by.kind)) if absent.by else None
    return known is not None and known.operator.name == operator and not (own and own[0].name == operator)


def _is_from(line: Installation, repository: str) -> bool:
    """Bitnami builds charts of its own under the same names, and a local one can contain anything."""
    is_other = "bitnami" in repository.replace("bitnami-labs", "") or repository.startswith("file:")
    return line.repository in repository and not is_other


def _common(lines: tuple[Installation, ...]) -> Installation:
    """Lines for several versions as one: the CRDs come as early as in any, and every value can prevent them."""
    first = next(line for place in PLACES for line in lines if line.place == place)
    switches = dict(switch for line in lines for switch in line.switches)
    return replace(first, switches=tuple(switches.items()), runs=all(line.runs for line in lines))


def _of_file(url: str) -> Installation | None:
    """What the manifest of an operator's release brings, by the repository in its address and its name."""
    at = url.partition("://")[2].replace("raw.githubusercontent.com/", "github.com/")
    for operator in table().values():
        if at.startswith(f"{operator.source.partition(',')[0]}/"):
            files = (line for line in _lines(operator) if line.place == "manifest")
            return next((line for line in files if fnmatchcase(at, f"*/{line.chart}")), None)
    return None


@cache
def _charts() -> dict[str, tuple[Installation, ...]]:
    found: dict[str, tuple[Installation, ...]] = {}
    for line in (line for operator in table().values() for line in _lines(operator) if line.place != "manifest"):
        found[line.chart] = (*found.get(line.chart, ()), line)
    return found


def _lines(operator: OperatorEntry) -> Iterator[Installation]:
    for line in operator.brings:
        named, place, *rest = line.split()
        chart, _, span = named.partition("@")
        since, _, until = span.partition("-")
        values = (word.partition("=") for word in rest if "=" in word)
        yield Installation(
            operator,
            chart,
            next(known for known in PLACES if known == place),
            "only" not in rest,
            _after("runs:", rest),
            tuple((path, default == "true") for path, _, default in values),
            Version(chart, number(since), number(until)),
            _after("from:", rest),
        )


def _after(label: str, words: Iterable[str]) -> str:
    return next((word.removeprefix(label) for word in words if word.startswith(label)), "")


def _value(values: Body, path: str) -> object:
    """The value at a path, None if none is given; for `a.b*`, whether no value in `a` that begins with `b` is false."""
    if not path.endswith("*"):
        return dig(values, *path.split("."))
    above, _, last = path.removesuffix("*").rpartition(".")
    group = dig(values, *above.split("."))
    below = group.items() if isinstance(group, dict) else ()
    flags = list(_flags(value for key, value in below if key.startswith(last)))
    return all(flags) if flags else None


def _flags(values: Iterable[object]) -> Iterator[bool]:
    for value in values:
        if isinstance(value, bool):
            yield value
        elif isinstance(value, dict):
            yield from _flags(value.values())
