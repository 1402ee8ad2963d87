"""The pod of a hook pulls from the registry of the app, without the pull secrets that the app's pods have.

## What happens
Pull secrets are given to pods, or to the account that a pod runs as. Nothing passes them on: a hook Job whose template
forgets `imagePullSecrets` pulls as nobody, though all other pods of the chart pull the same way with a Secret. In a
private registry the image cannot be had, the pod says `ImagePullBackOff`, and Helm waits for the Job until `--timeout`.
A hook of the uninstall is met last, when nobody thinks of registries any more.

Who wrote the chart does not see it: in the registry of the author no Secret is needed, or the image is on the node
already. Whether the image can be had without a Secret is for the registry to say, hence *may*. It is told where another
pod of the release pulls from the same registry (of Docker Hub: from the same account) with a Secret.

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
    spec: {}                 # none
```

## Instead
The same `imagePullSecrets` in the template of the hook, or on the account that it runs as. A Secret that the chart
itself makes has to be a hook as well for those of pre-install.

## Fix safety
A pull secret that is not needed, or not there, does no harm.
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
        given = _given(release) if release else {}
        for hook in release.resources if release and given else ():
            pod = pod_of(moment, hook) if hook.ref not in seen else None
            if pod is not None and not listed(pod.after, "spec", "imagePullSecrets"):
                for image, other in _alike(pod.after or {}, given):
                    seen.add(hook.ref)
                    yield _finding(moment, hook, pod, image, other)
                    break


def _given(release: Release) -> dict[str, tuple[Resource, list[str]]]:
    """Where workloads of a release pull from with Secrets: one workload for each place, and its Secrets."""
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


def _alike(pod: Body, given: dict[str, tuple[Resource, list[str]]]) -> Iterator[tuple[str, tuple[Resource, list[str]]]]:
    """The images of a pod that others pull from the same place with a Secret."""
    for _, container in containers_of(pod.get("spec") or {}):
        image = str(container.get("image") or "")
        if other := given.get(_registry(image)):
            yield image, other


def _registry(image: str) -> str:
    """The registry of an image; of Docker Hub, whose it is."""
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
        message=f"{helm_act(moment, ref)} hangs at the {event} hook {ref} if {image} is private: its pod "
        f"has no pull secret, and {workload.ref} has",
        details=(
            f"{workload.ref} pulls from {_registry(image)} with {named}. Neither the hook's template nor the account "
            "that it runs as has any.",
            f'In a private registry the pod says "ErrImagePull", then "ImagePullBackOff", and Helm waits for {ref} '
            "until --timeout is over.",
        ),
        places=[hook.place(*path), workload.place(*TEMPLATE, "imagePullSecrets")],
        evidence=[pod],
        confirm=f"kubectl get pod -n {ref.namespace} -l job-name={ref.name}  # while Helm waits: ImagePullBackOff"
        if ref.kind == "Job"
        else f"kubectl get pod {ref.name} -n {ref.namespace}  # while Helm waits: ImagePullBackOff",
    )


RULE = Rule("ST223", "hook-job-missing-imagepullsecrets", check)
