"""A pre-install or pre-upgrade hook uses a Secret, ConfigMap or PVC of the same release, which does not exist yet.

## What happens
Helm runs pre-install hooks before it creates any regular resource, including those of subcharts: the Secret of a
bundled database comes as late as the chart's own. The hook's pod is created but does not start
(`CreateContainerConfigError`, or it waits for a volume). The Job neither completes nor fails, and Helm waits until
`--timeout`. A PVC that the hook mounts is late in the same way: the pod is never scheduled.

Helm's order of kinds (ConfigMaps before Jobs) does not help: it applies to regular resources only. Upgrades find the
objects of the previous revision and work.

A missing pull secret (`imagePullSecrets`) does not stop a pod: the kubelet tries to pull without it. Whether that
succeeds depends on the registry, so the finding is a `may`.

Secrets that the chart only references (`existingSecret`) are not reported here. They are assumed to exist and are
listed as prerequisites.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
spec:
  template:
    spec:
      containers:
        - name: migrate
          envFrom:
            - secretRef: {name: app-db}      # a regular resource of the same chart
```

## Instead
Give the hook its own copy: a Secret with another name that is a hook for the same events with a lower weight. If the
hook needs a database of the same release, a copy does not help: use a regular Job that waits for the database, or a
post-install hook.

Do not turn the shared object into a hook: that upgrade deletes it, and so does every later one.

## Fix safety
A copy under another name does not affect installed objects. With `--wait`, a post-install hook never runs if the pods
need it to become ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import acted_on, event_of, helm_act, pod_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.too_early import BEFORE, too_early


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from too_early(RULE, rehearsal, case, kinds=KINDS)
    reported: set[tuple[Ref, Ref]] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            for secret, said in _late_pull_secrets(moment, hook):
                if (hook.ref, secret.ref) not in reported:
                    reported.add((hook.ref, secret.ref))
                    yield _cannot_pull(moment, hook, secret, said)


def _late_pull_secrets(moment: Moment, hook: Resource) -> Iterator[tuple[Resource, Event]]:
    """The pull secrets of a hook that its release creates after it, with what the kubelet reports."""
    pod = pod_of(moment, hook) if event_of(moment, hook) in BEFORE else None
    for event in moment.events() if pod is not None else ():
        if pod is not None and event.object == pod.object and event.reason == "FailedToRetrieveImagePullSecret":
            release = moment.release
            written = [release.find(ref) for ref in event.missing] if release else []
            yield from ((one, event) for one in written if one is not None)


def _cannot_pull(moment: Moment, hook: Resource, secret: Resource, said: Event) -> Finding:
    ref, event = hook.ref, event_of(moment, hook)
    own = ", ".join(hooks.events_of(secret.body))
    late = f"a hook for {own}, which runs later" if own else f"a regular resource, which comes after all {event} hooks"
    return found(
        RULE,
        moment,
        objects=[ref, secret.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{helm_act(moment, ref)} hangs at {ref} if its image is private: its pull secret comes later",
        details=(
            f"{ref} pulls its images with {secret.ref}, {late}.",
            f'The kubelet reports: "{said.message}"',
            'If the registry is private, the pod reports "ErrImagePull", then "ImagePullBackOff", and Helm waits for '
            f"{ref} until --timeout.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK), secret.place("metadata", "name")],
        evidence=[said],
        confirm=f"kubectl get pod -n {ref.namespace}  # while Helm waits: ImagePullBackOff",
    )


KINDS = ("Secret", "ConfigMap", "PersistentVolumeClaim")
RULE = Rule("ST205", "pre-hook-needs-release-secret-or-configmap", check)
