"""A release is reinstalled while its CRD is still being deleted, and uses a CRD that is about to disappear.

## What happens
A deleted CRD stays until its last custom resource is gone, and a custom resource with a finalizer stays until the
controller removes the finalizer. If that controller was an operator of the same release, it is deleted first, and the
deletion never finishes: the CRD exists, is served and established, and is terminating. An install finds it, treats it
as its own and succeeds. But no custom resource of the kind can be created (`create not allowed while custom resource
definition is terminating`), and when the finalizer is removed by hand, the CRD is deleted with all its custom
resources. Helm still reports `deployed`. A release with such a custom resource can then be neither upgraded nor
uninstalled, because the kind is not served.

## Example
```
helm uninstall canal        # deletes the operator, then the CRD; Lock/north waits for its finalizer
helm install canal ./canal  # succeeds, with the CRD that is being deleted
```

## Instead
Delete the custom resources first and wait until they are gone (`kubectl delete locks --all -A --wait`), then uninstall.
Add `helm.sh/resource-policy: keep` to the CRD, so that uninstalling the release does not delete it.

## Fix safety
`keep` is safe. Removing a finalizer by hand skips the cleanup that its controller would have done.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import helm_act
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig, metadata
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure, first_named, helm_says, named

NOT_ALLOWED = "create not allowed while custom resource definition is terminating"
DEPLOYS = ("install", "upgrade", "rollback")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.release
        if moment.ended.action not in DEPLOYS or release is None:
            continue
        crds = [r.ref for r in (*release.resources, *release.crds) if r.ref.kind == DEFINITION]
        going = [ref for ref in crds if _is_going(moment.live(ref))]
        refused = [e for e in moment.events() if e.actor == "helm" and _is_blocked(e)]
        if going and (refused or moment.ended.outcome == "ok"):
            yield _finding(moment, going, refused)
            return
        gone = [ref for ref in crds if _is_going(moment.was(ref)) and moment.live(ref) is None]
        if gone and moment.ended.outcome == "ok":
            yield _gone(moment, gone)
            return


def _is_blocked(event: Event) -> bool:
    """Whether the CRD of the object's kind is being deleted."""
    return bool(event.refusal and event.refusal.terminating and event.refusal.terminating.kind == DEFINITION)


def _finding(moment: Moment, going: list[Ref], refused: list[Event]) -> Finding:
    deletions = [
        e for e in moment.rehearsal.timeline if e.object in going and e.effect == "deleting" and e.step <= moment.index
    ]
    written = [resource for ref in going if (resource := moment.case.written(moment.index, ref))]
    later = [e for e in moment.rehearsal.timeline if e.step > moment.index and NOT_ALLOWED in e.message]
    return found(
        RULE,
        moment,
        objects=going,
        damage="failed-deploy" if refused else "outage",
        message=f"{helm_act(moment)} fails: {first_named(e.object for e in refused)} cannot be created while "
        f"{first_named(going)} is being deleted"
        if refused
        else f"{helm_act(moment)} succeeds while {first_named(going)} is still being deleted",
        details=(
            _holders(moment, going),
            helm_says(moment.ended) if refused else "Helm reports success.",
            "Once the finalizer is removed, the CRD is deleted with all its custom resources. A release that contains "
            "one can then be neither upgraded nor uninstalled, because the kind is not served.",
            "" if refused else f'Until then, creating a custom resource of the kind fails: "{NOT_ALLOWED}".',
            after_failure(moment) if refused else "",
        ),
        places=[resource.place("metadata", "name") for resource in written],
        evidence=(*deletions[-1:], *refused, *later[:1]),
        confirm=f"kubectl get crd {going[0].name} -o jsonpath='{{.metadata.deletionTimestamp}}'",
    )


def _gone(moment: Moment, gone: list[Ref]) -> Finding:
    """CRDs that existed when Helm looked, and whose deletion ended after that."""
    written = [resource for ref in gone if (resource := moment.case.written(moment.index, ref))]
    kinds = {_defines(moment.was(ref)) for ref in gone}
    lost = [e for e in moment.events() if e.effect == "deleted" and (e.object.group, e.object.kind) in kinds]
    return found(
        RULE,
        moment,
        objects=gone,
        damage="outage",
        message=f"{helm_act(moment)} succeeds, and {first_named(gone)} is gone: its deletion ends afterwards",
        details=(
            f"{first_named(gone)} was still being deleted when Helm found it, so Helm did not create it again.",
            f"{first_named(e.object for e in lost)} kept it until its finalizer was removed." if lost else "",
            "Helm reports success, and no custom resource of the kind can be created. The next upgrade fails or "
            "creates the CRD, depending on where the chart has it.",
        ),
        places=[resource.place("metadata", "name") for resource in written],
        evidence=[e for e in moment.events() if e.effect == "deleted" and (e.object in gone or e in lost)],
        confirm=f"kubectl get crd {gone[0].name}  # after {helm_act(moment)}: NotFound",
    )


def _holders(moment: Moment, going: list[Ref]) -> str:
    """The custom resources whose finalizers keep the CRDs."""
    kinds = {_defines(moment.live(ref)) for ref in going}
    refs = sorted(
        {
            e.object
            for e in moment.rehearsal.timeline
            if (e.object.group, e.object.kind) in kinds and e.step <= moment.index
        }
    )
    held = {ref: live for ref in refs if (live := moment.live(ref)) and metadata(live).get("finalizers")}
    if not held:
        return ""
    finalizers = sorted({str(name) for live in held.values() for name in metadata(live)["finalizers"]})
    keeps = "has" if len(held) == 1 else "have"
    return f"{named(held)} still {keeps} the finalizer {', '.join(finalizers)}, which no controller removes."


def _defines(crd: Body | None) -> tuple[str, str]:
    return str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))


def _is_going(body: Body | None) -> bool:
    return body is not None and bool(metadata(body).get("deletionTimestamp"))


RULE = Rule("ST111", "crd-terminating-blocks-recreate", check)
