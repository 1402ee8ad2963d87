"""`seatrial graph`: which objects need which, what the release does not contain, and cycles."""

from __future__ import annotations

from typing import Annotated, Literal

from seatrial.cli.flags import DEFAULT_OUTPUT, NO_FLAGS, OUTPUT, OutputFlags, ReleaseFlags, flag, options, positional

Format = Literal["tree", "dot", "mermaid", "json"]


def graph(
    *inputs: Annotated[str, positional()],
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[Format, flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "tree",
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Show the objects that a release needs, and which of them it does not contain.

    Each object is followed by the objects it needs, with the stage at which a missing one matters: admit, schedule,
    start, ready or serve. A dependency that is only inferred from text, such as a Service name in an environment
    variable, is marked as a guess.

    Exit codes: 0 no cycle, 1 a dependency cycle, 2 the input could not be read, 3 nothing to show.

    Parameters
    ----------
    output
        Format of the graph.
    """
    from seatrial.cli import terminal

    asked = options("graph", inputs, release)
    with terminal.progress_line(display) as progress:
        from seatrial.graph.cycles import cycles
        from seatrial.graph.drawing import drawn
        from seatrial.graph.linking import graph_of
        from seatrial.plan.plans import newest_releases
        from seatrial.sources.places import place_of

        progress(f"read {' '.join(inputs)}")
        found = graph_of(newest_releases(asked))
    from seatrial.report.page import harmless

    terminal.write(
        "".join(f"{harmless(line)}\n" for text in drawn(found, output, place_of) for line in text.splitlines() or [""])
    )
    return 1 if cycles(found) else 0
