"""Ages as kubectl shows them. The current time is an argument."""

from __future__ import annotations

from datetime import datetime

UNKNOWN = "<unknown>"


def since(timestamp: object, now: str) -> str:
    """The time since a timestamp of an object; `<unknown>` if it is not a timestamp."""
    then = parsed(timestamp)
    return UNKNOWN if then is None else between(then, datetime.fromisoformat(now))


def parsed(timestamp: object) -> datetime | None:
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp)
    except ValueError:
        return None


def between(start: datetime, end: datetime) -> str:
    """As `HumanDuration` in apimachinery's `util/duration`: two units if the larger one is small."""
    seconds = int((end - start).total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, lesser: str) -> str:
    return f"{large}{unit}{small}{lesser}" if small else f"{large}{unit}"
