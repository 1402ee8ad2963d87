"""Lengths of time as Go writes them: `5m0s`, `1h30m`, `500ms`."""

from __future__ import annotations

from functools import lru_cache

from seatrial.model import lazy_re

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = lazy_re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|us|µs|ns|h|m|s)")
_WHOLE = lazy_re.compile(rf"(?:{_PART.pattern})+")


def written(seconds: float) -> str:
    """Whole seconds as Go writes them: `59m30s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"


@lru_cache(maxsize=256)
def seconds_in(text: str) -> float | None:
    """None where this is no length of time."""
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
