"""A workload gets no pods: its namespace takes none that are made like these.

## What happens
Pod Security, quotas and limits judge pods and not the workloads that make them. The API server takes the Deployment, at
most with a warning that few tools show; Helm reports success; and then the ReplicaSet is refused every pod: `Error
creating: pods "web-..." is forbidden: violates PodSecurity "restricted:latest"`. There is no pod to look at and no log
to read: the words are in the events of the ReplicaSet. Those who wait (`--wait`, Argo CD, Flux) wait in vain, and a
hook whose Job gets no pod keeps Helm until its timeout.

What the namespace allows is written at the namespace, and mostly not in the chart: say it with `--assume`, or the
namespace is taken to be one that allows everything.

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
        - name: app                # runs as root, and may become more than it is
          image: registry.example/shop:1
```

## Instead
For `restricted`: `runAsNonRoot: true` and `seccompProfile: {type: RuntimeDefault}` for the pod,
`allowPrivilegeEscalation: false` and `capabilities: {drop: [ALL]}` for every container, those that start first
included. For a quota: requests and limits that fit into it, with room for the pod that an upgrade adds.

## Fix safety
An image that runs as root does not start with `runAsNonRoot: true`: it needs a `runAsUser`, and files that this user
may read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.acts import label_of
from seatrial.evidence.history import owner_of
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal

JUDGES = {
    "violates PodSecurity": "violate the Pod Security",
    "exceeded quota": "exceed the quota",
    "failed quota": "do not say what is asked for by the quota",
    "maximum": "exceed the limits",
    "minimum": "stay below the limits",
}
REFUSED = re.compile(rf'pods "[^"]+" is forbidden: \[?(?P<judge>{"|".join(JUDGES)})(?P<words>.*)', re.S)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        said = REFUSED.search(event.message) if event.effect == "said" else None
        if said is None or _got_one(rehearsal, event):
            continue
        workload = owner_of(Moment(rehearsal, case, event.step), event.object) or event.object
        written = case.written(event.step, workload)
        if written is not None and workload not in seen:
            seen.add(workload)
            yield _finding(rehearsal, case, event, written, said["judge"])


def _got_one(rehearsal: Rehearsal, refused: Event) -> bool:
    """Whether a pod was made for the same owner in the same step after all."""
    later = (e for e in rehearsal.of_step(refused.step) if e.index > refused.index)
    made = (e.after for e in later if e.object.kind == "Pod" and e.effect == "created")
    owners = (owner for pod in made for owner in dig(pod, "metadata", "ownerReferences") or ())
    return any((owner["kind"], owner["name"]) == (refused.object.kind, refused.object.name) for owner in owners)


def _finding(rehearsal: Rehearsal, case: Case, event: Event, written: Resource, judge: str) -> Finding:
    moment = Moment(rehearsal, case, event.step)
    ended, workload = rehearsal.steps[event.step], written.ref
    went_well = f"{label_of(rehearsal.engine)} reported success: it made the {workload.kind}, and pods come later."
    return found(
        RULE,
        moment,
        objects=[workload],
        damage="failed-deploy",
        message=f"{workload} gets no pods from {moment.act}: they {JUDGES[judge]} "
        f"of namespace {event.object.namespace}",
        details=(went_well,) if ended.outcome == "ok" else (),
        places=[written.place("spec", "template", "spec")],
        evidence=[event],
        confirm=f"kubectl get events -n {event.object.namespace} --field-selector reason=FailedCreate",
    )


RULE = Rule("ST116", "pods-are-refused", check)
