"""A step dies after one of its writes. Repeating it succeeds, and leaves objects missing or twice.

## What happens
`seatrial check --interrupted` kills each step after each of its writes, repeats it, and compares the objects with those
of the same step if nothing dies. A step that reports success should lead to the same objects. It does not

- where a name is generated: the process died before it could note the name, and the next run creates another object.
  Pulumi does so for every resource without `metadata.name`. Nothing deletes the first one, and if it is a Deployment, a
  CronJob or a Service of type LoadBalancer, both run.
- where what is left to do is decided by what is there: an object that the first run had deleted is not missed by the
  second.

## Example
```yaml
resources:
  web:
    type: kubernetes:apps/v1:Deployment    # no metadata.name: web-4f1f2b3c, and after an interruption also web-81d0a7e2
```

## Instead
Give names to the objects that must not be there twice. After an interrupted `pulumi up`, run `pulumi refresh` first: it
asks what became of pending creations.

## Fix safety
There is no automatic fix: which of two objects is in use is not known. The finding names those that are left over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted, InterruptionRule
from seatrial.model.release import Case
from seatrial.phrases.breaches import names
from seatrial.phrases.interruptions import happens, interruption_finding, place_in, recovers


def check(found: Sequence[Interrupted], case: Case) -> Iterator[Finding]:
    for one in found:
        yield from _of_step(one, case)


def _of_step(one: Interrupted, case: Case) -> Iterator[Finding]:
    lost, left = one.having("loses"), one.having("leaves")
    if not lost and not left:
        return
    moments = lost or left
    worst = max(moments, key=lambda moment: len(moment.lost) + len(moment.left))
    objects = worst.lost or worst.left
    yield interruption_finding(
        INTERRUPTION,
        one,
        moments,
        case,
        damage="outage" if lost else "nuisance",
        message=f"{one.act} that {happens(one)} and is repeated {'loses' if lost else 'leaves'} {names(objects[:1])}",
        details=(
            f"Worst moment: {place_in(one, worst)}. {one.act} again reports success.",
            f"Missing: {names(worst.lost)}." if worst.lost else "",
            f"Left over: {names(worst.left)}." if worst.left else "",
            recovers(worst.way_out) if worst.way_out else "",
        ),
        objects=objects,
    )


INTERRUPTION = InterruptionRule("ST953", "interrupted-step-loses-or-doubles", check)
