"""Sentences about how a step ends with a Job whose container fails, never ends or hides a failure."""

from __future__ import annotations

from typing import Literal

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.hooks.runs import event_of
from seatrial.evidence.moment import Moment
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Operation
from seatrial.phrases.hooks import ends

End = Literal["fails", "goes on", "completes"]
PHASES: dict[str, End] = {"Running": "goes on", "Pending": "goes on", "Succeeded": "completes"}


def end_of(moment: Moment, pod: Ref) -> End:
    """How a pod ended in a step, or stood before it was deleted; a restarted one has failed."""
    seen = (e.after or e.before for e in moment.events() if e.object == pod and e.effect != "said")
    body = next(iter(reversed([found for found in seen if found is not None])), None)
    restarts = any(c.get("restartCount") for c in dig(body, "status", "containerStatuses") or ())
    return PHASES.get(str(dig(body, "status", "phase")), "fails") if not restarts else "fails"


def operation_on(moment: Moment, ref: Ref) -> Operation | None:
    """The Argo CD operation that has this object."""
    operations = moment.ended.operations
    return next((o for o in operations if any(task.object == ref for task in o.tasks)), None)


def brings_down(moment: Moment, owner: Resource) -> str:
    """`helm install fails: hook Job/default/setup`; the object alone if the step succeeds."""
    ref, operation = owner.ref, operation_on(moment, owner.ref)
    if is_argocd(moment.rehearsal):
        if operation is None or operation.phase == "Succeeded":
            return str(ref)
        return f"the sync of {operation.app} {'never ends' if operation.phase == 'Running' else 'fails'}: {ref}"
    event = event_of(moment, owner)
    if event and moment.ended.outcome != "ok":
        return f"{ends(moment, ref)}: hook {ref}"
    return str(ref)
