"""`seatrial snapshot`: what a real cluster has, as a file for `--assume`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.cluster import CURRENT, ClusterFlags, connect
from seatrial.cli.flags import DEFAULT_OUTPUT, NO_FLAGS, OUTPUT, OutputFlags, ReleaseFlags, flag, options, positional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seatrial.live.client import Client
    from seatrial.model.options import CheckOptions
    from seatrial.model.refusal import Denial
    from seatrial.model.release import Release
    from seatrial.model.snapshot import Snapshot


def snapshot(
    *inputs: Annotated[str, positional()],
    output: Annotated[str, flag("--output", "-o", group=OUTPUT, value="FILE")] = "-",
    cluster: ClusterFlags = CURRENT,
    release: ReleaseFlags = NO_FLAGS,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Save the state of a cluster to a file for `--assume`.

    Reads the kinds that are served, CRDs, webhooks and whether their backends are ready, namespaces, quotas, storage
    and priority classes, operators, settings of Argo CD, objects of Flux, and Helm's release history. With an input,
    also every object that it contains or needs: what is not there is then absent in a rehearsal.

    Nothing is changed. Secrets are read without their values: names of keys and types. Helm's release records are
    decoded, and values of Secrets in them replaced.

    Exit codes: 0 the snapshot was taken, 1 something may not be read (the Role that would allow it is printed), 2 it
    failed.

    Parameters
    ----------
    output
        File to write to (default: standard output).
    """
    from seatrial.cli import outputs, terminal
    from seatrial.fleet.folder import tasks
    from seatrial.sources import snapshots

    asked = list(tasks(options("snapshot", inputs, release))) if inputs else []
    with connect(cluster, release.namespace) as client, terminal.progress_line(display) as progress:
        found = taken(client, asked, progress)
    text = snapshots.write(found)
    if output == outputs.STANDARD_OUTPUT:
        terminal.write(text)
    else:
        outputs.write_file(output, text, f"-o {output}: cannot write the snapshot")
    report_denials(found.denied)
    return 1 if found.denied else 0


def taken(client: Client, asked: Iterable[CheckOptions], progress: Callable[[str], None]) -> Snapshot:
    """A snapshot with all that the inputs need, if there are any."""
    from msgspec.structs import replace

    from seatrial.live import snapshot as live
    from seatrial.plan.plans import plans

    here = [replace(one, namespace=one.namespace or client.namespace) for one in asked]

    def planned(found: Snapshot) -> Iterable[Release]:
        return (release for one in here for release in live.releases_of(plans(replace(one, snapshot=found))))

    return live.take(client, planned if here else None, progress)


def report_denials(denied: Iterable[Denial]) -> None:
    """Name each missing permission on standard error, and the Roles that would grant them."""
    from seatrial.cli import permissions

    sys.stderr.write(permissions.page(denied))
