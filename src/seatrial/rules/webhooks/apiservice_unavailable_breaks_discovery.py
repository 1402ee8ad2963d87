"""An APIService has no backend, so API discovery fails and no namespace can be deleted.

## What happens
An APIService delegates an API group to a Service. While nothing answers there, discovery is incomplete. The namespace
controller then cannot tell whether a namespace is empty: every deleted namespace in the cluster stays `Terminating`
with `NamespaceDeletionDiscoveryFailure`. kubectl reports `the server is currently unable to handle the request`, and
whatever uses the group (`kubectl top`, a HorizontalPodAutoscaler on custom metrics) stops working.

Helm itself does not fail. Helm 2 and early Helm 3 did (`unable to retrieve the complete list of server APIs`), and most
reports are about that. Today's Helm continues, and fails only if the chart has objects of that group. So the first sign
is usually a namespace that stays Terminating.

Common causes: uninstall leaves the APIService behind, because it is a hook or is kept, and deletes its Service; or the
APIService names a port or Service that the release does not have. With kubectl: `kubectl delete namespace`, or
`kubectl delete -f` of the workloads only. An APIService is cluster-scoped and stays, and the namespace itself is the
first that cannot be deleted.

## Example
```yaml
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.meter.canal.example
  annotations: {helm.sh/hook: post-install}    # uninstall does not delete hooks
spec:
  service: {name: meter, namespace: canal}     # but it deletes this
```

## Instead
Make it a regular resource: Helm creates APIServices last and deletes them first. With kubectl, delete the APIService
before its namespace. To recover: `kubectl delete apiservice NAME`.

## Fix safety
Deleting an APIService does not delete data of its backend. For existing releases, a hook that becomes a regular
resource is a hook-to-release flip.
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
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        there = state_after(moment)
        for ref, body in sorted(there.items(), key=lambda pair: pair[0]):
            if (ref.group, ref.kind) == (GROUP, "APIService") and ref not in reported and _is_down(case, there, body):
                reported.add(ref)
                yield _finding(moment, ref, body)


def _is_down(case: Case, there: dict[Ref, Body], body: Body) -> bool:
    """Whether it has no backend when the cluster has settled. Pods that lack something have rules of their own."""
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
        message=f"{moment.act} leaves {ref} without backend: no namespace can be deleted",
        details=(
            f'{ref} reports: "{_available(body).get("message")}"',
            f"{_why(moment.speaker, ref, written)} {service} is deleted."
            if left
            else f"{service} does not answer for it.",
            f'A deleted namespace reports: "Discovery failed for some groups, 1 failing: unable to retrieve the '
            f'complete list of server APIs: {group}: stale GroupVersion discovery: {group}".',
            "Helm reports success, now and later: it ignores groups that do not answer."
            if ended.outcome == "ok" and moment.speaker == "Helm"
            else "",
        ),
        recover=f"kubectl delete apiservice {ref.name}",
        places=[_place(written, left=left)] if written else [],
        evidence=[*_made(moment, ref), *_went(moment, service), *_blocked(moment, group)],
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
        return f"{ref} is cluster-scoped and is not deleted;"
    if written is not None and hooks.is_hook(written.body):
        return "It is a hook, which uninstall does not delete;"
    return f"{hooks.RESOURCE_POLICY} keeps it;"


def _made(moment: Moment, ref: Ref) -> list[Event]:
    return [e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step <= moment.index][-1:]


def _went(moment: Moment, service: Ref) -> list[Event]:
    return [e for e in moment.events() if e.object == service and e.effect == "deleted"][:1]


def _blocked(moment: Moment, group: str) -> list[Event]:
    """The first namespace whose deletion it blocks."""
    later = (e for e in moment.rehearsal.timeline if e.step >= moment.index and e.object.kind == "Namespace")
    return [e for e in later if any(group in str(c.get("message")) for c in listed(e.after, "status", "conditions"))][
        :1
    ]


RULE = Rule("ST509", "apiservice-unavailable-breaks-discovery", check)
