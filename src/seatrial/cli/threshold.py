"""`--fail-on` as the user types it. What reaches it is decided in `model.verdict`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.finding import CERTAINTIES, DAMAGES
from seatrial.model.limit import Limit

if TYPE_CHECKING:
    from seatrial.cli.flags import FindingFlags
    from seatrial.sources.configuration import Configured


def limit_of(flags: FindingFlags, configured: Configured) -> Limit:
    """The limit of the flags, else of seatrial.yaml."""
    given = configured.given
    limit = parse(flags.fail_on)
    if given.fail_on and not flags.fail_on:
        limit = parse(given.fail_on, where=f"{configured.place('fail-on')}: ")
    return replace(
        limit,
        removal=flags.fail_on_removal or given.fail_on_removal,
        unrehearsed=flags.fail_on_unrehearsed or given.fail_on_unrehearsed,
    )


def parse(text: str, *, where: str = "") -> Limit:
    """`may`, `outage`, `will:nuisance`: a certainty, a damage, or both; the other keeps its default.

    `where` is the place in a file that errors begin with.
    """
    certainty, damage = Limit().certainty, Limit().damage
    for part in text.split(":") if text else ():
        if part in CERTAINTIES:
            certainty = CERTAINTIES[CERTAINTIES.index(part)]
        elif part in DAMAGES:
            damage = DAMAGES[DAMAGES.index(part)]
        else:
            raise CannotContinue(where + _refusal(text, part))
    return Limit(certainty, damage)


def _refusal(text: str, part: str) -> str:
    known = (*CERTAINTIES, *DAMAGES)
    close = get_close_matches(part, known, n=1)
    meant = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}, or a pair such as will:outage"
    return f"--fail-on {text}: {part!r} is not a certainty or a damage level; {meant}"
