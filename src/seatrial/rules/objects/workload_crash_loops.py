"""A container of a workload exits when it starts, is restarted, and exits again.

## What happens
A container whose script fails is restarted with a growing back-off: `CrashLoopBackOff`. If it failed for lack of
something that comes a moment later, the next start succeeds, and nothing is reported. This finding is about a container
that still fails when nothing changes any more: an object that it asks for is never created, its ServiceAccount may not
read it, or its script ends with an error anyway.

Clients that wait (`--wait`, Flux, Pulumi) time out. Those that do not (`helm install`, `kubectl apply`, the last wave
of Argo CD) report success, and the workload never serves.

Scripts are read as far as they are `sh`, `kubectl` and programs that call a Service ([scripts](scripts.md)). What a
program of an image does is not known: it is assumed to run.

## Example
```yaml
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: worker
          image: registry.example/worker:1
          env: [{name: MODE, value: prod}]
          command: [sh, -c, '[ "$MODE" = production ] || exit 1; exec worker']   # exits each time
```

## Instead
Create what the script asks for, and allow its ServiceAccount to read it. If a container needs something that other
people create, let an init container wait for it: it says what it waits for, and the pod does not restart.

## Fix safety
There is no automatic fix: what the container lacks is decided outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import owner_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.kinds import PRINTED
from seatrial.kinds.workloads.pods import is_ready
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Path, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named

STAYS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
RESTARTED = "BackOff"
CONTAINERS = (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses"))


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for event in moment.events() if _is_applied(moment) else ():
            pod = moment.live(event.object) if event.effect == "said" and event.reason == RESTARTED else None
            place = _failing(pod) if pod is not None else None
            owner = owner_of(moment, event.object) if place else None
            written = case.written(moment.index, owner) if owner is not None and owner.kind in STAYS else None
            if place and written is not None and written.ref not in seen:
                seen.add(written.ref)
                if not _recovers(moment, written.ref):
                    yield _finding(moment, event, written, place)


def _is_applied(moment: Moment) -> bool:
    """Whether everything was applied: a step that stops half-way leaves pods without what they need."""
    if moment.ended.outcome != "failed":
        return True
    regular = [one for one in moment.release.resources if not hooks.is_hook(one.body)] if moment.release else []
    return bool(regular) and all(moment.live(one.ref) is not None for one in regular)


def _failing(pod: Body) -> Path | None:
    """The container that is restarted, as a path in the spec of the pod."""
    for field, statuses in CONTAINERS:
        for status in listed(pod, "status", statuses):
            if dig(status, "state", "waiting", "reason") == "CrashLoopBackOff":
                names = [container.get("name") for container in listed(pod, "spec", field)]
                return field, names.index(status.get("name"))
    return None


def _recovers(moment: Moment, workload: Ref) -> bool:
    """Whether a pod of the workload is ready in a later step."""
    later = (event for event in moment.rehearsal.timeline if event.step > moment.index and event.object.kind == "Pod")
    ready = (event for event in later if event.after is not None and is_ready(event.after))
    return any(owner_of(moment.at(event.step), event.object, event.after) == workload for event in ready)


def _finding(moment: Moment, event: Event, written: Resource, place: Path) -> Finding:
    at = ("spec", "template", "spec", *place)
    container = dig(written.body, *at, "name")
    printed = [one for one in moment.events() if one.object == event.object and one.reason == PRINTED]
    said = printed[-1] if printed else None
    lacks = [ref for ref in said.missing if moment.live(ref) is None] if said else []
    went_well = f"{moment.speaker} reports success: it does not wait until pods are ready."
    return found(
        RULE,
        moment,
        objects=[written.ref, *lacks],
        damage="failed-deploy",
        message=f"{written.ref} never becomes ready after {moment.act}: its container {container} exits at start",
        details=(
            f'Its container prints: "{said.message}"' if said else "",
            f"Nothing in the trial creates {named(lacks)}." if lacks else "",
            went_well if moment.ended.outcome == "ok" else moment.says,
        ),
        places=[written.place(*at)],
        evidence=[*([said] if said else ()), event],
        confirm=f"kubectl logs -n {event.object.namespace} {written.ref.kind.lower()}/{written.ref.name} "
        f"-c {container} --previous",
    )


RULE = Rule("ST120", "workload-crash-loops", check)
