"""Wait until targets are usable, or until a deadline: one list and one watch per kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from seatrial import kinds
from seatrial.live.fetching import Fetching
from seatrial.live.usable import Verdict, lacks
from seatrial.live.wanted import Target

NOT_LOOKED = lacks("it was not looked at yet")


class Progress(Struct, frozen=True):
    """How far one target is."""

    target: str
    verdict: Verdict
    seconds: float = 0.0
    """After how long it was usable."""


Report = Callable[[Sequence[Progress]], None]


def wait_for(targets: Sequence[Target], fetching: Fetching, report: Report = lambda _: None) -> list[Progress]:
    """Wait for all targets at once. Stops early where one can never become usable.

    A target that was usable once and is not any more (endpoints that flap) is waited for again: in the end all are
    usable at the same moment.
    """
    began = fetching.elapsed_seconds
    progress = [Progress(target.text, NOT_LOOKED) for target in targets]
    while True:
        fetching.seen.look_again()
        verdicts = [target.look(fetching.seen) for target in targets]
        fetching.start()
        kinds.known()  # Loaded while the first lists are under way, not when the object has just appeared.
        if fetching.is_settled:
            elapsed = fetching.elapsed_seconds - began
            before, progress = progress, [_next(old, new, elapsed) for old, new in zip(progress, verdicts, strict=True)]
            if progress != before:
                report(progress)
            if all(verdict.usable for verdict in verdicts) or any(verdict.final for verdict in verdicts):
                return progress
        if fetching.is_over:
            return progress
        fetching.wait()


def _next(old: Progress, new: Verdict, elapsed: float) -> Progress:
    if new == old.verdict:
        return old
    return Progress(old.target, new, elapsed if new.usable else 0.0)
