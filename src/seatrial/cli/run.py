"""`seatrial run`: rehearse a trial once and print its timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from seatrial.cli.flags import (
    DEFAULT_OUTPUT,
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    OutputFlags,
    ReleaseFlags,
    flag,
    options,
    positional,
)
from seatrial.model.mix import Pacing, parse
from seatrial.model.timeline import SCHEDULES, Schedule
from seatrial.report.page import harmless

if TYPE_CHECKING:
    from seatrial.check import One
    from seatrial.model.options import CheckOptions

SEEDED: Schedule = "seeded"


def run(
    *inputs: Annotated[str, positional()],
    release: ReleaseFlags = NO_FLAGS,
    schedule: Annotated[str, flag("--schedule", group=REHEARSAL, value="NAME|FILE")] = "ordinary",
    seed: Annotated[int, flag("--seed", group=REHEARSAL, value="NUMBER")] = 0,
    output: Annotated[Literal["full", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Rehearse a trial once and print its timeline.

    The timeline shows every request of the engine and every controller action that it causes.

    A trial file can say what must be so (`expect`): what is not is listed at the end.

    Exit codes: 0 every step is ok, or as the trial file expects, 1 it is not, 2 the trial could not be run, 3 nothing
    to run.

    Parameters
    ----------
    schedule
        Speed of the cluster: ordinary (the control plane needs milliseconds; pods, volumes and operators need seconds,
        which pass only when the engine waits), lazy (objects become ready only when the engine waits for them), eager
        (objects become ready at once) or seeded (a random order in between). Or a file with a schedule of `check
        --explore`, such as {base: eager, slow: [Deployment/default/web]}.
    seed
        Random seed of the seeded schedule.
    output
        full prints the timeline; json writes a stored rehearsal, which `seatrial check --rehearsal` reads.
    """
    from seatrial.cli import terminal

    asked, pacing = options("run", inputs, release), _pacing(schedule, seed)
    with terminal.progress_line(display) as progress:
        from seatrial.check import run as rehearse_once
        from seatrial.check import run_both, run_to_store
        from seatrial.play import stored
        from seatrial.report import agreement, timeline

        progress(f"rehearse {' '.join(inputs)}")
        if asked.compare_engines:
            one, found = run_both(asked, pacing.schedule, seed=seed, mix=pacing.mix)
            text = timeline.render(one.rehearsal, terminal.page(display))
            text += agreement.render(found, terminal.page(display))
        elif output == "json":
            one = run_to_store(asked, pacing.schedule, seed=seed, mix=pacing.mix)
            text = stored.write(one.rehearsal, one.case)
        else:
            one = rehearse_once(asked, pacing.schedule, seed=seed, mix=pacing.mix)
            text = timeline.render(one.rehearsal, terminal.page(display))
        unmet = _unmet(one, asked, progress)
    terminal.write(text)
    if output == "full" and not one.expected.is_empty:
        terminal.write("".join(f"not as expected: {harmless(words)}\n" for words in unmet) or "as expected\n")
    return 1 if unmet else 0


def _unmet(one: One, asked: CheckOptions, progress: Callable[[str], None]) -> list[str]:
    """What is not as the trial file says; every step must be ok where it says nothing."""
    from seatrial.evidence.expectations import unmet, unwanted

    found = list(unmet(one.rehearsal, one.expected))
    if one.expected.trial.no_findings:
        from seatrial.check import check

        found += unwanted(check(asked, progress).findings, one.expected.trial)
    return found


def _pacing(schedule: str, seed: int) -> Pacing:
    """A schedule by its name, or the one in a file."""
    from seatrial.sources.files import read_bytes

    names = {name: name for name in (*SCHEDULES, SEEDED)}
    if schedule in names:
        return Pacing(names[schedule], seed)
    doing = f"--schedule {schedule}: neither {', '.join(names)} nor a file that can be read"
    return Pacing("mixed", mix=parse(read_bytes(schedule, doing), f"--schedule {schedule}"))
