"""Ten thousand objects from two thousand owners, under watch: time and memory, and what doubling them costs."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from bench import Figure, processor_seconds
from bench.objects import ask, claim, deployment, namespace, pod_with, storage_class
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.cluster.watch import Watch, encoded

OWNERS = 2_000
REPLICAS = 3
"""Each owner is a Deployment with a ReplicaSet and three pods: five objects."""
NAMESPACES = 20
CLAIMS = 1_000
"""Each with a volume and a pod, all in one namespace."""
WATCHED = (("apps", "deployments"), ("apps", "replicasets"), ("", "pods"))


class Measured(msgspec.Struct, frozen=True):
    objects: int
    seconds: float
    megabytes: float
    received: int


def figures() -> Iterator[Figure]:
    once, twice = _measured(OWNERS), _measured(2 * OWNERS)
    yield Figure(f"{once.objects:,} objects from {OWNERS:,} owners", f"{once.seconds:.2f} s")
    yield Figure("  peak memory of the process", f"{once.megabytes:.0f} MB")
    yield Figure("  watch events received", f"{once.received:,}")
    yield Figure(
        f"{twice.objects:,} objects", f"{twice.seconds:.2f} s", f"{twice.seconds / once.seconds:.2f} x the time"
    )
    yield Figure(
        "  peak memory of the process", f"{twice.megabytes:.0f} MB", f"{twice.megabytes / once.megabytes:.2f} x"
    )
    few, many = (processor_seconds(partial(_claims, count)) for count in (CLAIMS, 2 * CLAIMS))
    yield Figure(f"{CLAIMS:,} claims, volumes and pods in one namespace", f"{few:.2f} s")
    yield Figure(f"{2 * CLAIMS:,} of them", f"{many:.2f} s", f"{many / few:.2f} x the time")


def _measured(owners: int) -> Measured:
    """Measure in a process of its own: peak memory never goes down."""
    command = [sys.executable, "-m", "bench.scale", str(owners)]
    return msgspec.json.decode(subprocess.run(command, check=True, capture_output=True).stdout, type=Measured)


def measure(owners: int) -> Measured:
    cluster = Cluster()
    watches = list(_open_watches(cluster))
    received = 0

    def everything() -> None:
        nonlocal received
        for number in range(NAMESPACES):
            ask(cluster, "create", "namespaces", "", body=namespace(f"team-{number}"))
        for number in range(owners):
            home = f"team-{number % NAMESPACES}"
            ask(cluster, "create", "deployments", home, body=deployment(f"web-{number}", REPLICAS))
            received += sum(map(_read, watches))

    took = processor_seconds(everything)
    made = sum(cluster.store.count(kind) for kind in (("apps", "Deployment"), ("apps", "ReplicaSet"), ("", "Pod")))
    return Measured(made, took, _peak_megabytes(), received)


def _claims(count: int) -> None:
    cluster = Cluster()
    ask(cluster, "create", "storageclasses", "", body=storage_class())
    for number in range(count):
        ask(cluster, "create", "persistentvolumeclaims", "default", body=claim(f"data-{number}"))
        ask(cluster, "create", "pods", "default", body=pod_with(f"data-{number}"))


def _open_watches(cluster: Cluster) -> Iterator[Watch]:
    """One watch of each kind everywhere, and one in each namespace, as informers have them."""
    for group, plural in WATCHED:
        for home in ("", *(f"team-{number}" for number in range(NAMESPACES))):
            yield cluster.watch(Request("watch", group, "v1", plural, home), initial_events=True, bookmarks=True)


def _read(watch: Watch) -> int:
    """Take what a client would be sent, at the price of encoding it."""
    count = 0
    while watch.events:
        encoded(watch.events.popleft())
        count += 1
    return count


def _peak_megabytes() -> float:
    """The most memory this process ever had. Linux counts the process that started it into `ru_maxrss`."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measure(int(sys.argv[1]))))
