"""`seatrial check`: rehearse everything, report, and judge by exit code."""

from __future__ import annotations

from typing import Annotated

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
from seatrial.report import Output


def check(
    *inputs: Inputs,
    release: Release = NO_FLAGS,
    output: Annotated[Output, flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    fail_on: Annotated[str, flag("--fail-on", group=OUTPUT, value="WHAT")] = "",
    exit_zero: Annotated[bool, flag("--exit-zero", group=OUTPUT)] = False,
    compare: Annotated[str, flag("--compare", group=REHEARSAL, value="OLD")] = "",
    voice: Voice = USUAL_VOICE,
) -> int:
    """Rehearse a release, and say what breaks or destroys something.

    Without --from: install, the same again, uninstall; or what the engine does in their place, such as up, up and
    destroy. With --from OLD: install OLD, upgrade to the input, upgrade again, roll back, uninstall, install again; a
    release that is deployed already is not installed first. Each once with a fast cluster and once with a slow one. A
    chart's ci/*-values.yaml are rehearsed too.

    Exit codes: 0 nothing to report, 1 findings, 2 it could not be done, 3 nothing to check.

    Parameters
    ----------
    output
        How findings are written.
    fail_on
        Exit with 1 from here on: a certainty (will, may), a damage (data-loss, outage, failed-deploy, nuisance), or
        both as may:outage (default: will:failed-deploy).
    exit_zero
        Exit with 0 whatever is found.
    compare
        Rehearse OLD (of the input's kind, or git:REF) by the same trial on a cluster of its own, and say which findings
        and which dependencies go, come and stay.
    """
    from msgspec.structs import replace

    from seatrial.cli import terminal, threshold

    limit = threshold.parse(fail_on)
    asked = replace(options("check", inputs, release), compare=compare)
    with terminal.at_work(voice) as said:
        from seatrial.check import check as rehearse_all

        result = rehearse_all(asked, said)
    from seatrial.report import render

    terminal.say(render(output, result, terminal.page(voice)))
    return 0 if exit_zero else int(threshold.reached(result, limit))
