"""A workload gets no pods, because its namespace does not admit them.

## What happens
Pod Security, quotas and limits apply to pods, not to the workloads that create them. The API server accepts the
Deployment, at most with a warning that few tools show, and Helm reports success. Then every pod of the ReplicaSet is
rejected: `Error creating: pods "web-..." is forbidden: violates PodSecurity "restricted:latest"`. There is no pod to
inspect and no log to read: the error is in the events of the ReplicaSet. Clients that wait (`--wait`, Argo CD, Flux)
time out, and a hook Job without a pod blocks Helm until its timeout.

What a namespace admits is written on the namespace, usually not in the chart. Pass it with `--assume`; otherwise
seatrial assumes that the namespace admits everything.

## Example
```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels:
    pod-security.kubernetes.io/enforce: restricted
---
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: app                # runs as root, with privilege escalation allowed
          image: registry.example/shop:1
```

## Instead
For `restricted`: `runAsNonRoot: true` and `seccompProfile: {type: RuntimeDefault}` for the pod,
`allowPrivilegeEscalation: false` and `capabilities: {drop: [ALL]}` for every container, including init containers. For
a quota: requests and limits that fit, with room for the surge pod of an upgrade.

## Fix safety
An image that runs as root does not start with `runAsNonRoot: true`: it needs a `runAsUser`, and files that this user
can read.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import owner_of
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal

JUDGES: dict[str, str] = {
    "pod-security": "violate the Pod Security level",
    "quota": "exceed the quota",
    "quota-unspecified": "lack requests or limits that the quota requires",
    "limit-maximum": "exceed the LimitRange",
    "limit-minimum": "are below the LimitRange",
}


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        judge = event.refusal.by if event.refusal and event.refusal.resource == "pods" else ""
        if event.effect != "said" or judge not in JUDGES or _got_one(rehearsal, event):
            continue
        workload = owner_of(Moment(rehearsal, case, event.step), event.object) or event.object
        written = case.written(event.step, workload)
        if written is not None and workload not in seen:
            seen.add(workload)
            yield _finding(rehearsal, case, event, written, judge)


def _got_one(rehearsal: Rehearsal, refused: Event) -> bool:
    """Whether the same owner got a pod later in the same step."""
    later = (e for e in rehearsal.of_step(refused.step) if e.index > refused.index)
    made = (e.after for e in later if e.object.kind == "Pod" and e.effect == "created")
    owners = (owner for pod in made for owner in dig(pod, "metadata", "ownerReferences") or ())
    return any((owner["kind"], owner["name"]) == (refused.object.kind, refused.object.name) for owner in owners)


def _finding(rehearsal: Rehearsal, case: Case, event: Event, written: Resource, judge: str) -> Finding:
    moment = Moment(rehearsal, case, event.step)
    ended, workload = rehearsal.steps[event.step], written.ref
    went_well = f"{rehearsal.label} reports success: it only creates the {workload.kind}, not its pods."
    return found(
        RULE,
        moment,
        objects=[workload],
        damage="failed-deploy",
        message=f"{workload} gets no pods after {moment.act}: they {JUDGES[judge]}",
        details=(
            f"They {JUDGES[judge]} of namespace {event.object.namespace}.",
            went_well if ended.outcome == "ok" else "",
        ),
        places=[written.place("spec", "template", "spec")],
        evidence=[event],
        confirm=f"kubectl get events -n {event.object.namespace} --field-selector reason=FailedCreate",
    )


RULE = Rule("ST116", "pods-are-refused", check, timeless=True)
