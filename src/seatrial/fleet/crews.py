"""Who rehearses the trials of a fleet: processes on this machine. A trial that kills its process is tried once more,
alone, and then reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from seatrial.fleet.checked import CheckedChart, WantedResults, checked, known
from seatrial.fleet.workers import Work, workers
from seatrial.model.options import CheckOptions

Crew = Callable[[Sequence[CheckOptions]], Iterator[tuple[int, CheckedChart]]]
"""Rehearses trials in any order; yields the number of each and what became of it, every number once."""

WAITING = 2
"""Trials for each process that are handed out in advance. If a process dies, all of these are tried again."""


def here(needed: WantedResults, processes: int = 0) -> Crew:
    """Processes on this machine: by default one for each core."""

    def crew(trials: Sequence[CheckOptions]) -> Iterator[tuple[int, CheckedChart]]:
        waiting: list[int] = []
        for number, trial in enumerate(trials):
            if found := known(trial, needed):
                yield number, found
            else:
                waiting.append(number)
        work = partial(checked, needed=needed)
        for at, found in side_by_side(work, [trials[number] for number in waiting], processes):
            yield waiting[at], found

    return crew


def side_by_side(work: Work, trials: Sequence[CheckOptions], processes: int = 0) -> Iterator[tuple[int, CheckedChart]]:
    """Work on trials in processes: Helm and Python both use a whole core."""
    processes = processes or os.cpu_count() or 1
    left = list(range(len(trials)))
    while left:
        suspects = yield from _until_one_dies(work, trials, left, processes)
        for number in suspects:
            yield number, _alone(work, trials[number])


def _until_one_dies(
    work: Work, trials: Sequence[CheckOptions], left: list[int], processes: int
) -> Generator[tuple[int, CheckedChart], None, list[int]]:
    """Work on what is left, and take it off `left`. If a process dies, return the trials that may have killed it."""
    running: dict[Future[CheckedChart], int] = {}
    with workers(min(len(left), processes)) as crew:
        while left or running:
            while left and len(running) < WAITING * processes:
                number = left.pop(0)
                try:
                    running[crew.submit(work, trials[number])] = number
                except BrokenProcessPool:  # Another trial has just killed its process.
                    return sorted([*running.values(), number])
            future = crew.next_finished()
            if isinstance(future.exception(), BrokenProcessPool):
                return sorted(running.values())
            yield running.pop(future), future.result()
    return []


def _alone(work: Work, trial: CheckOptions) -> CheckedChart:
    name = trial.inputs[0]
    try:
        with workers(1) as crew:
            crew.submit(work, trial)
            return crew.next_finished().result()
    except BrokenProcessPool:
        return CheckedChart(
            name, error=f"{name}: ended its process: too much memory or time; check it alone to see more"
        )
