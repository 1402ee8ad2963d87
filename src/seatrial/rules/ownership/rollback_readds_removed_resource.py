"""A rollback brings back an object that is still there, and older Helms do not know what to do with it.

## What happens
A rollback compares the manifest of the last revision, whatever its state, with that of the revision it goes back to.
An object that only the old one lists is to be made. If it is there all the same, Helm 3 up to 3.21, 4.0 and 4.1 stop:
`no ConfigMap with the name "x" found`, or `original object ConfigMap with the name "x" not found`. The words say the
opposite of what is the matter: the object is there, and missing from the other manifest. Helm 3.22, 4.0.5, 4.2 and
later take the live object as it is and go on.

It comes about in three ways: the new revision failed before it deleted what it drops, which is just when one rolls
back (`--atomic` does it by itself); the object has `helm.sh/resource-policy: keep`; or it became a hook, whose object
lives.

Which Helm will be used is not known here, so it **may** happen. Where the Helm that was rehearsed refused, it
**will**.

## Example
```sh
helm upgrade shop ./v2     # drops a ConfigMap, fails in its pre-upgrade hook
helm rollback shop         # up to Helm 3.21: no ConfigMap with the name "shop-config" found
```

## Instead
Roll back with Helm 3.22, 4.2 or later. With an older one, delete the object first, or upgrade to the old chart
instead of rolling back.

## Fix safety
Deleting the object first leaves its users without it until the rollback has made it again. An upgrade to the old
chart runs its upgrade hooks, which a rollback does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import recorded_by
from seatrial.helm import hooks
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named

REFUSALS = ('no {kind} with the name "{name}" found', 'original object {kind} with the name "{name}" not found')
"""As Helm 3 says it, and as Helm 4.0 and 4.1 do."""


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
    """Plain in the target, not plain in the last revision, and in the cluster nevertheless."""
    if hooks.is_hook(resource.body) or moment.was(resource.ref) is None:
        return False
    now = current.find(resource.ref)
    if now is None:
        return True
    # A flip that deleted the object is told by release-to-hook-flip; without it there is nothing to roll back from.
    return hooks.is_hook(now.body) and not any(
        resource.ref in ended.deleted for ended in moment.rehearsal.steps[: moment.index]
    )


def _finding(moment: Moment, before: int, current: Release, readded: list[Resource]) -> Finding:
    ended, first = moment.ended, readded[0].ref
    refused = [words.format(kind=first.kind, name=first.name) for words in REFUSALS]
    happened = any(words in ended.error for words in refused)
    certainty: Certainty = "will" if happened else "may"
    return found(
        RULE,
        moment,
        objects=[resource.ref for resource in readded],
        damage="failed-deploy",
        certainty=certainty,
        message=f"helm rollback is to make {named(r.ref for r in readded)}, which "
        f"{'is' if len(readded) == 1 else 'are'} still there"
        + ("" if happened else ": Helm up to 3.21, 4.0 and 4.1 refuse"),
        details=(
            _why_it_is_there(moment.rehearsal, before, current, readded[0]),
            f'Helm up to 3.21 says: "{refused[0]}"; Helm 4.0 and 4.1: "{refused[1]}". It is there; the manifest '
            "of the last revision does not list it.",
            "" if happened else f"The Helm of this rehearsal ({moment.engine}) takes what is there and goes on.",
            "A rollback that is refused is recorded as failed, and the revision before it as superseded.",
        ),
        places=[readded[0].place("metadata", "name")],
        evidence=_made(moment, first),
        confirm=f"helm get manifest {ended.release} -n {ended.namespace}  # does not list it; kubectl get does",
    )


def _why_it_is_there(rehearsal: Rehearsal, before: int, current: Release, resource: Resource) -> str:
    ended = rehearsal.steps[before]
    if current.find(resource.ref) is not None:
        return "In the last revision it is a hook: not in the manifest, and in the cluster."
    if ended.outcome != "ok":
        return f"The {ended.action} before dropped it from the manifest, and failed before it deleted anything."
    return "The last revision does not list it; it was kept when it was dropped."


def _made(moment: Moment, ref: Ref) -> list[Event]:
    made = [e for e in moment.rehearsal.of_object(ref) if e.step < moment.index and e.effect == "created"]
    return made[-1:]


RULE = Rule("ST408", "rollback-readds-removed-resource", check)
