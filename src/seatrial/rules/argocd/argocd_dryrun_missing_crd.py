"""A custom resource whose definition comes from elsewhere stops the whole sync before its first wave.

## What happens
Before Argo CD applies anything it looks up the kind of every object of the Application, of all phases and waves at
once. If the cluster does not serve one of them, and no definition of it is among the objects, the sync is not valid:
nothing is applied, not even wave -10. Sync waves cannot help. Automated sync tries five more times within some
minutes, then gives this commit up for good; when the definition arrives later, nothing happens until the next commit
or a sync by hand.

A definition in the same Application is enough, in whatever wave: Argo CD applies it before the first object of its
kind. One that is made by a Job, by an operator or by another Application is not.

## Example
```yaml
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor            # the operator that defines it is another Application
metadata:
  name: shop
```

## Instead
Sync what brings the definition first, and wait for it. Or give the object the annotation
`argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true`, and a wave after what it depends on: then the sync
begins, and fails only if the kind is still missing when that wave comes; with a retry limit that is high enough it ends
well.

## Fix safety
The option also hides a misspelled kind until its wave is reached.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.app_order import apps_out_of_turn
from seatrial.evidence.argocd.syncs import look_at_operation
from seatrial.evidence.argocd.unserved import Unknown, definition_of, generator_of, unknown_kinds
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import named, named_is


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    elsewhere = apps_out_of_turn(rehearsal, case)
    for unknown in unknown_kinds(rehearsal, case):
        told = unknown.operation.app in elsewhere or generator_of(case, unknown) is not None
        if not unknown.in_its_wave and not told:
            yield _finding(rehearsal, case, unknown)


def _finding(rehearsal: Rehearsal, case: Case, unknown: Unknown) -> Finding:
    operation, definition = unknown.operation, definition_of(case, unknown)
    return found(
        RULE,
        Moment(rehearsal, case, unknown.step),
        objects=[resource.ref for resource in unknown.resources],
        damage="failed-deploy",
        message=f"the sync of {operation.app} fails before its first wave: "
        f"{named_is(resource.ref for resource in unknown.resources)} of a kind that nobody defines yet",
        details=(
            f'Argo CD says: "{operation.message}"',
            f"{definition.ref} comes with {definition.file}, in another sync." if definition else "",
            f"Nothing was applied: {named(task.object for task in operation.tasks)}. Kinds are looked up before the "
            "first wave, so waves do not help; SkipDryRunOnMissingResource=true on the object does.",
        ),
        places=[
            *(resource.place("kind") for resource in unknown.resources),
            *([definition.place("metadata", "name")] if definition else []),
        ],
        confirm=look_at_operation(operation),
    )


RULE = Rule("ST809", "argocd-dryrun-missing-crd", check)
