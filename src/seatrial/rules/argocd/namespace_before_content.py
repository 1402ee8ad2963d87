"""The namespace of an object does not exist yet when the engine applies the object.

## What happens
Helm creates a Namespace of the chart before all other regular resources, but pre-install hooks come earlier: a hook in
that namespace fails with `namespaces "x" not found`. A Namespace that is a hook itself needs a lower weight than the
hooks in it. `--create-namespace` creates only the namespace of the release.

kubectl applies in file order, and files in the order of their names. It does not sort Namespaces first: what comes
before its Namespace fails, everything else is applied, and the second `kubectl apply` succeeds.

Within one Argo CD Application the order does not matter: Argo CD applies a Namespace before the first object in it,
including hooks, whatever their waves. But it only knows the Application's own objects. A namespace that another
Application, an operator or a Job creates is missing, and the dry run does not notice: the wave fails with
`namespaces "x" not found`.
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
Helm: let the hook run in the release namespace, or create the Namespace before the release. kubectl: put the Namespace
into a file that sorts first (`00-namespace.yaml`), or use a kustomization, which sorts it first. Argo CD: add the
Namespace to the Application, sync the Application that has it first, or move the object there.

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
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.writers import writes_in_order
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Operation, Rehearsal, SyncTask
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from _refused_in_order(rehearsal, case) if writes_in_order(rehearsal) else ()
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
    brought = moment.case.bringer(home)
    lacking = [task.object for task in tasks]
    resources = [moment.case.written(moment.index, ref) for ref in lacking]
    return found(
        RULE,
        moment,
        objects=[home],
        damage="failed-deploy",
        message=f"the sync of {operation.app} fails in {in_words(tasks[0])}: {first_named(lacking)} "
        f"{'lacks' if len(lacking) == 1 else 'lack'} {home}",
        details=(
            f'The API server rejects it: "{tasks[0].message}"',
            f"It is in {brings.file}, which another sync applies." if brings else "",
            f"{brought.by} creates it, in a sync of its own." if brought else "",
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


def _refused_in_order(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for event in moment.events() if moment.ended.outcome != "ok" else ():
            home = _refused_for(event, moment)
            written = case.written(moment.index, event.object)
            if home is not None and written is not None and home not in reported:
                reported.add(home)
                yield _too_early(moment, home, written, event)


def _refused_for(event: Event, moment: Moment) -> Ref | None:
    """The namespace for lack of which a request was refused; not that of the release."""
    if event.effect != "refused" or event.actor not in moment.rehearsal.actors:
        return None
    lacks = (ref for ref in event.missing if ref.kind == "Namespace" and ref.name == event.object.namespace)
    # One that was there before was deleted meanwhile: other rules report that.
    was_there = {e.object for e in moment.rehearsal.timeline[: event.index] if e.effect == "created"}
    lacks = (ref for ref in lacks if ref not in was_there)
    return next((ref for ref in lacks if not moment.ended.release or ref.name != moment.ended.namespace), None)


def _too_early(moment: Moment, home: Ref, written: Resource, refused: Event) -> Finding:
    brings = moment.release.find(home) if moment.release else None
    events = [e for e in moment.events() if e.object == home and e.effect == "created"]
    return found(
        RULE,
        moment,
        objects=[home],
        damage="failed-deploy",
        message=f"{moment.act} fails: {refused.object} needs {home}, which {'comes later' if brings else 'is absent'}",
        details=(
            f'The API server rejects it: "{refused.message}"',
            _order(moment, written, brings),
            "The next kubectl apply succeeds, so the failure looks random." if events else "",
        ),
        places=[written.place("metadata", "namespace"), *([brings.place("metadata", "name")] if brings else [])],
        evidence=[refused, *events],
        confirm=f"kubectl get {in_kubectl(home)}",
    )


def _order(moment: Moment, written: Resource, brings: Resource | None) -> str:
    if brings is None:
        return "Nothing in the release creates this namespace."
    if moment.engine.name == "kubectl":
        return "kubectl applies objects in the order of the files, and does not sort Namespaces first."
    if hooks.is_hook(brings.body):
        return f"Both are hooks. Helm runs hooks by weight, then by name: {written.ref} before {brings.ref}."
    return f"{brings.ref} is a regular resource: Helm creates it after the {_events(written)} hooks."


def _events(written: Resource) -> str:
    return " and ".join(hooks.events_of(written.body))


RULE = Rule("ST808", "namespace-before-content", check)
