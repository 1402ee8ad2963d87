"""How often Python looks for garbage in a process that checks. Knows nothing of checks."""

from __future__ import annotations

import gc

THRESHOLDS = (200_000, 20, 100)


def collect_rarely() -> None:
    """Timelines are large and have no cycles: to look through them again and again takes a twentieth of a check."""
    gc.set_threshold(*THRESHOLDS)
