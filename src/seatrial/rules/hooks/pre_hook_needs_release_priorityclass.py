"""A hook that runs before the release asks for a PriorityClass of the release, which is not there yet.

## What happens
The PriorityClass comes first in Helm's order of kinds, and still after every pre-install hook: that order holds among
plain objects. The API server refuses the hook's pod, `no PriorityClass with name X was found`; the Job stays without
one, and Helm waits until `--timeout`. An upgrade that brings the class together with the hook that asks for it fails in
the same way.

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
      priorityClassName: app-critical      # a plain object of the same chart
```

## Instead
Leave the class out of the hook, or use one that is always there (`system-cluster-critical`), or one that the platform
brings. A PriorityClass belongs to the cluster: best it is not part of an application's release at all.

## Fix safety
A Job that runs with the default priority may be preempted. Nothing that is installed changes.
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
    kinds=("PriorityClass",),
    instead="Leave the class out of the hook, or have the platform bring it. That PriorityClass is the first of Helm's "
    "kinds does not help: the order of kinds holds among plain objects.",
)
RULE = Rule("ST206", "pre-hook-needs-release-priorityclass", check)
