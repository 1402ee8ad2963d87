"""An Argo CD setting is on the wrong kind or level: the API server drops the field, and it has no effect.

## What happens
`ignoreDifferences` is a field of an `Application`; the operator's `ArgoCD` resource calls it
`resourceIgnoreDifferences`. `syncOptions` and `automated` belong under `syncPolicy`. The API server drops fields that
the CRD does not have, with a warning that is only visible with kubectl; Argo CD does not show it. The setting looks
active and is not.

## Example
```yaml
apiVersion: argoproj.io/v1beta1
kind: ArgoCD
metadata:
  name: openshift-gitops
spec:
  ignoreDifferences:              # no such field: resourceIgnoreDifferences
    - group: serving.kserve.io
```

## Instead
Use the field that the kind has.

## Fix safety
The setting then takes effect: check first that it is still wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

Path = tuple[str, ...]

# From the CRDs of Argo CD 3.5 and of its operator 0.18.
INSTEAD: dict[str, dict[Path, str]] = {
    "ArgoCD": {
        ("spec", "ignoreDifferences"): "spec.resourceIgnoreDifferences, or spec.ignoreDifferences of an Application",
    },
    "Application": {
        ("spec", "resourceIgnoreDifferences"): "spec.ignoreDifferences",
        ("spec", "syncOptions"): "spec.syncPolicy.syncOptions",
        ("spec", "automated"): "spec.syncPolicy.automated",
        ("spec", "retry"): "spec.syncPolicy.retry",
        ("spec", "syncPolicy", "prune"): "spec.syncPolicy.automated.prune",
        ("spec", "syncPolicy", "selfHeal"): "spec.syncPolicy.automated.selfHeal",
        ("spec", "resourceHealthChecks"): "resourceHealthChecks of the ArgoCD resource, or argocd-cm",
    },
}


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    made = {event.object: event.step for event in rehearsal.timeline if event.effect == "created" and event.step >= 0}
    seen: set[tuple[Ref, Path]] = set()
    for resource in case.all_resources():
        known = INSTEAD.get(resource.ref.kind, {}) if resource.ref.group == GROUP else {}
        for path, instead in known.items():
            written = dig(resource.body, *path) is not None and (resource.ref, path) not in seen
            if written and resource.ref in made:
                seen.add((resource.ref, path))
                yield _finding(Moment(rehearsal, case, made[resource.ref]), resource, path, instead)


def _finding(moment: Moment, resource: Resource, path: Path, instead: str) -> Finding:
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="nuisance",
        message=f"{resource.ref} sets {'.'.join(path)}, which its kind lacks: the API server drops it",
        details=("The object is applied without an error, and the setting has no effect.",),
        way_out=(f"Use {instead} instead of {'.'.join(path)} of {resource.ref}.",),
        places=[resource.place(*path)],
        confirm=f"kubectl get {in_kubectl(resource.ref)} -o jsonpath='{{.{'.'.join(path)}}}'  # is empty",
    )


RULE = Rule("ST820", "field-on-the-wrong-kind", check)
