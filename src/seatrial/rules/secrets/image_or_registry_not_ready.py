"""A pod runs an image that is built in the cluster, by an object of the same release that has not built it yet.

## What happens
A BuildConfig makes an image some minutes after it was created; for Helm it is done when it is there. Pods that run the
image say `ErrImagePull` and `ImagePullBackOff` until then, and get it in the end: an ordinary Deployment comes right by
itself, and nothing is reported of it. It is a deadlock where a hook runs the image and the BuildConfig is a plain
object, which Helm makes after its hooks; and where nobody starts a build, because the BuildConfig has no `ConfigChange`
trigger.

One looks at pull secrets and at the registry, as these are what such words mostly mean. Here the registry is right:
there is no such image.

Only builds of OpenShift are known here. Whether an image in any other registry has been pushed cannot be seen, nor
whether a registry that is itself part of the release holds anything.

## Example
```yaml
kind: BuildConfig                   # a plain object
spec: {output: {to: {kind: ImageStreamTag, name: "app:1"}}}
---
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install}
spec: ...  # image: image-registry.openshift-image-registry.svc:5000/shop/app:1
```

## Instead
Run the Job as a post-install hook, or build the images in a release or a pipeline before this one. Give a BuildConfig
the trigger `ConfigChange`, which starts its first build.

## Fix safety
A `ConfigChange` trigger starts the first build only: later changes of the BuildConfig, or of the code, start none.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds.core.entries import entries
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.produced import IMAGE, Awaited, awaited, told_of

AFTER = "Run it after the image is built: as a post-install hook, or with the images built before the release."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.need.object.kind == IMAGE:
            yield told_of(RULE, rehearsal, case, one, _instead(one))


def _instead(one: Awaited) -> str:
    if one.why != "trouble":
        return AFTER
    triggers = {trigger.get("type") for _, trigger in entries(one.producer.body, "spec", "triggers")}
    if one.producer.ref.kind == "BuildConfig" and "ConfigChange" not in triggers:
        build = in_kubectl(one.producer.ref).partition(" ")[2]
        return f"It has no trigger ConfigChange, so nobody starts its first build: oc start-build {build} does."
    return ""


RULE = Rule("ST606", "image-or-registry-not-ready", check)
