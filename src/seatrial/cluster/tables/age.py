"""How long ago, as kubectl shows it. Is told what time it is."""

from __future__ import annotations

from datetime import datetime

UNKNOWN = "<unknown>"


def since(moment: object, now: str) -> str:
    """From a time of an object to now; what is no time is unknown."""
    then = parsed(moment)
    return UNKNOWN if then is None else between(then, datetime.fromisoformat(now))


def parsed(moment: object) -> datetime | None:
    if not isinstance(moment, str) or not moment:
        return None
    try:
        return datetime.fromisoformat(moment)
    except ValueError:
        return None


def between(start: datetime, end: datetime) -> str:
    """As `HumanDuration` in apimachinery's `util/duration`: two units where the larger one is small."""
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
