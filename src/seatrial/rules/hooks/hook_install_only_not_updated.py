"""An object is a hook for install only, so an upgrade neither creates it if it is missing nor updates it.

## What happens
`helm.sh/hook: pre-install` is often set on a Secret or a PVC to protect it from upgrades. But if an upgrade enables the
component, or a new chart version adds it, the hook never runs: the object is not created, and the pods that use it do
not start. If a new version changes a value, the object is not updated. Helm reports success in both cases, and `helm
get hooks` shows the new object.

A value that the template generates on every render (a random password) is meant to stay the same and is not reported.

## Example
```yaml
apiVersion: v1
kind: Secret
metadata:
  name: gossip-key          # mounted by a Deployment that is new in this version
  annotations:
    helm.sh/hook: pre-install
```

## Instead
Make it a regular resource. To keep a generated value, read it back with `lookup` and add `helm.sh/resource-policy:
keep`. Adding `pre-upgrade` to the hook creates the object if it is missing, but by default also deletes and recreates
it on each upgrade.

## Fix safety
If the object exists, a hook created it and Helm refuses to adopt it: upgrade once with `--take-ownership`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_input
from seatrial.helm import hooks
from seatrial.kinds.core.secret import default_secret
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import (
    ends,
    ends_sentence,
    evidence_of,
    hook_needs,
    look_at,
    said_of,
    says,
)
from seatrial.phrases.objects import consumers_sentence, in_kubectl, users_beyond_hooks, users_sentence

RUN = ("Job", "Pod")
"""Kinds that are meant to run once, on install."""
DATA = ("data", "binaryData")
RIGHTS = ("rules", "subjects")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if moment.ended.action != "upgrade" or old is None or new is None:
            continue
        for resource in new.resources:
            if not _is_install_only(resource):
                continue
            if _never_created(moment, resource.ref):
                yield _missing(moment, new, resource)
            elif keys := _stale(moment, resource):
                yield _outdated(moment, new, resource, keys)
    for lack in lacks(rehearsal, case):
        if lack.why == "never" and lack.event == "pre-upgrade":
            yield _for_a_hook(Moment(rehearsal, case, lack.step), lack)


def _is_install_only(resource: Resource) -> bool:
    body = resource.body
    runs_once = hooks.runs_at(body, "install") and not hooks.runs_at(body, "upgrade")
    return runs_once and resource.ref.kind not in RUN and hooks.SUCCEEDED not in hooks.delete_policies(body)


def _never_created(moment: Moment, ref: Ref) -> bool:
    """Whether it is missing and needed. One that was ever a regular resource is left to release-to-hook-flip."""
    new = moment.release
    users = [edge for edge in users_beyond_hooks(new, ref) if not edge.need.optional] if new else []
    written = (release.find(ref) for release in (moment.case.before, *moment.case.releases[: moment.index]) if release)
    was_regular = any(was is not None and not hooks.is_hook(was.body) for was in written)
    return bool(users) and not was_regular and moment.live(ref) is None


def _stale(moment: Moment, resource: Resource) -> list[str]:
    """Keys whose value the new revision changes, and that still have the old value."""
    old, here, ref = moment.before, moment.release, resource.ref
    was, there = old.find(ref) if old else None, moment.live(ref)
    # A second render of the same input shows which values are generated on every render.
    others = (
        r for i, r in enumerate(moment.case.releases) if i != moment.index and r is not None and same_input(r, here)
    )
    again = next((found for release in others if (found := release.find(ref))), None)
    if was is None or there is None or again is None or same_input(old, here):
        return []
    before, now, second, live = (_data(body) for body in (was.body, resource.body, again.body, there))
    return [key for key in sorted(now) if now[key] == second.get(key) != before.get(key) == live.get(key)]


def _data(body: Body) -> dict[str, Any]:
    """What others read of an object: the keys of its data, or the rules of a role and the subjects of a binding."""
    whole = default_secret(body) if body.get("kind") == "Secret" else body
    rights = {field: whole[field] for field in RIGHTS if whole.get(field)}
    return rights | {key: value for field in DATA for key, value in (whole.get(field) or {}).items()}


def _missing(moment: Moment, new: Release, resource: Resource) -> Finding:
    ref, result = resource.ref, moment.ended
    event = ", ".join(hooks.events_of(resource.body))
    reported = "Helm reports success." if result.outcome == "ok" else result.error
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"helm upgrade never creates {ref}: it is a hook for {event} only",
        details=(
            f"This revision needs it, it did not exist before, and an upgrade does not run {event} hooks. {reported}",
            consumers_sentence(new, ref, says(moment, ref)),
            "A fresh install creates it, so only upgrades of an existing release are affected.",
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=filter(None, [said_of(moment, ref)]),
        confirm=f"kubectl get {in_kubectl(ref)}  # after the upgrade",
    )


def _outdated(moment: Moment, new: Release, resource: Resource, keys: list[str]) -> Finding:
    ref = resource.ref
    named = f"key {keys[0]}" if len(keys) == 1 else f"keys {', '.join(keys)}"
    named = " and ".join(keys) if set(keys) <= set(RIGHTS) else named
    event = ", ".join(hooks.events_of(resource.body))
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"helm upgrade does not update {ref} ({named}): it is a hook for {event} only",
        details=(
            f"An upgrade does not run {event} hooks. Helm reports success, and helm get hooks shows the new content.",
            users_sentence(new, ref),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        confirm=f"kubectl get {in_kubectl(ref)} -o yaml  # compare with helm get hooks {moment.ended.release}",
    )


def _for_a_hook(moment: Moment, lack: Lack) -> Finding:
    assert lack.brought is not None
    events = ", ".join(hooks.events_of(lack.brought.body))
    return found(
        RULE,
        moment,
        objects=[lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, a hook for {events} only",
        details=("The object did not exist before.", ends_sentence(moment, lack)),
        places=[lack.brought.place("metadata", "annotations", hooks.HOOK), lack.hook.place(*lack.need.field)],
        evidence=evidence_of(moment, lack),
        confirm=look_at(lack),
    )


RULE = Rule("ST212", "hook-install-only-not-updated", check)
