"""An object never becomes healthy, so later waves or dependent Kustomizations are never applied.

## What happens
Argo CD applies one wave at a time, and starts the next when everything in the previous one is healthy. There is no
timeout. A Service of type LoadBalancer that gets no address, an Ingress whose controller publishes none, a StatefulSet
or a Job whose pods cannot start: the object stays `Progressing`, the operation stays `Running`, and it looks like a
slow start. A Deployment becomes `Degraded` after its `progressDeadlineSeconds` (10 minutes by default), and the sync
fails. A fix that is pushed while the operation is `Running` is not applied: terminate the operation first.

Argo CD does not wait for the last wave. The same object does no harm there, so the problem appears when you add a
later wave or a PostSync hook.

With Flux the cause is `wait: true` (or `healthChecks`) and `dependsOn`. A Kustomization with `wait` is Ready only when
all its objects are; after its `timeout` it reports `health check failed` and retries. Everything that depends on it
reports `dependency ... is not ready` and is not applied. While it waits it also ignores a new revision, unless
kustomize-controller has the feature gate `CancelHealthCheckOnNewRevision`. A HelmRelease waits for its objects unless
it sets `disableWait`, and blocks the HelmReleases that depend on it in the same way.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cache
  annotations:
    argocd.argoproj.io/sync-wave: "-1"     # everything else is in wave 0
spec:
  paused: true                             # Suspended, which is not healthy
```

## Instead
Put an object that may never be ready into the last wave or into its own Application. With Flux, put it into a
Kustomization that nothing depends on, or replace `wait: true` by `healthChecks` for the objects that matter. A custom
health check that reports everything as healthy also ends the wait, but hides the next real failure.

## Fix safety
Changing the wave does not affect existing objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence import producers
from seatrial.evidence.absences import lacks_absent
from seatrial.evidence.argocd.app_order import apps_out_of_turn
from seatrial.evidence.argocd.blocked import (
    NO_TIMEOUT,
    Blocked,
    blocked,
    ends_in_words,
    evidence_of,
    never_run,
    order_of,
)
from seatrial.evidence.argocd.syncs import in_words, look_at_operation
from seatrial.evidence.argocd.unmeant import creates_again, is_unmeant
from seatrial.evidence.flux.reconciliations import flux_says, interval_of, is_flux
from seatrial.evidence.flux.waits import TimedOutWait, is_made_by_operator, lacked, timed_out_waits
from seatrial.evidence.hooks.refused_commands import refused_commands
from seatrial.evidence.hooks.script_faults import script_faults
from seatrial.evidence.moment import Moment, found
from seatrial.graph import needs_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal, SyncTask
from seatrial.phrases.outcome import first_named

NAMES_MAX = 4


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for timed_out in timed_out_waits(rehearsal, case) if is_flux(rehearsal) else ():
        if _has_no_other_rule(rehearsal, case, timed_out):
            yield _of_flux(rehearsal, case, timed_out)
    elsewhere = apps_out_of_turn(rehearsal, case)
    brought = {resource.ref for resource in case.all_resources()}
    # Other rules report a Job that cannot complete because of its script or missing permissions.
    by_themselves = {refused.owner.ref for refused in refused_commands(rehearsal, case)}
    by_themselves |= {fault.owner.ref for fault in script_faults(rehearsal, case)}
    for one in blocked(rehearsal, case, "never"):
        if all(task.object in by_themselves or _runs_again(rehearsal, case, one, task) for task in one.waited):
            continue
        # An object that another Application has is a matter of order, which cross-release-order reports.
        if brought & set(rehearsal.steps[one.step].lacking) or one.operation.app in elsewhere:
            continue
        if not all(lacks_absent(rehearsal, case, one.step, task.object) for task in one.waited):
            yield _finding(rehearsal, case, one)


def _runs_again(rehearsal: Rehearsal, case: Case, one: Blocked, task: SyncTask) -> bool:
    """Whether argocd-install-only-hook-runs-every-sync reports it: it creates what its first run created."""
    hook = case.written(one.step, task.object)
    events = rehearsal.of_step(one.step)
    return hook is not None and is_unmeant(hook, again=True) and any(creates_again(e, hook.ref) for e in events)


def _finding(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    operation = one.operation
    resources = [case.written(one.step, task.object) for task in one.waited]
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[task.object for task in one.waited],
        damage="failed-deploy",
        message=f"{ends_in_words(one)}: {in_words(one.waited[0])} {_stays(one)}",
        details=(
            *(f"It lacks {producers.in_words(links)}." for links in _origins(rehearsal, case, one)),
            f'Argo CD reports: "{operation.message}"',
            "" if operation.phase == "Failed" else NO_TIMEOUT,
            never_run(operation),
        ),
        places=[order_of(r) for r in resources if r is not None],
        evidence=evidence_of(rehearsal, one),
        confirm=look_at_operation(operation),
    )


def _has_no_other_rule(rehearsal: Rehearsal, case: Case, one: TimedOutWait) -> bool:
    """Whether no rule about charts or operators reports the cause."""
    lacking = [ref for ref, _ in lacked(rehearsal, case, one)]
    said = _pods_say(rehearsal, one)
    if one.reconciled.acts and (not one.behind or lacking or said):
        return False
    if any(map(_is_explained, said)) or all(lacks_absent(rehearsal, case, one.step, ref) for ref in one.waited):
        return False
    return not any(is_made_by_operator(case, ref) for ref in lacking)


def _is_explained(event: Event) -> bool:
    """Whether another rule reports the cause: a volume, a webhook, a quota, Pod Security, a ServiceAccount."""
    refusal = event.refusal
    if event.held_by or (refusal and (refusal.call or refusal.by in ("quota", "pod-security"))):
        return True
    return any(ref.kind == "ServiceAccount" for ref in event.missing)


def _pods_say(rehearsal: Rehearsal, one: TimedOutWait) -> list[Event]:
    events = (e for e in rehearsal.of_step(one.step) if e.effect == "said" and e.object.kind in ("Pod", "ReplicaSet"))
    return [event for event in events if any(event.object.name.startswith(ref.name) for ref in one.waited)]


def _of_flux(rehearsal: Rehearsal, case: Case, one: TimedOutWait) -> Finding:
    ref = one.own.ref
    names = ", ".join(str(resource.ref) for resource, _ in one.behind)
    done = "installed" if one.reconciled.acts else "applied"
    states = ", ".join(f"{waited} is {status}" for waited, status in zip(one.waited, one.statuses, strict=True))
    written = [case.written(one.step, waited) for waited in one.waited]
    kind = ref.kind.lower()
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[ref, *one.waited],
        damage="failed-deploy",
        message=f"{ref} never becomes Ready: {states}",
        details=(
            f"Never {done}, because of dependsOn: {names}." if one.behind else "",
            flux_says(one.reconciled),
            *(
                f"It lacks {lacking}, which {f'is in {holder}' if holder else 'nothing in the trial creates'}."
                for lacking, holder in lacked(rehearsal, case, one)
            ),
            f"For {names} Flux reports: \"dependency '{ref.namespace}/{ref.name}' is not ready\"" if one.behind else "",
            "" if one.reconciled.acts else f"Flux retries after {interval_of(one.own)}, and fails the same way.",
        ),
        places=[
            *(resource.place("metadata", "name") for resource in written if resource),
            *(resource.place("spec", "dependsOn", index) for resource, index in one.behind),
        ],
        evidence=[e for e in rehearsal.of_step(one.step) if e.object == ref and e.message == one.reconciled.message][
            :1
        ],
        confirm=f"flux get {kind}s {ref.name} -n {ref.namespace}",
    )


def _origins(rehearsal: Rehearsal, case: Case, one: Blocked) -> Iterator[list[producers.ProducerLink]]:
    """What it lacks, with the chain of producers; each missing object once."""
    reported: set[Ref] = set()
    for ref in rehearsal.steps[one.step].lacking:
        links = producers.chain(Moment(rehearsal, case, one.step), ref)
        if ref not in reported and _is_needed(case, one, ref):
            reported.update(link.missing for link in links)
            yield links


def _is_needed(case: Case, one: Blocked, ref: Ref) -> bool:
    users = (case.written(one.step, task.object) for task in one.waited)
    return any(need.object == ref for user in users if user for need in needs_of(user))


def _stays(one: Blocked) -> str:
    if one.operation.phase == "Running":
        return f"waits for {first_named(task.object for task in one.waited)}"
    return f"is not healthy, because of {', '.join(str(task.object) for task in one.waited[:NAMES_MAX])}"


RULE = Rule("ST801", "wave-blocked-by-never-healthy", check)
