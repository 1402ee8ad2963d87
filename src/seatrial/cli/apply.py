"""`seatrial apply`: manifests on a live cluster, in the order that their graph asks for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from seatrial.cli.cluster import CURRENT, LIVE, ClusterFlags, connect
from seatrial.cli.flags import DEFAULT_OUTPUT, Heading, OutputFlags, Texts, flag, positional, refuse_flags
from seatrial.model.errors import CannotContinue, NothingToCheck

if TYPE_CHECKING:
    from seatrial.live.applying import ApplyResult, ApplySettings, Planned
    from seatrial.live.client import Client
    from seatrial.live.order import ApplyOrder
    from seatrial.model.resource import Ref

APPLYING = Heading("Apply", 1)
MARKS = {"create": "+", "update": "~", "unchanged": "=", "unknown": "?", "refused": "!"}


@Parameter(name="*")
@dataclass(frozen=True)
class ApplyFlags:
    """What is applied, and how."""

    files: Annotated[Texts, flag("--filename", "-f", group=APPLYING, value="FILE")] = ()
    """Manifests: a file, a folder, or - for standard input. Repeatable."""
    kustomize: Annotated[str, flag("--kustomize", "-k", group=APPLYING, value="DIR")] = ""
    """A kustomization to build and apply."""
    dry_run: Annotated[Literal["server"] | None, flag("--dry-run", group=APPLYING, value="server")] = None
    """Show the plan, tried on the API server without storing anything, and end."""
    yes: Annotated[bool, flag("--yes", "-y", group=APPLYING)] = False
    """Apply without asking."""
    timeout: Annotated[str, flag("--timeout", group=APPLYING, value="TIME")] = "5m"
    """How long each wait may take (default: 5m)."""
    no_wait: Annotated[bool, flag("--no-wait", group=APPLYING)] = False
    """Do not wait for the objects in the end. Waits between objects remain."""
    force_conflicts: Annotated[bool, flag("--force-conflicts", group=APPLYING)] = False
    """Take over fields that other field managers own."""
    applyset: Annotated[str, flag("--applyset", group=APPLYING, value="NAME")] = ""
    """Mark the objects as members of an apply set, known by the Secret NAME in the namespace, as kubectl does."""
    prune: Annotated[bool, flag("--prune", group=APPLYING)] = False
    """Delete members of the apply set that are not in the input. Only what seatrial has applied is deleted."""
    namespace: Annotated[str, flag("--namespace", "-n", group=LIVE, value="NAME")] = ""
    """Namespace of objects that name none (default: that of the context)."""


NO_FLAGS = ApplyFlags()


def apply(
    *inputs: Annotated[str, positional("The same as -f.")],
    flags: ApplyFlags = NO_FLAGS,
    cluster: ClusterFlags = CURRENT,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Apply manifests to a cluster in the order of their dependencies, each object when what it needs is ready.

    A namespace exists, a CRD is served, a webhook answers, a Secret has been created before an object that needs it is
    applied. Shows the plan first. Stops at the first failure and reports the object at its root. A run that was stopped
    or killed can be repeated. Server-side apply, field manager seatrial.

    Exit codes: 0 everything is applied and usable, 1 something failed, 2 the cluster or the input cannot be read.
    """
    from seatrial.cli import permissions, terminal
    from seatrial.cli.wait import seconds

    refuse_flags("apply", inputs)
    given = (*inputs, *flags.files, *((flags.kustomize,) if flags.kustomize else ()))
    if not given:
        raise CannotContinue("apply needs manifests: -f FILE or -k DIR")
    if flags.prune and not flags.applyset:
        raise CannotContinue("--prune needs --applyset NAME: only what such a set has applied is deleted")
    patience = seconds(flags.timeout)
    with connect(cluster, flags.namespace) as client:
        from seatrial.live import applying

        order = _order(client, given)
        parent = applying.parent_of(flags.applyset, client.namespace) if flags.applyset else None
        if parent is not None:
            applying.check_parent(client, parent)
        options = applying.ApplySettings(patience, flags.force_conflicts, not flags.no_wait, parent, flags.prune)
        planned = applying.plan(order, client, options)
        pruned = applying.prunable(client, parent, order) if parent is not None and flags.prune else []
        terminal.write(_plan_page(planned, order, pruned, quiet=display.quiet))
        refused = any(one.state == "refused" for one in planned)
        if flags.dry_run or refused:
            terminal.write(permissions.page(client.denials))
            return 1 if refused else 0
        _confirm(client, len(planned), yes=flags.yes)
        result = _run(client, order, options, display)
        terminal.write(_result_page(result) + permissions.page(client.denials))
    return 1 if result.says else 0


def _order(client: Client, inputs: Sequence[str]) -> ApplyOrder:
    from msgspec.structs import replace

    from seatrial.graph.linking import graph_of
    from seatrial.live.manifests import placed
    from seatrial.live.order import ordered
    from seatrial.sources.manifests.reading import read_manifests

    releases = [read_manifests(path, client.namespace) for path in inputs]
    placed_ones = [replace(one, resources=tuple(placed(one.resources, client.served()))) for one in releases]
    _refuse_unnamed([resource.ref for one in placed_ones for resource in one.resources])
    order = ordered(graph_of(placed_ones))
    if not order.steps:
        raise NothingToCheck("apply: the input contains no Kubernetes object")
    return order


def _refuse_unnamed(refs: Sequence[Ref]) -> None:
    """Server-side apply needs a name, and an order needs each object once."""
    if unnamed := next((ref for ref in refs if not ref.name), None):
        raise CannotContinue(f"apply: a {unnamed.kind} has no name; server-side apply cannot use generateName")
    if twice := next((ref for ref in refs if refs.count(ref) > 1), None):
        raise CannotContinue(f"apply: {twice} is in the input twice")


def _run(client: Client, order: ApplyOrder, options: ApplySettings, display: OutputFlags) -> ApplyResult:
    from seatrial.live import applying
    from seatrial.live.fetching import Fetching
    from seatrial.live.seen import Seen
    from seatrial.report.page import harmless

    def report(line: str) -> None:
        if not display.quiet:
            sys.stderr.write(f"{harmless(line)}\n")
            sys.stderr.flush()

    with Fetching(client, Seen(), options.seconds, by_name=False) as fetching:
        return applying.run(order, fetching, options, report)


def _confirm(client: Client, count: int, *, yes: bool) -> None:
    if yes:
        return
    where = client.transport.target.context or client.transport.target.server
    if not sys.stdin.isatty():
        raise CannotContinue(
            f"apply {count} objects to {where}: there is no terminal to ask on; --yes applies without asking"
        )
    sys.stderr.write(f"Apply these {count} objects to {where}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CannotContinue("apply: nothing was changed")


def _plan_page(planned: Sequence[Planned], order: ApplyOrder, pruned: Sequence[Ref], *, quiet: bool) -> str:
    from seatrial.report.page import harmless

    lines = []
    for one in planned:
        if quiet and one.state != "refused":
            continue
        lines.append(f"{MARKS[one.state]} {one.step.ref}" + (f": {one.why}" if one.why else ""))
        lines += [f"    after {gate.object}: {gate.why}" for gate in one.step.gates]
    lines += [f"- {ref}: no longer in the input" for ref in pruned]
    lines += [
        f"note: {link.user} and {link.object} need each other; {link.object} is not waited for" for link in order.broken
    ]
    if not quiet:
        counts: list[tuple[str, int]] = [(state, sum(one.state == state for one in planned)) for state in MARKS]
        counts.append(("delete", len(pruned)))
        lines.append("Plan: " + ", ".join(f"{count} {state}" for state, count in counts if count))
    return "".join(f"{harmless(line)}\n" for line in lines)


def _result_page(result: ApplyResult) -> str:
    from seatrial.report.page import harmless

    lines = [f"pruned {ref}" for ref in result.pruned]
    lines += [f"note: {note}" for note in result.notes]
    if result.says:
        lines.append(f"failed  {result.failed}: {result.says}")
        lines += [f"  because {link.object}: {link.says}" for link in result.links[1:]]
        lines.append(f"{len(result.applied)} objects were applied; run the same command again to go on")
    else:
        lines.append(f"applied {len(result.applied)} objects")
    return "".join(f"{harmless(line)}\n" for line in lines)
