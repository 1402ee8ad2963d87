"""A hook or an object of an early wave needs an object that Argo CD applies only in a later phase or wave.

## What happens
Argo CD runs all `PreSync` hooks before it applies any regular resource, and each wave before the next. Helm's
`pre-install` and `pre-upgrade` hooks are `PreSync`. A Job among them that uses a ServiceAccount, Secret or ConfigMap of
the app does not find it on a new cluster: its pods are not created, or do not start. Such a Job has not failed, so the
operation stays `Running` forever; with `activeDeadlineSeconds` it fails, and each retry fails the same way.

If an earlier sync left the object, it works, with the values of the last revision: the problem shows up when the
cluster is rebuilt. The same holds between waves: a lower number runs first, whatever the kinds are. A Secret that an
operator creates from an `ExternalSecret` comes no earlier than the ExternalSecret.

Namespaces and CRDs are the exception: Argo CD applies those before the first object that needs them.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    argocd.argoproj.io/hook: PreSync
spec:
  template:
    spec:
      serviceAccountName: app        # a regular resource: applied in the Sync phase
```

## Instead
Make the Job a `Sync` hook with a wave between what it needs and what needs it; or add a copy of what it needs, under
its own name and only for the Job, to the same phase with a lower wave.

## Fix safety
A hook that moves from PreSync to Sync still runs in every sync. Objects that become hooks are recreated every time: do
not do that to objects that the app uses."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence import producers
from seatrial.evidence.argocd.blocked import (
    Blocked,
    blocked,
    comes_in,
    ends_in_words,
    evidence_of,
    never_run,
    order_of,
    says_of_it,
)
from seatrial.evidence.argocd.syncs import in_words, look_at_operation
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import how, says


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in blocked(rehearsal, case, "later"):
        yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    moment = Moment(rehearsal, case, one.step)
    first, task = one.brought[0], one.waited[0]
    brings = case.written(one.step, first.task.object)
    links = producers.chain(moment, first.need.object)
    others = ", ".join(f"{other.need.object}, {comes_in(other)}" for other in one.brought[1:])
    return found(
        RULE,
        moment,
        objects=[task.object, first.need.object],
        damage="failed-deploy",
        message=f"{ends_in_words(one)}: {first.user.ref} {how(first.need)} {first.need.object}, which comes later",
        details=(
            f"{first.user.ref} is in {in_words(task)}; {first.need.object} {comes_in(first).removeprefix('which ')}.",
            says(moment, first.need.object),
            f"It lacks {producers.in_words(links)}." if not first.direct else "",
            f"It also lacks {others}." if others else "",
            says_of_it(one),
            never_run(one.operation),
        ),
        places=[
            first.user.place(*first.need.field),
            order_of(first.user),
            *([order_of(brings)] if brings else []),
        ],
        evidence=evidence_of(rehearsal, one),
        confirm=look_at_operation(one.operation),
    )


RULE = Rule("ST805", "presync-needs-sync-phase-resource", check)
