"""Two HelmReleases, Kustomizations, Applications or Pulumi resources contain the same object.

## What happens
The usual case is a Namespace: each part of a platform contains the namespace it is deployed to, and two parts use the
same one. The outcome depends on the engine.

Flux lets Helm take ownership of existing objects (`disableTakeOwnership` is false), so neither of two HelmReleases
fails: the later one applies its version, and the first does not notice before its next upgrade, unless it has
`driftDetection`. Whichever is uninstalled first deletes the object, although the other still contains it, and only an
upgrade of the other recreates it.

Flux labels what it applies with the name of the Kustomization. Two Kustomizations with one object overwrite each other
on every interval: its labels, and everything in which the two versions differ, change back and forth forever. When the
Kustomization that applied it last drops it, Flux prunes it (a namespace with all its content), although the other still
contains it; the other recreates it, empty, at its next interval.

Argo CD marks what it applies with the name of one Application, so the last sync owns the object. The other Application
shows `SharedResourceWarning` and is OutOfSync; with self-heal on both they overwrite each other forever. When the owner
is deleted, or drops the object and prunes, the object is deleted although the other still has it.

Pulumi creates an object and fails if it exists: `already exists`. Which of two resources fails is random. For two Helm
releases see `ownership-metadata-conflict`; for two templates in one source see `duplicate-object`.

## Example
```yaml
# apps/shop/namespace.yaml, of the Kustomization shop
kind: Namespace
metadata: {name: shop}
# apps/reports/namespace.yaml, of the Kustomization reports
kind: Namespace
metadata: {name: shop}
```

## Instead
Keep the object in one of them and let the other depend on it (`dependsOn`). Put shared namespaces into their own
Kustomization or Application that comes first.

## Fix safety
An owner that drops the object prunes it. Before you remove it from a Kustomization, annotate it with
`kustomize.toolkit.fluxcd.io/prune: disabled` in both, and wait until that is applied; for Argo CD use
`argocd.argoproj.io/sync-options: Prune=false`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.helm.ownership import RELEASE_NAME
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Body, Pointer, Ref, annotations_of
from seatrial.model.timeline import Event, Operation, Rehearsal
from seatrial.phrases.objects import in_kubectl

EXISTS = "AlreadyExists"
TAKES_ALONG = ("Namespace", "CustomResourceDefinition")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        held = (_of_flux, _of_argocd, _of_pulumi)
        for finding in (finding for of in held for finding in of(moment)):
            if not reported.intersection(finding.objects):
                reported.update(finding.objects)
                yield finding


def _of_flux(moment: Moment) -> Iterator[Finding]:
    """Objects that two Kustomizations or HelmReleases applied, and that the second changed."""
    owners: dict[Ref, list[Ref]] = {}
    for one in moment.ended.reconciled:
        if one.attempts and not one.message and one.acts != ("uninstall",):
            for ref in dict.fromkeys(one.objects):
                owners.setdefault(ref, []).append(one.object)
    for ref, several in owners.items():
        if len(several) < 2 or _is_hook(moment.case, moment.index, ref):
            continue
        writes = [e for e in moment.events() if e.object == ref and e.actor in moment.rehearsal.actors and e.after]
        if not any(event.effect == "changed" for event in writes):
            continue
        if all(owner.kind == "HelmRelease" for owner in several):
            yield _taken_over(moment, ref, several, writes)
        else:
            yield _fought_over(moment, ref, several, writes)


def _is_hook(case: Case, step: int, ref: Ref) -> bool:
    written = case.written(step, ref)
    return written is not None and hooks.is_hook(written.body)


def _taken_over(moment: Moment, ref: Ref, owners: list[Ref], writes: list[Event]) -> Finding:
    first, last = (_release_in(event.after) for event in (writes[0], writes[-1]))
    names = " and ".join(str(owner) for owner in owners)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"{names} both contain {ref}: {last} took it over",
        details=(
            f"Release {last} took it over from {first} without an error.",
            "Flux lets Helm take ownership of existing objects. Which of the two applies it last is random; the other "
            "one applies its version again at its next upgrade.",
            "Whichever is uninstalled first deletes it, although the other still contains it. The other stays Ready "
            "and recreates it only when it is upgraded, unless it has driftDetection.",
            "With disableTakeOwnership: true on install and upgrade the second one fails instead.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=writes[:2],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations.meta\\.helm\\.sh/release-name}}'",
    )


def _release_in(body: Body | None) -> str:
    return str(annotations_of(body or {}).get(RELEASE_NAME) or "")


def _fought_over(moment: Moment, ref: Ref, owners: list[Ref], writes: list[Event]) -> Finding:
    names = " and ".join(str(owner) for owner in owners)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"{names} both contain {ref}, and overwrite each other",
        details=(
            "On every interval each writes its own name into the labels that Flux uses for pruning, and its own "
            "version of the object.",
            f"When the one that applied it last drops it, Flux deletes it{_along(ref)}, although the other still "
            "has it.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=writes[:2],
        confirm=f"kubectl get {in_kubectl(ref)} "
        "-o jsonpath='{.metadata.labels.kustomize\\.toolkit\\.fluxcd\\.io/name}' -w",
    )


def _of_argocd(moment: Moment) -> Iterator[Finding]:
    """Objects that Argo CD itself reports as part of two Applications."""
    holders: dict[Ref, list[Operation]] = {}
    for operation in moment.ended.operations:
        for ref in dict.fromkeys(task.object for task in operation.tasks):
            holders.setdefault(ref, []).append(operation)
    for ref, several in holders.items():
        conditions = (condition for one in several for condition in one.conditions)
        said = [str(c) for c in conditions if (c.type, c.object) == ("SharedResourceWarning", ref)]
        apps = list(dict.fromkeys(one.app for one in several))
        if said and len(apps) > 1:
            yield _shared(moment, ref, apps, said[0])


def _shared(moment: Moment, ref: Ref, apps: list[str], said: str) -> Finding:
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"the Applications {' and '.join(apps)} both contain {ref}: the last sync owns it",
        details=(
            f'Argo CD reports: "{said}"',
            "The other Application is OutOfSync. With self-heal on both, they overwrite each other forever.",
            f"When the owner is deleted with its objects, or drops the object and prunes, it is "
            f"deleted{_along(ref)}, although the other still has it.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=list(done_by_argocd(moment, ref))[:2],
        confirm=f"kubectl get {in_kubectl(ref)} "
        "-o jsonpath='{.metadata.annotations.argocd\\.argoproj\\.io/tracking-id}' -w",
    )


def _of_pulumi(moment: Moment) -> Iterator[Finding]:
    """Objects that two resources of one program create, of which the second is rejected."""
    release = moment.release
    for event in moment.events() if release and release.program else ():
        if event.refusal is None or event.effect != "refused" or event.refusal.reason != EXISTS:
            continue
        registrations = release.program.registrations if release and release.program else ()
        several = [one for one in registrations if one.ref == event.object and not one.reads]
        if len(several) > 1:
            yield _made_twice(moment, event, several)


def _made_twice(moment: Moment, event: Event, several: list[Registration]) -> Finding:
    names = " and ".join(short(one.urn) for one in several)
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage="failed-deploy",
        message=f"pulumi up fails: {names} both create {event.object}",
        details=(
            f'The API server rejects it: "{event.message}"',
            "Which of them fails is random, and the next up fails again.",
        ),
        places=[one.place for one in several if one.place],
        evidence=[event],
        confirm=f"pulumi stack export | grep -c '{event.object.name}'",
    )


def _along(ref: Ref) -> str:
    return " with all its content" if ref.kind in TAKES_ALONG else ""


def _places(case: Case, step: int, ref: Ref) -> list[Pointer]:
    release = case.releases[step]
    copies = [resource for resource in release.resources if resource.ref == ref] if release else []
    return [resource.place("metadata", "name") for resource in copies]


RULE = Rule("ST705", "object-of-two-owners", check)
