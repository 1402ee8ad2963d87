"""A chart defines a kind in a template and uses it in another, and Helm fails before it has made either.

## What happens
Helm asks the API server for the kind of every object of the manifest before it sends the first one. An object of a kind
that is not served yet ends the install there and then: `no matches for kind ... ensure CRDs are installed first`. That
definitions come early in Helm's order of kinds does not help, because nothing is sent in any order yet. Neither does it
help to make the definition a pre-install hook: hooks run after the whole manifest was looked up. Only the objects of
hooks are looked up one by one, when their turn comes.

The same happens later in life: an upgrade whose template adds a version to a definition and whose objects use that
version at once is refused, as the definition would only be changed afterwards.

`kubectl apply` looks up all kinds first as well, but leaves out only what it does not find: everything else is applied,
the definition too, and the second time works.

On a cluster that kept the definition from an earlier install of the release the very same chart goes through. That is
why it passes on the author's cluster and fails on a new one.

## Example
```yaml
# templates/crd.yaml: a CustomResourceDefinition of kind Lock
# templates/lock.yaml
apiVersion: canal.example/v1
kind: Lock
metadata:
  name: north
```

## Instead
Put the definition into `crds/` (Helm installs it before it looks anything up; it never upgrades it), or into a chart of
its own that is installed first.

## Fix safety
For releases that are installed already, moving the definition out of `templates/` makes the next upgrade delete it
with every object of its kind: let it carry `helm.sh/resource-policy: keep` one revision before it moves.
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
from seatrial.phrases.outcome import after_failure, helm_says, named, named_is


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if rehearsal.engine.name == "kubectl":
        yield from _left_out(rehearsal, case)
        return
    for step, release, kinds in unserved(rehearsal, case):
        defined = [(missing, defined_by(release.resources, missing)) for missing in kinds]
        late = [
            (missing, definition)
            for missing, definition in defined
            if definition is not None and not is_served_at_last(Moment(rehearsal, case, step), missing, definition.ref)
        ]
        if late:
            yield _finding(Moment(rehearsal, case, step), *zip(*late, strict=True))
            return


def _finding(moment: Moment, kinds: tuple[Unserved, ...], definitions: tuple[Resource, ...]) -> Finding:
    ended = moment.ended
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    defined = sorted({definition.ref for definition in definitions})
    return found(
        RULE,
        moment,
        objects=[*defined, *users],
        damage="failed-deploy",
        message=f"{helm_act(moment)} fails before it makes anything: {named_is(users)} of a kind that a "
        f"template of the same chart defines ({named(defined)})",
        details=(
            helm_says(ended),
            _why(definitions[0]),
            after_failure(moment),
            _where_it_works(moment.live(defined[0])),
        ),
        places=[
            *(definition.place("metadata", "name") for definition in definitions),
            *(resource.place("apiVersion") for resource in written),
        ],
        confirm=f"kubectl get crd {defined[0].name}  # not there, or without {kinds[0].api_version}",
    )


def _left_out(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """What one call of kubectl defines and uses: the definition is applied, and what is of it is not."""
    for step, release, kinds in unserved(rehearsal, case):
        brought = (*release.crds, *release.resources)
        for missing in kinds:
            definition = defined_by(brought, missing)
            if definition is None:
                continue
            yield found(
                RULE,
                Moment(rehearsal, case, step),
                objects=[definition.ref, *missing.users],
                damage="failed-deploy",
                message=f"kubectl apply leaves out {named(list(missing.users))}: {definition.ref} of the same call "
                "defines the kind, and kubectl looks up all kinds before it applies the first object",
                details=(
                    f'kubectl says: "{rehearsal.steps[step].error.strip()}"',
                    "All else is applied, the definition too, so the same command finds the kind when it is given "
                    "again. Neither the order of files and documents nor --server-side changes it.",
                ),
                places=[
                    definition.place("metadata", "name"),
                    *(resource.place("apiVersion") for resource in missing.written),
                ],
                confirm=f"kubectl get crd {definition.ref.name}  # there at once; {missing.users[0]} is not",
            )
        return


def _why(definition: Resource) -> str:
    looks = "Helm looks up the kind of every object of the manifest before it sends the first one"
    if hooks.is_hook(definition.body):
        return f"{looks}, and runs hooks only after that: a hook cannot bring the definition in time."
    return f"{looks}, so it does not help that definitions come before other kinds in its order."


def _where_it_works(live: Body | None) -> str:
    if live is None:
        return "Where the release finds a definition of its own, kept from an earlier install, it goes through."
    served = ", ".join(served_versions(live))
    return f"The definition that is there serves {served} only; what would change that is refused with the rest."


RULE = Rule("ST101", "crd-and-cr-in-same-templates", check)
