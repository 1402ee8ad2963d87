"""A hook that runs before the release reads a Secret or ConfigMap of the release, which is not there yet.

## What happens
Helm runs pre-install hooks before it makes any plain object of the release, those of subcharts included: the Secret of
a bundled database is as late as the chart's own. The hook's pod is made and does not start
(`CreateContainerConfigError`, or it waits for a volume), the Job neither succeeds nor fails, and Helm waits until
`--timeout`. A claim that the hook mounts is late in the same way: its pod is never scheduled.

That ConfigMaps come before Jobs in Helm's order of kinds does not help: it orders plain objects among themselves.
Upgrades read what the release before has left, and work.

Not told are Secrets that the chart only names (`existingSecret`): they are assumed to be there, and listed.

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
      containers:
        - name: migrate
          envFrom:
            - secretRef: {name: app-db}      # a plain object of the same chart
```

## Instead
Give the hook a copy of its own: a Secret with another name, a hook of the same events with a lower weight. Where the
hook needs a database that the same release brings, no copy helps: make it a plain Job that waits for the database, or a
post-install hook.

Do not turn the shared object into a hook: the upgrade that does so deletes it, and so does every one after.

## Fix safety
A copy under another name touches nothing that is installed. A post-install hook never runs under `--wait` as long as
the pods need what it does.
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
    kinds=("Secret", "ConfigMap", "PersistentVolumeClaim"),
    instead="Give the hook a copy of its own under another name, as a hook of the same events with a lower weight. To "
    "make the shared object a hook is no way out: the upgrade that does so leaves it deleted.",
)
RULE = Rule("ST205", "pre-hook-needs-release-secret-or-configmap", check)
