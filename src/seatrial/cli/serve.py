"""`seatrial serve`: the embedded API on loopback, for kubectl, helm or any other client."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group

from seatrial.cli.flags import OUTPUT, Texts, Voice, flag
from seatrial.model.timeline import Schedule

if TYPE_CHECKING:
    from seatrial.cluster.server.http import ApiServer

CLUSTER = Group("What is served", sort_key=1)
LOOK_SECONDS = 0.1
"""How often the timeline is looked at, to tell what is new."""
PORT_MAX = 65535
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    *,
    kubeconfig: Annotated[str, flag("--kubeconfig", group=CLUSTER, value="FILE")] = "",
    port: Annotated[int, flag("--port", group=CLUSTER, value="NUMBER")] = 0,
    kube_version: Annotated[str, flag("--kube-version", group=CLUSTER, value="VERSION")] = "",
    schedule: Annotated[Schedule, flag("--schedule", group=CLUSTER, value="NAME")] = "eager",
    assume: Annotated[Texts, flag("--assume", group=CLUSTER, value="FILE")] = (),
    verbose: Annotated[bool, flag("--verbose", "-v", group=OUTPUT)] = False,
) -> int:
    """Serve the Kubernetes API in memory to kubectl, helm or any other client.

    It is heard on this machine only, and ends with Ctrl-C; what was in it is gone then.

    Parameters
    ----------
    kubeconfig
        Write a kubeconfig here for clients to use, and remove it at the end.
    port
        Port of 127.0.0.1 (default: one that is free).
    kube_version
        Kubernetes version to be.
    schedule
        How fast the cluster is: eager, all that can be ready is so at once; lazy, nothing moves unless waited for.
    assume
        Manifests of what is in the cluster from the start; may be repeated.
    verbose
        Tell on standard error what every client and controller writes.
    """
    from seatrial.cli import kubeconfigfile

    with (
        _endings() as ended,
        _server(kube_version, schedule, port, assume) as server,
        kubeconfigfile.written(kubeconfig, server.kubeconfig()),
    ):
        _greet(server, kubeconfig)
        seen = len(server.cluster.timeline())
        while not ended.wait(LOOK_SECONDS):
            seen = _tell(server, seen) if verbose else seen
    return 0


@contextmanager
def _endings() -> Iterator[threading.Event]:
    """Set when the user, the system or a closed terminal asks for the end."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in ENDINGS}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _server(kube_version: str, schedule: Schedule, port: int, assume: Texts) -> Iterator[ApiServer]:
    from seatrial.cluster.cluster import Cluster
    from seatrial.cluster.server.http import ApiServer
    from seatrial.model.errors import CannotContinue
    from seatrial.plan.plans import minor_of
    from seatrial.play.prerequisites import assume as put

    if not 0 <= port <= PORT_MAX:
        raise CannotContinue(f"--port {port}: a port is a number up to {PORT_MAX}")
    cluster = Cluster(minor_of(kube_version), schedule, explains=True)
    if assume:
        from seatrial.sources.manifests.reading import read_manifests

        put(cluster, (resource.body for path in assume for resource in read_manifests(path, "default").resources))
    try:
        server = ApiServer(cluster, port=port)
    except OSError as why:
        raise CannotContinue(f"serve on port {port}: {why.strerror or why}") from None
    with server:
        yield server


def _greet(server: ApiServer, kubeconfig: str) -> None:
    from seatrial.cli import terminal

    reach = f"--kubeconfig {kubeconfig}" if kubeconfig else f"--server {server.url}"
    helm = f"--kubeconfig {kubeconfig}" if kubeconfig else f"--kube-apiserver {server.url}"
    terminal.say(
        f"Kubernetes {server.cluster.kube_version} in memory, at {server.url} until Ctrl-C.\n"
        f"  kubectl {reach} get namespaces\n"
        f"  helm {helm} install demo ./chart\n"
    )


def _tell(server: ApiServer, seen: int) -> int:
    """Write what has happened since, and say how far that goes."""
    from seatrial.cli import terminal
    from seatrial.report.timeline import render_events

    timeline = server.cluster.timeline()
    if timeline[seen:]:
        sys.stderr.write(render_events(timeline[seen:], terminal.page(Voice())))
        sys.stderr.flush()
    return len(timeline)
