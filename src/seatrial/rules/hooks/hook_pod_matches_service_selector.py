"""The pod of a hook carries the labels that a Service selects, so requests are sent to it.

## What happens
A Service sends requests to every pod that carries the labels of its selector, whoever made the pod. A chart that gives
its migration Job the same labels as its app (`selectorLabels` in both) puts the Job's pod behind the Service. That pod
has no readiness probe and is ready as soon as it runs; nothing in it listens, and each request that it gets is refused.
With one replica that is every second request, for as long as the Job runs.

The app's own pods are healthy all the while, and when one looks the Job is gone: it is taken for trouble of the rollout
or of the network. A Deployment does not adopt the pod, since a Job owns it, and a PodDisruptionBudget with the same
selector counts it.

A target port that is a name is looked up in each pod; where the pod of the hook has no such port, it gets no requests,
and this is not told. Nor is it where a readiness probe or a port of the same number suggests that the hook serves.

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
      labels: {app: app}      # what the Service of the app selects
```

## Instead
Labels of its own for the pods of hooks: `app.kubernetes.io/component: migration` there, and `component: server` in
Deployment and Service; or another `app.kubernetes.io/name`.

## Fix safety
The labels of a hook's pod are nobody's but the hook's. Do not change the selector of the Deployment instead: it is
immutable.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.history import ENGINES
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
"""Acts during which the app is in use."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: dict[tuple[Ref, ...], Finding] = {}
    for moment in sorted(moments(rehearsal, case), key=lambda moment: not _is_live(moment)):
        release = acted_on(case, moment.index)
        made = {e.object for e in moment.events() if e.actor in ENGINES and e.effect == "created"}
        for hook in release.resources if release else ():
            if hook.ref.kind in RUN and hook.ref in made and _ran(moment, hook):
                for finding in _of_hook(moment, hook):
                    told.setdefault(finding.objects, finding)
    yield from told.values()


def _is_live(moment: Moment) -> bool:
    """Whether the app is in use meanwhile."""
    return moment.ended.action in LIVE or (moment.ended.action == "sync" and moment.index > 0)


def _ran(moment: Moment, hook: Resource) -> bool:
    if is_argocd(moment.rehearsal):
        return argocd_hooks.is_hook(hook.body) and moment.ended.action == "sync"
    return bool(event_of(moment, hook))


def _of_hook(moment: Moment, hook: Resource) -> Iterator[Finding]:
    """The Services that had a hook's pod behind them once it was ready."""
    ready = next((event for event in moment.events() if _is_ready_pod(event, hook.ref)), None)
    if ready is None or ready.after is None:
        return
    world = state(moment.rehearsal, ready)
    for ref, service in world.items():
        near = ref.kind == "Service" and ref.namespace == hook.ref.namespace
        if near and backs(ready.after, service) and _is_asked(service, ready.after):
            meant = [workload for workload in behind(world, ref) if workload_ref(workload) != hook.ref]
            if meant:
                yield _finding(moment, hook, ref, ready, meant[0])


def _is_ready_pod(event: Event, hook: Ref) -> bool:
    pod = event.after
    return event.object.kind == "Pod" and pod is not None and is_true(pod, "Ready") and is_of(event.object, pod, hook)


def _is_asked(service: Body, pod: Body) -> bool:
    """Whether requests go to the pod, and nothing suggests that it answers them."""
    numbers = {number for _, number, _ in ports_of(service, pod)}
    containers = [container for _, container in containers_of(pod.get("spec") or {})]
    listens = {port.get("containerPort") for container in containers for port in listed(container, "ports")}
    probed = any(container.get("readinessProbe") for container in containers)
    return bool(numbers) and not numbers & listens and not probed


def _finding(moment: Moment, hook: Resource, service: Ref, ready: Event, meant: Body) -> Finding:
    written, live = moment.case.written(moment.index, service), _is_live(moment)
    damage: Damage = "outage" if live else "nuisance"
    selector = dig(state(moment.rehearsal, ready)[service], "spec", "selector") or {}
    replicas = int(dig(meant, "spec", "replicas") or 1)
    path = ("metadata", "labels") if hook.ref.kind == "Pod" else ("spec", "template", "metadata", "labels")
    return found(
        RULE,
        moment,
        objects=[hook.ref, service],
        damage=damage,
        message=f"while {moment.act} runs {hook.ref}, {service} sends requests to its pod, where nothing serves",
        details=(
            f"{ready.object} carries {_labels(selector)}, which is all that {service} asks for. It has no readiness "
            "probe, so it counts as ready from the moment it runs until it ends.",
            f"Beside {replicas} pod{'s' if replicas > 1 else ''} of {workload_ref(meant)} it gets about one request in "
            f'{replicas + 1}, and each of those is refused: "connection refused", or a 502 from an ingress.',
            "" if live else "Whoever uses the app at this moment meets it.",
        ),
        places=[hook.place(*path), *([written.place("spec", "selector")] if written else [])],
        evidence=[ready],
        confirm=f"kubectl get endpointslices -n {service.namespace} -l kubernetes.io/service-name={service.name} -w  "
        f"# while the hook runs",
    )


def _labels(selector: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))


RULE = Rule("ST214", "hook-pod-matches-service-selector", check)
