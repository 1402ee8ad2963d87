"""`seatrial compare-live`: rehearse a step from what a cluster has, and show where the cluster differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from seatrial.cli.cluster import CURRENT, ClusterFlags, connect
from seatrial.cli.flags import DEFAULT_OUTPUT, NO_FLAGS, OUTPUT, OutputFlags, ReleaseFlags, flag, options, positional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.evidence.moment import Moment
    from seatrial.live.client import Client
    from seatrial.live.comparing import LiveDifference
    from seatrial.model.options import CheckOptions
    from seatrial.model.resource import Body, Ref
    from seatrial.model.snapshot import Snapshot


def compare_live(
    *inputs: Annotated[str, positional()],
    report: Annotated[str, flag("--output", "-o", group=OUTPUT, value="FILE")] = "",
    cluster: ClusterFlags = CURRENT,
    release: ReleaseFlags = NO_FLAGS,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Rehearse a step from the state of a cluster, and show where the real result differs.

    The step is the last one of a trial file, or the deployment of an input: an upgrade if Helm has deployed it. It
    starts from the cluster as it is now, or from --assume SNAPSHOT, taken before the real deployment. What differs
    afterwards is drift of the cluster, or a fault of seatrial: please report it with the file of -o.

    Exit codes: 0 no difference, 1 there are some, or something may not be read, 2 it failed.

    Parameters
    ----------
    report
        Write differences, snapshot and rehearsal to one file, without values of Secrets.
    """
    from seatrial.cli import outputs, permissions, terminal
    from seatrial.report.page import harmless

    asked = options("compare-live", inputs[:1], release)
    with connect(cluster, release.namespace) as client, terminal.progress_line(display) as progress:
        start = _start(client, asked, progress)
        progress("rehearse the step")
        moment = rehearsed(start)
        progress("read the cluster")
        found = compared(client, moment)
        denials = client.denials
    for difference in found:
        terminal.write(f"{difference.about:9}  {harmless(str(difference))}\n")
    ended = moment.ended
    outcome = f"{ended.act} {'succeeds' if ended.outcome == 'ok' else ended.outcome} in the rehearsal"
    terminal.write(f"{outcome}; {len(found) or 'no'} difference{'' if len(found) == 1 else 's'} to the cluster\n")
    if report:
        outputs.write_file(report, _file(found, moment, start), f"-o {report}: cannot write the report")
    terminal.write(permissions.page(denials))
    return 1 if found or denials else 0


def _start(client: Client, asked: CheckOptions, progress: Any) -> CheckOptions:
    """The options with the snapshot to start from: the one that is given, or the cluster now."""
    from msgspec.structs import replace

    from seatrial.cli.snapshot import taken
    from seatrial.plan.prerequisites.found import with_snapshot

    here = with_snapshot(replace(asked, namespace=asked.namespace or client.namespace))
    return here if here.snapshot is not None else replace(here, snapshot=taken(client, [here], progress))


def rehearsed(start: CheckOptions) -> Moment:
    """The last step of a trial, or the first one of an input, on a fast cluster."""
    from msgspec.structs import replace

    from seatrial.evidence.moment import Moment
    from seatrial.plan.plans import plans
    from seatrial.play.rehearse import rehearse
    from seatrial.sources import TRIAL, kind_of

    plan = next(iter(plans(start)))
    step = slice(-1, None) if kind_of(start.inputs[0]) == TRIAL else slice(0, 1)
    one = replace(plan, steps=plan.steps[step], case=replace(plan.case, releases=plan.case.releases[step]))
    return Moment(rehearse(one, "eager"), one.case, 0)


def compared(client: Client, moment: Moment) -> tuple[LiveDifference, ...]:
    """The differences, without values of Secrets."""
    from seatrial.live import comparing
    from seatrial.model.masking import mask_of

    live = {ref: body for ref in comparing.compared(moment) for body in _read(client, ref)}
    found = tuple(comparing.compare(moment, live, _status(client, moment)))
    masked: tuple[LiveDifference, ...] = mask_of([(moment.rehearsal, moment.case)]).whole(found)
    return masked


def _read(client: Client, ref: Ref) -> list[Body | None]:
    """An object as it is, or None if it is absent; nothing if it may not be read."""
    from seatrial.live import secrets
    from seatrial.live.transport import RefusedRequest

    kind = client.served().find(ref.group, ref.kind)
    if kind is None:
        return [None]
    try:
        if (kind.group, kind.kind) == ("", "Secret"):
            return [secrets.secret(client, kind, ref.namespace, ref.name)]
        return [client.get(kind, ref.namespace, ref.name)]
    except RefusedRequest as refused:
        if refused.code == 403:
            return []
        raise


def _status(client: Client, moment: Moment) -> str:
    """The status of the newest revision in Helm's records; empty where that is not known."""
    from seatrial.live import releases

    ended = moment.ended
    if moment.engine.name != "helm" or not ended.release:
        return ""
    stored = releases.newest(releases.stored(client, ended.namespace, ended.release))
    if not stored and releases.are_hidden(client, ended.namespace):
        return ""
    return stored[-1].status if stored else "not deployed"


def _file(found: Sequence[LiveDifference], moment: Moment, start: CheckOptions) -> str:
    import json

    import msgspec

    from seatrial import __version__
    from seatrial.play import stored

    snapshot: Snapshot | None = start.snapshot
    data = {
        "seatrial": __version__,
        "differences": msgspec.to_builtins(found),
        "snapshot": msgspec.to_builtins(snapshot),
        "rehearsal": json.loads(stored.write(moment.rehearsal, moment.case)),
    }
    return json.dumps(data, indent=1) + "\n"
