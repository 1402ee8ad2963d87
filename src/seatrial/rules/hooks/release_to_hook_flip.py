"""A regular resource becomes a hook, and the upgrade that makes it one leaves it deleted.

## What happens
Helm compares the manifests of the old and the new revision and deletes what the new one no longer lists. Hooks are not
part of the manifest, so a regular resource that becomes a hook counts as removed. In that upgrade Helm

- runs the pre-upgrade hook: deletes the live object and recreates it as a hook;
- updates the other resources;
- deletes the object that its own hook has just created, because the new manifest does not list it.

Helm reports success. The next upgrade has nothing to remove and recreates the object, so deploying again seems to help
and the failure looks random. A hook Job that has run, and what only such Jobs need, has done its work by then: that is
a nuisance, and no finding if the same chart makes it a hook on upgrade only.

Helm reads `helm.sh/resource-policy: keep` from the live object before it deletes it. On the hook manifest in the same
upgrade it works. Added to the regular resource in an earlier revision it does not, because the hook replaces that
object.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config        # a regular resource in the previous revision
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
```

## Instead
Keep it a regular resource. If a hook Job needs it before the release does, give the Job a copy under another name. If
it must become a hook, add `helm.sh/resource-policy: keep` to it in the same upgrade.

## Fix safety
Adding `keep` is safe for the upgrade. Like any hook, the object stays behind when the release is uninstalled.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_input
from seatrial.graph import users_of
from seatrial.helm import hooks
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import (
    consumers_sentence,
    in_kubectl,
    next_time_sentence,
    pods_say,
    running_with,
    users_beyond_hooks,
)
from seatrial.phrases.outcome import first_named

RUNS = ("Job", "Pod")
UPGRADES = ("upgrade", "rollback", "sync", "up")
"""Steps in which Helm may upgrade a release: its own, and those of Flux and Pulumi."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        result = moment.ended
        if result.action not in UPGRADES or result.outcome == "failed" or old is None or new is None:
            continue
        for resource in new.resources:
            if not _flipped(old.find(resource.ref), resource) or resource.ref not in result.deleted:
                continue
            events = list(done_by_helm(moment, resource.ref))
            if not events or events[-1].effect not in GOING:
                continue
            served = _has_served(moment, new, resource.ref, events)
            if not (served and same_input(old, new)):
                yield _finding(moment, new, resource, events, served=served)


def _flipped(was: Resource | None, resource: Resource) -> bool:
    """A regular resource that becomes a hook. One with hook-succeeded is meant to be deleted."""
    if was is None or hooks.is_hook(was.body) or not hooks.is_hook(resource.body):
        return False
    return hooks.SUCCEEDED not in hooks.delete_policies(resource.body)


def _has_served(moment: Moment, new: Release, ref: Ref, events: list[Event]) -> bool:
    """Whether it ran as a hook or for hooks, and nothing that runs after its deletion needs it."""
    ran_as_hook = any(event.effect == "created" for event in events)
    if moment.ended.outcome != "ok" or not ran_as_hook or users_beyond_hooks(new, ref):
        return False
    users = {edge.user.ref for edge in users_of(new, ref) if edge.user.ref.kind in RUNS}
    later = (event for event in moment.events() if event.index > events[-1].index and event.effect == "created")
    return (ref.kind in RUNS or bool(users)) and users.isdisjoint(event.object for event in later)


def _finding(moment: Moment, new: Release, resource: Resource, events: list[Event], *, served: bool) -> Finding:
    ref, action = resource.ref, moment.ended.action
    unused: Damage = "nuisance" if served else "failed-deploy"
    unable = running_with(new, ref)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage" if users_beyond_hooks(new, ref) or unable else unused,
        message=f"{ref} became a hook: the {action} leaves it deleted",
        details=(
            _what_helm_did(events, waits=moment.ended.outcome == "hung"),
            "Its work was done by then, and nothing that runs later needs it." if served else "",
            consumers_sentence(new, ref, said=pods_say(moment, ref)),
            f"{first_named(unable)} has its rights from it: the API server rejects its requests (Forbidden)."
            if unable
            else "",
            _why_keep_failed(resource, events),
            _next_time(moment, ref, is_missed=not served),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=events,
        confirm=f"helm get hooks {moment.ended.release}  # lists it; helm get manifest no longer does"
        if moment.ended.action in ("upgrade", "rollback")
        else f"kubectl get {in_kubectl(ref)}  # not found after {moment.act}",
    )


def _what_helm_did(events: list[Event], *, waits: bool) -> str:
    """Helm's requests, in order, and how the step ended."""
    done = [_request(event, last=event is events[-1], first=event is events[0]) for event in events]
    ends = "It then waits forever for what needs it." if waits else "It reports success."
    return f"Helm {', '.join(done)}. {ends}"


def _why_keep_failed(resource: Resource, events: list[Event]) -> str:
    """The annotation is on the hook, but the hook did not run in this step."""
    if hooks.RESOURCE_POLICY not in annotations_of(resource.body) or len(events) > 1:
        return ""
    return (
        f"{hooks.RESOURCE_POLICY} has no effect: Helm reads it from the live object, and no hook ran in this step that "
        "could have added it there."
    )


def _next_time(moment: Moment, ref: Ref, *, is_missed: bool) -> str:
    """What the following steps do to it."""
    later = next_time_sentence(moment, ref)
    following = moment.rehearsal.steps[moment.index + 1 : moment.index + 2]
    recreated = any(result.action == "upgrade" and ref in result.created for result in following)
    return f"{later.removesuffix('.')}, so the failure looks random." if recreated and is_missed else later


def _request(event: Event, *, first: bool, last: bool) -> str:
    if last:
        again = "deleted it" if first else "then deleted it again"
        return f"{again} because the new manifest no longer lists it"
    if event.verb == "delete":
        return "found nothing to delete" if event.effect == "refused" else "deleted it under the hook's delete policy"
    return "recreated it as a hook"


RULE = Rule("ST201", "release-to-hook-flip", check)
