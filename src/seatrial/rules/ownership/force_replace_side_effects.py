"""`--force` replaces the live object with the manifest, which drops what others wrote or fails on immutable fields.

## What happens
`helm upgrade --force` (Helm 4: `--force-replace`) does not delete and recreate, as is often said. It replaces each live
object with the manifest. Everything that the manifest does not contain is removed:

- the replicas that an autoscaler or a user has set: the Deployment goes back to 1;
- labels, annotations, keys of a ConfigMap, a `caBundle` that a controller or user wrote;
- fields that Kubernetes itself wrote and that are immutable: the volume of a bound PVC, the selector of a Job. Then the
  whole upgrade fails although the chart changes nothing: `spec is immutable after creation`, `field is immutable`.

So it cannot change immutable fields either. The API server keeps the address of a Service. Releases that Helm 4 applies
server-side reject the flag: `cannot use server-side apply and force replace together`.

Argo CD does delete and recreate: `Force=true,Replace=true` recreates the object on every sync, changed or not. That is
meant for Jobs. A Deployment is down meanwhile, and a PVC loses its volume. `Replace=true` alone replaces each live
object, as `--force` of Helm does: the next sync fails at a bound PVC or a Job, although nothing changed. `Force=true`
has an effect only in the annotation of an object, not in the `syncOptions` of an Application.

`kubectl apply --force` and `kubectl replace --force` delete too: the first only what it cannot change, and then checks
once whether it is gone; the second everything it is given.

## Example
```sh
helm upgrade shop ./shop --force
```

```yaml
argocd.argoproj.io/sync-options: Force=true,Replace=true
```

## Instead
Omit it: a normal upgrade changes what differs and leaves the rest. To replace an object that cannot be changed, delete
that object before the upgrade. Against drift, use server-side apply with `--force-conflicts`, which takes over only the
fields that the chart sets.

## Fix safety
Omitting `--force` is safe; fields that a user changed then stay until the chart changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.evidence.argocd.syncs import ARGOCD, done_by_argocd, is_argocd
from seatrial.evidence.faults import has_fault
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import confirm_twice, in_kubectl
from seatrial.phrases.outcome import after_failure, first_named, helm_says

FORCES = ("--force", "--force-replace")
OF_THE_SERVER = frozenset(
    ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "status", "uid")
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
COSMETIC = ("metadata",)
NAMES_MAX = 5
LINE_MAX = 200
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
REPLACE = "Replace=true"
WITHOUT_REPLACE = (
    "Remove Replace=true from the sync options. Jobs that are to run again get the annotation "
    "argocd.argoproj.io/sync-options: Replace=true,Force=true."
)
MEANT_FOR = ("Job", "Pod")
"""Kinds that are recreated in order to run again."""
WORKLOADS = ("DaemonSet", "Deployment", "Ingress", "Service", "StatefulSet")
LOSES: dict[str, Damage] = {CLAIM: "data-loss", "Namespace": "data-loss", **dict.fromkeys(WORKLOADS, "outage")}

OWNERS = ("DaemonSet", "Deployment", "StatefulSet")
LOOKED_ONCE = (
    "kubectl checks once whether the old one is gone, and gives up if it is not, for example because of a finalizer. "
    "The next apply creates the new one."
)

Path = tuple[str | int, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_argocd(rehearsal):
        yield from _recreated(rehearsal, case)
        yield from _replaced(rehearsal, case)
        return
    if rehearsal.engine.name == "kubectl":
        yield from _forced(rehearsal, case)
        return
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        if not any(flag in FORCES for flag in moment.ended.flags):
            continue
        if has_fault(moment.ended.failure, "conflicting-flags"):
            yield _refused_as_a_whole(moment)
            continue
        for event in moment.events():
            if event.actor == "helm" and event.verb == "update" and event.object not in seen:
                reported = list(_of_replacement(moment, event))
                seen.update(finding.objects[0] for finding in reported)
                yield from reported


def _forced(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Objects that `kubectl apply --force` deletes because their change is rejected."""
    for moment in moments(rehearsal, case):
        new = moment.release if "--force" in moment.ended.flags and moment.ended.action == "apply" else None
        for event in moment.events() if new else ():
            own = event.actor == "kubectl" and event.effect in GOING and event.object.kind not in MEANT_FOR
            if own and new is not None and (written := new.find(event.object)):
                yield _by_force(moment, written, event)


def _by_force(moment: Moment, written: Resource, deletion: Event) -> Finding:
    ref, ended = written.ref, moment.ended
    refused = [e for e in moment.events() if e.object == ref and e.effect == "refused"][:1]
    outcome = "recreates it" if ref in ended.recreated else "does not recreate it"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=LOSES.get(ref.kind, "nuisance"),
        message=f"kubectl apply --force deletes {ref} and {outcome}, because its change is rejected",
        details=(
            f'The API server rejects it: "{_first_line(refused[0].message)}"' if refused else "",
            LOOKED_ONCE if ref not in ended.recreated else "",
            "Its volume is deleted with it, unless the reclaim policy is Retain: the new PVC gets an empty one."
            if ref.kind == CLAIM
            else "",
            "kubectl delete --cascade=orphan keeps its pods and PVCs for the new one." if ref.kind in OWNERS else "",
        ),
        places=[written.place("spec")],
        evidence=[*refused, deletion],
        confirm=confirm_twice(ref, "{.metadata.uid}", "the apply"),
    )


def _recreated(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Regular resources that Argo CD recreates in a sync although they did not change."""
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        for ref in moment.ended.recreated if old and new and moment.ended.action == "sync" else ():
            was, written = old.find(ref) if old else None, new.find(ref) if new else None
            deeds = [e for e in done_by_argocd(moment, ref) if e.effect in (*GOING, "created")]
            same = was is not None and written is not None and was.body == written.body
            if (
                written is None
                or not same
                or ref in reported
                or ref.kind in MEANT_FOR
                or argocd_hooks.is_hook(written.body)
            ):
                continue
            if any(event.effect in GOING for event in deeds):
                reported.add(ref)
                yield _again_and_again(moment, written, deeds)


def _replaced(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Unchanged objects that Argo CD replaces in a sync, and that the API server refuses."""
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        refused = {e.object: e for e in moment.events() if _is_refused_replacement(moment, e)}
        new = [event for ref, event in refused.items() if ref not in reported]
        reported.update(refused)
        if new:
            yield _in_the_way(moment, new, REPLACE)


def _is_refused_replacement(moment: Moment, event: Event) -> bool:
    """Whether Argo CD replaced an unchanged object and was refused."""
    if event.actor != ARGOCD or event.verb != "update" or event.refusal is None or event.refusal.reason != "Invalid":
        return False
    old, new = moment.before, moment.release
    was, written = old.find(event.object) if old else None, new.find(event.object) if new else None
    return was is not None and written is not None and was.body.get("spec") == written.body.get("spec")


def _again_and_again(moment: Moment, written: Resource, deeds: list[Event]) -> Finding:
    ref = written.ref
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=LOSES.get(ref.kind, "nuisance"),
        message=f"every sync deletes and recreates {ref}, although it did not change",
        details=(
            "Force=true with Replace=true is `kubectl replace --force`, which always deletes first. Force=true alone "
            "deletes only if a change is rejected.",
            "Delete=false applies to the deletion of the Application, and does not help." if ref.kind == CLAIM else "",
        ),
        places=[written.place("metadata", "annotations", SYNC_OPTIONS)],
        evidence=deeds,
        confirm=confirm_twice(ref, "{.metadata.uid}", "a sync"),
    )


def _refused_as_a_whole(moment: Moment) -> Finding:
    ended = moment.ended
    return found(
        RULE,
        moment,
        objects=[],
        damage="failed-deploy",
        message=f"helm {ended.action} {_flag(moment)} fails: {ended.release} is applied server-side",
        details=(
            helm_says(ended),
            "Helm 4 installs with server-side apply, and upgrades keep using it. With --server-side=false it would "
            "replace every object with the manifest, and remove what others wrote.",
        ),
        confirm=f"helm get metadata {ended.release} -n {ended.namespace}  # APPLY_METHOD",
    )


def _of_replacement(moment: Moment, event: Event) -> Iterator[Finding]:
    old, new = moment.before, moment.release
    was, written = old.find(event.object) if old else None, new.find(event.object) if new else None
    if was is None or written is None:
        return
    if event.effect == "refused":
        # If the chart itself changes the field, an upgrade without the flag fails as well.
        if was.body.get("spec") == written.body.get("spec"):
            yield _in_the_way(moment, [event], _flag(moment))
        return
    before, after = moment.was(event.object), moment.live(event.object)
    lost = [path for path in _lost(before, after) if dig(was.body, *path) is None]
    fewer = _fewer(before, after) if dig(written.body, "spec", "replicas") is None else ""
    if lost or fewer:
        yield _taken_away(moment, event, written, lost, fewer)


def _lost(before: Any, after: Any, at: Path = ()) -> Iterator[Path]:
    """The fields that the object no longer has."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return
    for key, value in before.items():
        if (key in OF_THE_SERVER and len(at) < 2) or key == LAST_APPLIED:
            continue
        if key not in after:
            yield (*at, key)
        else:
            yield from _lost(value, after[key], (*at, key))


def _fewer(before: Body | None, after: Body | None) -> str:
    """`5 replicas become 1`; empty if they did not decrease."""
    had, has = dig(before, "spec", "replicas"), dig(after, "spec", "replicas")
    return f"{had} replicas become {has}" if isinstance(had, int) and isinstance(has, int) and has < had else ""


def _in_the_way(moment: Moment, events: list[Event], flag: str) -> Finding:
    refs = [event.object for event in events]
    written = [one for ref in refs if moment.release and (one := moment.release.find(ref))]
    by_option = flag == REPLACE
    without = "a sync without the option" if by_option else "an upgrade without the flag"
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        message=f"{flag} replaces {first_named(refs)}, which Kubernetes rejects: the {moment.ended.action} fails",
        details=(
            f'The API server rejects it: "{_first_line(events[0].message)}"',
            f"The {'source' if by_option else 'chart'} does not change that field: {without} sends no request at all. "
            "The manifest lacks what Kubernetes itself wrote when the object was created.",
            "" if by_option else after_failure(moment),
        ),
        places=[one.place(*_option_at(one)) for one in written],
        evidence=events,
        confirm=f"kubectl get {in_kubectl(refs[0])} -o yaml  # shows what the manifest lacks",
        way_out=[WITHOUT_REPLACE] if by_option else (),
    )


def _option_at(written: Resource) -> tuple[str, ...]:
    annotated = SYNC_OPTIONS in annotations_of(written.body)
    return ("metadata", "annotations", SYNC_OPTIONS) if annotated else ("metadata", "name")


def _taken_away(moment: Moment, event: Event, written: Resource, lost: list[Path], fewer: str) -> Finding:
    ended, flag = moment.ended, _flag(moment)
    damage: Damage = "outage" if fewer or any(path[0] not in COSMETIC for path in lost) else "nuisance"
    shown = [".".join(map(str, path)) for path in lost]
    named = ", ".join(shown[:NAMES_MAX]) + (f" and {len(shown) - NAMES_MAX} more" if len(shown) > NAMES_MAX else "")
    what = " and ".join(filter(None, (fewer, f"{named} {'is' if len(lost) == 1 else 'are'} removed" if named else "")))
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage=damage,
        message=f"helm {ended.action} {flag} removes what others wrote into {event.object}",
        details=(
            f"Changed: {what}.",
            "The manifest replaces the live object, and what it does not contain is removed. An upgrade without the "
            "flag leaves it alone.",
        ),
        places=[written.place("metadata", "name")],
        evidence=[event],
        confirm=confirm_twice(event.object, "{.spec.replicas}" if fewer else "{.metadata}", "the upgrade"),
    )


def _flag(moment: Moment) -> str:
    return next(flag for flag in moment.ended.flags if flag in FORCES)


def _first_line(message: str) -> str:
    """The first line of an error; the rest may quote whole objects."""
    line = message.partition("\n")[0]
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}..."


RULE = Rule("ST411", "force-replace-side-effects", check)
