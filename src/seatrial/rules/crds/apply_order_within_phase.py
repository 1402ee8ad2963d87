"""Objects of one phase are in the wrong order: a renamed Deployment is deleted first, a Pod comes before what it needs.

## What happens
Helm creates and updates all regular resources of a revision, then deletes what the new manifest no longer lists, and
only then waits, if `--wait` is set. It does not wait between creating and deleting. A Deployment that is renamed (a
component or the chart got another name, `fullnameOverride` was set) is a new Deployment: its pods are still starting
while the pods of the old one are terminated. The Service that selects both has no endpoints until the new pods are
ready. Rolling updates do not help: they replace the pods of one Deployment.

Helm reports success, with `--wait` too. The length of the gap depends on how fast the new pods start, so the finding is
a `may`.

`kubectl apply --prune` does the same. Pulumi does not: it deletes at the end of the `up`, when everything new is ready.
kapp, which deletes and creates concurrently unless a rule orders them, is not rehearsed here.

kubectl apply sends objects in the order of its files: a Pod in `app.yaml` comes before the ServiceAccount in
`rbac.yaml`, and the API server rejects it. kubectl goes on, creates the ServiceAccount and exits with an error; the
same command works the second time, so the failure looks random. Only bare Pods are rejected: the controllers of
Deployments and Jobs try again.

Other hidden dependencies within one phase (a regular Job that prepares what a Deployment of the same release uses) are
not checked by this rule: Helm waits for neither, and the result depends on what the pods do meanwhile.

## Example
```yaml
kind: Deployment
metadata:
  name: frontend          # was web
```

## Instead
Keep the name. Or use two upgrades: add the new workload, wait until it is ready, and remove the old one with the next
upgrade. Or add `helm.sh/resource-policy: keep` to the old one and delete it by hand.

## Fix safety
Both workloads run at the same time for a while: make sure that the app supports that.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import FLUX, is_flux
from seatrial.evidence.history import pruned
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.writers import writes_in_order
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

ADMITTED_WITH = ("ServiceAccount",)
"""Kinds without which the API server rejects a Pod, and that no other rule is about."""
WORKLOADS = ("Deployment", "DaemonSet")
"""StatefulSets, which also lose data, are reported by stateful-resource-renamed-or-dropped."""
PRUNED_BY_HELM = (
    "Helm creates new resources, deletes those that left the manifest, and only then waits, so --wait does not help."
)
PRUNED_IN_FLUX = "Helm creates new resources and deletes those that left the manifest; only then Flux waits."
PRUNED_BY_FLUX = "Flux applies new resources, prunes those that left the path, and only then checks health."
PRUNED_BY_ARGOCD = (
    "Argo CD prunes before it creates anything else of a wave, and waits for neither. The sync option PruneLast=true "
    "prunes at the end, when everything else is healthy."
)
PRUNED_BY = {
    "Argo CD": PRUNED_BY_ARGOCD,
    "kubectl": "kubectl apply --prune creates new resources, does not wait for them, and deletes those that left the "
    "files.",
}
READY = ("readyReplicas", "numberReady")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        if release is None:
            continue
        yield from _rejected(moment, release) if writes_in_order(rehearsal) else ()
        for event, was in pruned(moment):
            if was.ref.kind not in WORKLOADS or not _is_ready(_before(rehearsal, event.index, was.ref)):
                continue
            for service in _services_of(release, was.body):
                yield from _gap(moment, release, event, was, service)


def _rejected(moment: Moment, release: Release) -> Iterator[Finding]:
    """Writes that were rejected for lack of an object that the same step creates later."""
    for event in moment.events():
        if event.effect != "refused" or event.actor not in moment.rehearsal.actors:
            continue
        written = release.find(event.object)
        for ref in event.missing if written is not None and not hooks.is_hook(written.body) else ():
            brings = release.find(ref) if ref.kind in ADMITTED_WITH else None
            made = next((e for e in moment.events() if e.object == ref and e.effect == "created"), None)
            if written is not None and brings is not None and made is not None and made.index > event.index:
                yield _too_early(moment, written, brings, event, made)


def _too_early(moment: Moment, written: Resource, brings: Resource, refused: Event, made: Event) -> Finding:
    path = next((need.field for need in needs_of(written) if need.object == brings.ref), ("metadata", "name"))
    return found(
        RULE,
        moment,
        objects=[written.ref, brings.ref],
        damage="failed-deploy",
        message=f"{moment.act} fails: {written.ref} needs {brings.ref}, which comes later",
        details=(
            f'The API server rejects it: "{refused.message}"',
            f"{moment.speaker} goes on and creates {brings.ref}, so the same command works the second time.",
        ),
        places=[written.place(*path), brings.place("metadata", "name")],
        evidence=[refused, made],
        confirm=f"kubectl get {in_kubectl(written.ref)}  # after the first run: NotFound",
        way_out=(
            f"Apply {brings.ref} before {written.ref}: put it first in the same file, or into a file whose name sorts "
            "first. A Deployment or Job instead of a bare Pod tries again by itself.",
        ),
    )


def _gap(moment: Moment, release: Release, event: Event, was: Resource, service: Resource) -> Iterator[Finding]:
    """No workload behind the Service is ready when the old one is deleted."""
    successors = [r for r in release.resources if r.ref.kind in WORKLOADS and _selects(service, r.body)]
    bodies = [_before(moment.rehearsal, event.index, successor.ref) for successor in successors]
    if successors and not any(map(_is_ready, bodies)):
        yield _finding(moment, event, was, service, successors[0])


def _finding(moment: Moment, event: Event, was: Resource, service: Resource, successor: Resource) -> Finding:
    return found(
        RULE,
        moment,
        objects=[was.ref, successor.ref, service.ref],
        damage="outage",
        message=f"{moment.act} deletes {was.ref} before a pod of {successor.ref} is ready",
        details=(
            f"{service.ref} has no endpoints in between.",
            _order(moment, event),
            f"To {moment.speaker} these are two objects, so the update strategy of {successor.ref} has no effect.",
        ),
        places=[successor.place("metadata", "name"), service.place("spec", "selector")],
        evidence=[event],
        confirm=f"kubectl get endpointslices -n {service.ref.namespace} -l kubernetes.io/service-name="
        f"{service.ref.name} -w  # during the {moment.ended.action}",
    )


def _order(moment: Moment, deletion: Event) -> str:
    if is_flux(moment.rehearsal):
        return PRUNED_BY_FLUX if deletion.actor == FLUX else PRUNED_IN_FLUX
    return PRUNED_BY.get(moment.speaker, PRUNED_BY_HELM)


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
