"""A chart has an object twice, as a hook and as a plain object: for the hook, Helm deletes the one that is in use.

## What happens
Someone needs an account, a Secret or a ConfigMap in a pre-install hook, and writes it once more under the same name,
with hook annotations. To Helm these are two objects; to the cluster they are one. At every upgrade Helm deletes for the
hook's sake whatever has its name, which is the object that the app uses, makes it as a hook, deletes that too where the
policy is `hook-succeeded`, and makes the plain one again. Helm reports success.

What is made anew is another object of the same name. Tokens of an account that was deleted are refused, even if there
is a new account of that name, until each pod has got another. What was in a Secret beside what the chart writes is
lost. When a hook in between fails, `hook-succeeded` takes the object away (Helm 3.19 and later), and nothing brings it
back until an upgrade succeeds.

Helm 3 does not get so far without `hook-succeeded`: the first install fails with `already exists`.

## Example
```yaml
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app                    # the same
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
```

## Instead
Another name for the copy that the hook uses, such as `app-migration`.

## Fix safety
The hook has to be changed to use the new name, and roles have to be bound to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import as_hook, as_plain
from seatrial.evidence.hooks.runs import done_by_helm, helm_act
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_api, in_kubectl, users_beyond_hooks, users_sentence

GOING = ("deleted", "deleting")
UNAUTHORIZED = "Tokens that its pods have are of the account that is gone: the API server says Unauthorized to them."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for hook in release.resources if release else ():
            assert release is not None
            plain = as_plain(release, hook.ref)
            if hook is not as_hook(release, hook.ref) or plain is None or hook.ref in seen:
                continue
            deeds = [event for event in done_by_helm(moment, hook.ref) if event.effect != "refused"]
            if _takes_away(moment, hook.ref, deeds):
                seen.add(hook.ref)
                yield _finding(moment, release, hook, plain, deeds)


def _takes_away(moment: Moment, ref: Ref, deeds: list[Event]) -> bool:
    """Whether the object that was there was deleted, or the one that should be there is not."""
    deleted = any(event.effect in GOING for event in deeds)
    return deleted and (moment.was(ref) is not None or (moment.ended.outcome == "ok" and moment.live(ref) is None))


def _finding(moment: Moment, release: Release, hook: Resource, plain: Resource, deeds: list[Event]) -> Finding:
    ref = hook.ref
    stays_away = moment.live(ref) is None
    users = users_beyond_hooks(release, ref)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage" if users or stays_away else "nuisance",
        message=f"{helm_act(moment, ref)} deletes {ref} "
        f"{'and leaves it so' if stays_away else 'and makes it anew'}: the chart has it twice, as a hook and as a "
        "plain object",
        details=(
            f"Helm {', then '.join(map(_deed, deeds))}. To the cluster both are one object.",
            users_sentence(release, ref),
            UNAUTHORIZED if users and ref.kind == "ServiceAccount" else "",
            _between(hook) if not stays_away else "",
            _helm_3(hook),
        ),
        places=[hook.place("metadata", "name"), plain.place("metadata", "name")],
        evidence=deeds,
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.uid}}'  # before and after",
    )


def _deed(event: Event) -> str:
    if event.effect in GOING:
        return "deleted it"
    return "made it" if event.effect == "created" else "changed it"


def _between(hook: Resource) -> str:
    if hooks.SUCCEEDED not in hooks.delete_policies(hook.body):
        return ""
    return "Where a hook in between fails, it stays deleted until an upgrade succeeds."


def _helm_3(hook: Resource) -> str:
    if hooks.SUCCEEDED in hooks.delete_policies(hook.body) or not hooks.runs_at(hook.body, "install"):
        return ""
    return f'Helm 3 creates both, and its first install fails: "{in_api(hook.ref)} "{hook.ref.name}" already exists".'


RULE = Rule("ST218", "dual-identity-hook-copy", check)
