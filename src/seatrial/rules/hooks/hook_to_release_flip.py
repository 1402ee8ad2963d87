"""A hook becomes a plain object of the release, and Helm refuses the upgrade because it does not own it.

## What happens
Helm writes no ownership metadata on hooks. When a hook of the old revision is a plain object of the new one, Helm looks
whether an object of that name is there, finds the one its own hook left, misses its label and annotations, and stops
before anything is changed: `invalid ownership metadata`. The check comes before the hooks of the new revision, so no
pre-upgrade hook can repair it. A hook with the delete policy `hook-succeeded` is gone by then, and the upgrade works.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config        # had the annotation helm.sh/hook in the revision before
```

## Instead
Give the plain object another name; or adopt the one that is there before the upgrade
(`kubectl label ... app.kubernetes.io/managed-by=Helm`, `kubectl annotate ... meta.helm.sh/release-name=...
meta.helm.sh/release-namespace=...`); or upgrade once with `--take-ownership`.

## Fix safety
Adopting changes only metadata. Deleting the object first works as well, at the price of a moment without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import adoption, in_kubectl

NOT_OURS = "cannot be imported into the current release: invalid ownership metadata"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if moment.ended.outcome != "failed" or NOT_OURS not in moment.ended.error or old is None or new is None:
            continue
        for resource in new.resources:
            was = old.find(resource.ref)
            if was is None or not hooks.is_hook(was.body) or hooks.is_hook(resource.body):
                continue
            if _named(resource.ref) in moment.ended.error:
                yield _finding(moment, resource, was)


def _named(ref: Ref) -> str:
    """How Helm names an object in this complaint."""
    return f'{ref.kind} "{ref.name}" in namespace "{ref.namespace}" exists'


def _finding(moment: Moment, resource: Resource, was: Resource) -> Finding:
    ref, ended = resource.ref, moment.ended
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} was a hook and is now a plain object: helm {ended.action} refuses to take it over",
        details=(
            f'Helm says: "{ended.error.strip()}"',
            "Helm writes no ownership metadata on hooks, so it takes the object that its own hook left for someone "
            "else's. It looks before it runs any hook: no pre-upgrade hook can repair this. Nothing was changed and "
            "no revision was recorded; every further try fails alike.",
            adoption(ref, ended),
        ),
        places=[resource.place("metadata", "name"), was.place("metadata", "annotations", hooks.HOOK)],
        evidence=_made_by_hook(moment, ref),
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _made_by_hook(moment: Moment, ref: Ref) -> list[Event]:
    """How the object came to be there, without ownership metadata."""
    events = [e for e in moment.rehearsal.of_object(ref) if e.step < moment.index and e.effect == "created"]
    return events[-1:]


RULE = Rule("ST202", "hook-to-release-flip", check)
