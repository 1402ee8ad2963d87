"""A CRD moves from `crds/` into the templates, and Helm rejects every upgrade because it does not own the CRD.

## What happens
Helm adds no ownership metadata to what it installs from `crds/`. If the next revision has the same CRD in its
templates, Helm finds the CRD that its own install created, misses its label and annotations, and stops before anything
is changed: `invalid ownership metadata`. The check runs before the hooks, so a pre-upgrade hook cannot repair it. On a
new cluster the chart installs, so tests do not notice. A reinstall fails, because uninstall leaves what came from
`crds/`.

A CRD that is in `crds/` and in the templates of the same revision already fails on the first install: Helm creates the
one from `crds/` and then rejects the one from the templates.

## Example
```
crds/lock.yaml              in the previous revision
templates/crds/lock.yaml    in this one
```

## Instead
Adopt the CRDs before the upgrade (`kubectl label ... app.kubernetes.io/managed-by=Helm`,
`kubectl annotate ... meta.helm.sh/release-name=... meta.helm.sh/release-namespace=...`), or upgrade once with
`--take-ownership` (Helm 3.17 and later). Add `helm.sh/resource-policy: keep` to the template: from now on an uninstall
would delete the CRD with every custom resource of its kind. Or leave it in `crds/`.

## Fix safety
Adopting changes only metadata. Never delete the CRD to pass the check: its custom resources are deleted with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import came_from_crds
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import adoption
from seatrial.phrases.outcome import after_failure, first_named, helm_says


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        not_owned = {fault.object for fault in faults(moment.ended.failure, "not-owned")}
        moved = list(_moved(moment, moment.release)) if not_owned and moment.release else []
        if any(resource.ref in not_owned for resource, _ in moved):
            yield _finding(moment, moved)
            return


def _moved(moment: Moment, new: Release) -> Iterator[tuple[Resource, Resource]]:
    """CRDs in the templates that Helm created from a `crds/` folder before, each with its copy there."""
    for resource in new.resources:
        was = came_from_crds(moment, resource.ref)
        if was is not None and not hooks.is_hook(resource.body):
            yield resource, was


def _finding(moment: Moment, moved: list[tuple[Resource, Resource]]) -> Finding:
    ended, new = moment.ended, moment.release
    refs = [resource.ref for resource, _ in moved]
    twice = new is not None and all(was in new.crds for _, was in moved)
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        message=f"helm {ended.action} fails: {first_named(refs)} "
        + ("is both in crds/ and in the templates" if twice else "moved from crds/ into the templates"),
        details=(
            "Helm adds no ownership metadata to what it installs from crds/, so it treats the CRD as foreign. It "
            "checks before it runs any hook: a pre-upgrade hook cannot repair this.",
            helm_says(ended),
            after_failure(moment),
            "helm uninstall deletes a CRD in the templates with all its custom resources, unless it has "
            "helm.sh/resource-policy: keep.",
        ),
        way_out=(f"Remove {refs[0]} from crds/ or from the templates.",)
        if twice
        else (f"Leave {refs[0]} in crds/, or adopt the one that exists:", *adoption(refs[0], ended)),
        places=[
            *(resource.place("metadata", "name") for resource, _ in moved),
            *(was.place("metadata", "name") for _, was in moved),
        ],
        evidence=[
            e
            for e in moment.rehearsal.timeline
            if e.object in refs and e.effect == "created" and e.step <= moment.index
        ][:1],
        confirm=f"kubectl get crd {refs[0].name} -o jsonpath='{{.metadata.annotations}}'  # none from Helm",
    )


RULE = Rule("ST108", "crd-moves-crds-to-templates", check, before=("ownership-metadata-conflict",))
