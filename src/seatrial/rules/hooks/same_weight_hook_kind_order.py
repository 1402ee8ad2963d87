"""A hook Job runs before the hook it needs, because both have the same weight and its name sorts first.

## What happens
Helm runs the hooks of an event one at a time: by weight, then by *name*. The kind matters only between hooks of the
same name. Helm's documentation says "weight, kind, name", and many charts rely on that: a Job `app` and its
ServiceAccount `app-migrate` have the same weight, `app` sorts first, and the Job runs first. Helm waits for the Job, so
it never creates the ServiceAccount.

Hooks of the same weight do not run in parallel either. If names contain the release name, it may depend on the release
name whether the chart works. If the needed hook is left over from an earlier run, the mistake goes unnoticed until a
delete policy removes it.

## Example
```yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app-migrate
  annotations: {helm.sh/hook: pre-upgrade}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: app
  annotations: {helm.sh/hook: pre-upgrade}
spec:
  template:
    spec:
      serviceAccountName: app-migrate
```

## Instead
Give the hooks that others need a lower weight: `helm.sh/hook-weight: "-5"`, quoted.

## Fix safety
A weight changes only the order of hooks.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends, ends_sentence, evidence_of, hook_needs, look_at
from seatrial.phrases.outcome import after_failure


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.why == "same-weight":
            yield _finding(Moment(rehearsal, case, lack.step), lack)


def _finding(moment: Moment, lack: Lack) -> Finding:
    assert lack.brought is not None
    needed, weight = lack.need.object, hooks.weight_of(lack.hook.body)
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, needed],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, a hook of the same weight",
        details=(
            f"Helm runs {lack.event} hooks one at a time, by weight and then by name: both have weight {weight}, and "
            f'"{lack.hook.ref.name}" sorts before "{needed.name}". The kind matters only if the names are equal, '
            "contrary to Helm's documentation.",
            _why_now(moment.rehearsal, lack),
            ends_sentence(moment, lack),
            after_failure(moment, lack.hook.ref),
        ),
        places=[
            lack.brought.place("metadata", "annotations", hooks.WEIGHT),
            lack.hook.place(*lack.need.field),
        ],
        evidence=evidence_of(moment, lack),
        confirm=look_at(lack),
    )


def _why_now(rehearsal: Rehearsal, lack: Lack) -> str:
    """Why an earlier step succeeded: the needed object was left over from before and then deleted."""
    succeeded = [
        index
        for index, result in enumerate(rehearsal.steps[: lack.step])
        if result.outcome == "ok" and hooks.runs_at(lack.hook.body, result.action)
    ]
    if not any(e.effect == "deleted" and e.step in succeeded for e in rehearsal.of_object(lack.need.object)):
        return ""
    return (
        f"The previous {rehearsal.steps[succeeded[-1]].action} succeeded because {lack.need.object} was left over from "
        "an earlier run; its delete policy then deleted it."
    )


RULE = Rule("ST209", "same-weight-hook-kind-order", check)
