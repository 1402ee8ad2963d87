"""An object is written twice under the same name, and only one of the two counts.

## What happens
Two templates call an object the same; or one template makes an object for each tenant, and the names of two tenants are
one when they are in lower case or cut to 63 characters. `helm template` and `helm lint` say nothing.

Helm 4 applies both, and the one that comes last wins: what the other wanted is gone, and Helm reports success. Helm 3
fails with `already exists` at the second. Of a hook and a plain object of one name `dual-identity-hook-copy` tells;
of two that are alike only `helm-version-differs`.

Argo CD keeps the last object of each kind, namespace and name, in the order of the rendered text, and leaves the
others out: a `RepeatedResourceWarning` on the Application is all that tells of it. Where one of them is a hook and the
other is not, only the hook is left, since hooks come last in what Helm renders: the object is deleted and made anew
with every sync. With several sources the later source wins.

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
Delete one of them. If a subchart brings the other, say so with its values. Of names that are made of values: a check in
the template (`fail`) or in `values.schema.json`, and a hash at the end of what is cut.

## Fix safety
What counts is the one that stays: compare the two before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.copies import unlike_copies
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Operation, Rehearsal
from seatrial.phrases.objects import in_api
from seatrial.phrases.outcome import helm_says

REPEATED = re.compile(
    r"^RepeatedResourceWarning: Resource (?P<group>[^/]*)/(?P<kind>[^/]+)/(?P<namespace>[^/]*)/(?P<name>\S+) appeared"
)

ONE_IS_LEFT = (
    "They are not alike: what only the others say is lost, and Helm reports success. An install makes objects of one "
    "kind at the same time, so that it is left to chance which one stays; after an upgrade it is the last one."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from _of_syncs(rehearsal, case)
    if rehearsal.engine.name == "helm":
        yield from _of_helm(rehearsal, case)


def _of_syncs(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for step, operation in operations(rehearsal):
        for condition in operation.conditions:
            said, release = REPEATED.match(condition), case.releases[step]
            if said is None or release is None:
                continue
            ref = Ref(said["kind"], said["namespace"], said["name"], said["group"])
            copies = [resource for resource in release.resources if resource.ref == ref]
            if len(copies) > 1 and ref not in told:
                told.add(ref)
                yield _left_out(Moment(rehearsal, case, step), operation, copies, condition)


def _left_out(moment: Moment, operation: Operation, copies: list[Resource], condition: str) -> Finding:
    last, others = copies[-1], copies[:-1]
    alike = all(other.body == last.body for other in others)
    flips = argocd_hooks.is_hook(last.body) and not all(argocd_hooks.is_hook(other.body) for other in others)
    return found(
        RULE,
        moment,
        objects=[last.ref],
        damage="nuisance",
        message=f"{last.ref} is written {len(copies)} times, and the sync of {operation.app} applies the last only",
        details=(
            f'The Application shows "{condition}"',
            "They are alike: nothing is lost." if alike else "They are not alike: what only the others say is lost.",
            "The last one is a hook: the object is no plain one any more." if flips else "",
        ),
        places=[last.place("metadata", "name"), *(other.place("metadata", "name") for other in others)],
        confirm=f"argocd app get {operation.app} -o yaml  # status.conditions",
    )


def _of_helm(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """What Helm wrote more than once in a step, each time otherwise."""
    told: set[Ref] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for ref, copies in unlike_copies(release).items():
            events = [e for e in done_by_helm(moment, ref) if e.verb != "delete"]
            if len(events) > 1 and ref not in told:
                told.add(ref)
                yield _written_over(moment, copies, events)


def _written_over(moment: Moment, copies: list[Resource], events: list[Event]) -> Finding:
    last, ended = copies[-1], moment.ended
    fails = ended.outcome == "failed"
    return found(
        RULE,
        moment,
        objects=[last.ref],
        damage="failed-deploy",
        message=f"{last.ref} is written {len(copies)} times, and helm {ended.action} "
        + ("fails at the second" if fails else "leaves only one of them"),
        details=(
            helm_says(ended) if fails else ONE_IS_LEFT,
            "" if fails else f'Helm 3 fails: "{in_api(last.ref)} "{last.ref.name}" already exists".',
        ),
        places=[last.place("metadata", "name"), *(other.place("metadata", "name") for other in copies[:-1])],
        evidence=events[:3],
        confirm=f"helm template {ended.source} | grep -c 'name: {last.ref.name}$'",
    )


RULE = Rule("ST819", "duplicate-object", check)
