"""A step dies after one of its writes. Repeating it succeeds, but objects are missing or duplicated.

## What happens
`seatrial check --interrupted` kills each step after each of its writes, repeats it, and compares the objects with those
of the same step without a kill. A repeated step that reports success should lead to the same objects. It does not in
three cases:

- A name is generated. The process dies before it records the name, and the next run creates a second object under
  another name. Pulumi generates names for all resources without `metadata.name`. Nothing deletes the first object: two
  Deployments, CronJobs or load balancers run.
- The engine looks at the existing objects to decide what to do. It does not notice that the first run deleted one.
- `helm rollback` deletes what the last revision lists and the old one does not. When it dies, its own record is the
  last revision, which lists what the old one does: objects of the new version stay. With Helm 3 fields do as well, such
  as an argument of a container; Helm 4 writes with server-side apply, which removes them. Without a revision it is
  worse: `helm rollback shop` goes back by one, so that after one that died it deploys the new version again.

## Example
```yaml
resources:
  web:
    type: kubernetes:apps/v1:Deployment    # no metadata.name: web-4f1f2b3c, and after an interruption also web-81d0a7e2
```

## Instead
Set `metadata.name` on objects that must exist only once. After an interrupted `pulumi up`, run `pulumi refresh` first:
it asks what to do about pending creations. Pass the revision to `helm rollback`.

## Fix safety
There is no automatic fix: seatrial does not know which of two objects is in use. The finding names the surplus ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted, InterruptionRule
from seatrial.model.release import Case
from seatrial.phrases.breaches import names
from seatrial.phrases.interruptions import happens, interruption_finding, place_in, recovers

FIELDS_MAX = 3


def check(found: Sequence[Interrupted], case: Case) -> Iterator[Finding]:
    for one in found:
        yield from _of_step(one, case)


def _of_step(one: Interrupted, case: Case) -> Iterator[Finding]:
    lost, left = one.having("loses"), one.having("leaves")
    if not lost and not left:
        return
    moments = lost or left
    worst = max(moments, key=lambda moment: (len(moment.lost) + len(moment.left), len(moment.fields)))
    fields = () if worst.lost or worst.left else worst.fields
    objects = worst.lost or worst.left or tuple(dict.fromkeys(ref for ref, _ in fields))
    verb = "loses" if lost else "leaves new fields in" if fields else "leaves"
    yield interruption_finding(
        INTERRUPTION,
        one,
        moments,
        case,
        damage="outage" if lost else "nuisance",
        message=f"{one.act} that {happens(one)} and is repeated {verb} {names(objects[:1])}",
        details=(
            f"Worst moment: {place_in(one, worst)}. {one.act} again reports success.",
            f"Missing: {names(worst.lost)}." if worst.lost else "",
            f"Left over: {names(worst.left)}." if worst.left else "",
            f"Left over: {', '.join(f'{path} of {ref}' for ref, path in fields[:FIELDS_MAX])}." if fields else "",
            recovers(worst.way_out) if worst.way_out else "",
        ),
        objects=objects,
    )


INTERRUPTION = InterruptionRule("ST953", "interrupted-step-loses-or-doubles", check)
