"""`seatrial preflight`: is this cluster ready for this release, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from seatrial.cli.cluster import CURRENT, ClusterFlags, connect
from seatrial.cli.flags import DEFAULT_OUTPUT, NO_FLAGS, OUTPUT, OutputFlags, ReleaseFlags, flag, options, positional

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.live.point import Point, State
    from seatrial.live.preflight import Preflight
    from seatrial.report.page import Line, Role

JSON_VERSION = 1
# The worst first.
SIGNS: dict[State, tuple[str, Role]] = {
    "fails": ("fails    ", "bad"),
    "unknown": ("unknown  ", "doubt"),
    "note": ("note     ", "faint"),
    "ok": ("ok       ", "good"),
}


def preflight(
    *inputs: Annotated[str, positional()],
    output: Annotated[Literal["full", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    cluster: ClusterFlags = CURRENT,
    release: ReleaseFlags = NO_FLAGS,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Check whether a cluster is ready for a release, now.

    Prerequisites one by one, with the reason and the line that needs them. Leftovers of an earlier life: webhooks
    without a backend, objects that are being deleted, CRDs with stored versions, objects of no release or of another
    release, an unfinished Helm operation. Admission: a server-side dry run of every object. Permissions that the engine
    needs; pass --as to ask for the account of Argo CD, Flux or CI. Nothing is changed, and nothing is rehearsed: that
    does `seatrial check --live`.

    Exit codes: 0 the cluster is ready, 1 it is not, or something could not be read, 2 the check failed.

    Parameters
    ----------
    output
        full is for people, json for programs.
    """
    from msgspec.structs import replace

    from seatrial.cli import permissions, terminal
    from seatrial.cli.snapshot import taken
    from seatrial.fleet.folder import tasks
    from seatrial.live import preflight as live
    from seatrial.plan.plans import plans

    asked = list(tasks(options("preflight", inputs, release)))
    with connect(cluster, release.namespace) as client, terminal.progress_line(display) as progress:
        snapshot = taken(client, asked, progress)
        here = [replace(one, namespace=one.namespace or client.namespace, snapshot=snapshot) for one in asked]
        progress("try every object, and review permissions")
        found = live.preflight(client, snapshot, (plan for one in here for plan in plans(one)))
    if output == "json":
        terminal.write(_json(found))
        return 0 if found.is_ready and not found.unread else 1
    terminal.write(_page(found, display))
    terminal.write(permissions.page((*found.missing, *found.unread)))
    return 0 if found.is_ready and not found.unread else 1


def _page(found: Preflight, display: OutputFlags) -> str:
    from seatrial.cli import terminal
    from seatrial.report.page import Piece, line, printed

    lines: list[Line] = []
    parts = ("Prerequisites", found.prerequisites), ("Leftovers", found.leftovers), ("Admission", found.refused)
    for title, points in parts:
        shown = [point for point in points if not display.quiet or point.state not in ("ok", "note")]
        if shown:
            lines += [line(Piece(f"{title}:", "strong")), *_lines(shown)]
    denied = f"{len(found.missing)} missing" if found.missing else "the engine has all that it needs"
    lines.append(line(Piece("Permissions: ", "strong"), denied))
    lines.append(line(_verdict(found)))
    return printed(lines, terminal.page(display))


def _json(found: Preflight) -> str:
    import msgspec

    from seatrial.live.access import roles

    document = {
        "version": JSON_VERSION,
        "ready": found.is_ready and not found.unread,
        **msgspec.to_builtins(found),
        "roles": roles((*found.missing, *found.unread)),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _lines(points: Iterable[Point]) -> Iterator[Line]:
    from seatrial.report.page import Piece, harmless, line

    for point in sorted(points, key=lambda point: tuple(SIGNS).index(point.state)):
        sign, role = SIGNS[point.state]
        where = (Piece(f"  {point.place}", "place"),) if point.place else ()
        yield line("  ", Piece(sign, role), harmless(point.what), *where)
        if point.why:
            yield line(f"           {harmless(point.why)}")
        if point.command and point.state != "ok":
            yield line(Piece(f"           {harmless(point.command)}", "faint"))


def _verdict(found: Preflight) -> str:
    failing = sum(point.state == "fails" for point in found.points)
    unknown = sum(point.state == "unknown" for point in found.points)
    if found.is_ready and not found.unread:
        count = len(found.prerequisites)
        return f"The cluster is ready: {count} prerequisite{'' if count == 1 else 's'} found."
    counted = (
        (failing, "in the way"),
        (unknown, "not known"),
        (len(found.missing), "missing permissions of the engine"),
        (len(found.unread), "not allowed to be read"),
    )
    return f"The cluster is not ready: {', '.join(f'{count} {words}' for count, words in counted if count)}."
