"""Figures of speed and size. Prints, never asserts; not part of the package."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One line of the table."""

    what: str
    value: str
    ratio: str = ""


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def best(work: Callable[[], object], times: int = 3) -> float:
    """The quickest of several runs: what the machine's other work disturbs least."""
    return min(seconds(work) for _ in range(times))


def rate(what: str, count: int, work: Callable[[int], object]) -> Figure:
    """How many of something fit into a second."""

    def all_of_them() -> None:
        for number in range(count):
            work(number)

    return Figure(what, f"{count / seconds(all_of_them):,.0f} /s")
