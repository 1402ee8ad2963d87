"""Charts that are checked side by side, as far as their results are not known yet. What ends its process runs alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

from seatrial.fleet.checked import Checked, Needed, Progress, checked
from seatrial.fleet.workers import workers
from seatrial.model.options import CheckOptions


def side_by_side(
    tasks: Sequence[CheckOptions], found: Sequence[Checked | None], needed: Needed, progress: Progress
) -> Iterator[Checked]:
    """The results in the order of the tasks. A process for each core: Helm and Python both use a whole one."""
    with workers(min(found.count(None), os.cpu_count() or 1)) as pool:
        running: list[Checked | Future[Checked]] = [
            one or pool.submit(checked, task, needed) for task, one in zip(tasks, found, strict=True)
        ]
        for number, (task, one) in enumerate(zip(tasks, running, strict=True), 1):
            progress(f"{number} of {len(tasks)}: {task.inputs[0]}")
            try:
                yield one if isinstance(one, Checked) else one.result()
            except BrokenProcessPool:
                yield _alone(task, needed)


def _alone(task: CheckOptions, needed: Needed) -> Checked:
    """A chart that ended its process, or that shared a pool with one."""
    with workers(1) as pool:
        try:
            return pool.submit(checked, task, needed).result()
        except BrokenProcessPool:
            name = task.inputs[0]
            return Checked(
                name, error=f"{name}: ended its process: too much memory or time; check it alone to see more"
            )
