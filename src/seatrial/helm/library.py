"""Whether this system can load Helm's library at all, and when. Knows nothing of Helm."""

from __future__ import annotations

from contextlib import suppress

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


def load_early() -> None:
    """Go's runtime initialises in threads of its own, meanwhile Python can import everything else.

    Only the first call waits for it. `helm.sdk` says what to do where the library cannot be loaded.
    """
    refuse_small_system()
    with suppress(ImportError, OSError):
        import helm_python  # noqa: F401
