"""`seatrial verify`: after a deployment, what should be there against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from seatrial.cli.cluster import CURRENT, LIVE, ClusterFlags
from seatrial.cli.flags import DEFAULT_OUTPUT, NO_FLAGS, OUTPUT, OutputFlags, ReleaseFlags, flag, options, positional

if TYPE_CHECKING:
    from seatrial.live.client import Client
    from seatrial.live.seen import Seen
    from seatrial.live.verifying import Checked, VerifyView
    from seatrial.model.release import Release
    from seatrial.model.resource import Body

READ_SECONDS_MAX = 120.0
JSON_VERSION = 1


def verify(
    *inputs: Annotated[str, positional()],
    before: Annotated[str, flag("--before", group=LIVE, value="FILE")] = "",
    uninstalled: Annotated[bool, flag("--uninstalled", group=LIVE)] = False,
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[Literal["full", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    cluster: ClusterFlags = CURRENT,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Verify a deployment: compare the input with what is in the cluster.

    Every object exists and is usable; Secrets that operators create have the keys that are used; nothing was written
    before what it needs existed; objects that were there before were not replaced; nothing of earlier revisions is
    left; Helm's record is there and its hooks succeeded. Changes nothing.

      seatrial snapshot ./chart -n shop -o before.json
      helm upgrade shop ./chart -n shop
      seatrial verify ./chart -n shop --release-name shop --before before.json

    Exit codes: 0 everything is as it should be, 1 something is not, or may not be read, 2 the cluster or the input
    cannot be read.

    Parameters
    ----------
    before
        Objects before the deployment (of seatrial snapshot, or output of kubectl get -o yaml): those of the input must
        have kept their uids.
    uninstalled
        The input was removed: report what is left of it.
    output
        full is for people, json for programs.
    """
    from seatrial.cli import permissions, terminal
    from seatrial.cli.cluster import connect

    asked = options("verify", inputs, release)
    with connect(cluster, asked.namespace) as client:
        from msgspec.structs import replace

        from seatrial.live.fetching import Fetching
        from seatrial.live.seen import Seen
        from seatrial.live.verifying import verify as verified
        from seatrial.plan.plans import newest_releases

        asked = replace(asked, namespace=client.namespace, api_versions=(*asked.api_versions, *_custom_kinds(client)))
        with terminal.progress_line(display) as progress:
            progress(f"read {' '.join(inputs)}")
            releases = newest_releases(asked)
            progress("read the cluster")
            with Fetching(client, Seen(), READ_SECONDS_MAX, by_name=False) as fetching:
                view = replace(_view(client, releases, fetching.seen, before), uninstalled=uninstalled)
                fetching.fetch(lambda _: verified(view))
                results = verified(view)
        denials = client.denials
    page = _json(results) if output == "json" else _page(results, quiet=display.quiet) + permissions.page(denials)
    terminal.write(page)
    return 0 if all(one.passed for one in results) else 1


def _custom_kinds(client: Client) -> list[str]:
    """What a chart may ask of `.Capabilities.APIVersions`, beside the kinds of Kubernetes itself."""
    from seatrial.kinds.tables.catalogue import CATALOGUE

    kinds = (kind for kind in client.served().kinds if (kind.group, kind.kind) not in CATALOGUE)
    return [f"{kind.api_version}/{kind.kind}" for kind in kinds]


def _view(client: Client, releases: Sequence[Release], seen: Seen, before: str) -> VerifyView:
    from msgspec.structs import replace

    from seatrial.graph.linking import graph_of
    from seatrial.live.manifests import placed
    from seatrial.live.verifying import VerifyView, uids_of

    found = tuple(replace(one, resources=tuple(placed(one.resources, client.served()))) for one in releases)
    refs = [resource.ref for one in found for resource in (*one.resources, *one.crds)]
    return VerifyView(found, graph_of(found), seen, uids_of(_bodies(before), refs) if before else None)


def _bodies(path: str) -> list[Body]:
    """The objects of a snapshot, or of what kubectl printed."""
    from seatrial.sources.manifests.reading import read_manifests
    from seatrial.sources.snapshots import is_snapshot, read_snapshot

    if is_snapshot(path):
        return list(read_snapshot(path).objects)
    return [resource.body for resource in read_manifests(path).resources]


def _page(results: Sequence[Checked], *, quiet: bool) -> str:
    from seatrial.report.page import harmless

    lines = []
    for one in results:
        shown = [problem for problem in one.problems if not (quiet and problem.is_note)]
        if shown or not quiet:
            lines.append(f"{one.state:<7}  {one.name:<10} {one.skipped or one.about}")
        lines += [f"    {'note: ' if problem.is_note else ''}{problem.says}" for problem in shown]
    return "".join(f"{harmless(line)}\n" for line in lines)


def _json(results: Sequence[Checked]) -> str:
    import msgspec

    document = {"version": JSON_VERSION, "checks": results}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
