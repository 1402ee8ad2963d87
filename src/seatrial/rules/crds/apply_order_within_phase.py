"""An app gets another name, and helm upgrade deletes the old workload before a pod of the new one is ready.

## What happens
Helm makes and changes all plain objects of a revision first, then deletes what the new manifest no longer has, and
only then waits, if it was told `--wait`. Between the making and the deleting nobody waits for anything. A Deployment
that got another name (a component or the chart was renamed, `fullnameOverride` was set) is therefore a new Deployment
whose pods are still starting while the old one's are taken down. The Service that selects both has nobody to send
requests to until the new pods are ready. A rolling update does not come into it: that is between pods of one
Deployment.

Helm reports success, with `--wait` too. How long the gap is depends on how fast the new pods start: it is a `may`.

`kubectl apply --prune` does the same. Pulumi does not: it deletes at the end of the `up`, when all that is new is
ready. kapp, which deletes and makes at once unless a rule says otherwise, is not rehearsed here.

Other objects of one phase that depend on each other without saying so (a plain Job that prepares what a Deployment of
the same release uses) are not decided here: Helm waits for neither, and what the pods do meanwhile is their own affair.

## Example
```yaml
kind: Deployment
metadata:
  name: frontend          # was web
```

## Instead
Keep the name. Or do it in two upgrades: add the new workload first, wait until it is ready, and remove the old one with
the next. Or let the old one carry `helm.sh/resource-policy: keep` and delete it by hand.

## Fix safety
Both workloads run at the same time for a while: make sure that two of them may.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import pruned
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

WORKLOADS = ("Deployment", "DaemonSet")
"""Of StatefulSets, stateful-resource-renamed-or-dropped tells what is worse."""
PRUNED_BY_HELM = (
    "Helm makes what is new, deletes what the manifest no longer has, and waits only then, if at all: --wait does not "
    "help."
)
PRUNED_BY_FLUX = {
    "helm": "Helm makes what is new, deletes what the manifest no longer has, and Flux waits only then.",
    "flux": "Flux applies what is new, prunes what the path no longer has, and checks health only then.",
}
PRUNED_BY_ARGOCD = (
    "Argo CD prunes before it makes anything else of a wave, and waits for neither. The sync option PruneLast=true "
    "leaves it for the end, when everything else is healthy."
)
PRUNED_BY = {
    "Argo CD": PRUNED_BY_ARGOCD,
    "kubectl": "kubectl apply --prune makes what is new, waits for none of it, and deletes what left the files.",
}
READY = ("readyReplicas", "numberReady")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        if release is None:
            continue
        for event, was in pruned(moment):
            if was.ref.kind not in WORKLOADS or not _is_ready(_before(rehearsal, event.index, was.ref)):
                continue
            for service in _services_of(release, was.body):
                yield from _gap(moment, release, event, was, service)


def _gap(moment: Moment, release: Release, event: Event, was: Resource, service: Resource) -> Iterator[Finding]:
    """Where all that takes the place of a workload behind a Service was made by the same step, and is not ready."""
    heirs = [r for r in release.resources if r.ref.kind in WORKLOADS and _selects(service, r.body)]
    bodies = [_before(moment.rehearsal, event.index, heir.ref) for heir in heirs]
    if heirs and not any(map(_is_ready, bodies)):
        yield _finding(moment, event, was, service, heirs)


def _finding(moment: Moment, event: Event, was: Resource, service: Resource, heirs: list[Resource]) -> Finding:
    ended = moment.ended
    return found(
        RULE,
        moment,
        objects=[was.ref, heirs[0].ref, service.ref],
        damage="outage",
        message=f"{moment.act} deletes {was.ref} before a pod of {heirs[0].ref} is ready: "
        f"{service.ref} has nobody to send requests to in between",
        details=(
            _order(moment.rehearsal, moment.case, event),
            f"To {moment.speaker} these are two objects: the strategy of {heirs[0].ref} has no say in it.",
        ),
        places=[heirs[0].place("metadata", "name"), service.place("spec", "selector")],
        evidence=[event],
        confirm=f"kubectl get endpointslices -n {service.ref.namespace} -l kubernetes.io/service-name="
        f"{service.ref.name} -w  # during the {ended.action}; and: kubectl describe {in_kubectl(service.ref)}",
    )


def _order(rehearsal: Rehearsal, case: Case, deletion: Event) -> str:
    if is_flux(rehearsal):
        return PRUNED_BY_FLUX[deletion.actor]
    return PRUNED_BY.get(Moment(rehearsal, case, deletion.step).speaker, PRUNED_BY_HELM)


def _services_of(release: Release, workload: Body) -> Iterator[Resource]:
    return (r for r in release.resources if r.ref.kind == "Service" and not r.ref.group and _selects(r, workload))


def _selects(service: Resource, workload: Body) -> bool:
    wanted = dig(service.body, "spec", "selector") or {}
    labels = dig(workload, "spec", "template", "metadata", "labels") or {}
    return bool(wanted) and wanted.items() <= labels.items()


def _before(rehearsal: Rehearsal, index: int, ref: Ref) -> Body | None:
    """An object as it was just before an event."""
    earlier = (
        e for e in reversed(rehearsal.timeline[:index]) if e.object == ref and (e.after or e.effect == "deleted")
    )
    return next((event.after for event in earlier), None)


def _is_ready(workload: Body | None) -> bool:
    status = (workload or {}).get("status") or {}
    return any(int(status.get(field) or 0) > 0 for field in READY)


RULE = Rule("ST114", "apply-order-within-phase", check)
