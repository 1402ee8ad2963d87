"""Validation of CronJob schedules and time zones, with the errors of the libraries that Kubernetes uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data

from seatrial.model import lazy_re

# Minimum, maximum and names of each of the five fields.
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION = lazy_re.compile(r"@every (\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")


class _InvalidSchedule(Exception):
    """Why a schedule cannot be parsed."""


def schedule_fault(schedule: str) -> str:
    """Why a text is not a schedule; empty if it is one."""
    try:
        _read(schedule)
    except _InvalidSchedule as why:
        return str(why)
    return ""


def zone_faults(zone: str) -> Iterator[str]:
    """Why a text is not a time zone."""
    if not zone:
        yield "timeZone must be nil or non-empty string"
        return
    if zone.casefold() == "local":
        yield "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    # `Local` itself is a location of Go.
    if zone not in _zones() and zone != "Local":
        yield f"unknown time zone {zone}"


@cache
def _zones() -> frozenset[str]:
    """The names in the time zone database of Go 1.26 (lib/time/zoneinfo.zip), which API servers contain."""
    return frozenset((get_data(__name__, "timezones.txt") or b"").decode().split())


def _read(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS and not _DURATION.fullmatch(schedule):
            raise _InvalidSchedule(f"unrecognized descriptor: {schedule}")
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise _InvalidSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (least, most, names) in zip(fields, _FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _read_range(part, least, most, names)


def _read_range(part: str, least: int, most: int, names: dict[str, int]) -> None:
    span, *steps = part.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = least, most
    elif len(ends) > 2:
        raise _InvalidSchedule(f"too many hyphens: {part}")
    else:
        start, end = _number(ends[0], names), _number(ends[-1], names)
    if len(steps) > 1:
        raise _InvalidSchedule(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        end = most
    if start < least:
        raise _InvalidSchedule(f"beginning of range ({start}) below minimum ({least}): {part}")
    if end > most:
        raise _InvalidSchedule(f"end of range ({end}) above maximum ({most}): {part}")
    if start > end:
        raise _InvalidSchedule(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _InvalidSchedule(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise _InvalidSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise _InvalidSchedule(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
