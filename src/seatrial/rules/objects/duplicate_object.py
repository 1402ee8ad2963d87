"""A release contains two objects with the same name, and only one of them takes effect.

## What happens
Two templates use the same name; or one template creates an object per tenant, and the names of two tenants become equal
in lower case or when cut to 63 characters. `helm template` and `helm lint` do not notice.

Helm 4 applies both and the last one wins: the content of the other is lost, and Helm reports success. Helm 3 fails at
the second with `already exists`. A hook and a regular resource of one name are `dual-identity-hook-copy`; two identical
objects are only reported by `helm-version-differs`.

`kubectl apply` applies both, one after the other, on every run: the last one wins, and for a moment the other one is
live. It reports success.

Argo CD keeps the last object of each kind, namespace and name, in the order of the rendered text, and ignores the
others; the only sign is a `RepeatedResourceWarning` on the Application. If one is a hook and the other is not, only the
hook remains, because hooks come last in Helm's output: every sync then deletes and recreates the object. With several
sources the later source wins.

## Example
```yaml
# templates/build.yaml
kind: ImageStream
metadata: {name: notebook-validator}
# templates/images.yaml
kind: ImageStream
metadata: {name: notebook-validator}
```

## Instead
Delete one of them. If the other comes from a subchart, disable it with the subchart's values. For names built from
values, add a check in the template (`fail`) or in `values.schema.json`, and append a hash to truncated names.

## Fix safety
The one that you keep takes effect: compare the two first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.copies import differing_copies
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Operation, Rehearsal
from seatrial.phrases.objects import in_api
from seatrial.phrases.outcome import helm_says

ONE_IS_LEFT = (
    "They differ: content that only the others have is lost, and Helm reports success. An install creates objects of "
    "one kind concurrently, so which one remains is random; after an upgrade it is the last one."
)

APPLIES = ("create", "patch", "apply")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from _of_syncs(rehearsal, case)
    if rehearsal.engine.name == "helm":
        yield from _of_helm(rehearsal, case)
    if rehearsal.engine.name == "kubectl":
        yield from _of_kubectl(rehearsal, case)


def _of_syncs(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for step, operation in operations(rehearsal):
        for condition in operation.conditions:
            ref, release = condition.object, case.releases[step]
            if condition.type != "RepeatedResourceWarning" or ref is None or release is None:
                continue
            copies = [resource for resource in release.resources if resource.ref == ref]
            if len(copies) > 1 and ref not in reported:
                reported.add(ref)
                yield _left_out(Moment(rehearsal, case, step), operation, copies, str(condition))


def _left_out(moment: Moment, operation: Operation, copies: list[Resource], condition: str) -> Finding:
    last, others = copies[-1], copies[:-1]
    alike = all(other.body == last.body for other in others)
    flips = argocd_hooks.is_hook(last.body) and not all(argocd_hooks.is_hook(other.body) for other in others)
    return found(
        RULE,
        moment,
        objects=[last.ref],
        damage="nuisance",
        message=f"{last.ref} appears {len(copies)} times in the source; the sync of {operation.app} applies only the "
        "last one",
        details=(
            f'The Application shows "{condition}"',
            "They are identical: nothing is lost."
            if alike
            else "They differ: content that only the others have is lost.",
            "The last one is a hook, so the object is no longer a regular resource." if flips else "",
        ),
        places=[last.place("metadata", "name"), *(other.place("metadata", "name") for other in others)],
        confirm=f"argocd app get {operation.app} -o yaml  # status.conditions",
    )


def _of_helm(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Objects that Helm wrote more than once in a step, with different content."""
    reported: set[Ref] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for ref, copies in differing_copies(release).items():
            events = [e for e in done_by_helm(moment, ref) if e.verb != "delete"]
            if len(events) > 1 and ref not in reported:
                reported.add(ref)
                yield _written_over(moment, copies, events)


def _of_kubectl(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Objects that kubectl applied more than once in a step, with different content."""
    reported: set[Ref] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for ref, copies in differing_copies(release, with_hooks=True).items():
            events = [e for e in moment.events() if e.object == ref and e.actor == "kubectl" and e.verb in APPLIES]
            if len(events) > 1 and ref not in reported:
                reported.add(ref)
                last = copies[-1]
                yield found(
                    RULE,
                    moment,
                    objects=[ref],
                    damage="failed-deploy",
                    message=f"{ref} appears {len(copies)} times in the input; kubectl apply keeps only the last one",
                    details=(
                        "They differ: content that only the others have is lost, and kubectl reports success.",
                        "Every apply writes all of them again, so the object changes back and forth.",
                    ),
                    places=[last.place("metadata", "name"), *(one.place("metadata", "name") for one in copies[:-1])],
                    evidence=events[:3],
                    confirm=f"kubectl diff -f {moment.ended.source}  # differs after every apply",
                )


def _written_over(moment: Moment, copies: list[Resource], events: list[Event]) -> Finding:
    last, ended = copies[-1], moment.ended
    fails = ended.outcome == "failed"
    return found(
        RULE,
        moment,
        objects=[last.ref],
        damage="failed-deploy",
        message=f"{last.ref} appears {len(copies)} times in the chart; helm {ended.action} "
        + ("fails at the second" if fails else "keeps only one of them"),
        details=(
            helm_says(ended) if fails else ONE_IS_LEFT,
            "" if fails else f'Helm 3 fails with "{in_api(last.ref)} "{last.ref.name}" already exists".',
        ),
        places=[last.place("metadata", "name"), *(other.place("metadata", "name") for other in copies[:-1])],
        evidence=events[:3],
        confirm=f"helm template {ended.source} | grep -c 'name: {last.ref.name}$'",
    )


RULE = Rule("ST819", "duplicate-object", check, timeless=True)
