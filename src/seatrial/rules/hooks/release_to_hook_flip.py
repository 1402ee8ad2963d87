"""An object of the release becomes a hook, and the upgrade that makes it one leaves it deleted.

## What happens
Helm compares the manifest of the old revision with that of the new one and deletes what is no longer in it. Hooks are
not in the manifest. So an object that was plain and is now a hook counts as removed: the pre-upgrade hook is run
first (deleting the live object, then making it anew), the other objects are updated, and then Helm deletes the object
that its own hook has just made. Helm reports success. The next upgrade finds nothing to remove and puts the object
back, which is why "just deploy it again" seems to help.

Helm reads `helm.sh/resource-policy: keep` from the live object at that moment. On the hook manifest in the same upgrade
it therefore works; added to the plain object in an earlier release it does not, as the hook replaces that object.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config        # plain in the revision before
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
```

## Instead
Keep the object plain. If a hook Job needs it before the release does, give the Job a copy under another name. If it
must become a hook, add `helm.sh/resource-policy: keep` to it in the same upgrade.

## Fix safety
Adding `keep` is safe for the upgrade and leaves the object behind when the release is uninstalled, as any hook is.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import consumers_sentence, next_time_sentence, pods_say, users_beyond_hooks


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if (
            moment.ended.action not in ("upgrade", "rollback")
            or moment.ended.outcome == "failed"
            or old is None
            or new is None
        ):
            continue
        for resource in new.resources:
            if not _flipped(old.find(resource.ref), resource) or resource.ref not in moment.ended.deleted:
                continue
            deeds = [e for e in moment.events() if e.object == resource.ref and e.actor == "helm"]
            if deeds and deeds[-1].effect in ("deleted", "deleting"):
                yield _finding(moment, new, resource, deeds)


def _flipped(was: Resource | None, resource: Resource) -> bool:
    """Plain before, and now a hook that is meant to stay: one with hook-succeeded deletes itself, as it should."""
    if was is None or hooks.is_hook(was.body) or not hooks.is_hook(resource.body):
        return False
    return "hook-succeeded" not in hooks.delete_policies(resource.body)


def _finding(moment: Moment, new: Release, resource: Resource, deeds: list[Event]) -> Finding:
    ref, action = resource.ref, moment.ended.action
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage" if users_beyond_hooks(new, ref) else "failed-deploy",
        message=f"{ref} became a hook, and the {action} that makes it one leaves it deleted",
        details=(
            _what_helm_did(deeds, waits=moment.ended.outcome == "hung"),
            consumers_sentence(new, ref, said=pods_say(moment, ref)),
            _why_keep_failed(resource, deeds),
            _next_time(moment, ref),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=deeds,
        confirm=f"helm get hooks {moment.ended.release}  # lists it; helm get manifest no longer does",
    )


def _what_helm_did(deeds: list[Event], *, waits: bool) -> str:
    """The requests, in order, and whether Helm was content."""
    done = [_deed(event, last=event is deeds[-1], first=event is deeds[0]) for event in deeds]
    ends = "Then it waits for what needs it, in vain." if waits else "It reported success."
    return f"Helm {', '.join(done)}. {ends}"


def _why_keep_failed(resource: Resource, deeds: list[Event]) -> str:
    """Where the annotation that one would trust in stands on the hook, and the hook did not run."""
    if hooks.RESOURCE_POLICY not in annotations_of(resource.body) or len(deeds) > 1:
        return ""
    return (
        f"{hooks.RESOURCE_POLICY} does not save it: Helm looks for that on the object in the cluster, and no hook ran "
        "that could have put it there."
    )


def _next_time(moment: Moment, ref: Ref) -> str:
    """What becomes of it later; what deploying once more cures, one takes for chance."""
    later = next_time_sentence(moment, ref)
    comes_back = later.startswith("The next upgrade puts")
    return f"{later} That makes it look like chance." if comes_back else later


def _deed(event: Event, *, first: bool, last: bool) -> str:
    if last:
        again = "deleted it" if first else "then deleted it again"
        return f"{again} because the new manifest no longer lists it"
    if event.verb == "delete":
        return "found nothing to delete" if event.effect == "refused" else "deleted it by the hook's delete policy"
    return "made it anew as a hook"


RULE = Rule("ST201", "release-to-hook-flip", check)
