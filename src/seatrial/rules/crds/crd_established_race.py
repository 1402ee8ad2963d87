"""An object is looked up a moment after its definition was made, and the API server may not serve the kind yet.

## What happens
A new CustomResourceDefinition is accepted at once, but its kind is served only when the API server has established and
published it: some tenths of a second on an idle cluster, seconds on a busy one. Whoever asks in between is told
`no matches for kind`.

Helm 3 waits for the definitions of `crds/`, and so does Helm 4 from 4.3.1 on. Helm 4.0 to 4.3.0 wait only with `--wait`
(`--rollback-on-failure` alone comes too late for it). No Helm waits for a definition that is a hook or a template: a
hook of any kind but Job and Pod counts as done when it is there, and the next hook is looked up at once.

`kubectl apply` ends when the definition is accepted. A second command right after it, in a script or a pipeline, may
come too early; in one command it always does (see crd-and-cr-in-same-templates).

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
`kubectl wait --for=condition=Established crd/...` closes the gap; so it does between two commands of kubectl.

## Fix safety
`--wait` changes when Helm is content: it then waits for workloads too.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import helm_act
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import Unserved, defined_by, is_served_at_last, unserved
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure, named

BY_HAND = ("kubectl", "someone")
BETWEEN = (
    "kubectl waits for nothing that it applies. Between the two commands: kubectl wait --for=condition=Established crd "
    "--all."
)
ESTABLISHED = '{.status.conditions[?(@.type=="Established")].lastTransitionTime}'


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release, kinds in unserved(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        by_kubectl = moment.speaker == "kubectl"
        brought = list(case.all_resources()) if by_kubectl else [*release.resources, *release.crds]
        defined = [(missing, defined_by(brought, missing)) for missing in kinds]
        early = [
            (missing, definition, made)
            for missing, definition in defined
            if definition is not None and is_served_at_last(moment, missing, definition.ref)
            if (made := (_made_before if by_kubectl else _made)(moment, definition.ref)) is not None
        ]
        if early:
            yield _finding(moment, release, *zip(*early, strict=True))
            return


def _made(moment: Moment, definition: Ref) -> Event | None:
    """How the same step had made the definition."""
    deeds = (e for e in moment.events() if e.object == definition and e.actor == "helm")
    return next((event for event in deeds if event.effect in ("created", "changed")), None)


def _made_before(moment: Moment, definition: Ref) -> Event | None:
    """How an earlier command had made it; what the same one makes, it looks up in vain for another reason."""
    made = (e for e in moment.rehearsal.of_object(definition) if e.effect == "created" and e.actor in BY_HAND)
    return next((event for event in made if event.step < moment.index), None)


def _finding(
    moment: Moment,
    release: Release,
    kinds: tuple[Unserved, ...],
    definitions: tuple[Resource, ...],
    made: tuple[Event, ...],
) -> Finding:
    who = moment.speaker
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    defined = sorted({definition.ref for definition in definitions})
    return found(
        RULE,
        moment,
        objects=[*defined, *users],
        damage="failed-deploy",
        message=f"{helm_act(moment)} looks up {named(users)} right after "
        f"{_maker(moment.rehearsal, made[0])} made {named(defined)}, and fails where the API server does not serve the "
        "kind yet",
        details=(
            moment.says,
            BETWEEN if made[0].actor in BY_HAND else _why(release, definitions[0]),
            after_failure(moment),
        ),
        places=[
            *(definition.place("metadata", "name") for definition in definitions),
            *(resource.place("apiVersion") for resource in written),
        ],
        evidence=made,
        confirm=f"kubectl get crd {defined[0].name} -o jsonpath='{ESTABLISHED}'  # later than {who}'s error",
    )


def _maker(rehearsal: Rehearsal, made: Event) -> str:
    return f"the {rehearsal.steps[made.step].action} before it" if made.actor in BY_HAND else "it"


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
