"""`seatrial serve`: the embedded API on loopback, for kubectl, helm or any other client."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.flags import OUTPUT, Heading, OutputFlags, Texts, flag
from seatrial.model.timeline import Schedule

if TYPE_CHECKING:
    from seatrial.cluster.server.http import ApiServer

CLUSTER = Heading("Cluster", 1)
POLL_SECONDS = 0.1
"""How often the timeline is checked for new events."""
CALM_SECONDS = 0.25
WAIT_SECONDS = 300.0
"""How much time passes at most while a client waits."""
PORT_MAX = 65535
EVENTS_MAX = 5_000
"""How many events are kept at least; older ones would fill the memory of a server that is there for days."""
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def serve(
    *,
    kubeconfig: Annotated[str, flag("--kubeconfig", group=CLUSTER, value="FILE")] = "",
    port: Annotated[int, flag("--port", group=CLUSTER, value="NUMBER")] = 0,
    kube_version: Annotated[str, flag("--kube-version", group=CLUSTER, value="VERSION")] = "",
    schedule: Annotated[Schedule, flag("--schedule", group=CLUSTER, value="NAME")] = "eager",
    assume: Annotated[Texts, flag("--assume", group=CLUSTER, value="FILE")] = (),
    verbose: Annotated[bool, flag("--verbose", "-v", group=OUTPUT)] = False,
) -> int:
    """Serve a Kubernetes API in memory to kubectl, helm or any other client.

    Listens on 127.0.0.1 only, for clients that know the token in the kubeconfig or in the URL. Ctrl-C stops it and
    discards all objects.

    Parameters
    ----------
    kubeconfig
        Write a kubeconfig for clients to this file, and delete the file on exit.
    port
        Port on 127.0.0.1 (default: a free one).
    kube_version
        Kubernetes version of the cluster (default: 1.34).
    schedule
        Speed of the cluster: eager (objects become ready at once), ordinary (pods, volumes and operators only when a
        client waits), lazy (only what a client waits for) or seeded (in a random order).
    assume
        Manifests of objects that exist from the start. Repeatable.
    verbose
        Write every change by clients and controllers to standard error.
    """
    from seatrial.cli import kubeconfigfile

    with (
        _stop_signals() as stopped,
        _server(kube_version, schedule, port, assume) as server,
        kubeconfigfile.written(kubeconfig, server.kubeconfig()),
    ):
        seen = server.cluster.recorder.count  # Before the greeting: a client may act as soon as it has read that.
        _greet(server, kubeconfig)
        while not stopped.wait(POLL_SECONDS):
            _pass_time(server)
            seen = _write_events(server, seen) if verbose else seen
            with server.cluster.lock:
                server.cluster.recorder.forget(EVENTS_MAX)
    return 0


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that is set on Ctrl-C, SIGTERM or a closed terminal."""
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in STOP_SIGNALS}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _server(kube_version: str, schedule: Schedule, port: int, assume: Texts) -> Iterator[ApiServer]:
    from seatrial.cluster.cluster import Cluster
    from seatrial.cluster.server.guard import new_guard
    from seatrial.cluster.server.http import ApiServer
    from seatrial.model.errors import CannotContinue
    from seatrial.plan.plans import minor_of
    from seatrial.play.prerequisites import assume as put

    if not 0 <= port <= PORT_MAX:
        raise CannotContinue(f"--port {port}: not a port number; use 0 to {PORT_MAX}")
    cluster = Cluster(minor_of(kube_version), schedule, explains=True)
    if assume:
        from seatrial.sources.manifests.reading import read_manifests

        put(cluster, (resource.body for path in assume for resource in read_manifests(path, "default").resources))
    try:
        server = ApiServer(cluster, port=port, guard=new_guard())
    except OSError as why:
        raise CannotContinue(f"serve on port {port}: {why.strerror or why}") from None
    with server:
        yield server


def _greet(server: ApiServer, kubeconfig: str) -> None:
    from seatrial.cli import terminal

    reach = f"--kubeconfig {kubeconfig}" if kubeconfig else f"--server {server.url}"
    helm = f"--kubeconfig {kubeconfig}" if kubeconfig else f"--kube-apiserver {server.url}"
    address = server.url.removesuffix(server.guard.path if server.guard else "")
    terminal.write(
        f"Serving the Kubernetes {server.cluster.kube_version} API (in memory) at {address}. Ctrl-C stops it.\n"
        f"  kubectl {reach} get namespaces\n"
        f"  helm {helm} install demo ./chart\n"
    )


def _pass_time(server: ApiServer) -> None:
    """While a client only waits, the clock goes on: scripts wake up, and Jobs meet their deadlines."""
    if server.quiet_seconds() > CALM_SECONDS and server.waited_for():
        server.cluster.pass_time(WAIT_SECONDS)


def _write_events(server: ApiServer, seen: int) -> int:
    """Write the events after the first `seen`; return how many there were so far."""
    from seatrial.cli import terminal
    from seatrial.report.timeline import render_events

    with server.cluster.lock:
        count = server.cluster.recorder.count
        if count == seen:
            return seen
        new = server.cluster.timeline()[seen - count :]
    sys.stderr.write(render_events(new, terminal.page(OutputFlags())))
    sys.stderr.flush()
    return count
