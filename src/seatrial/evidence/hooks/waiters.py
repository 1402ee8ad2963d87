"""Init containers that wait for Jobs, as their commands show."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from seatrial.kinds.scripts.commands import needed
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.resource import Body, listed

WAITERS = ("job", "job-wr", "job-we")
"""The argument of the k8s-wait-for images before the name of a Job."""


def awaited_jobs(spec: Body, namespace: str) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """(Job name, path) for each Job that the init containers of a pod wait for."""
    at = ("spec", "template", "spec")
    for need in needed(spec, namespace):
        if need.access.resource == "jobs" and need.access.name and need.field[0] == "initContainers":
            yield need.access.name, (*at, *need.field)
    for place, container in containers_of(spec):
        words = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
        for before, word in pairwise(words):
            if before in WAITERS and place[0] == "initContainers":
                yield word, (*at, *place)
