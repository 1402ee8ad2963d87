"""A hook's pod has the labels that a Service selects, so the Service sends requests to it.

## What happens
A Service sends requests to every pod whose labels match its selector, regardless of who created the pod. If a chart
gives its migration Job the same labels as its app (`selectorLabels` in both), the Job's pod becomes an endpoint of the
Service. The pod has no readiness probe and is ready as soon as it runs, but nothing in it listens, so every request it
gets is refused. With one replica of the app that is every second request while the Job runs.

The app's own pods stay healthy, and afterwards the Job is gone, so this looks like a rollout or network problem. A
Deployment does not adopt the pod, because a Job owns it. A PodDisruptionBudget with the same selector counts it.

A named target port is resolved in each pod. If the hook's pod has no port of that name, it gets no requests and is not
reported. Nor is it reported if a readiness probe or a container port of the same number suggests that the hook serves
requests.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations: {helm.sh/hook: pre-upgrade}
spec:
  template:
    metadata:
      labels: {app: app}      # the selector of the app's Service
```

## Instead
Give hook pods their own labels: `app.kubernetes.io/component: migration` there and `component: server` in Deployment
and Service, or another `app.kubernetes.io/name`.

## Fix safety
Nothing else uses the labels of a hook's pod. Do not change the selector of the Deployment instead: it is immutable.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.hooks.runs import acted_on, event_of, is_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import backs, behind, state, workload_ref
from seatrial.helm import argocd_hooks
from seatrial.kinds.core.conditions import is_true
from seatrial.kinds.network.endpoints import ports_of
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal

RUN = ("Job", "Pod")
LIVE = ("upgrade", "rollback")
"""Steps during which the app is in use."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    findings: dict[tuple[Ref, ...], Finding] = {}
    for moment in sorted(moments(rehearsal, case), key=lambda moment: not _is_live(moment)):
        release = acted_on(case, moment.index)
        created = {e.object for e in moment.events() if e.actor in rehearsal.actors and e.effect == "created"}
        for hook in release.resources if release else ():
            if hook.ref.kind in RUN and hook.ref in created and _ran(moment, hook):
                for finding in _of_hook(moment, hook):
                    findings.setdefault(finding.objects, finding)
    yield from findings.values()


def _is_live(moment: Moment) -> bool:
    """Whether the app is in use during the step."""
    return moment.ended.action in LIVE or (moment.ended.action == "sync" and moment.index > 0)


def _ran(moment: Moment, hook: Resource) -> bool:
    if is_argocd(moment.rehearsal):
        return argocd_hooks.is_hook(hook.body) and moment.ended.action == "sync"
    return bool(event_of(moment, hook))


def _of_hook(moment: Moment, hook: Resource) -> Iterator[Finding]:
    """One finding for each Service that has the hook's ready pod as an endpoint."""
    ready = next((event for event in moment.events() if _is_ready_pod(event, hook.ref)), None)
    if ready is None or ready.after is None:
        return
    world = state(moment.rehearsal, ready)
    for ref, service in world.items():
        is_service = ref.kind == "Service" and ref.namespace == hook.ref.namespace
        if is_service and backs(ready.after, service) and _gets_requests(service, ready.after):
            others = [workload for workload in behind(world, ref) if workload_ref(workload) != hook.ref]
            if others:
                yield _finding(moment, hook, ref, ready, others[0])


def _is_ready_pod(event: Event, hook: Ref) -> bool:
    pod = event.after
    return event.object.kind == "Pod" and pod is not None and is_true(pod, "Ready") and is_of(event.object, pod, hook)


def _gets_requests(service: Body, pod: Body) -> bool:
    """Whether requests go to the pod, and nothing suggests that it serves them."""
    numbers = {number for _, number, _ in ports_of(service, pod)}
    containers = [container for _, container in containers_of(pod.get("spec") or {})]
    listens = {port.get("containerPort") for container in containers for port in listed(container, "ports")}
    probed = any(container.get("readinessProbe") for container in containers)
    return bool(numbers) and not numbers & listens and not probed


def _finding(moment: Moment, hook: Resource, service: Ref, ready: Event, workload: Body) -> Finding:
    written, live = moment.case.written(moment.index, service), _is_live(moment)
    damage: Damage = "outage" if live else "nuisance"
    selector = dig(state(moment.rehearsal, ready)[service], "spec", "selector") or {}
    replicas = int(dig(workload, "spec", "replicas") or 1)
    path = ("metadata", "labels") if hook.ref.kind == "Pod" else ("spec", "template", "metadata", "labels")
    return found(
        RULE,
        moment,
        objects=[hook.ref, service],
        damage=damage,
        message=f"while {moment.act} runs {hook.ref}, {service} sends requests that its pod refuses",
        details=(
            f"{ready.object} has the labels {_labels(selector)}, which {service} selects. It has no readiness probe, "
            "so it is ready while it runs.",
            f"Next to {replicas} pod{'s' if replicas > 1 else ''} of {workload_ref(workload)} it gets about one "
            f'request in {replicas + 1}, and refuses each of them: "connection refused", or a 502 from an ingress.',
            "" if live else "Users of the app are affected while the hook runs.",
        ),
        places=[hook.place(*path), *([written.place("spec", "selector")] if written else [])],
        evidence=[ready],
        confirm=f"kubectl get endpointslices -n {service.namespace} -l kubernetes.io/service-name={service.name} -w  "
        f"# while the hook runs",
    )


def _labels(selector: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))


RULE = Rule("ST214", "hook-pod-matches-service-selector", check)
