"""A release is installed again while its definition is still being deleted, and gets one that is about to vanish.

## What happens
A definition that is deleted stays until its last object is gone, and an object with a finalizer stays until whoever set
it takes it off. When that was an operator of the same release, it is gone first, and everything waits for ever: the
definition is there, served and established, and on its way out. An install now finds it, takes it for its own and is
content. But no new object of the kind can be made (`create not allowed while custom resource definition is
terminating`), and when somebody clears the finalizer, the definition goes with everything of its kind. Helm still says
`deployed`; a release that has such an object can then be neither upgraded nor uninstalled, as nobody serves the kind.

## Example
```
helm uninstall canal        # deletes the operator, then the definition; Lock/north waits for its finalizer
helm install canal ./canal  # succeeds, with the definition that is being deleted
```

## Instead
Delete the objects first and wait until they are gone (`kubectl delete locks --all -A --wait`), then uninstall. Let the
definition carry `helm.sh/resource-policy: keep`, so that uninstalling the release does not touch it.

## Fix safety
`keep` is safe. Clearing a finalizer by hand skips whatever its owner would have cleaned up.
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
from seatrial.phrases.outcome import after_failure, helm_says, named

NOT_ALLOWED = "create not allowed while custom resource definition is terminating"
DEPLOYS = ("install", "upgrade", "rollback")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.release
        if moment.ended.action not in DEPLOYS or release is None:
            continue
        definitions = [r.ref for r in (*release.resources, *release.crds) if r.ref.kind == DEFINITION]
        going = [ref for ref in definitions if _is_going(moment.live(ref))]
        refused = [e for e in moment.events() if e.actor == "helm" and NOT_ALLOWED in e.message]
        if going and (refused or moment.ended.outcome == "ok"):
            yield _finding(moment, going, refused)
            return


def _finding(moment: Moment, going: list[Ref], refused: list[Event]) -> Finding:
    ended = moment.ended
    deletions = [
        e for e in moment.rehearsal.timeline if e.object in going and e.effect == "deleting" and e.step <= moment.index
    ]
    written = [resource for ref in going if (resource := moment.case.written(moment.index, ref))]
    return found(
        RULE,
        moment,
        objects=going,
        damage="failed-deploy" if refused else "outage",
        message=f"{helm_act(moment)} finds {named(going)} still being deleted, and "
        + (f"{named(e.object for e in refused)} is refused" if refused else "takes it for its own"),
        details=(
            helm_says(ended) if refused else "Helm reported success.",
            _holders(moment, going),
            "When the finalizer is taken off, the definition goes with every object of its kind. A release that has "
            "such an object can then be neither upgraded nor uninstalled, as nobody serves the kind.",
            "" if refused else f'Until then, whoever makes an object of the kind is told: "{NOT_ALLOWED}".',
            after_failure(moment) if refused else "",
        ),
        places=[resource.place("metadata", "name") for resource in written],
        evidence=(*deletions[-1:], *refused),
        confirm=f"kubectl get crd {going[0].name} -o jsonpath='{{.metadata.deletionTimestamp}}'",
    )


def _holders(moment: Moment, going: list[Ref]) -> str:
    """The objects whose finalizers keep the definitions."""
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
    return f"{named(held)} holds it by the finalizer {', '.join(finalizers)}, which nobody takes off."


def _defines(definition: Body | None) -> tuple[str, str]:
    return str(dig(definition, "spec", "group")), str(dig(definition, "spec", "names", "kind"))


def _is_going(body: Body | None) -> bool:
    return body is not None and bool(metadata(body).get("deletionTimestamp"))


RULE = Rule("ST111", "crd-terminating-blocks-recreate", check)
