"""A PVC that is bound only for its first pod moves into the wave of what uses it."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.graph import users_of
from seatrial.helm.argocd_hooks import WAVE
from seatrial.model.resource import Ref, annotations_of


def propose(problem: Problem) -> Iterator[Proposal]:
    claims = [ref for ref in problem.finding.objects if ref.kind == "PersistentVolumeClaim"]
    changes = [change for ref in claims if (change := _moved(problem, ref)) is not None]
    if not changes:
        return
    more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
    yield Proposal(f"move {claims[0]}{more} into the wave of its first consumer", joined(*changes))


def _moved(problem: Problem, ref: Ref) -> Edits | ByHand | None:
    claim = problem.newest(ref)
    users = users_of(problem.release_of(claim), ref) if claim else []
    if claim is None or not users:
        return None
    waves = [str(annotations_of(edge.user.body).get(WAVE, "0")) for edge in users]
    numbers = [int(wave) for wave in waves if wave.lstrip("+-").isdigit()]
    return annotated(claim, {WAVE: str(min(numbers, default=0))})


FIXER = Fixer(("pvc-wffc-wave-deadlock",), propose)
