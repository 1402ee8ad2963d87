"""A pre-install or pre-upgrade hook runs as a ServiceAccount of the same release, which does not exist yet.

## What happens
Helm runs pre-install hooks before it creates any regular resource, and waits for each hook Job to complete. Helm's
order of kinds (ServiceAccounts first) applies among regular resources, and among hooks of the same weight and name, but
not between hooks and regular resources. So the Job exists, the Job controller tries to create a pod, and the API server
rejects it because the ServiceAccount does not exist. Helm does not see that error. It waits until `--timeout` and
reports only that the Job is in progress, or that it timed out waiting for the condition.

Upgrades of a release that already has the ServiceAccount work. Such a chart runs for months on existing clusters and
cannot be installed on a new one.

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
      serviceAccountName: app      # a regular resource of the same chart
```

## Instead
Remove `serviceAccountName` if the Job never talks to the API server. Otherwise give the Job its own ServiceAccount: a
hook for the same events, with another name and a lower weight.

Do not turn the app's ServiceAccount into a hook: every upgrade would delete it while the app's pods use it.

## Fix safety
A separate ServiceAccount for the hook does not affect installed objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.too_early import too_early


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    return too_early(RULE, rehearsal, case, kinds=("ServiceAccount",))


RULE = Rule("ST204", "pre-hook-needs-release-serviceaccount", check)
