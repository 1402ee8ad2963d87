"""`seatrial graph`: who needs whom, what is outside, and who waits for one another."""

from __future__ import annotations

from typing import Annotated, Literal

from seatrial.cli.flags import NO_FLAGS, OUTPUT, USUAL_VOICE, Inputs, Release, Voice, flag, options

Format = Literal["tree", "dot", "mermaid", "json"]


def graph(
    *inputs: Inputs,
    release: Release = NO_FLAGS,
    output: Annotated[Format, flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "tree",
    voice: Voice = USUAL_VOICE,
) -> int:
    """Show what the objects of a release need, and which of it the release does not bring.

    Under each object stand those that it needs, with the moment at which the lack of one bites: admit, schedule, start,
    ready or serve. What is read from text alone, such as the name of a Service in a variable, is called a guess.

    Exit codes: 0 no object waits for itself, 1 some do, 2 it could not be done, 3 nothing to show.

    Parameters
    ----------
    output
        How the graph is written.
    """
    from seatrial.cli import terminal

    asked = options("graph", inputs, release)
    with terminal.at_work(voice) as said:
        from seatrial.graph.cycles import cycles
        from seatrial.graph.drawing import drawn
        from seatrial.graph.linking import graph_of
        from seatrial.plan.plans import newest_releases
        from seatrial.sources.places import place_of

        said(f"read {' '.join(inputs)}")
        found = graph_of(newest_releases(asked))
    from seatrial.report.page import harmless

    terminal.say(
        "".join(f"{harmless(line)}\n" for text in drawn(found, output, place_of) for line in text.splitlines() or [""])
    )
    return 1 if cycles(found) else 0
