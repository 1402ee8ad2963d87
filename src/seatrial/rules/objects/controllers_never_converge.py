"""Two controllers change the same object back and forth, forever.

## What happens
Each controller overwrites what the other one wrote, for example two HorizontalPodAutoscalers that scale one Deployment
to different sizes. No tool reports an error. The object never becomes stable: pods start and stop all the time, the
controllers and the API server are busy, and clients that wait for the object may time out.

## Example
```yaml
kind: HorizontalPodAutoscaler
metadata: {name: web-small}
spec:
  minReplicas: 1
  maxReplicas: 2
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
---
kind: HorizontalPodAutoscaler
metadata: {name: web-large}
spec:
  minReplicas: 5                     # never satisfied together with the one above
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
```

## Instead
Let only one controller write each field: delete one of the two objects, or give them different targets.

## Fix safety
There is no automatic fix: only you know which of the two you want.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Fight, Rehearsal

EVENTS_MAX = 4
NAMES_MAX = 2


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for fight in moment.ended.fights:
            if fight.object not in seen:
                seen.add(fight.object)
                yield _finding(moment, fight)


def _finding(moment: Moment, fight: Fight) -> Finding:
    written = [one for ref in (*fight.writers, fight.object) if (one := moment.case.written(moment.index, ref))]
    changes = [event for event in moment.events() if event.object == fight.object and event.effect == "changed"]
    what = "two controllers" if len(fight.writers) == 2 else "controllers"
    return found(
        RULE,
        moment,
        objects=[fight.object, *fight.writers],
        damage="outage",
        message=f"{fight.object}: {what} never converge after {moment.act}",
        details=(
            f"They act for {_listed(fight.writers)}. Each changes what the other one wrote, for as long as both exist.",
        ),
        places=[one.place() for one in written],
        evidence=changes[:EVENTS_MAX],
        confirm=f"kubectl get {fight.object.kind.lower()} {fight.object.name} --watch",
    )


def _listed(refs: tuple[Ref, ...]) -> str:
    more = f" and {len(refs) - NAMES_MAX} more" if len(refs) > NAMES_MAX else ""
    return " and ".join(map(str, refs[:NAMES_MAX])) + more


RULE = Rule("ST118", "controllers-never-converge", check)
