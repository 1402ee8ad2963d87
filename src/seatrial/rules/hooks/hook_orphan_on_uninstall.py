"""Objects that hooks created stay in the cluster when the release is uninstalled.

## What happens
`helm uninstall` deletes what the release manifest lists. Hooks of any kind are not part of it. A ClusterRole, Secret,
PriorityClass or PVC that a hook created stays, unless its delete policy has already deleted it. Helm does not report
this, and its list of hooks is deleted with the release.

What stays behind are permissions, passwords, names that the next install collides with (on Helm 3, `already exists`),
and resources that cost money. Not reported are

- objects with `helm.sh/resource-policy: keep`: Helm ignores it on hooks, but it shows that the object is meant to stay;
- completed Jobs and Pods, and CRDs;
- objects that a pre-delete or post-delete Job deletes with `kubectl delete`.

If such a Job runs an unknown program, the finding is *may*: it could clean up.

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
Use `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded` for objects that only the hook needs. Make objects
that the app needs regular resources. Delete the rest in a pre-delete or post-delete Job.

## Fix safety
`hook-succeeded` deletes the object as soon as all hooks of the event have succeeded. Do not use it for objects that are
used later.
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
HAVE_THEIR_OWN_RULE = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")
"""They break requests once their server is gone, which other rules report."""
NOT_REPORTED = (*ENDED, *HAVE_THEIR_OWN_RULE, "CustomResourceDefinition")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        if moment.ended.action != "uninstall" or moment.ended.outcome != "ok":
            continue
        # After a rollback, the newest release is still the one that its author can change.
        newest = acted_on(case, len(case.releases) - 1)
        written = [
            (newest.find(ref) if newest else None) or case.written(moment.index, ref) for ref in moment.ended.orphans
        ]
        left = [resource for resource in written if resource is not None and hooks.is_hook(resource.body)]
        cleaners = _cleaners(moment)
        orphans = [r for r in left if _is_reported(r) and not any(_deletes(cleaner, r.ref) for cleaner in cleaners)]
        if orphans:
            yield _finding(moment, orphans, [r.ref for r in left if r.ref.kind in ENDED], cleaners)


def _is_reported(resource: Resource) -> bool:
    return resource.ref.kind not in NOT_REPORTED and annotations_of(resource.body).get(hooks.RESOURCE_POLICY) != "keep"


def _cleaners(moment: Moment) -> list[Resource]:
    """The uninstall's hooks that run a program."""
    release = acted_on(moment.case, moment.index)
    run = {event.object for event in done_by_helm(moment) if event.object.kind in ENDED}
    return [hook for hook in release.resources if hook.ref in run] if release else []


def _deletes(cleaner: Resource, ref: Ref) -> bool:
    """Whether a script of the cleaner deletes this object, or all objects of its kind."""
    path = ("spec",) if cleaner.ref.kind == "Pod" else ("spec", "template", "spec")
    return any(
        (need.access.verb, need.access.group) == ("delete", ref.group)
        and need.access.resource == (plural_of(ref.group, ref.kind) or f"{ref.kind.lower()}s")
        and need.access.name in ("", ref.name)
        for need in needed(dig(cleaner.body, *path) or {}, cleaner.ref.namespace)
    )


def _finding(moment: Moment, resources: list[Resource], completed: list[Ref], cleaners: list[Resource]) -> Finding:
    refs = [resource.ref for resource in resources]
    more = f" and {len(refs) - 1} more object{'s' if len(refs) > 2 else ''}" if len(refs) > 1 else ""
    created = "which hooks created" if more else "which a hook created"
    listed = f"Left behind: {named(refs)}." if len(refs) > 1 else ""
    return found(
        RULE,
        moment,
        objects=refs,
        damage="nuisance",
        certainty="may" if cleaners else "will",
        message=f"helm uninstall leaves {refs[0]}{more} behind, {created}",
        details=(
            listed,
            "Helm deletes what the release manifest lists, and hooks are not part of it. It reports success, and its "
            "list of hooks is deleted with the release.",
            f"{named(c.ref for c in cleaners)} may delete it: its program is not run here." if cleaners else "",
            f"Also left behind, but completed: {named(completed)}." if completed else "",
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK) for resource in resources],
        evidence=filter(None, (_creation(moment, ref) for ref in refs)),
        confirm=f"kubectl get {in_kubectl(refs[0])}  # after helm uninstall {moment.ended.release}",
        removal=True,
    )


def _creation(moment: Moment, ref: Ref) -> Event | None:
    created = [e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step <= moment.index]
    return created[-1] if created else None


RULE = Rule("ST216", "hook-orphan-on-uninstall", check)
