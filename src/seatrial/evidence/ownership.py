"""Helm's ownership errors: which existing object Helm refuses to adopt, and who created it."""

from __future__ import annotations

from msgspec import Struct

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment
from seatrial.helm.ownership import RELEASE_NAME, RELEASE_NAMESPACE
from seatrial.model.release import Resource
from seatrial.model.resource import Body, annotations_of
from seatrial.model.timeline import Event


class Conflict(Struct, frozen=True):
    """An object of the new release that exists and belongs to another owner."""

    resource: Resource
    live: Body
    made: Event | None
    """Its creation, if the timeline has it."""

    @property
    def owner(self) -> tuple[str, str]:
        """(name, namespace) of the release that the live object is annotated with; empty if none."""
        marks = annotations_of(self.live)
        return marks.get(RELEASE_NAME, ""), marks.get(RELEASE_NAMESPACE, "")


def conflict(moment: Moment) -> Conflict | None:
    """The object that Helm refuses to adopt in this step; Helm names only the first."""
    ended, release = moment.ended, moment.release
    named = next((fault.object for fault in faults(ended.failure, "not-owned")), None)
    resource = release.find(named) if release and named else None
    # Under Flux another HelmRelease may have created it in the same step.
    until = moment.index if ended.reconciled else moment.index - 1
    live = moment.at(until).live(resource.ref) if resource else None
    if resource is None or live is None:
        return None
    made = [e for e in moment.rehearsal.of_object(resource.ref) if e.step <= until and e.effect == "created"]
    return Conflict(resource, live, made[-1] if made else None)


def is_left_over(moment: Moment, met: Conflict) -> bool:
    """Whether the object belonged to a release that was uninstalled since."""
    if met.made is None or met.made.actor != "helm" or met.made.step < 0:
        return False
    maker = moment.rehearsal.steps[met.made.step]
    return any(
        (ended.action, ended.outcome) == ("uninstall", "ok")
        and (ended.release, ended.namespace) == (maker.release, maker.namespace)
        for ended in moment.rehearsal.steps[met.made.step + 1 : moment.index]
    )
