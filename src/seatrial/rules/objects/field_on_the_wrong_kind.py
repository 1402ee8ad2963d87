"""A field of Argo CD's is written where another of its kinds has it: the API server drops it, and nothing happens.

## What happens
`ignoreDifferences` is a field of an `Application`; the operator's `ArgoCD` resource calls it
`resourceIgnoreDifferences`. `syncOptions` and `automated` belong under `syncPolicy`. The API server leaves out fields
that the definition of a kind does not have, with a warning that only who applies by hand can read; Argo CD does not
show it. The setting is believed to be there and is not.

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
Write the field that the kind has.

## Fix safety
The setting then takes effect: look first whether it is still wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

Path = tuple[str, ...]

# From the definitions of Argo CD 3.5 and of its operator 0.18.
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
GROUP = "argoproj.io"


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
        message=f"{resource.ref} has {'.'.join(path)}, which its kind does not know: the API server leaves it out",
        details=(f"It is called {instead}.", "Nobody is told: the object is applied, and the setting is not there."),
        places=[resource.place(*path)],
        confirm=f"kubectl get {in_kubectl(resource.ref)} -o jsonpath='{{.{'.'.join(path)}}}'  # is empty",
    )


RULE = Rule("ST820", "field-on-the-wrong-kind", check)
