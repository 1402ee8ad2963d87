"""Argo CD is configured to exclude the kind of an object: it is not applied, and the sync succeeds.

## What happens
`resource.exclusions` in `argocd-cm` lists kinds that Argo CD neither watches nor applies, to save memory. Objects of
these kinds are ignored, including hooks. The Application is `Synced` and `Healthy`; the only sign is the condition
`ExcludedResourceWarning`.

The list depends on how Argo CD was installed. Since 3.0 the upstream manifests exclude Endpoints and EndpointSlices,
Leases, certificate requests and reports of policy engines. The operator adds APIServices; the default instance of
OpenShift GitOps also excludes Tekton's `TaskRun` and `PipelineRun`. Upstream never excluded those.

## Example
```yaml
apiVersion: tekton.dev/v1
kind: PipelineRun              # under openshift-gitops: never runs
metadata:
  name: build
  annotations:
    argocd.argoproj.io/hook: PreSync
```

## Instead
Remove the kind from the exclusions (`spec.resourceExclusions` of the `ArgoCD` resource replaces the whole list), or let
a Job create the object.

## Fix safety
Argo CD then watches all objects of the kind, which uses memory if there are many.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.moment import Moment, found
from seatrial.graph import users_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Operation, Rehearsal
from seatrial.phrases.objects import users_sentence


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for step, operation in operations(rehearsal):
        for condition in operation.conditions:
            excluded = condition.object if condition.type == "ExcludedResourceWarning" else None
            resource = case.written(step, excluded) if excluded else None
            if resource is not None and resource.ref not in reported:
                reported.add(resource.ref)
                yield _finding(Moment(rehearsal, case, step), operation, resource, str(condition))


def _finding(moment: Moment, operation: Operation, resource: Resource, condition: str) -> Finding:
    ref, release = resource.ref, moment.release
    needed = release is not None and bool(users_of(release, ref))
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"the sync of {operation.app} ignores {ref}: this Argo CD is configured to exclude its kind",
        details=(
            f'The Application shows "{condition}", and is Synced.',
            users_sentence(release, ref) if release and needed else "",
        ),
        places=[resource.place("kind")],
        confirm="kubectl get configmap argocd-cm -n argocd -o jsonpath='{.data.resource\\.exclusions}'",
    )


RULE = Rule("ST818", "argocd-excluded-kind-dropped", check)
