"""The release of an operator that the input pins, and whether it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.kinds.operators.table import chart_operator, operator_kinds, release_number
from seatrial.model.release import Pin, Release


def pinned_operators(releases: Iterable[Release]) -> dict[str, Pin]:
    """The operators whose charts are not at hand and whose version is pinned, first by what the releases install."""
    found: dict[str, Pin] = {}
    for pin in sorted((pin for release in releases for pin in release.pins), key=lambda pin: pin.installed):
        operator = chart_operator(pin.chart)
        if operator is not None:
            found[operator.name] = pin
    return found


def pin_for(key: tuple[str, str], versions: list[str], pins: Mapping[str, Pin]) -> Pin | None:
    """The release of the operator of a kind, if it is known.

    What pins a dependency that the values disable may be old: it counts only for versions that ended before it.
    """
    if key not in operator_kinds():
        return None
    operator, kind = operator_kinds()[key]
    pin = pins.get(operator.name)
    if pin is None or pin.installed:
        return pin
    release = release_number(pin.version, operator)
    lacking = set(versions) - set(kind.served(release))
    ended = {version.name for version in kind.versions if version.until and version.until <= release}
    return pin if lacking and lacking <= ended else None
