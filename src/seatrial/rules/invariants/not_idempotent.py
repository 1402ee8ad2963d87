"""A step changes something although the same input is applied again, and no other finding explains why.

## What happens
`helm upgrade`, a sync, `pulumi up` or `kubectl apply` with the same source and the same values should change nothing:
the cluster already is what the source says. A step that changes something all the same does so every time: pods
restart, passwords rotate, and GitOps engines that compare see a difference forever. The usual causes are random values,
the time or the revision number in a template, a template that depends on what is in the cluster, and two writers of one
field. A rule that knows the cause reports it under its own name. This finding is what remains.

The engine's own writes count, as far as they change what people write: spec, data, labels, annotations. Its bookkeeping
(Helm's release records, status, managed fields) does not, and neither do hooks, Jobs and Pods, which run again by
design.

## Example
```yaml
kind: Deployment
spec:
  template:
    metadata:
      annotations:
        rolled-at: {{ now | quote }}    # every upgrade restarts the pods
```

## Instead
Render the same text for the same values. To restart pods when their configuration changes, use a checksum of that
configuration. Generate a secret outside of the chart, or read the existing one back with `lookup`.

## Fix safety
There is no automatic fix: the cause is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.evidence.breaches import Breach, Breaches, traced, unexplained
from seatrial.evidence.repeats import RepeatedWrite, changes
from seatrial.evidence.secret_data import is_password, secret_data
from seatrial.evidence.users import live_at, running_users
from seatrial.model.finding import Damage, Finding, Invariant, Reviewed
from seatrial.model.release import Case
from seatrial.model.resource import Path, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.breaches import breach_finding, fields_sentence, names
from seatrial.phrases.objects import confirm_twice

SAME_INPUT = "same input"
LEAVE_OUT = (
    "Leave the field out of {0}, at the place above: {1} writes it, and each of the two overwrites the other. An empty "
    "string is a value too."
)
VERBS = {"created": "creates", "deleted": "deletes", "deleting": "deletes"}
TEMPLATE: Path = ("spec", "template")


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    yield from map(_finding, unexplained(trial, _breaches))


def _breaches(rehearsal: Rehearsal, case: Case) -> Iterator[Breach]:
    for change in changes(rehearsal, case):
        chain = tuple(traced(rehearsal, change.events[-1]))
        path = change.fields[0] if change.fields else ("metadata", "name")
        yield Breach(change.moment, change.object, _damage(change), SAME_INPUT, chain, _why(change), path, lasts=True)


def _damage(change: RepeatedWrite) -> Damage:
    """A password that changes locks out whatever runs with the old one."""
    if change.object.kind != "Secret" or not change.fields:
        return "nuisance"
    data = secret_data(change.after)
    changed = {str(path[-1]) for path in change.fields if path[0] == "data"}
    rotated = {key for key in changed if is_password(key, data.get(key, ""))}
    live = live_at(change.moment.rehearsal, change.events[0].index)
    return "outage" if rotated and running_users(live, change.object, rotated) else "nuisance"


def _why(change: RepeatedWrite) -> str:
    said = fields_sentence(change.object, change.fields)
    restarts = any(path[: len(TEMPLATE)] == TEMPLATE for path in change.fields)
    return f"{said} Its pods restart." if restarts and change.object.kind != "CronJob" else said


def _finding(group: Breaches) -> Finding:
    again = f"{group.first.moment.act} with the same input"
    finding = breach_finding(
        INVARIANT,
        group,
        f"{again} {_verb(group)} {names(group.objects)}",
        confirm=confirm_twice(group.first.object, "{.metadata.resourceVersion}", again),
    )
    writer = _other_writer(group.first)
    return replace(finding, way_out=(LEAVE_OUT.format(finding.objects[0], writer),)) if writer else finding


def _other_writer(breach: Breach) -> str:
    """Who wrote the field last before the step, if it was not the engine: the two overwrite each other."""
    rehearsal = breach.moment.rehearsal
    for event in reversed(rehearsal.timeline[: breach.events[0].index]):
        if event.object == breach.object and dig(event.before, *breach.path) != dig(event.after, *breach.path):
            return "" if event.actor in rehearsal.actors else event.actor
    return ""


def _verb(group: Breaches) -> str:
    """What is done to all of them; `changes` if it is not the same."""
    did = {VERBS.get(breach.events[0].effect, "changes") for breach in group.all}
    return did.pop() if len(did) == 1 else "changes"


INVARIANT = Invariant("ST005", "not-idempotent", check)
