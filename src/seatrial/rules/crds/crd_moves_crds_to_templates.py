"""A definition moves from `crds/` into the templates, and Helm refuses every upgrade because it does not own it.

## What happens
Helm writes no ownership metadata on what it installs from `crds/`. When the next revision has the same definition among
its templates, Helm finds the one that its own install left, misses its label and annotations, and stops before anything
is changed: `invalid ownership metadata`. The check comes before the hooks, so no pre-upgrade hook can repair it. On a
new cluster the same chart installs, which is why tests do not see it; a reinstall fails, as uninstall leaves what came
from `crds/`.

A definition that is in `crds/` and in the templates of one revision fails on the first install already: Helm makes the
one and then refuses the other.

## Example
```
crds/lock.yaml              in the revision before
templates/crds/lock.yaml    in this one
```

## Instead
Adopt the definitions before the upgrade (`kubectl label ... app.kubernetes.io/managed-by=Helm`,
`kubectl annotate ... meta.helm.sh/release-name=... meta.helm.sh/release-namespace=...`), or upgrade once with
`--take-ownership` (Helm 3.17 and later). Let the template carry `helm.sh/resource-policy: keep`: from now on an
uninstall would delete the definition, with every object of its kind. Or leave it in `crds/`.

## Fix safety
Adopting changes only metadata. Never delete the definition to get past the check: its objects go with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import came_from_crds
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import adoption
from seatrial.phrases.outcome import after_failure, helm_says, named, named_is

NOT_OURS = re.compile(
    r'CustomResourceDefinition "(?P<name>[^"]+)" in namespace "" exists and cannot be imported into the current release'
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        match, new = NOT_OURS.search(moment.ended.error), moment.release
        if moment.ended.outcome != "failed" or match is None or new is None:
            continue
        moved = list(_moved(moment, new))
        if any(resource.ref.name == match["name"] for resource, _ in moved):
            yield _finding(moment, moved)
            return


def _moved(moment: Moment, new: Release) -> Iterator[tuple[Resource, Resource]]:
    """Definitions among the templates that Helm itself once made from a `crds/` folder, with what was there."""
    for resource in new.resources:
        was = came_from_crds(moment, resource.ref)
        if was is not None and not hooks.is_hook(resource.body):
            yield resource, was


def _finding(moment: Moment, moved: list[tuple[Resource, Resource]]) -> Finding:
    ended, new = moment.ended, moment.release
    refs = [resource.ref for resource, _ in moved]
    twice = new is not None and all(was in new.crds for _, was in moved)
    refuses = f"helm {ended.action} refuses to take over what it made"
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        message=f"{named_is(refs)} in crds/ and among the templates, and {refuses}"
        if twice
        else f"{named(refs)} moved from crds/ into the templates, and {refuses}",
        details=(
            helm_says(ended),
            "Helm writes no ownership metadata on what it installs from crds/, so it takes the definition for someone "
            "else's. It looks before it runs any hook: no pre-upgrade hook can repair this.",
            after_failure(moment),
            "One of the two is enough." if twice else adoption(refs[0], ended),
            "What is among the templates is deleted by helm uninstall with all its objects, unless it carries "
            "helm.sh/resource-policy: keep.",
        ),
        places=[
            *(resource.place("metadata", "name") for resource, _ in moved),
            *(was.place("metadata", "name") for _, was in moved),
        ],
        evidence=[
            e
            for e in moment.rehearsal.timeline
            if e.object in refs and e.effect == "created" and e.step <= moment.index
        ][:1],
        confirm=f"kubectl get crd {refs[0].name} -o jsonpath='{{.metadata.annotations}}'  # none of Helm's",
    )


RULE = Rule("ST108", "crd-moves-crds-to-templates", check)
