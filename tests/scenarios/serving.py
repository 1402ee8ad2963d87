"""A story with the line `<!-- cluster: FILE -->`: its commands find a cluster that has the objects of this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.play.prerequisites import assume
from seatrial.sources.manifests.reading import read_manifests

CLUSTER = re.compile(r"^<!-- cluster: (?P<file>\S+) -->$", re.M)
KUBECONFIG = "kubeconfig"


def cluster_of(text: str) -> str:
    """The file with the objects of the cluster; empty if the story has none."""
    found = CLUSTER.search(text)
    return found["file"] if found else ""


@contextmanager
def served(file: str) -> Iterator[None]:
    """As `seatrial serve --assume FILE --kubeconfig kubeconfig`."""
    cluster = Cluster(schedule="eager")
    assume(cluster, (resource.body for resource in read_manifests(file, "default").resources))
    with ApiServer(cluster) as server:
        Path(KUBECONFIG).write_text(server.kubeconfig())
        yield
