"""A pod runs an image that the same release builds in the cluster, and that is not built yet.

## What happens
A BuildConfig builds its image some minutes after it is created; Helm considers it done when it exists. Until then pods
with the image report `ErrImagePull` and `ImagePullBackOff`. An ordinary Deployment recovers by itself, so it is not
reported. It is a deadlock if a hook runs the image and the BuildConfig is a regular resource, which Helm creates after
its hooks; or if the build never starts, because the BuildConfig has no `ConfigChange` trigger.

The error usually points to pull secrets or the registry. Here the registry is right: the image does not exist.

Only OpenShift builds are modelled. seatrial cannot see whether an image was pushed to another registry. A registry that
is a Service of the same release is empty when it is first installed: an image in it is reported as *may*.

## Example
```yaml
kind: BuildConfig                   # a regular resource
spec: {output: {to: {kind: ImageStreamTag, name: "app:1"}}}
---
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install}
spec: ...  # image: image-registry.openshift-image-registry.svc:5000/shop/app:1
```

## Instead
Run the Job as a post-install hook, or build the images in an earlier release or pipeline. Give a BuildConfig the
trigger `ConfigChange`, which starts its first build.

## Fix safety
A `ConfigChange` trigger starts only the first build: later changes of the BuildConfig or of the code start none.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.services import names, spec_path
from seatrial.evidence.moment import Moment, found, moments
from seatrial.kinds.core.entries import entries
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.produced import IMAGE, Awaited, awaited, finding_about

AFTER = "Run {} after the image is built: as a post-install hook, or build the image before the release."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.need.object.kind == IMAGE:
            yield finding_about(RULE, rehearsal, case, one, _instead(one))
    for moment in moments(rehearsal, case):
        yield from _in_own_registry(moment)


def _in_own_registry(moment: Moment) -> Iterator[Finding]:
    """Pods whose image is in a registry that the same step creates."""
    resources = moment.release.resources if moment.release else ()
    made = {event.object for event in moment.events() if event.effect == "created"}
    registries = [r for r in resources if r.ref.kind == "Service" and r.ref in made]
    for user in resources if registries else ():
        path = spec_path(user)
        for place, container in containers_of(dig(user.body, *path) or {}):
            # Without a slash, or without a dot and a port before it, the image is in the default registry.
            host, slash, _ = str(container.get("image") or "").partition("/")
            if not slash or not {".", ":"} & set(host):
                continue
            registry = next((one for one in registries if names(host, one.ref, user.ref.namespace)), None)
            if registry is not None:
                yield _empty(moment, user, registry, (*path, *place, "image"))
                break


def _empty(moment: Moment, user: Resource, registry: Resource, image: tuple[str | int, ...]) -> Finding:
    return found(
        RULE,
        moment,
        objects=[user.ref, registry.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{user.ref} runs an image from {registry.ref}, which {moment.act} creates: it is empty",
        details=(
            f"{dig(user.body, *image)} can be pushed only once {registry.ref} runs. Until then its pods report "
            "ErrImagePull.",
            "The node pulls the image, not the pod: it must be able to resolve the name of the Service.",
        ),
        way_out=(f"Install {registry.ref} in a release before, and push the image before {user.ref} is deployed.",),
        places=[user.place(*image), registry.place("metadata", "name")],
        confirm=f"kubectl get events -n {user.ref.namespace} --field-selector reason=Failed",
    )


def _instead(one: Awaited) -> str:
    if one.why != "trouble":
        return AFTER.format(one.user.ref)
    triggers = {trigger.get("type") for _, trigger in entries(one.producer.body, "spec", "triggers")}
    if one.producer.ref.kind == "BuildConfig" and "ConfigChange" not in triggers:
        build = in_kubectl(one.producer.ref).partition(" ")[2]
        return (
            f"Give {one.producer.ref} a ConfigChange trigger, without which its first build never starts; or start it: "
            f"oc start-build {build}"
        )
    return ""


RULE = Rule("ST606", "image-or-registry-not-ready", check)
