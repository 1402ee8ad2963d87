"""Two templates write an object of the same name, and only one of them counts.

## What happens
Argo CD keeps the last object of each kind, namespace and name, in the order of the rendered text, and leaves the
others out: a `RepeatedResourceWarning` on the Application is all that tells of it. Where one of them is a hook and the
other is not, only the hook is left, since hooks come last in what Helm renders: the object is deleted and made anew
with every sync. With several sources the later source wins.

Helm creates one after the other and fails with `already exists` at the second; of a hook and a plain object of one name
`dual-identity-hook-copy` tells.

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
Delete one of them. If a subchart brings the other, say so with its values.

## Fix safety
What counts is the one that stays: compare the two before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial import argocdhooks
from seatrial.case import Case, Resource
from seatrial.findings import Finding, Rule, found
from seatrial.resource import Ref
from seatrial.rules.syncs import operations
from seatrial.timeline import Operation, Rehearsal

REPEATED = re.compile(
    r"^RepeatedResourceWarning: Resource (?P<group>[^/]*)/(?P<kind>[^/]+)/(?P<namespace>[^/]*)/(?P<name>\S+) appeared"
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
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
                yield _finding(rehearsal, step, operation, copies, condition)


def _finding(rehearsal: Rehearsal, step: int, operation: Operation, copies: list[Resource], condition: str) -> Finding:
    last, others = copies[-1], copies[:-1]
    alike = all(other.body == last.body for other in others)
    flips = argocdhooks.is_hook(last.body) and not all(argocdhooks.is_hook(other.body) for other in others)
    return found(
        RULE,
        rehearsal,
        step,
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


RULE = Rule("ST819", "duplicate-object", check)
