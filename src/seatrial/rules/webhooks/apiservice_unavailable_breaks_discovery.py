"""An APIService is registered and nothing answers behind it: the cluster can no longer say what it serves.

## What happens
An APIService hands a group of kinds over to a Service. While nothing answers there, nobody can list what the cluster
serves. The namespace controller then cannot know that a namespace is empty: every namespace that is deleted, of
whoever, stays `Terminating` with `NamespaceDeletionDiscoveryFailure`. kubectl says `the server is currently unable to
handle the request`, and what needs the group (`kubectl top`, a HorizontalPodAutoscaler on custom metrics) stands
still.

Helm itself is not stopped. Helm 2 and the first releases of Helm 3 were (`unable to retrieve the complete list of
server APIs`), and that is what most reports are about; today's Helm goes on, and only a chart that has objects of
that very group fails. So it is not Helm that shows the fault but, later, the namespace that does not go.

The usual ways there: an APIService that uninstall leaves behind, because it is a hook or is kept, while its Service
goes; one that names a port or a Service that the release calls otherwise. With kubectl: `kubectl delete namespace`, or
`kubectl delete -f` of the workloads alone. An APIService is in no namespace and stays, and the namespace itself is the
first that cannot go: when its pods have stopped, nobody can say any more whether it is empty.

## Example
```yaml
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.meter.canal.example
  annotations: {helm.sh/hook: post-install}    # uninstall does not know it
spec:
  service: {name: meter, namespace: canal}     # and this goes
```

## Instead
A plain object of the release: Helm makes APIServices last and deletes them first. With kubectl delete the APIService
before its namespace. To end the state: `kubectl delete
apiservice NAME`.

## Fix safety
Deleting an APIService deletes nothing of what its backend stores. One that becomes a plain object is a
hook-to-release flip for releases that are installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import behind, state_after
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal

GROUP = "apiregistration.k8s.io"
WRONG_PORT = "ServicePortError"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        there = state_after(moment)
        for ref, body in sorted(there.items(), key=lambda pair: pair[0]):
            if (ref.group, ref.kind) == (GROUP, "APIService") and ref not in told and _is_down(case, there, body):
                told.add(ref)
                yield _finding(moment, ref, body)


def _is_down(case: Case, there: dict[Ref, Body], body: Body) -> bool:
    """Whether it has no backend once all has settled: not where its pods lack something that others tell of."""
    service = _service(body)
    ours = any(resource.ref == service for resource in case.all_resources())
    if not service.name or not ours or _available(body).get("status") != "False":
        return False
    return service not in there or not any(behind(there, service)) or _available(body).get("reason") == WRONG_PORT


def _finding(moment: Moment, ref: Ref, body: Body) -> Finding:
    ended, written, service = moment.ended, moment.case.written(moment.index, ref), _service(body)
    group = f"{dig(body, 'spec', 'group')}/{dig(body, 'spec', 'version')}"
    left = service in ended.deleted
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage",
        message=f"{moment.act} leaves {ref} without a backend: from then on no namespace of the cluster can be deleted",
        details=(
            f'{ref} says: "{_available(body).get("message")}"',
            f"{_why(moment.speaker, ref, written)} {service} is deleted."
            if left
            else f"{service} does not answer for it.",
            f'A namespace that is deleted says: "Discovery failed for some groups, 1 failing: unable to retrieve the '
            f'complete list of server APIs: {group}: stale GroupVersion discovery: {group}".',
            "Helm reports success, now and later: it passes over groups that do not answer."
            if ended.outcome == "ok" and moment.speaker == "Helm"
            else "",
            f"To end it: kubectl delete apiservice {ref.name}",
        ),
        places=[_place(written, left=left)] if written else [],
        evidence=[*_made(moment, ref), *_went(moment, service)],
        confirm=f"kubectl get apiservice {ref.name}  # AVAILABLE: False",
    )


def _place(written: Resource, *, left: bool) -> Pointer:
    if not left:
        return written.place("spec", "service")
    kept = hooks.HOOK if hooks.is_hook(written.body) else hooks.RESOURCE_POLICY
    return written.place("metadata", "annotations", kept)


def _service(body: Body) -> Ref:
    found = dig(body, "spec", "service") or {}
    return Ref("Service", str(found.get("namespace") or ""), str(found.get("name") or ""))


def _available(body: Body) -> Body:
    conditions = listed(body, "status", "conditions")
    return next((condition for condition in conditions if condition.get("type") == "Available"), {})


def _why(who: str, ref: Ref, written: Resource | None) -> str:
    if who != "Helm":
        return f"Nobody deletes {ref}, which is in no namespace;"
    if written is not None and hooks.is_hook(written.body):
        return "It is a hook, which uninstall does not delete;"
    return "It is kept;"


def _made(moment: Moment, ref: Ref) -> list[Event]:
    return [e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step <= moment.index][-1:]


def _went(moment: Moment, service: Ref) -> list[Event]:
    return [e for e in moment.events() if e.object == service and e.effect == "deleted"][:1]


RULE = Rule("ST509", "apiservice-unavailable-breaks-discovery", check)
