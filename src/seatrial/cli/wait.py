"""`seatrial wait`: until objects of a live cluster are usable."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.cluster import CURRENT, LIVE, ClusterFlags, connect
from seatrial.cli.flags import DEFAULT_OUTPUT, Heading, OutputFlags, Texts, flag, positional, refuse_flags
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.live.client import Client
    from seatrial.live.stuck import ChainLink
    from seatrial.live.waiting import Progress, Report
    from seatrial.live.wanted import Target

WAITING = Heading("Waiting", 1)
TARGETS = (
    "What to wait for: webhook/NAME, crd/NAME[:VERSION], secret/NAME[:KEY,KEY], image/IMAGE, imagestreamtag/NAME:TAG, "
    "pvc/NAME, release/NAME (Helm), app/NAME (Argo CD), kustomization/NAME and helmrelease/NAME (Flux), or KIND/NAME. "
    "KIND/NAMESPACE/NAME names another namespace."
)


def wait(
    *targets: Annotated[str, positional(TARGETS)],
    files: Annotated[Texts, flag("--filename", "-f", group=WAITING, value="FILE")] = (),
    timeout: Annotated[str, flag("--timeout", group=WAITING, value="TIME")] = "5m",
    namespace: Annotated[str, flag("--namespace", "-n", group=LIVE, value="NAME")] = "",
    cluster: ClusterFlags = CURRENT,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Wait until objects of a cluster are usable, or report what is missing.

    A webhook must have a Service, ready endpoints and a CA, and answer a dry run. A CRD must be Established and its
    versions in discovery. A PVC must be bound, unless its class waits for a pod. A release must be deployed and its
    objects ready. Other objects are ready as Helm 4 and Flux see it (kstatus); Jobs must complete. Changes nothing.

      seatrial wait webhook/externalsecret-validate crd/externalsecrets.external-secrets.io --timeout 5m

    Exit codes: 0 everything is usable, 1 something is not, 2 the cluster or a target cannot be found.

    Parameters
    ----------
    files
        Manifests (file, folder, kustomization or -) whose objects are waited for. Repeatable.
    timeout
        How long to wait (default: 5m).
    namespace
        Namespace of the targets (default: that of the context; argocd and flux-system for Argo CD and Flux).
    """
    from seatrial.cli import permissions, terminal

    refuse_flags("wait", targets)
    if not targets and not files:
        raise CannotContinue("wait needs a target, such as deployment/web, webhook/NAME or -f FILE")
    patience = seconds(timeout)
    with connect(cluster, namespace) as client:
        from seatrial.live.fetching import Fetching
        from seatrial.live.seen import Seen
        from seatrial.live.stuck import explained
        from seatrial.live.waiting import wait_for

        wanted = [*_named(client, targets, namespace), *_in_files(client, files)]
        with Fetching(client, Seen(), patience) as fetching, _shown(display) as report:
            progress = wait_for(wanted, fetching, report)
            roots = [explained(one.verdict.object, fetching) for one in progress]
        denials = client.denials
    terminal.write(_result(progress, roots, timeout, quiet=display.quiet) + permissions.page(denials))
    return 0 if all(one.verdict.usable for one in progress) else 1


def seconds(text: str) -> float:
    """The value of --timeout."""
    from seatrial.text.durations import seconds_in

    found = float(text) if text.isdecimal() else seconds_in(text)
    if not found:
        raise CannotContinue(f"--timeout {text}: not a length of time; write it as 30s, 5m or 1h30m")
    return found


def _named(client: Client, targets: Sequence[str], namespace: str) -> list[Target]:
    from seatrial.live.wanted import parse

    return [
        parse(text, client.namespace, lambda kind: client.served().named(kind), given=namespace) for text in targets
    ]


def _in_files(client: Client, files: Sequence[str]) -> list[Target]:
    from seatrial.live.manifests import placed
    from seatrial.live.wanted import manifest_targets
    from seatrial.sources.manifests.reading import read_manifests

    found = (resource for path in files for resource in read_manifests(path, client.namespace).resources)
    return manifest_targets((resource.ref, resource.body) for resource in placed(found, client.served()))


def _result(progress: Sequence[Progress], roots: Sequence[Sequence[ChainLink]], timeout: str, *, quiet: bool) -> str:
    from seatrial.report.page import harmless

    lines = []
    for one, links in zip(progress, roots, strict=True):
        if not one.verdict.usable:
            when = "" if one.verdict.final else f" after {timeout}"
            lines.append(f"missing  {one.target}{when}: {one.verdict.missing}")
            lines += [f"         because {link.object}: {link.says}" for link in links[1:]]
        elif not quiet:
            lines.append(f"usable   {one.target} ({one.seconds:.1f}s)")
        lines += [f"         note: {note}" for note in one.verdict.notes if not quiet]
    return "".join(f"{harmless(line)}\n" for line in lines)


@contextmanager
def _shown(display: OutputFlags) -> Iterator[Report]:
    """One table on a terminal, a line for each change elsewhere; on standard error."""
    if display.quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _table(display) as report:
            yield report
    else:
        yield _Lines().write


class _Lines:
    """State over time: what was written of each target."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}

    def write(self, progress: Sequence[Progress]) -> None:
        from seatrial.report.page import harmless

        for one in progress:
            words = one.verdict.missing or "usable"
            if self._written.get(one.target) != words:
                self._written[one.target] = words
                sys.stderr.write(harmless(f"{one.target}: {words}") + "\n")
        sys.stderr.flush()


@contextmanager
def _table(display: OutputFlags) -> Iterator[Report]:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from seatrial.cli.terminal import ink
    from seatrial.report.page import harmless, plain

    console = Console(stderr=True, no_color=ink(display.color, terminal=True) is plain)
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def report(progress: Sequence[Progress]) -> None:
            table = Table.grid(padding=(0, 2))
            for one in progress:
                state = Text("usable", "green") if one.verdict.usable else Text("waiting", "yellow")
                table.add_row(state, Text(harmless(one.target)), Text(harmless(one.verdict.missing)))
            live.update(table, refresh=True)

        yield report
