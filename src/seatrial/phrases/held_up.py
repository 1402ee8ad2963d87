"""What a missing object holds up: waves of Argo CD, and what depends on a Kustomization or HelmRelease of Flux."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.absences import needs
from seatrial.evidence.argocd.blocked import blocked, ends_in_words, never_run
from seatrial.evidence.argocd.syncs import in_words
from seatrial.evidence.flux.waits import timed_out_waits
from seatrial.evidence.moment import Moment
from seatrial.model.resource import Ref


def held_up(moment: Moment, ref: Ref) -> Iterator[str]:
    """The syncs and reconciliations that never end for lack of an object, each with what is never reached."""
    for one in blocked(moment.rehearsal, moment.case, "never"):
        waited = [task for task in one.waited if needs(moment.case, one.step, task.object, ref)]
        if waited and one.step == moment.index:
            ends = ends_in_words(one)
            held = f"{in_words(waited[0])} waits for {waited[0].object}"
            yield f"{ends[0].upper()}{ends[1:]}: {held}. {never_run(one.operation)}".strip()
    for late in timed_out_waits(moment.rehearsal, moment.case):
        needing = [user for user in late.waited if needs(moment.case, late.step, user, ref)]
        if needing and late.step == moment.index:
            behind = ", ".join(str(resource.ref) for resource, _ in late.behind)
            after = f" Never applied, because of dependsOn: {behind}." if behind else ""
            yield f"{late.own.ref} never becomes Ready: it waits for {needing[0]}.{after}"
