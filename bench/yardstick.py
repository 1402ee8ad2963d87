"""How fast this machine is now: a fixed loop of Python. Figures of two runs compare by it."""

from __future__ import annotations

from collections.abc import Iterator

from bench import Figure, processor_seconds, seconds

TURNS = 5_000_000
TIMES = 3


def figures() -> Iterator[Figure]:
    used = min(processor_seconds(_loop) for _ in range(TIMES))
    took = min(seconds(_loop) for _ in range(TIMES))
    yield Figure("yardstick: 5,000,000 turns of a loop", f"{used:.2f} s", f"of a processor; {took:.2f} s on the clock")


def _loop() -> int:
    total = 0
    for number in range(TURNS):
        total += number * number % 7
    return total
