"""A hook that runs before the release has the ServiceAccount of the release, which is not there yet.

## What happens
Helm runs pre-install hooks before it makes any plain object of the release, and waits for each hook Job to end. The
kind order (accounts first) holds among plain objects and among hooks of the same weight and name, not between the two.
So the Job is there, its controller tries to make a pod, and the API server refuses: the account does not exist. Helm
knows nothing of that, waits until `--timeout`, and speaks of a Job in progress or of a condition.

Upgrades of a release that already has the account work. That is why such a chart runs for months on every cluster that
has it and cannot be installed on a new one.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
spec:
  template:
    spec:
      serviceAccountName: app      # a plain object of the same chart
```

## Instead
Drop `serviceAccountName` where the Job never talks to the API server. Otherwise give it an account of its own: a hook
of the same events, another name, a lower weight.

Do not turn the account of the app into a hook: every upgrade would delete it under the running pods.

## Fix safety
An account of the hook's own touches nothing that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.too_early import Told, too_early


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    return too_early(RULE, rehearsal, case, TOLD)


TOLD = Told(
    kinds=("ServiceAccount",),
    instead="Give the Job an account of its own: a hook of the same events with a lower weight and another name. To "
    "make the app's account a hook is what is often advised, and lets every upgrade delete it under the running pods.",
)
RULE = Rule("ST204", "pre-hook-needs-release-serviceaccount", check)
