"""Two owners write an object of the same name, each as if it were theirs alone.

## What happens
A Namespace is the usual one: each part of a platform brings the namespace that it lives in, and two parts live in the
same. What comes of it depends on who deploys.

Flux has Helm take over what it finds (`disableTakeOwnership` is false), so that of two HelmReleases neither fails: the
later one writes its own text, and the first one does not look again before its next upgrade, unless it has
`driftDetection`. Whichever is uninstalled first deletes the object, although the other still wants it, and nobody makes
it anew before that one is upgraded.

Flux marks what it applies with the name of the Kustomization. Two Kustomizations that hold one object take it from each
other with every interval: its labels, and all else in which the two texts differ, go to and fro for ever. When one of
them no longer holds it, it is pruned if it was that one's last, a namespace with everything in it, although the other
still wants it; that one makes it anew, empty, at its next interval.

Argo CD marks what it applies with the name of the Application: one name, so whoever syncs last has the object. The
other one shows `SharedResourceWarning` and is out of sync; where both heal themselves they write it in turns. When the
one that has it goes, or no longer holds it and prunes, the object is deleted although the other still wants it.

Pulumi makes an object and fails where it is there already: `already exists`. Which of two resources fails is a matter
of moments. Of two releases of Helm `ownership-metadata-conflict` tells, and of two templates in one source
`duplicate-object`.

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
One of them has the object, and the other depends on it (`dependsOn`). Namespaces that several share go into a part of
their own that comes first.

## Fix safety
Who no longer holds an object prunes it. Before it is taken out of a Kustomization, mark it with
`kustomize.toolkit.fluxcd.io/prune: disabled`, in both, and let that be applied; for Argo CD it is
`argocd.argoproj.io/sync-options: Prune=false`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Body, Pointer, Ref, annotations_of
from seatrial.model.timeline import Event, Operation, Rehearsal
from seatrial.phrases.objects import in_kubectl

EXISTS = "already exists"
TAKES_ALONG = ("Namespace", "CustomResourceDefinition")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        held = (_of_flux, _of_argocd, _of_pulumi)
        for finding in (finding for of in held for finding in of(moment)):
            if not told.intersection(finding.objects):
                told.update(finding.objects)
                yield finding


def _of_flux(moment: Moment) -> Iterator[Finding]:
    """What two Kustomizations or HelmReleases have both applied, and the second has changed."""
    owners: dict[Ref, list[Ref]] = {}
    for one in moment.ended.reconciled:
        if one.attempts and not one.message and one.acts != ("uninstall",):
            for ref in dict.fromkeys(one.objects):
                owners.setdefault(ref, []).append(one.object)
    for ref, several in owners.items():
        if len(several) < 2 or _is_hook(moment.case, moment.index, ref):
            continue
        writes = [e for e in moment.events() if e.object == ref and e.actor in ("flux", "helm") and e.after]
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
        message=f"{names} both hold {ref}: the release {last} has taken it from {first} without a word",
        details=(
            "Flux has Helm take ownership of what it finds. Which of the two comes last is a matter of moments; the "
            "other writes its own text again when it is upgraded.",
            "Whichever is uninstalled first deletes it, although the other still wants it; that one is Ready all the "
            "same, and does not make it anew before it is upgraded, unless it has driftDetection.",
            "With disableTakeOwnership: true on install and upgrade the second of them fails instead.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=writes[:2],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations.meta\\.helm\\.sh/release-name}}'",
    )


def _release_in(body: Body | None) -> str:
    return str(annotations_of(body or {}).get("meta.helm.sh/release-name") or "")


def _fought_over(moment: Moment, ref: Ref, owners: list[Ref], writes: list[Event]) -> Finding:
    names = " and ".join(str(owner) for owner in owners)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"{names} both hold {ref}, and take it from each other with every interval",
        details=(
            "Each writes its own name into the labels by which Flux knows what it may prune, and its own text beside.",
            f"Where one of them no longer holds it and was the last to apply it, it is deleted{_along(ref)}, "
            "although the other still wants it.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=writes[:2],
        confirm=f"kubectl get {in_kubectl(ref)} "
        "-o jsonpath='{.metadata.labels.kustomize\\.toolkit\\.fluxcd\\.io/name}' -w",
    )


def _of_argocd(moment: Moment) -> Iterator[Finding]:
    """What Argo CD itself says to be part of two Applications."""
    holders: dict[Ref, list[Operation]] = {}
    for operation in moment.ended.operations:
        for ref in dict.fromkeys(task.object for task in operation.tasks):
            holders.setdefault(ref, []).append(operation)
    for ref, several in holders.items():
        warning = f"SharedResourceWarning: {ref.kind}/{ref.name} is part of applications "
        said = [words for one in several for words in one.conditions if words.startswith(warning)]
        apps = list(dict.fromkeys(one.app for one in several))
        if said and len(apps) > 1:
            yield _shared(moment, ref, apps, said[0])


def _shared(moment: Moment, ref: Ref, apps: list[str], said: str) -> Finding:
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"the Applications {' and '.join(apps)} both hold {ref}: whoever syncs last has it, and the other is "
        "out of sync",
        details=(
            f'Argo CD says: "{said}"',
            "Where both heal themselves, they write it in turns for ever.",
            f"When the one that has it is deleted with its objects, or no longer holds it and prunes, it is "
            f"deleted{_along(ref)}, although the other still wants it.",
        ),
        places=_places(moment.case, moment.index, ref),
        evidence=list(done_by_argocd(moment, ref))[:2],
        confirm=f"kubectl get {in_kubectl(ref)} "
        "-o jsonpath='{.metadata.annotations.argocd\\.argoproj\\.io/tracking-id}' -w",
    )


def _of_pulumi(moment: Moment) -> Iterator[Finding]:
    """What two resources of one program are, and the second was refused for."""
    release = moment.release
    for event in moment.events() if release and release.program else ():
        if event.effect != "refused" or EXISTS not in event.message:
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
        message=f"pulumi up fails: {names} are both {event.object}, and only one of them can make it",
        details=(
            f'The API server says: "{event.message}"',
            "Which of them fails is a matter of moments, and the next up fails again.",
        ),
        places=[one.place for one in several if one.place],
        evidence=[event],
        confirm=f"pulumi stack export | grep -c '{event.object.name}'",
    )


def _along(ref: Ref) -> str:
    return ", with everything that is in it" if ref.kind in TAKES_ALONG else ""


def _places(case: Case, step: int, ref: Ref) -> list[Pointer]:
    release = case.releases[step]
    copies = [resource for resource in release.resources if resource.ref == ref] if release else []
    return [resource.place("metadata", "name") for resource in copies]


RULE = Rule("ST705", "object-of-two-owners", check)
