"""An object is looked up a moment after its definition was made, and the API server may not serve the kind yet.

## What happens
A new CustomResourceDefinition is accepted at once, but its kind is served only when the API server has established and
published it: some tenths of a second on an idle cluster, seconds on a busy one. Whoever asks in between is told
`no matches for kind`.

Helm 3 waits for the definitions of `crds/`, and so does Helm 4 from 4.3.1 on. Helm 4.0 to 4.3.0 wait only with `--wait`
(`--rollback-on-failure` alone comes too late for it). No Helm waits for a definition that is a hook or a template: a
hook of any kind but Job and Pod counts as done when it is there, and the next hook is looked up at once.

## Example
```yaml
# templates/crd.yaml makes the definition of Lock, as a plain object or as a hook
apiVersion: canal.example/v1
kind: Lock
metadata:
  name: north
  annotations:
    helm.sh/hook: post-install
```

## Instead
Put the definition into `crds/` and the object into `templates/`, and install with `--wait` where Helm is older than
4.3.1. Or give the definitions a chart of their own. Between two hooks, a Job that runs
`kubectl wait --for=condition=Established crd/...` closes the gap.

## Fix safety
`--wait` changes when Helm is content: it then waits for workloads too.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial import hooks
from seatrial.case import Case, Release, Resource
from seatrial.findings import Finding, Rule, found
from seatrial.resource import Ref
from seatrial.rules.aftermath import aftermath, helm_says, named
from seatrial.rules.serving import Unserved, defined_by, is_served_at_last, unserved
from seatrial.timeline import Event, Rehearsal

ESTABLISHED = '{.status.conditions[?(@.type=="Established")].lastTransitionTime}'


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release, kinds in unserved(rehearsal, case):
        defined = [(missing, defined_by((*release.resources, *release.crds), missing)) for missing in kinds]
        early = [
            (missing, definition, made)
            for missing, definition in defined
            if definition is not None and is_served_at_last(rehearsal, step, missing, definition.ref)
            if (made := _made(rehearsal, step, definition.ref)) is not None
        ]
        if early:
            yield _finding(rehearsal, case, step, release, *zip(*early, strict=True))
            return


def _made(rehearsal: Rehearsal, step: int, definition: Ref) -> Event | None:
    """How the same step had made the definition."""
    deeds = (e for e in rehearsal.of_step(step) if e.object == definition and e.actor == "helm")
    return next((event for event in deeds if event.effect in ("created", "changed")), None)


def _finding(
    rehearsal: Rehearsal,
    case: Case,
    step: int,
    release: Release,
    kinds: tuple[Unserved, ...],
    definitions: tuple[Resource, ...],
    made: tuple[Event, ...],
) -> Finding:
    ended = rehearsal.steps[step]
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    defined = sorted({definition.ref for definition in definitions})
    return found(
        RULE,
        rehearsal,
        step,
        objects=[*defined, *users],
        damage="failed-deploy",
        message=f"helm {ended.action} looks up {named(users)} right after it made {named(defined)}, and fails where "
        "the API server does not serve the kind yet",
        details=(helm_says(ended), _why(release, definitions[0]), aftermath(rehearsal, case, step)),
        places=[
            *(definition.place("metadata", "name") for definition in definitions),
            *(resource.place("apiVersion") for resource in written),
        ],
        evidence=made,
        confirm=f"kubectl get crd {defined[0].name} -o jsonpath='{ESTABLISHED}'  # later than Helm's error",
    )


def _why(release: Release, definition: Resource) -> str:
    if definition in release.crds:
        return (
            "Helm 4.0 to 4.3.0 wait for the definitions of crds/ only with --wait; Helm 3 and Helm 4 from 4.3.1 on "
            "always do."
        )
    if hooks.is_hook(definition.body):
        return "Helm waits for hooks that are Jobs or Pods; a definition counts as done as soon as it is there."
    return "Helm waits for no plain object without --wait, and looks up the hook as soon as the definition is accepted."


RULE = Rule("ST103", "crd-established-race", check)
