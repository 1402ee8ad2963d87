"""Figures of speed and size. Prints, never asserts; not part of the package."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

Clock = Callable[[Callable[[], object]], float]


class Figure(Struct, frozen=True):
    """One line of the table."""

    what: str
    value: str
    ratio: str = ""


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def processor_seconds(work: Callable[[], object]) -> float:
    """How long the work keeps one processor busy: what else the machine does is not counted."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def best(work: Callable[[], object], times: int) -> float:
    """The quickest of several runs: the one that the machine's other work disturbed least."""
    return min(seconds(work) for _ in range(times))


def rate(what: str, count: int, work: Callable[[int], object], clock: Clock = processor_seconds) -> Figure:
    """How many of something fit into a second."""

    def all_of_them() -> None:
        for number in range(count):
            work(number)

    return Figure(what, f"{count / clock(all_of_them):,.0f} /s")
