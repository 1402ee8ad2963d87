"""A custom resource is resolved right after its CRD is created, and the API server may not serve the kind yet.

## What happens
The API server accepts a new CustomResourceDefinition at once, but serves its kind only after the CRD is established and
published: some tenths of a second on an idle cluster, seconds on a busy one. Until then clients get
`no matches for kind`.

Helm 3 waits for the CRDs in `crds/`, and so does Helm 4 from 4.3.1 on. Helm 4.0 to 4.3.0 wait only with `--wait`
(`--rollback-on-failure` alone waits too late). No Helm version waits for a CRD that is a hook or a template: a hook of
any kind but Job and Pod counts as done once it is created, and Helm resolves the next hook at once.

`kubectl apply` returns when the CRD is accepted. A second command right after it, in a script or a pipeline, may run
too early; within one command it always does (see crd-and-cr-in-same-templates).

## Example
```yaml
# templates/crd.yaml has the CRD of Lock, as a regular resource or as a hook
apiVersion: canal.example/v1
kind: Lock
metadata:
  name: north
  annotations:
    helm.sh/hook: post-install
```

## Instead
Put the CRD into `crds/` and the custom resource into `templates/`, and install with `--wait` if Helm is older than
4.3.1. Or put the CRDs into a separate chart. Between two hooks, add a hook Job that runs
`kubectl wait --for=condition=Established crd/...`; between two kubectl commands, run the same command.

## Fix safety
`--wait` makes Helm wait for workloads too.
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
from seatrial.phrases.outcome import after_failure, first_named

BY_HAND = ("kubectl", "user")
BETWEEN = (
    "kubectl does not wait for what it applies. Between the two commands, run: kubectl wait "
    "--for=condition=Established crd --all."
)
ESTABLISHED = '{.status.conditions[?(@.type=="Established")].lastTransitionTime}'


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release, kinds in unserved(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        by_kubectl = moment.speaker == "kubectl"
        brought = list(case.all_resources()) if by_kubectl else [*release.resources, *release.crds]
        defined = [(missing, defined_by(brought, missing)) for missing in kinds]
        early = [
            (missing, crd, made)
            for missing, crd in defined
            if crd is not None and is_served_at_last(moment, missing, crd.ref)
            if (made := (_created_before if by_kubectl else _written)(moment, crd.ref)) is not None
        ]
        if early:
            yield _finding(moment, release, *zip(*early, strict=True))
            return


def _written(moment: Moment, crd: Ref) -> Event | None:
    """Helm creates or updates the CRD in the same step."""
    events = (e for e in moment.events() if e.object == crd and e.actor == "helm")
    return next((event for event in events if event.effect in ("created", "changed")), None)


def _created_before(moment: Moment, crd: Ref) -> Event | None:
    """An earlier command creates the CRD; within one command kubectl never finds the kind."""
    created = (e for e in moment.rehearsal.of_object(crd) if e.effect == "created" and e.actor in BY_HAND)
    return next((event for event in created if event.step < moment.index), None)


def _finding(
    moment: Moment,
    release: Release,
    kinds: tuple[Unserved, ...],
    crds: tuple[Resource, ...],
    written_at: tuple[Event, ...],
) -> Finding:
    who = moment.speaker
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    defined = sorted({crd.ref for crd in crds})
    are = "are" if len(defined) > 1 else "is"
    return found(
        RULE,
        moment,
        objects=[*defined, *users],
        damage="failed-deploy",
        message=f"{helm_act(moment)} fails if {first_named(defined)} {are} not served yet",
        details=(
            f"{moment.speaker} resolves {first_named(users)} right after the CRD is "
            f"{'updated' if written_at[0].effect == 'changed' else 'created'}.",
            BETWEEN if written_at[0].actor in BY_HAND else _why(release, crds[0]),
            moment.says,
            after_failure(moment),
        ),
        places=[
            *(crd.place("metadata", "name") for crd in crds),
            *(resource.place("apiVersion") for resource in written),
        ],
        evidence=written_at,
        confirm=f"kubectl get crd {defined[0].name} -o jsonpath='{ESTABLISHED}'  # later than {who}'s error",
    )


def _why(release: Release, crd: Resource) -> str:
    if crd in release.crds:
        return (
            "Helm 4.0 to 4.3.0 wait for the CRDs in crds/ only with --wait; Helm 3 and Helm 4 from 4.3.1 on always do."
        )
    if hooks.is_hook(crd.body):
        return "Helm waits only for hooks that are Jobs or Pods; a CRD counts as done as soon as it is created."
    return "Without --wait Helm does not wait for regular resources: it resolves the hook's kind at once."


RULE = Rule("ST103", "crd-established-race", check)
