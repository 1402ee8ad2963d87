"""A hook or Job that runs after the rollout calls a Service of the app while pods of the old revision may still answer.

## What happens
`PostSync` starts when everything in the `Sync` phase is healthy. A Deployment is healthy as soon as enough new pods are
available; terminating pods no longer count. They run for up to
`terminationGracePeriodSeconds`, and the nodes remove them from the Service a moment later. A smoke test that runs then
may get its answer from the old version and pass; or its connection may be refused by a pod that has just stopped, and
it fails a sync that is fine.

It **may** happen: how soon old pods stop, and how soon every node knows, is a matter of seconds. With Helm a
`post-upgrade` hook is even more likely to reach old pods: without `--wait` Helm runs it as soon as the manifests are
applied. kubectl applies a Job right after the Deployment. The rule reads the Service names in the hook's command line
(for Argo CD also in its environment); a hook that retries in a loop, or waits with `kubectl rollout status`, is not
reported.

## Example
```yaml
kind: Job
metadata:
  annotations: {argocd.argoproj.io/hook: PostSync}
spec:
  template:
    spec:
      containers:
        - name: smoke
          args: [curl, -f, "http://app/health"]        # either version may answer
```

## Instead
Check the version and retry until it is the new one (`until curl -fs http://app/version | grep -qx 1.2.3; do sleep 2;
done`), with `activeDeadlineSeconds` on the Job.

## Fix safety
The hook must be given the expected version in every revision.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd, operations
from seatrial.evidence.history import GOING, restarted
from seatrial.evidence.hooks.script_faults import SPECS
from seatrial.evidence.hooks.services import asked_by, backends
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import backs
from seatrial.evidence.writers import writes_in_order
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds.network.mentions import services_in
from seatrial.kinds.scripts.commands import commands_run
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Path, Ref, dig, labels_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.model.trial import waits

PODS = ("Deployment", "StatefulSet", "DaemonSet")
GRACE_SECONDS = 30
"""The Kubernetes default."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from _after_others(rehearsal, case) if writes_in_order(rehearsal) else ()
    reported: set[tuple[Ref, Ref]] = set()
    for step, operation in operations(rehearsal):
        moment = Moment(rehearsal, case, step)
        for task in operation.tasks:
            hook = case.written(step, task.object) if task.phase == "PostSync" and task.object.kind in SPECS else None
            for service, workload in _asked(case, step, hook) if hook else ():
                old = _replaced(moment, workload.ref) if (task.object, service.ref) not in reported else None
                if hook is not None and old is not None:
                    reported.add((task.object, service.ref))
                    field = next(need.field for need in needs_of(hook) if need.object == service.ref)
                    yield _finding(moment, hook, service, workload, old, "a PostSync hook", field)


def _after_others(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """The post hooks of Helm, and the Jobs that kubectl applies with the app, that call it once."""
    reported: set[tuple[Ref, Ref]] = set()
    for moment in moments(rehearsal, case):
        release = moment.release if moment.ended.role in ("replace", "back") else None
        for job in release.resources if release else ():
            what = _runs_late(moment, job) if job.ref.kind in SPECS and not _waits_for_rollout(job) else ""
            for asked in asked_by(job, release) if release and what else ():
                once = asked.command and not asked.retried and (job.ref, asked.service.ref) not in reported
                for workload in backends(asked.service, release) if release and once else ():
                    if old := _replaced(moment, workload.ref):
                        reported.add((job.ref, asked.service.ref))
                        yield _finding(moment, job, asked.service, workload, old, what, asked.field)
                        break


def _runs_late(moment: Moment, job: Resource) -> str:
    """What runs after the objects of the app were applied: a post hook, or a Job that kubectl creates in this step."""
    made = any(e.object == job.ref and e.effect == "created" for e in moment.events())
    event = f"post-{moment.ended.action}"
    if moment.engine.name == "helm":
        return f"a {event} hook" if made and event in hooks.events_of(job.body) else ""
    return f"which {moment.act} creates" if made else ""


def _waits_for_rollout(job: Resource) -> bool:
    spec = dig(job.body, *SPECS[job.ref.kind]) or {}
    return any({"rollout", "status"} <= set(command.words) for _, command in commands_run(spec, job.ref.namespace))


def _asked(case: Case, step: int, hook: Resource) -> Iterator[tuple[Resource, Resource]]:
    """The Services of the app that a hook seems to call, with each workload behind them."""
    release = case.releases[step]
    for ref in dict.fromkeys(need.object for need in needs_of(hook) if need.object.kind == "Service"):
        service = release.find(ref) if release and not _tries_again(hook, ref) else None
        for workload in release.resources if release and service else ():
            template = dig(workload.body, "spec", "template")
            near = workload.ref.kind in PODS and workload.ref.namespace == ref.namespace
            if service is not None and near and isinstance(template, dict) and backs(template, service.body):
                yield service, workload


def _tries_again(hook: Resource, service: Ref) -> bool:
    """Whether a hook retries until the answer is right."""
    spec = dig(hook.body, *SPECS[hook.ref.kind]) or {}
    commands = [command for _, command in commands_run(spec, hook.ref.namespace)]
    whom = (service.namespace, service.name)
    asking = [c for c in commands if whom in services_in(" ".join(c.words), hook.ref.namespace)]
    return bool(asking) and all(command.retried for command in asking)


def _replaced(moment: Moment, workload: Ref) -> Event | None:
    """The deletion of a pod of the old revision in a step."""
    if not restarted(moment, workload):
        return None
    labels = labels_of(dig(moment.was(workload), "spec", "template") or {})
    stops = (e for e in moment.events() if e.object.kind == "Pod" and e.effect in GOING)
    return next((e for e in stops if labels and labels.items() <= labels_of(e.before or {}).items()), None)


def _finding(
    moment: Moment, hook: Resource, service: Resource, workload: Resource, old: Event, what: str, field: Path
) -> Finding:
    grace = dig(workload.body, "spec", "template", "spec", "terminationGracePeriodSeconds")
    made = [e for e in moment.events() if e.object == hook.ref and e.effect == "created"]
    return found(
        RULE,
        moment,
        objects=[hook.ref, service.ref],
        damage="nuisance",
        certainty="may",
        message=f"{hook.ref} calls {service.ref} while old pods of {workload.ref} may still answer",
        details=(
            f"{hook.ref} is {what}.",
            "" if _is_awaited(moment) else f"{moment.speaker} does not wait for the new pods of {workload.ref}.",
            f"{workload.ref} is healthy when its new pods are available; the old ones are only terminating by then, "
            f"and have up to {grace if isinstance(grace, int) else GRACE_SECONDS} seconds to do so.",
        ),
        places=[hook.place(*field)],
        evidence=[old, *made[-1:]],
        confirm=f"kubectl get pods -n {workload.ref.namespace} -w  # while the hook runs: pods that are Terminating",
    )


def _is_awaited(moment: Moment) -> bool:
    return is_argocd(moment.rehearsal) or waits(moment.ended.flags)


RULE = Rule("ST816", "post-hook-hits-old-replicas", check)
