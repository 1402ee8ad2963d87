"""A long-lived object is a hook, so every upgrade deletes the live object before it creates a new one.

## What happens
Without `helm.sh/hook-delete-policy`, or with `before-hook-creation`, Helm deletes the object with the hook's kind and
name before it runs the hook. It does not check who owns that object, and `helm.sh/resource-policy: keep` does not
protect it. For a Job this is intended. For other kinds it causes damage:

- Namespace: everything in it is deleted, including what others created there.
- PVC: its volume is deleted with it, unless the reclaim policy is Retain.
- ServiceAccount: the tokens of running pods become invalid.
- Secret or ConfigMap: pods that start before it is recreated fail, and random values are generated again.
- Deployment, StatefulSet or DaemonSet: its pods are deleted with it.
- Custom resource: what its operator created for it is deleted with it (the Secret of an ExternalSecret, the database of
  a Cluster). If the operator is not modelled, the finding is `may`.

Removing the delete policy changes nothing: the default is `before-hook-creation`.

Hooks have no owner. If the hook's name does not contain the release name, a second release of the chart in the same
namespace deletes the first release's object and creates its own as soon as it is installed. For a regular resource Helm
would report that the object belongs to another release, and stop.

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
Make it a regular resource: Helm creates Namespaces, ServiceAccounts, Secrets, ConfigMaps and PVCs before the workloads
that use them, without any hook. If only a hook Job needs it, give that Job its own copy.

## Fix safety
In an existing release, removing the hook annotations makes Helm refuse the upgrade (hook-to-release-flip): adopt the
object first, or upgrade once with `--take-ownership`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING, as_regular, cascade, held_up
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import confirm_twice, consumers_sentence, users_beyond_hooks
from seatrial.phrases.recreated import LOST_MAX, back_sentence, damage_of, ended_with, lost_sentence, with_it

EXEMPT = ("Job", "Pod", "CustomResourceDefinition")
"""Kinds that a hook is meant to recreate, and the one that Helm never deletes for a hook."""
DELETES_ANY = "before it runs the hook, Helm deletes the object with that name, regardless of its owner."
OWN_NAMES = "Give {} another name in each release, with {{{{ .Release.Name }}}} in it, or let a single release have it."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        old, new = moment.before or _tried_before(moment), moment.release
        for resource in new.resources if new else ():
            runs = hooks.runs_at(resource.body, moment.ended.action)
            if resource.ref.kind in EXEMPT or resource.ref in seen or not runs:
                continue
            if new is None or as_regular(new, resource.ref):
                continue
            deletion = _deletion_of_live(moment, resource.ref)
            owner = _other_release(moment, resource.ref)
            if deletion is None or not (owner or _was_hook(old, resource)):
                continue
            finding = _finding(moment, owner or old, resource, deletion)
            if finding is not None:
                seen.add(resource.ref)
                yield finding


def _tried_before(moment: Moment) -> Release | None:
    """The release that the step before tried to deploy: it failed, but its hooks are there."""
    last = moment.index - 1
    ended = moment.rehearsal.steps[last] if last >= 0 else moment.ended
    same = (ended.release, ended.namespace) == (moment.ended.release, moment.ended.namespace)
    return moment.case.releases[last] if last >= 0 and same and ended.role != "remove" else None


def _was_hook(old: Release | None, resource: Resource) -> bool:
    """Whether it was a hook before. A regular resource that becomes one is reported by release-to-hook-flip."""
    was = old.find(resource.ref) if old else None
    return was is not None and hooks.is_hook(was.body)


def _other_release(moment: Moment, ref: Ref) -> Release | None:
    """The release that created the object last, if it is not the release of this step."""
    created = (e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and 0 <= e.step < moment.index)
    last = max((event.step for event in created), default=moment.index)
    names = [(result.release, result.namespace) for result in (moment.rehearsal.steps[last], moment.ended)]
    return moment.case.releases[last] if names[0] != names[1] else None


def _deletion_of_live(moment: Moment, ref: Ref) -> Event | None:
    """Helm's first request for the object in this step, if it deletes what an earlier step left."""
    first = next(done_by_helm(moment, ref), None)
    return first if first is not None and first.effect in GOING else None


def _finding(moment: Moment, old: Release | None, resource: Resource, deletion: Event) -> Finding | None:
    ref, result = resource.ref, moment.ended
    if old is None:
        return None
    shared = (old.name, old.namespace) != (result.release, result.namespace)
    lost = cascade(moment.rehearsal, deletion)
    used = lost or users_beyond_hooks(old, ref)
    claim = ref.kind == "PersistentVolumeClaim" and not held_up(moment, ref)  # Else hook-recreate-races-finalizer.
    ended = None if used or claim else ended_with(moment, ref, deletion)
    if not used and not claim and ended is None:
        return None
    what = f"{ref}{with_it(lost)}{ended.words if ended else ''}"
    return found(
        RULE,
        moment,
        objects=[ref],
        certainty=ended.certainty if ended else "will",
        damage=ended.damage if ended else damage_of(moment, ref, lost),
        message=f"helm {result.action} of {result.release} deletes {what}, which belongs to release {old.name}"
        if shared
        else f"every helm {result.action} deletes {what}, because it is a hook",
        details=(
            _policy_sentence(resource),
            _shared_sentence(old, ref) if shared else "",
            lost_sentence(moment, [event.object for event in lost]),
            ended.sentence if ended else "",
            consumers_sentence(old, ref),
            back_sentence(moment, ref),
            _outcome_sentence(moment),
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=(deletion, *lost[:LOST_MAX], *(ended.events[:LOST_MAX] if ended else ())),
        confirm=confirm_twice(ref, "{.metadata.uid}", f"the {result.action}"),
        way_out=(OWN_NAMES.format(ref),) if shared else (),
    )


def _shared_sentence(owner: Release, ref: Ref) -> str:
    was = owner.find(ref)
    if was is not None and not hooks.is_hook(was.body):
        return (
            f"In {owner.name} it is a regular resource, but Helm does not check who owns the object that a hook "
            f"replaces. {owner.name} stays deployed."
        )
    return (
        "Both releases have a hook of this name, and hooks have no owner: each release replaces the other's object. "
        f"{owner.name} stays deployed."
    )


def _policy_sentence(resource: Resource) -> str:
    if hooks.DELETE_POLICY in (resource.body.get("metadata") or {}).get("annotations", {}):
        return f"Its delete policy is before-hook-creation: {DELETES_ANY}"
    return f"It has no helm.sh/hook-delete-policy, and the default is before-hook-creation: {DELETES_ANY}"


def _outcome_sentence(moment: Moment) -> str:
    result = moment.ended
    if result.outcome == "ok":
        return "Helm reports success."
    return f'The {result.action} {"hangs" if result.outcome == "hung" else "fails"}: "{result.error.strip()}"'


RULE = Rule("ST203", "before-hook-creation-deletes-live-resource", check)
