"""A hook Job runs before the hook it needs, because both have the same weight and its name comes first.

## What happens
Helm runs the hooks of an event one after the other: by weight, then by *name*. The kind decides only between hooks of
the same name. Helm's documentation says "weight, kind, name", and many charts rely on it: a Job `app` and its
account `app-migrate` have the same weight, `app` is the shorter name, and the Job is run first. Helm waits for it, so
the account is never made.

Nor do hooks of one weight run at the same time. Where names hold the release's name, whether it works may depend on how
the release is called. And where the hook it needs is left from an earlier run, the mistake is hidden until a delete
policy takes it away.

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
Give what others need a lower weight: `helm.sh/hook-weight: "-5"`, quoted.

## Fix safety
A weight changes the order of hooks and nothing else.
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
from seatrial.phrases.outcome import aftermath


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.why == "same-weight":
            yield _finding(rehearsal, case, lack)


def _finding(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    needed, weight = lack.need.object, hooks.weight_of(lack.hook.body)
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, needed],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, a hook of the same weight that "
        "comes later by name",
        details=(
            f"Helm runs hooks by weight, then by name, one at a time: both have weight {weight}, and "
            f'"{lack.hook.ref.name}" comes before "{needed.name}". The kind counts only where the names are equal, '
            "whatever Helm's documentation says.",
            _why_now(rehearsal, lack),
            ends_sentence(rehearsal, case, lack),
            aftermath(moment, lack.hook.ref),
            f"A lower weight for {needed} puts it first.",
        ),
        places=[
            lack.brought.place("metadata", "annotations", hooks.WEIGHT),
            lack.hook.place(*lack.need.field),
        ],
        evidence=evidence_of(rehearsal, case, lack),
        confirm=look_at(lack),
    )


def _why_now(rehearsal: Rehearsal, lack: Lack) -> str:
    """Where an earlier step went well, because what is needed was left from before."""
    went_well = [
        index
        for index, ended in enumerate(rehearsal.steps[: lack.step])
        if ended.outcome == "ok" and hooks.runs_at(lack.hook.body, ended.action)
    ]
    if not went_well:
        return ""
    taken = [
        event
        for event in rehearsal.timeline
        if event.object == lack.need.object and event.effect == "deleted" and event.step in went_well
    ]
    if not taken:
        return ""
    before = rehearsal.steps[went_well[-1]].action
    return (
        f"The {before} before went well, because {lack.need.object} was there from earlier; its delete policy "
        "took it away at the end of that."
    )


RULE = Rule("ST209", "same-weight-hook-kind-order", check)
