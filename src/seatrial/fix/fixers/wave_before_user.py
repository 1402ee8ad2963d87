"""What an object of an earlier wave needs comes before it: in a lower wave, or the user in a later one."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal
from seatrial.helm import hooks
from seatrial.helm.argocd_hooks import HOOK, WAVE
from seatrial.model.release import Resource
from seatrial.model.resource import annotations_of


def propose(problem: Problem) -> Iterator[Proposal]:
    user, needed = (problem.newest(ref) for ref in (*problem.finding.objects, None)[:2] if ref)
    if user is None or needed is None or not all(map(_is_synced, (user, needed))):
        return
    first, then = _wave(user), _wave(needed)
    if first is None or then is None or then < first:
        return
    yield Proposal(
        f'give {needed.ref} the wave "{first - 1}", before {first} of {user.ref}',
        annotated(needed, {WAVE: str(first - 1)}, after=(WAVE,)),
    )
    yield Proposal(
        f'give {user.ref} the wave "{then + 1}", after {then} of {needed.ref}',
        annotated(user, {WAVE: str(then + 1)}, after=(WAVE,)),
        why_unsafe="what waits for it waits longer",
    )


def _is_synced(resource: Resource) -> bool:
    """Whether it is applied in the Sync phase, where waves decide."""
    return not hooks.is_hook(resource.body) and annotations_of(resource.body).get(HOOK, "Sync") == "Sync"


def _wave(resource: Resource) -> int | None:
    written = str(annotations_of(resource.body).get(WAVE, "0"))
    return int(written) if written.lstrip("+-").isdigit() else None


FIXER = Fixer(("presync-needs-sync-phase-resource",), propose)
