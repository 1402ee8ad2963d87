"""A hook becomes a regular resource, and Helm refuses the upgrade because it does not own the object.

## What happens
Helm writes no ownership metadata on hooks. When a hook of the old revision is a regular resource in the new one, Helm
finds the object that its own hook left, misses the ownership label and annotations on it, and stops before it changes
anything: `invalid ownership metadata`. Helm checks this before it runs the new hooks, so no pre-upgrade hook can repair
it. A hook with the delete policy `hook-succeeded` is gone by then, and the upgrade works.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config        # had the annotation helm.sh/hook in the previous revision
```

## Instead
Give the regular resource another name; or adopt the existing object before the upgrade
(`kubectl label ... app.kubernetes.io/managed-by=Helm`, `kubectl annotate ... meta.helm.sh/release-name=...
meta.helm.sh/release-namespace=...`); or upgrade once with `--take-ownership`.

## Fix safety
Adopting changes only metadata. Deleting the object first works too, but it is missing until the upgrade recreates it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import adoption, in_kubectl


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        not_owned = {fault.object for fault in faults(moment.ended.failure, "not-owned")}
        if old is None or new is None:
            continue
        for resource in new.resources:
            was = old.find(resource.ref)
            if was is None or not hooks.is_hook(was.body) or hooks.is_hook(resource.body):
                continue
            if resource.ref in not_owned:
                yield _finding(moment, resource, was)


def _finding(moment: Moment, resource: Resource, was: Resource) -> Finding:
    ref, result = resource.ref, moment.ended
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} is no longer a hook: helm {result.action} refuses to adopt it",
        details=(
            f'Helm reports: "{result.error.strip().partition(";")[0]}"',
            "It is a regular resource now. Helm writes no ownership metadata on hooks, so it treats the object "
            "that its own hook left as foreign. It "
            "checks ownership before it runs any hook, so no pre-upgrade hook can repair this. Nothing was changed and "
            "no revision was recorded. Retrying fails the same way.",
        ),
        way_out=(f"Give {ref} another name, or adopt the one that exists:", *adoption(ref, result)),
        places=[resource.place("metadata", "name"), was.place("metadata", "annotations", hooks.HOOK)],
        evidence=_creation(moment, ref),
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _creation(moment: Moment, ref: Ref) -> list[Event]:
    """The hook that created the object, without ownership metadata."""
    events = [e for e in moment.rehearsal.of_object(ref) if e.step < moment.index and e.effect == "created"]
    return events[-1:]


RULE = Rule("ST202", "hook-to-release-flip", check, before=("ownership-metadata-conflict",))
