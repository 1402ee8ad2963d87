"""The chart brings the namespace that it is installed into, which Helm needs before it and takes for someone else's.

## What happens
Helm stores the record of a release in its namespace before it makes anything else, hooks included. So the namespace
must be there first, and a chart that also lists it collides with it:

- the namespace is there: `Namespace "x" in namespace "" exists and cannot be imported into the current release: invalid
  ownership metadata`;
- it is not: `create: failed to create: namespaces "x" not found`;
- `--create-namespace` makes it: Helm 3 then stops at `namespaces "x" already exists`. Helm 4 goes on, and the namespace
  is part of the release: `helm uninstall` deletes it with everything in it, its own record first
  (`uninstallation completed with 1 error(s): uninstall: Failed to purge the release: release: not found`).

## Example
```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Release.Namespace }}
```

## Instead
Leave it out and install with `--create-namespace`. Labels that it needs, for Pod Security say, are set by whoever
owns the namespace.

## Fix safety
Taking it out of a chart that is installed makes the next upgrade delete the namespace: add `helm.sh/resource-policy:
keep` to it in a release before.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.case import Case
from seatrial.findings import Finding, Rule, found
from seatrial.resource import Ref
from seatrial.rules.aftermath import helm_says
from seatrial.rules.ownership import Conflict, conflict
from seatrial.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for step, ended in enumerate(rehearsal.steps):
        met = conflict(rehearsal, case, step)
        if met is None or met.resource.ref in seen or met.resource.ref != Ref("Namespace", "", ended.namespace):
            continue
        seen.add(met.resource.ref)
        yield _finding(rehearsal, step, met)


def _finding(rehearsal: Rehearsal, step: int, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, rehearsal.steps[step]
    return found(
        RULE,
        rehearsal,
        step,
        objects=[ref],
        damage="failed-deploy",
        message=f"the chart brings {ref}, into which it is to be deployed: helm {ended.action} refuses",
        details=(
            helm_says(ended),
            "The namespace must be there before Helm can store the record of the release, and what is there already is "
            f'someone else\'s. Were it not there: "create: failed to create: namespaces "{ref.name}" not found".',
            f'--create-namespace does not help: Helm 3 then stops at "namespaces "{ref.name}" already exists"; with '
            "Helm 4 the namespace belongs to the release, so that helm uninstall deletes all that is in it.",
        ),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made] if met.made else [],
        confirm=f"kubectl get namespace {ref.name} -o jsonpath='{{.metadata.annotations}}'",
    )


RULE = Rule("ST405", "release-namespace-inside-chart", check)
