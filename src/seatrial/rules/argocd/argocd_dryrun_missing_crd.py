"""A custom resource whose CRD comes from elsewhere makes the whole sync fail before its first wave.

## What happens
Before Argo CD applies anything it looks up the kind of every object of the Application, in all phases and waves. If the
cluster does not serve one of them, and the Application does not contain its CRD, the sync is not valid: nothing is
applied, not even wave -10. Sync waves do not help. Automated sync retries five times within some minutes, then gives up
on this commit; when the CRD is created later, nothing happens until the next commit or a manual sync.

A CRD in the same Application is enough, in any wave: Argo CD applies it before the first object of its kind. A CRD that
a Job, an operator or another Application creates is not.

## Example
```yaml
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor            # its CRD is in another Application
metadata:
  name: shop
```

## Instead
Sync the Application with the CRD first, and wait for it. Or annotate the object with `argocd.argoproj.io/sync-options:
SkipDryRunOnMissingResource=true` and put it into a wave after what it depends on: then the sync starts, and fails only
if the kind is still missing in that wave; with a high retry limit it succeeds in the end.

## Fix safety
The option also hides a misspelled kind until its wave.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.app_order import apps_out_of_turn
from seatrial.evidence.argocd.syncs import look_at_operation
from seatrial.evidence.argocd.unserved import Unknown, definition_of, generator_of, unknown_kinds
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pinned import installed_separately, is_assumed
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import named, named_is
from seatrial.phrases.pinned import is_installed_separately


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    elsewhere = apps_out_of_turn(rehearsal, case)
    for unknown in unknown_kinds(rehearsal, case):
        reported = unknown.operation.app in elsewhere or generator_of(case, unknown) is not None
        if not unknown.in_its_wave and not reported:
            yield _finding(rehearsal, case, unknown)


def _finding(rehearsal: Rehearsal, case: Case, unknown: Unknown) -> Finding:
    operation, definition = unknown.operation, definition_of(case, unknown)
    moment = Moment(rehearsal, case, unknown.step)
    refs = [resource.ref for resource in unknown.resources]
    there = all(is_assumed(moment, ref) for ref in refs)
    separate = [installed_separately(moment, ref) for ref in refs]
    lacking = "a version that its CRD does not serve" if there else "a kind whose CRD does not exist yet"
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        certainty="likely" if all(separate) else "will",
        message=f"the sync of {operation.app} fails before its first wave: {named_is(refs)} of {lacking}",
        details=(
            *dict.fromkeys(is_installed_separately(pin) for pin in separate if pin),
            f'Argo CD reports: "{operation.message}"',
            _origin(case, definition) if definition else "",
            f"Nothing was applied: {named(task.object for task in operation.tasks)}. Kinds are looked up before the "
            "first wave, so waves do not help; SkipDryRunOnMissingResource=true on the object does.",
        ),
        places=[
            *(resource.place("kind") for resource in unknown.resources),
            *([definition.place("metadata", "name")] if definition else []),
        ],
        confirm=look_at_operation(operation),
    )


def _origin(case: Case, definition: Resource) -> str:
    if brought := case.bringer(definition.ref):
        later = "runs in this sync, later" if brought.by.kind == "Job" else "is synced by itself"
        return f"{definition.ref} comes with {brought.source}, which {later}."
    return f"{definition.ref} is in {definition.file}, which another sync applies."


RULE = Rule("ST809", "argocd-dryrun-missing-crd", check)
