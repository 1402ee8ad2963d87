"""`seatrial run`: play a trial once, and print its timeline."""

from __future__ import annotations

from typing import Annotated, Literal

from seatrial.cli.flags import (
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    USUAL_VOICE,
    Inputs,
    Release,
    Voice,
    flag,
    options,
)
from seatrial.model.timeline import Schedule


def run(
    *inputs: Inputs,
    release: Release = NO_FLAGS,
    schedule: Annotated[Schedule, flag("--schedule", group=REHEARSAL, value="NAME")] = "eager",
    seed: Annotated[int, flag("--seed", group=REHEARSAL, value="NUMBER")] = 0,
    output: Annotated[Literal["full", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    voice: Voice = USUAL_VOICE,
) -> int:
    """Play a trial once, and print what happened.

    Every request of the engine is told, and every move that a controller made because of it.

    Exit codes: 0 every step went well, 1 a step failed or hung, 2 it could not be done, 3 nothing to play.

    Parameters
    ----------
    schedule
        How fast the cluster is: eager, all that can be ready is so at once; lazy, nothing moves unless waited for;
        seeded, something in between.
    seed
        Which of the seeded schedules.
    output
        How the timeline is written.
    """
    from seatrial.cli import terminal

    asked = options("run", inputs, release)
    with terminal.at_work(voice) as said:
        from seatrial.check import run as play

        said(f"play {' '.join(inputs)}")
        rehearsal = play(asked, schedule, seed=seed).rehearsal
    from seatrial.report import json, timeline

    page = terminal.page(voice)
    terminal.say(json.render_run(rehearsal) if output == "json" else timeline.render(rehearsal, page))
    return 0 if all(step.outcome == "ok" for step in rehearsal.steps) else 1
