"""A pre-upgrade hook uses an object that the new revision adds, so the upgrade of an existing release fails.

## What happens
The pre-upgrade hooks of the new revision run while the cluster still has the objects of the old one. A Secret,
ConfigMap or ServiceAccount that the new revision adds is created after them. A key that it adds to an existing Secret
is not there yet either. The hook's pod does not start, and Helm waits until `--timeout`.

A fresh install does not run pre-upgrade hooks. So the chart passes every test that installs it and fails for every user
who upgrades. Deploying again does not help: the failed upgrade created nothing.

## Example
```yaml
apiVersion: v1
kind: Secret
metadata:
  name: app-db              # new in this revision
---
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: pre-upgrade
spec:
  template:
    spec:
      containers:
        - name: migrate
          envFrom:
            - secretRef: {name: app-db}
```

## Instead
Give the hook its own copy under another name, as a pre-upgrade hook with a lower weight. Or use two chart versions: one
that adds the object, and the next one that uses it in the hook.

## Fix safety
A copy under another name does not affect installed objects. Turning the object itself into a hook is a release-to-hook
flip from the next revision on.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends_sentence, hook_lacks
from seatrial.phrases.outcome import after_failure
from seatrial.phrases.too_early import is_too_early, only_upgrades


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        moment = Moment(rehearsal, case, lack.step)
        if is_too_early(lack) and only_upgrades(moment, lack):
            yield _finding(moment, lack)


def _finding(moment: Moment, lack: Lack) -> Finding:
    details = (
        _order(lack),
        ends_sentence(moment, lack),
        after_failure(moment, lack.hook.ref),
        "A fresh install runs no pre-upgrade hooks and works, which hides the problem.",
    )
    return hook_lacks(RULE, moment, lack, "which this revision adds", details)


def _order(lack: Lack) -> str:
    if lack.key:
        return (
            f"{lack.need.object} exists as the previous revision wrote it, without {lack.key}. Helm updates it after "
            "the pre-upgrade hooks have completed, and waits for this hook first."
        )
    return (
        f"{lack.need.object} is not part of the previous revision. Helm creates it after the pre-upgrade hooks have "
        "completed, and waits for this hook first."
    )


RULE = Rule("ST208", "pre-upgrade-hook-needs-newly-added-resource", check)
