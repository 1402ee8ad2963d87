"""A chart has a CRD and a custom resource of it in its templates, and Helm fails before it creates either.

## What happens
Helm resolves the kind of every resource in the manifest before it sends the first one. A kind that is not served yet
ends the install: `no matches for kind ... ensure CRDs are installed first`. Helm's kind order puts CRDs early, but that
does not help, because nothing has been sent yet. A CRD as a pre-install hook does not help either: hooks run after the
whole manifest is resolved. Only hooks are resolved one by one, when Helm runs them.

Upgrades fail in the same way: if a template adds a version to a CRD and a custom resource uses that version at once,
the upgrade fails, because Helm would update the CRD only afterwards.

`kubectl apply` also resolves all kinds first, but skips only the resources it cannot resolve. It applies everything
else, the CRD included, so the second run works.

On a cluster that kept the CRD from an earlier install of the release, the same chart installs. So it works on the
author's cluster and fails on a new one.

## Example
```yaml
# templates/crd.yaml: the CustomResourceDefinition of kind Lock
# templates/lock.yaml
apiVersion: canal.example/v1
kind: Lock
metadata:
  name: north
```

## Instead
Put the CRD into `crds/` (Helm installs it before it resolves any kind, and never upgrades it), or into a separate chart
that is installed first.

## Fix safety
For an installed release, moving the CRD out of `templates/` makes the next upgrade delete it with every custom resource
of its kind: add `helm.sh/resource-policy: keep` to it one revision earlier.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import helm_act
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import (
    Unserved,
    defined_by,
    is_served_at_last,
    served_versions,
    unserved,
)
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import after_failure, first_named, helm_says


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if rehearsal.engine.name == "kubectl":
        yield from _left_out(rehearsal, case)
        return
    if rehearsal.engine.name == "pulumi":  # It resolves one resource at a time: pulumi-component-unordered reports it.
        return
    for step, release, kinds in unserved(rehearsal, case):
        defined = [(missing, defined_by(release.resources, missing)) for missing in kinds]
        late = [
            (missing, crd)
            for missing, crd in defined
            if crd is not None and not is_served_at_last(Moment(rehearsal, case, step), missing, crd.ref)
        ]
        if late:
            yield _finding(Moment(rehearsal, case, step), *zip(*late, strict=True))
            return


def _finding(moment: Moment, kinds: tuple[Unserved, ...], crds: tuple[Resource, ...]) -> Finding:
    ended = moment.ended
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    defined = sorted({crd.ref for crd in crds})
    return found(
        RULE,
        moment,
        objects=[*defined, *users],
        damage="failed-deploy",
        message=f"{helm_act(moment)} fails: {first_named(users)} needs {first_named(defined)} from a template of the "
        "same chart",
        details=(
            _why(crds[0]),
            helm_says(ended),
            after_failure(moment),
            _where_it_works(moment.live(defined[0])),
        ),
        places=[
            *(crd.place("metadata", "name") for crd in crds),
            *(resource.place("apiVersion") for resource in written),
        ],
        confirm=f"kubectl get crd {defined[0].name}  # does not exist, or does not serve {kinds[0].api_version}",
    )


def _left_out(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """CRDs and custom resources in one kubectl command: it applies the CRD and not the custom resource."""
    for step, release, kinds in unserved(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        for missing in kinds:
            crd = defined_by((*release.crds, *release.resources), missing)
            if crd is None:
                continue
            yield found(
                RULE,
                moment,
                objects=[crd.ref, *missing.users],
                damage="failed-deploy",
                message=f"kubectl apply skips {first_named(missing.users)}: {crd.ref} of the same "
                "command does not exist yet",
                details=(
                    "kubectl resolves all kinds before it applies the first object. Neither the order of files and "
                    "documents nor --server-side changes that.",
                    moment.says,
                    "Everything else is applied, the CRD included, so running the same command again succeeds.",
                ),
                places=[
                    crd.place("metadata", "name"),
                    *(resource.place("apiVersion") for resource in missing.written),
                ],
                confirm=f"kubectl get crd {crd.ref.name}  # exists at once; {missing.users[0]} does not",
            )
        return


def _why(crd: Resource) -> str:
    resolves = "Helm resolves the kind of every resource in the manifest before it sends the first one"
    if hooks.is_hook(crd.body):
        return f"{resolves}, and runs hooks only after that: a hook cannot create the CRD in time."
    return f"{resolves}, so it does not help that its kind order puts CRDs first."


def _where_it_works(live: Body | None) -> str:
    if live is None:
        return "It works on a cluster that kept the CRD from an earlier install of the release."
    served = ", ".join(served_versions(live))
    return f"The CRD in the cluster serves only {served}; the update that would change it is not sent."


RULE = Rule("ST101", "crd-and-cr-in-same-templates", check)
