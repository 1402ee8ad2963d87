"""A chart contains the same object as a hook and as a regular resource, so Helm deletes the one that is in use.

## What happens
A pre-install hook needs a ServiceAccount, a Secret or a ConfigMap, so the chart contains it a second time under the
same name, with hook annotations. To Helm these are two objects; in the cluster they are one. Every upgrade

- deletes the object that the app uses, because it has the hook's name;
- creates it as a hook, and deletes that again if the policy is `hook-succeeded`;
- creates the regular resource again.

Helm reports success. The recreated object is a different object with the same name. Tokens of the deleted
ServiceAccount are rejected until each pod gets a new one. Data that others added to the Secret is lost. If a hook in
between fails, `hook-succeeded` deletes the object (Helm 3.19 and later) and it stays deleted until an upgrade succeeds.

Without `hook-succeeded`, Helm 3 already fails at the first install: `already exists`.

## Example
```yaml
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app                    # the same name
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
```

## Instead
Give the hook's copy another name, such as `app-migration`.

## Fix safety
The hook must use the new name, and roles must be bound to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING, as_hook, as_regular
from seatrial.evidence.hooks.runs import done_by_helm, helm_act
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import confirm_twice, in_api, users_beyond_hooks, users_sentence

UNAUTHORIZED = "Tokens of running pods belong to the deleted ServiceAccount: the API server answers Unauthorized."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        if release is None or moment.ended.role == "remove":  # There its deletion is what was asked for.
            continue
        for hook in release.resources:
            regular = as_regular(release, hook.ref)
            if hook is not as_hook(release, hook.ref) or regular is None or hook.ref in seen:
                continue
            events = [event for event in done_by_helm(moment, hook.ref) if event.effect != "refused"]
            if _deletes_live(moment, hook.ref, events):
                seen.add(hook.ref)
                yield _finding(moment, release, hook, regular, events)


def _deletes_live(moment: Moment, ref: Ref, events: list[Event]) -> bool:
    """Whether Helm deleted the object that existed, or left none where there should be one."""
    deleted = any(event.effect in GOING for event in events)
    return deleted and (moment.was(ref) is not None or (moment.ended.outcome == "ok" and moment.live(ref) is None))


def _finding(moment: Moment, release: Release, hook: Resource, regular: Resource, events: list[Event]) -> Finding:
    ref = hook.ref
    stays_deleted = moment.live(ref) is None
    users = users_beyond_hooks(release, ref)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage" if users or stays_deleted else "nuisance",
        message=f"{helm_act(moment, ref)} {'deletes' if stays_deleted else 'deletes and recreates'} {ref}: it is a "
        "hook and a regular resource",
        details=(
            f"Helm {', then '.join(map(_request, events))}. The chart contains both; in the cluster they are the "
            "same object.",
            users_sentence(release, ref),
            UNAUTHORIZED if users and ref.kind == "ServiceAccount" else "",
            _between(hook) if not stays_deleted else "",
            _helm_3(hook),
        ),
        places=[hook.place("metadata", "name"), regular.place("metadata", "name")],
        evidence=events,
        confirm=confirm_twice(ref, "{.metadata.uid}", f"the {moment.ended.action}"),
    )


def _request(event: Event) -> str:
    if event.effect in GOING:
        return "deleted it"
    return "created it" if event.effect == "created" else "updated it"


def _between(hook: Resource) -> str:
    if hooks.SUCCEEDED not in hooks.delete_policies(hook.body):
        return ""
    return "If a hook in between fails, it stays deleted until an upgrade succeeds."


def _helm_3(hook: Resource) -> str:
    if hooks.SUCCEEDED in hooks.delete_policies(hook.body) or not hooks.runs_at(hook.body, "install"):
        return ""
    return f'Helm 3 creates both, so its first install fails: "{in_api(hook.ref)} "{hook.ref.name}" already exists".'


RULE = Rule("ST218", "dual-identity-hook-copy", check)
