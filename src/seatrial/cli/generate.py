"""`seatrial generate`: what teams write by hand, one sub-command for each artefact."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App

from seatrial.cli.flags import (
    DEFAULT_OUTPUT,
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    Inputs,
    OutputFlags,
    ReleaseFlags,
    flag,
    options,
)
from seatrial.cli.help import Help

GENERATE = App(
    name="generate",
    help="Write orders, gate Jobs, health checks, notes and tests for a release.",
    help_format="plaintext",
    help_formatter=Help(),
    help_flags=("--help", "-h"),
    version_flags=(),
    sort_key=6,
)

Target = Literal["helm", "argocd", "flux", "kapp", "cli-utils", "pulumi"]


@GENERATE.command
def order(
    *inputs: Inputs,
    target: Annotated[Target, flag("--for", group=REHEARSAL, value="ENGINE")],
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[Literal["yaml", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "yaml",
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Write the annotations that make an engine deploy in order.

    The order is inferred from what the objects need. Only what the engine does not do by itself is written, each with
    its reason. The YAML is a list of patches for kustomize; in a chart, add the annotations to the templates.

    Exit codes: 0 written, 2 the input could not be read, 3 nothing in it.

    Parameters
    ----------
    target
        Engine that the order is for.
    output
        yaml, or json for programs.
    """
    from seatrial.cli import terminal

    asked = options("generate order", inputs, release)
    with terminal.progress_line(display) as progress:
        from msgspec.structs import replace

        from seatrial.generate.order import REHEARSED
        from seatrial.generate.order import order as ordered
        from seatrial.generate.order.ordering import as_json, patches
        from seatrial.plan.plans import plans

        progress(f"read {' '.join(inputs)}")
        if target in REHEARSED and not asked.engines:
            asked = replace(asked, engines=(target,))
        found, graph = ordered(target, next(plans(asked)))
    from seatrial.report.page import harmless

    text = as_json(found) if output == "json" else patches(found, graph.resources)
    terminal.write("".join(f"{harmless(line)}\n" for line in text.splitlines()))
    return 0
