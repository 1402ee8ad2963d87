"""An object is a hook of the install only, so an upgrade neither makes it where it is missing nor updates it.

## What happens
`helm.sh/hook: pre-install` is often put on a Secret or a claim to protect it from upgrades. It does that, and more. Who
enables the component with an upgrade, or gets it with a new version of the chart, never runs that hook: the object is
not made, and the pods that name it do not start. A value that the new version changes in it is ignored. Helm reports
success both times, and `helm get hooks` shows the object as it should be.

What a template makes up anew each time (a random password) is meant to stay as it was, and is not told.

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
Make it a plain object. To keep what was made once, read it back with `lookup`, and add `helm.sh/resource-policy: keep`.
Adding `pre-upgrade` creates it where it is missing, and by default deletes it before each upgrade.

## Fix safety
Where the object exists, it was made by a hook and Helm refuses to own it: upgrade once with `--take-ownership`.
"""

from __future__ import annotations

from collections.abc import Iterator

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
"""What runs once at the install is meant to."""
DATA = ("data", "binaryData")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if moment.ended.action != "upgrade" or old is None or new is None:
            continue
        for resource in new.resources:
            if not _is_of_the_install_only(resource):
                continue
            if _never_made(moment, resource.ref):
                yield _missing(moment, new, resource)
            elif keys := _stale(moment, resource):
                yield _outdated(moment, new, resource, keys)
    for lack in lacks(rehearsal, case):
        if lack.why == "never" and lack.event == "pre-upgrade":
            yield _for_a_hook(rehearsal, case, lack)


def _is_of_the_install_only(resource: Resource) -> bool:
    body = resource.body
    made_once = hooks.runs_at(body, "install") and not hooks.runs_at(body, "upgrade")
    return made_once and resource.ref.kind not in RUN and hooks.SUCCEEDED not in hooks.delete_policies(body)


def _never_made(moment: Moment, ref: Ref) -> bool:
    """Whether it is missing and missed. What was plain in any revision is another story: release-to-hook-flip."""
    new = moment.release
    users = [edge for edge in users_beyond_hooks(new, ref) if not edge.need.optional] if new else []
    written = (release.find(ref) for release in (moment.case.before, *moment.case.releases[: moment.index]) if release)
    plain = any(was is not None and not hooks.is_hook(was.body) for was in written)
    return bool(users) and not plain and moment.live(ref) is None


def _stale(moment: Moment, resource: Resource) -> list[str]:
    """Keys whose value the new revision changes, and that are still as the old one wrote them."""
    old, here, ref = moment.before, moment.release, resource.ref
    was, there = old.find(ref) if old else None, moment.live(ref)
    # Another rendering of the same tells values from what is made up each time.
    others = (
        r for i, r in enumerate(moment.case.releases) if i != moment.index and r is not None and same_input(r, here)
    )
    again = next((found for release in others if (found := release.find(ref))), None)
    if was is None or there is None or again is None or same_input(old, here):
        return []
    before, now, second, live = (_data(body) for body in (was.body, resource.body, again.body, there))
    return [key for key in sorted(now) if now[key] == second.get(key) != before.get(key) == live.get(key)]


def _data(body: Body) -> dict[str, str]:
    whole = default_secret(body) if body.get("kind") == "Secret" else body
    return {key: value for field in DATA for key, value in (whole.get(field) or {}).items()}


def _missing(moment: Moment, new: Release, resource: Resource) -> Finding:
    ref, ended = resource.ref, moment.ended
    event = ", ".join(hooks.events_of(resource.body))
    reported = "Helm reported success." if ended.outcome == "ok" else ended.error
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"helm upgrade never makes {ref}, which is a hook of {event} only and needed from this revision on",
        details=(
            f"No object of that name was there before, and an upgrade runs no {event} hook. {reported}",
            consumers_sentence(new, ref, says(moment, ref)),
            "A fresh install makes it: only those who have the release see this.",
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=filter(None, [said_of(moment, ref)]),
        confirm=f"kubectl get {in_kubectl(ref)}  # after the upgrade",
    )


def _outdated(moment: Moment, new: Release, resource: Resource, keys: list[str]) -> Finding:
    ref = resource.ref
    named = f"key {keys[0]}" if len(keys) == 1 else f"keys {', '.join(keys)}"
    event = ", ".join(hooks.events_of(resource.body))
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"helm upgrade leaves {ref} as it is, though this revision changes it ({named})",
        details=(
            f"It is a hook of {event} only, which no upgrade runs. Helm reported success, and helm get hooks shows the "
            "new content.",
            users_sentence(new, ref),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        confirm=f"kubectl get {in_kubectl(ref)} -o yaml  # beside helm get hooks {moment.ended.release}",
    )


def _for_a_hook(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    events = ", ".join(hooks.events_of(lack.brought.body))
    return found(
        RULE,
        moment,
        objects=[lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, which is a hook of {events} only",
        details=("Nothing of that name was there before.", ends_sentence(rehearsal, case, lack)),
        places=[lack.brought.place("metadata", "annotations", hooks.HOOK), lack.hook.place(*lack.need.field)],
        evidence=evidence_of(rehearsal, case, lack),
        confirm=look_at(lack),
    )


RULE = Rule("ST212", "hook-install-only-not-updated", check)
