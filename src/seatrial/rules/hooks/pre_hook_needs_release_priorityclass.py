"""A pre-install or pre-upgrade hook uses a PriorityClass of the same release, which does not exist yet.

## What happens
PriorityClass is first in Helm's order of kinds, but that order applies to regular resources only, and Helm creates
those after all pre-install hooks. The API server rejects the hook's pod with `no PriorityClass with name X was found`,
the Job stays without a pod, and Helm waits until `--timeout`. An upgrade that adds the PriorityClass together with the
hook that uses it fails the same way.

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
      priorityClassName: app-critical      # a regular resource of the same chart
```

## Instead
Remove `priorityClassName` from the hook, or use a PriorityClass that always exists (`system-cluster-critical`) or that
the platform installs. A PriorityClass is cluster-scoped and is better kept out of an application's release.

## Fix safety
A Job that runs with the default priority may be preempted. Installed objects do not change.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.too_early import too_early


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    return too_early(RULE, rehearsal, case, kinds=("PriorityClass",))


RULE = Rule("ST206", "pre-hook-needs-release-priorityclass", check)
