"""The copy of an object that hooks use gets a name of its own."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_suffix
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.graph import users_of
from seatrial.helm import hooks

SUFFIX = "-hook"


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    for release in problem.releases():
        copies = [one for one in release.named(ref) if hooks.is_hook(one.body) and not problem.why_not(one.file)]
        if not copies:
            continue
        users = [edge for edge in users_of(release, ref) if hooks.is_hook(edge.user.body)]
        yield Proposal(
            f"name the copy of {ref} for hooks {ref.name}{SUFFIX}",
            joined(
                with_suffix(copies[0], ("metadata", "name"), SUFFIX),
                *(with_suffix(edge.user, edge.need.field, SUFFIX) for edge in users),
            ),
        )
        return


FIXER = Fixer(("dual-identity-hook-copy",), propose)
