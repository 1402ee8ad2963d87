"""A long-lived object is a hook, so every upgrade deletes the live one before it makes a new one.

## What happens
Without `helm.sh/hook-delete-policy`, or with `before-hook-creation`, Helm deletes whatever has the hook's kind and name
before it runs the hook. It does not ask whose object that is, and `helm.sh/resource-policy: keep` does not protect it.
For a Job that is meant. For a Namespace it deletes everything inside, whoever put it there; for a claim its data;
for a ServiceAccount the tokens of running pods stop being valid; for a Secret or ConfigMap there is a moment in which
pods that start fail, and random values are made anew.

Removing the delete policy changes nothing: absent means `before-hook-creation`.

A hook belongs to nobody. Where its name does not contain that of the release, a second release of the chart in the same
namespace deletes what the first one has and puts its own in its place, at once when it is installed; of a plain object
Helm would say that it is another release's, and stop.

## Example
```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: tenant-acme
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
```

## Instead
Make it a plain object of the release: Helm creates Namespaces, ServiceAccounts, Secrets, ConfigMaps and claims before
the workloads that use them, without any hook. If only a hook Job needs it, give that Job a copy of its own.

## Fix safety
Removing the hook annotations is itself a hook-to-release flip for releases that are already installed: adopt the object
first, or upgrade once with `--take-ownership`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import as_plain, cascade, held_up
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import consumers_sentence, users_beyond_hooks
from seatrial.phrases.recreated import LOST_MAX, back_sentence, damage_of, lost_sentence, with_it

MEANT = ("Job", "Pod", "CustomResourceDefinition")
"""Kinds that are made to be run again, and the one that Helm never deletes for a hook."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        for resource in new.resources if new else ():
            if (
                resource.ref.kind in MEANT
                or resource.ref in seen
                or not hooks.runs_at(resource.body, moment.ended.action)
            ):
                continue
            if new is None or as_plain(new, resource.ref):
                continue
            deletion = _deletion_of_live(moment, resource.ref)
            owner = _other_release(moment, resource.ref)
            if deletion is None or not (owner or _was_hook(old, resource)):
                continue
            finding = _finding(moment, owner or old, resource, deletion)
            if finding is not None:
                seen.add(resource.ref)
                yield finding


def _was_hook(old: Release | None, resource: Resource) -> bool:
    """An object that was plain before is another story (release-to-hook-flip), and so is one that is both."""
    was = old.find(resource.ref) if old else None
    return was is not None and hooks.is_hook(was.body)


def _other_release(moment: Moment, ref: Ref) -> Release | None:
    """The release that has made an object last, where that is not the one which a step is about."""
    made = (e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and 0 <= e.step < moment.index)
    last = max((event.step for event in made), default=moment.index)
    names = [(ended.release, ended.namespace) for ended in (moment.rehearsal.steps[last], moment.ended)]
    return moment.case.releases[last] if names[0] != names[1] else None


def _deletion_of_live(moment: Moment, ref: Ref) -> Event | None:
    """Helm's first deed to the object in this step, where that takes away what an earlier step left."""
    deeds = (e for e in moment.events() if e.object == ref and e.actor == "helm")
    first = next(deeds, None)
    return first if first is not None and first.effect in ("deleted", "deleting") else None


def _finding(moment: Moment, old: Release | None, resource: Resource, deletion: Event) -> Finding | None:
    ref, ended = resource.ref, moment.ended
    if old is None:
        return None
    shared = (old.name, old.namespace) != (ended.release, ended.namespace)
    lost = cascade(moment.rehearsal, deletion)
    users = users_beyond_hooks(old, ref)
    if not lost and not users and (ref.kind != "PersistentVolumeClaim" or held_up(moment, ref)):
        return None  # A claim that cannot go is told by hook-recreate-races-finalizer.
    what = f"{ref}{with_it(lost)}"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=damage_of(moment, ref, lost),
        message=f"helm {ended.action} of {ended.release} deletes {what}, which is that of release {old.name}"
        if shared
        else f"every helm {ended.action} deletes {what}, because it is a hook",
        details=(
            _policy_sentence(resource),
            _shared_sentence(old, ref) if shared else "",
            lost_sentence(moment, [event.object for event in lost]),
            consumers_sentence(old, ref),
            back_sentence(moment, ref),
            _outcome_sentence(moment),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=(deletion, *lost[:LOST_MAX]),
        confirm=_confirm(ref),
    )


def _shared_sentence(owner: Release, ref: Ref) -> str:
    was = owner.find(ref)
    if was is not None and not hooks.is_hook(was.body):
        return (
            f"There it is a plain object: Helm asks whose an object is for plain ones only. {owner.name} is deployed."
        )
    return (
        "Both releases have a hook of this name, and a hook belongs to nobody: each puts its own in the place of the "
        f"other's. {owner.name} still counts as deployed."
    )


def _policy_sentence(resource: Resource) -> str:
    if hooks.DELETE_POLICY in (resource.body.get("metadata") or {}).get("annotations", {}):
        return "Its delete policy is before-hook-creation: Helm deletes whatever has its name, whoever owns it."
    return (
        "It names no helm.sh/hook-delete-policy, and absent means before-hook-creation: Helm deletes whatever has its "
        "name, whoever owns it."
    )


def _outcome_sentence(moment: Moment) -> str:
    ended = moment.ended
    if ended.outcome == "ok":
        return "Helm reported success."
    return f'The {ended.action} {"hangs" if ended.outcome == "hung" else "fails"}: "{ended.error.strip()}"'


def _confirm(ref: Ref) -> str:
    namespaced = f" -n {ref.namespace}" if ref.namespace else ""
    return f"kubectl get {ref.kind.lower()} {ref.name}{namespaced} -o jsonpath='{{.metadata.uid}}'  # before and after"


RULE = Rule("ST203", "before-hook-creation-deletes-live-resource", check)
