"""Whether this system can load Helm's library at all. Knows nothing of Helm."""

from __future__ import annotations

from seatrial.model.errors import CannotContinue

ADDRESSES_MB_MIN = 3000
"""Go reserves much more address space than it uses."""


def refuse_small_system() -> None:
    """With less address space Go's runtime ends the process without a sentence, at once or later."""
    try:
        import resource
    except ImportError:  # Windows
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= allowed < ADDRESSES_MB_MIN << 20:
        words = f"this system allows {allowed >> 20} MB of address space; {ADDRESSES_MB_MIN} are needed (ulimit -v)"
        raise CannotContinue(f"load Helm's library: {words}")
