"""The namespace of an object does not exist yet when Argo CD applies the object.

## What happens
Within one Application the order does not matter: Argo CD applies a Namespace before the first object in it, including
hooks, whatever their waves. But it only knows the Application's own objects. A namespace that another Application, an
operator or a Job creates is missing, and the dry run does not notice: the wave fails with `namespaces "x" not found`.
`CreateNamespace=true` creates only the destination namespace of the Application.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: dashboards
  namespace: monitoring      # created by the Application of Prometheus, which comes later
```

## Instead
Add the Namespace to the Application, sync the Application that has it first, or move the object there.

## Fix safety
A Namespace in two Applications is tracked by the one that synced last, and deleted with it: annotate it with
`argocd.argoproj.io/sync-options: Prune=false,Delete=false`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.app_order import apps_out_of_turn
from seatrial.evidence.argocd.blocked import never_run
from seatrial.evidence.argocd.syncs import in_words, operations
from seatrial.evidence.faults import missing_namespaces
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Operation, Rehearsal, SyncTask
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    elsewhere = apps_out_of_turn(rehearsal, case)
    for step, operation in operations(rehearsal):
        if operation.app in elsewhere:
            continue
        homeless: dict[Ref, list[SyncTask]] = {}
        for task in operation.tasks:
            for home in missing_namespaces(rehearsal, task.failure) if task.status == "SyncFailed" else ():
                homeless.setdefault(home, []).append(task)
        for home, tasks in homeless.items():
            if home not in reported:
                reported.add(home)
                yield _finding(Moment(rehearsal, case, step), operation, home, tasks)


def _finding(moment: Moment, operation: Operation, home: Ref, tasks: list[SyncTask]) -> Finding:
    brings = next((r for r in moment.case.all_resources() if r.ref == home), None)
    resources = [moment.case.written(moment.index, task.object) for task in tasks]
    return found(
        RULE,
        moment,
        objects=[home],
        damage="failed-deploy",
        message=f"the sync of {operation.app} fails in {in_words(tasks[0])}: {named(task.object for task in tasks)} "
        f"needs {home}, which does not exist",
        details=(
            f'The API server rejects it: "{tasks[0].message}"',
            f"It is in {brings.file}, which another sync applies." if brings else "",
            "The dry run does not check namespaces, so earlier waves were applied.",
            never_run(operation),
        ),
        places=[
            *(r.place("metadata", "namespace") for r in resources if r is not None),
            *([brings.place("metadata", "name")] if brings else []),
        ],
        evidence=[e for e in moment.events() if e.object == tasks[0].object and e.effect == "refused"],
        confirm=f"kubectl get {in_kubectl(home)}",
    )


RULE = Rule("ST808", "namespace-before-content", check)
