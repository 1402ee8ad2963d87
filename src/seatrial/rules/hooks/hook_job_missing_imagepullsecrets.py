"""A hook's pod pulls from the app's registry without the pull secrets that the app's pods have.

## What happens
Pull secrets belong to a pod or to the ServiceAccount it runs as. A hook Job whose template has no `imagePullSecrets`
pulls anonymously, although all other pods of the chart pull from the same registry with a Secret. If the registry is
private, the pull fails, the pod reports `ImagePullBackOff`, and Helm waits for the Job until `--timeout`. An uninstall
hook fails last, long after the registry was set up.

The chart's author does not see this: their registry needs no Secret, or the image is already on the node. Only the
registry knows whether the image can be pulled without a Secret, so the finding is *may*. It is reported if another pod
of the release pulls from the same registry (on Docker Hub: from the same account) with a Secret.

## Example
```yaml
kind: Deployment
spec:
  template:
    spec:
      imagePullSecrets: [{name: registry}]
---
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-delete}
spec:
  template:
    spec: {}                 # no pull secret
```

## Instead
Add the same `imagePullSecrets` to the hook's template, or to the ServiceAccount it runs as. If the chart itself creates
the pull secret, pre-install hooks need a copy that is a hook too.

## Fix safety
A pull secret that is not needed, or does not exist, does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import acted_on, event_of, helm_act, pod_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.kinds.workloads.images import WORKLOADS, image_path
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal

TEMPLATE = ("spec", "template", "spec")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        secrets = _pull_secrets(release) if release else {}
        for hook in release.resources if release and secrets else ():
            pod = pod_of(moment, hook) if hook.ref not in seen else None
            if pod is not None and not listed(pod.after, "spec", "imagePullSecrets"):
                for image, other in _from_same_registry(pod.after or {}, secrets):
                    seen.add(hook.ref)
                    yield _finding(moment, hook, pod, image, other)
                    break


def _pull_secrets(release: Release) -> dict[str, tuple[Resource, list[str]]]:
    """For each registry, one workload of the release that pulls from it with Secrets, and their names."""
    found: dict[str, tuple[Resource, list[str]]] = {}
    for workload in release.resources:
        spec = dig(workload.body, *TEMPLATE)
        if workload.ref.kind not in WORKLOADS or hooks.is_hook(workload.body) or not isinstance(spec, dict):
            continue
        account = release.find(Ref("ServiceAccount", workload.ref.namespace, str(spec.get("serviceAccountName"))))
        secrets = listed(spec, "imagePullSecrets") or (listed(account.body, "imagePullSecrets") if account else [])
        names = [str(secret.get("name")) for secret in secrets]
        for _, container in containers_of(spec) if names else ():
            found.setdefault(_registry(str(container.get("image") or "")), (workload, names))
    return found


def _from_same_registry(
    pod: Body, secrets: dict[str, tuple[Resource, list[str]]]
) -> Iterator[tuple[str, tuple[Resource, list[str]]]]:
    """The images of a pod that come from a registry from which a workload pulls with a Secret."""
    for _, container in containers_of(pod.get("spec") or {}):
        image = str(container.get("image") or "")
        if other := secrets.get(_registry(image)):
            yield image, other


def _registry(image: str) -> str:
    """The registry of an image; for Docker Hub with the account."""
    host, slash, _ = image.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return host
    path = image_path(image)
    return f"docker.io/{path[0] if len(path) > 1 else 'library'}"


def _finding(moment: Moment, hook: Resource, pod: Event, image: str, other: tuple[Resource, list[str]]) -> Finding:
    workload, secrets = other
    ref, event = hook.ref, event_of(moment, hook)
    path = ("spec",) if ref.kind == "Pod" else TEMPLATE
    named = f"Secret{'s' if len(secrets) > 1 else ''} {', '.join(secrets)}"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{helm_act(moment, ref)} hangs at hook {ref} if its image is private: it has no pull secret",
        details=(
            f"The {event} hook pulls {image}. {workload.ref} pulls from {_registry(image)} with {named}. Neither "
            "the hook's template nor its "
            "ServiceAccount has a pull secret.",
            'If the registry is private, the pod reports "ErrImagePull", then "ImagePullBackOff", and Helm waits for '
            f"{ref} until --timeout.",
        ),
        places=[hook.place(*path), workload.place(*TEMPLATE, "imagePullSecrets")],
        evidence=[pod],
        confirm=f"kubectl get pod -n {ref.namespace} -l job-name={ref.name}  # while Helm waits: ImagePullBackOff"
        if ref.kind == "Job"
        else f"kubectl get pod {ref.name} -n {ref.namespace}  # while Helm waits: ImagePullBackOff",
    )


RULE = Rule("ST223", "hook-job-missing-imagepullsecrets", check)
