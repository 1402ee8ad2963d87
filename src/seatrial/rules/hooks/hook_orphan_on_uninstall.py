"""Objects that hooks have made stay in the cluster when the release is uninstalled.

## What happens
`helm uninstall` deletes what the manifest of the release lists. Hooks are not in it, whatever their kind. A
ClusterRole, a Secret, a PriorityClass or a claim that was made as a hook stays, unless its delete policy has taken it
away earlier. Helm neither says so nor keeps a list: with the release its record of hooks is gone.

Left behind are rights and passwords, names that the next install collides with (on Helm 3, `already exists`), and
things that are paid for. What is meant to stay can say so with `helm.sh/resource-policy: keep`; for hooks that has no
effect on Helm, and it is not told here. Jobs and Pods that have ended, and definitions, are not told either. Nor is
what a Job of pre-delete or post-delete names in a `kubectl delete`. Where there is such a Job that does something else,
it *may* clean up: no program is run here.

## Example
```yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: app-setup
  annotations:
    helm.sh/hook: post-install
    helm.sh/hook-delete-policy: before-hook-creation
```

## Instead
`helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded` for what only the hook needs. A plain object for what
the app needs. A pre-delete or post-delete Job for the rest.

## Fix safety
`hook-succeeded` deletes the object as soon as all hooks of the event have succeeded: not for what is used later.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import acted_on, done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.kinds.scripts.commands import needed
from seatrial.kinds.tables.catalogue import plural_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named

ENDED = ("Job", "Pod")
BETTER_TOLD = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")
"""What goes on without its server is more than a leftover, and other rules tell that."""
NOT_TOLD = (*ENDED, *BETTER_TOLD, "CustomResourceDefinition")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        if moment.ended.action != "uninstall" or moment.ended.outcome != "ok":
            continue
        # Where a rollback came between, it is still the newest release that its author can change.
        newest = acted_on(case, len(case.releases) - 1)
        written = [
            (newest.find(ref) if newest else None) or case.written(moment.index, ref) for ref in moment.ended.orphans
        ]
        left = [resource for resource in written if resource is not None and hooks.is_hook(resource.body)]
        cleaners = _cleaners(moment)
        told = [r for r in left if _is_told(r) and not any(_deletes(cleaner, r.ref) for cleaner in cleaners)]
        if told:
            yield _finding(moment, told, [r.ref for r in left if r.ref.kind in ENDED], cleaners)


def _is_told(resource: Resource) -> bool:
    return resource.ref.kind not in NOT_TOLD and annotations_of(resource.body).get(hooks.RESOURCE_POLICY) != "keep"


def _cleaners(moment: Moment) -> list[Resource]:
    """The hooks of an uninstall that run a program."""
    release = acted_on(moment.case, moment.index)
    run = {event.object for event in done_by_helm(moment) if event.object.kind in ENDED}
    return [hook for hook in release.resources if hook.ref in run] if release else []


def _deletes(cleaner: Resource, ref: Ref) -> bool:
    """Whether a script of the cleaner asks for the deletion of this object, or of all of its kind."""
    path = ("spec",) if cleaner.ref.kind == "Pod" else ("spec", "template", "spec")
    return any(
        (need.access.verb, need.access.group) == ("delete", ref.group)
        and need.access.resource == (plural_of(ref.group, ref.kind) or f"{ref.kind.lower()}s")
        and need.access.name in ("", ref.name)
        for need in needed(dig(cleaner.body, *path) or {}, cleaner.ref.namespace)
    )


def _finding(moment: Moment, resources: list[Resource], ended_too: list[Ref], cleaners: list[Resource]) -> Finding:
    refs = [resource.ref for resource in resources]
    more = f" and {len(refs) - 1} more object{'s' if len(refs) > 2 else ''} that hooks made"
    what = f"{refs[0]}{more}" if len(refs) > 1 else f"{refs[0]}, which a hook made"
    listed = f"Left behind: {named(refs)}." if len(refs) > 1 else ""
    return found(
        RULE,
        moment,
        objects=refs,
        damage="nuisance",
        certainty="may" if cleaners else "will",
        message=f"helm uninstall leaves {what}",
        details=(
            listed,
            "Helm deletes what the manifest of the release lists, and hooks are not in it. It reported success, and "
            "its list of hooks is gone with the release.",
            f"Unless {named(c.ref for c in cleaners)} deletes it: its program is not run here." if cleaners else "",
            f"Also left, but ended: {named(ended_too)}." if ended_too else "",
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK) for resource in resources],
        evidence=filter(None, (_made(moment, ref) for ref in refs)),
        confirm=f"kubectl get {in_kubectl(refs[0])}  # after helm uninstall {moment.ended.release}",
    )


def _made(moment: Moment, ref: Ref) -> Event | None:
    made = [e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step <= moment.index]
    return made[-1] if made else None


RULE = Rule("ST216", "hook-orphan-on-uninstall", check)
