"""A rollback re-adds an object that still exists, which makes older Helm versions fail.

## What happens
A rollback compares the manifest of the last revision, whatever its status, with that of the target revision. An object
that only the target lists is to be created. If it still exists, Helm 3 up to 3.21, 4.0 and 4.1 stop: `no ConfigMap with
the name "x" found`, or `original object ConfigMap with the name "x" not found`. The error is misleading: the object
exists, and is missing only from the other manifest. Helm 3.22, 4.0.5, 4.2 and later use the live object and continue.

There are three causes: the new revision failed before it deleted what it drops, which is just when people roll back
(`--atomic` does so automatically); the object has `helm.sh/resource-policy: keep`; or it became a hook and exists as
one.

A chart does not say which Helm is used, so it **may** happen. If the rehearsed Helm failed, it **will**.

## Example
```sh
helm upgrade shop ./v2     # drops a ConfigMap, fails in its pre-upgrade hook
helm rollback shop         # up to Helm 3.21: no ConfigMap with the name "shop-config" found
```

## Instead
Roll back with Helm 3.22, 4.2 or later. With an older one, delete the object first, or upgrade to the old chart instead
of rolling back.

## Fix safety
If you delete the object first, its users are without it until the rollback recreates it. An upgrade to the old chart
runs its upgrade hooks, which a rollback does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import recorded_by
from seatrial.helm import hooks
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, named

REFUSALS = ('no {kind} with the name "{name}" found', 'original object {kind} with the name "{name}" not found')
"""The errors of Helm 3, and of Helm 4.0 and 4.1."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, ...]] = set()
    for moment in moments(rehearsal, case):
        before = recorded_by(moment) if moment.ended.action == "rollback" else None
        target, current = moment.release, case.releases[before] if before is not None else None
        if before is None or target is None or current is None:
            continue
        found_here = [r for r in target.resources if _is_readded(moment, r, current)]
        refs = tuple(resource.ref for resource in found_here)
        if refs and refs not in seen:
            seen.add(refs)
            yield _finding(moment, before, current, found_here)


def _is_readded(moment: Moment, resource: Resource, current: Release) -> bool:
    """A regular resource in the target but not in the last revision, which still exists."""
    if hooks.is_hook(resource.body) or moment.was(resource.ref) is None:
        return False
    now = current.find(resource.ref)
    if now is None:
        return True
    # A flip that deleted the object is reported by release-to-hook-flip, and leaves nothing that the rollback re-adds.
    return hooks.is_hook(now.body) and not any(
        resource.ref in ended.deleted for ended in moment.rehearsal.steps[: moment.index]
    )


def _finding(moment: Moment, before: int, current: Release, readded: list[Resource]) -> Finding:
    ended, first = moment.ended, readded[0].ref
    refused = [words.format(kind=first.kind, name=first.name) for words in REFUSALS]
    unlisted = [fault.object for fault in faults(ended.failure, "not-in-revision") if fault.object]
    happened = any((ref.kind, ref.name) == (first.kind, first.name) for ref in unlisted)
    certainty: Certainty = "will" if happened else "may"
    return found(
        RULE,
        moment,
        objects=[resource.ref for resource in readded],
        damage="failed-deploy",
        certainty=certainty,
        message=f"helm rollback re-adds the existing {first_named(r.ref for r in readded)}"
        + ("" if happened else ": Helm up to 3.21, 4.0 and 4.1 fail"),
        details=(
            f"Re-added: {named(r.ref for r in readded)}." if len(readded) > 1 else "",
            _why_it_is_there(moment.rehearsal, before, current, readded[0]),
            f'Helm up to 3.21 fails with "{refused[0]}", Helm 4.0 and 4.1 with "{refused[1]}". The object exists; the '
            "manifest of the last revision does not list it.",
            "" if happened else f"The Helm of this rehearsal ({moment.engine}) uses the live object and continues.",
            "A failed rollback is recorded as failed, and the revision before it as superseded.",
        ),
        places=[readded[0].place("metadata", "name")],
        evidence=_made(moment, first),
        confirm=f"helm get manifest {ended.release} -n {ended.namespace}  # does not list it; kubectl get does",
    )


def _why_it_is_there(rehearsal: Rehearsal, before: int, current: Release, resource: Resource) -> str:
    ended = rehearsal.steps[before]
    if current.find(resource.ref) is not None:
        return "In the last revision it is a hook: it exists, but is not in the manifest."
    if ended.outcome != "ok":
        return f"The previous {ended.action} dropped it from the manifest, and failed before it deleted anything."
    return "The last revision dropped it, and it was kept."


def _made(moment: Moment, ref: Ref) -> list[Event]:
    made = [e for e in moment.rehearsal.of_object(ref) if e.step < moment.index and e.effect == "created"]
    return made[-1:]


RULE = Rule("ST408", "rollback-readds-removed-resource", check)
