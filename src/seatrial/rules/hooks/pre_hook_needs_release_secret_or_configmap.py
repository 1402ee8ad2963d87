"""A pre-install or pre-upgrade hook uses a Secret, ConfigMap or PVC of the same release, which does not exist yet.

## What happens
Helm runs pre-install hooks before it creates any regular resource, including those of subcharts: the Secret of a
bundled database comes as late as the chart's own. The hook's pod is created but does not start
(`CreateContainerConfigError`, or it waits for a volume). The Job neither completes nor fails, and Helm waits until
`--timeout`. A PVC that the hook mounts is late in the same way: the pod is never scheduled.

Helm's order of kinds (ConfigMaps before Jobs) does not help: it applies to regular resources only. Upgrades find the
objects of the previous revision and work.

Secrets that the chart only references (`existingSecret`) are not reported here. They are assumed to exist and are
listed as prerequisites.

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
            - secretRef: {name: app-db}      # a regular resource of the same chart
```

## Instead
Give the hook its own copy: a Secret with another name that is a hook for the same events with a lower weight. If the
hook needs a database of the same release, a copy does not help: use a regular Job that waits for the database, or a
post-install hook.

Do not turn the shared object into a hook: that upgrade deletes it, and so does every later one.

## Fix safety
A copy under another name does not affect installed objects. With `--wait`, a post-install hook never runs if the pods
need it to become ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.too_early import too_early


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    return too_early(RULE, rehearsal, case, kinds=KINDS)


KINDS = ("Secret", "ConfigMap", "PersistentVolumeClaim")
RULE = Rule("ST205", "pre-hook-needs-release-secret-or-configmap", check)
