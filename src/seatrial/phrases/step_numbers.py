"""Sentences for the numbers of a step table: why objects are missing, recreated or left behind.

A number that a finding explains needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from seatrial.evidence.breaches import traced
from seatrial.evidence.history import GOING
from seatrial.helm import argocd_hooks, hooks, records
from seatrial.model.finding import Finding
from seatrial.model.resource import Body, Ref, annotations_of, dig, metadata
from seatrial.model.result import Played, StepNumber
from seatrial.model.timeline import Event, Rehearsal, StepResult
from seatrial.phrases.breaches import names

FLUX_PRUNE = "kustomize.toolkit.fluxcd.io/prune"
CASCADE = "resources-finalizer.argocd.argoproj.io"
KEPT_CRD = "Helm does not delete CRDs of crds/"
NOT_KNOWN = "no request of this step explains it"


def step_numbers(rehearsal: Rehearsal) -> tuple[tuple[StepNumber, ...], ...]:
    """For each step: the objects that are missing, recreated or left behind, and why."""
    return tuple(tuple(_of_step(rehearsal, index)) for index in range(len(rehearsal.steps)))


def sentence(number: StepNumber) -> str:
    """`left behind: Job/default/migrate (Helm does not delete hooks)`"""
    return f"{number.word}: {names(number.objects)} ({number.why})"


def unexplained(numbers: Iterable[StepNumber], explained: Collection[Ref]) -> Iterator[StepNumber]:
    """The numbers about objects that no finding explains."""
    for number in numbers:
        if objects := tuple(ref for ref in number.objects if ref not in explained):
            yield replace(number, objects=objects)


def explained_objects(trial: Sequence[Played], findings: Iterable[Finding]) -> set[Ref]:
    """The objects of findings, and of the events of this trial that prove them."""
    refs: set[Ref] = set()
    timelines = {(one.case, one.rehearsal.engine, str(one.rehearsal.schedule)): one.rehearsal.timeline for one in trial}
    for finding in findings:
        refs.update(finding.objects)
        if not finding.engines or not finding.schedules:
            continue  # Found in a trial of another kind, such as one that is interrupted.
        timeline = timelines.get((finding.case, finding.engines[0], finding.schedules[0]), ())
        refs.update(timeline[index].object for index in finding.evidence if index < len(timeline))
    return refs


def _of_step(rehearsal: Rehearsal, index: int) -> Iterator[StepNumber]:
    alike: dict[tuple[str, str], list[Ref]] = {}
    for word, ref, why in _numbers(rehearsal, index, rehearsal.steps[index]):
        alike.setdefault((word, why), []).append(ref)
    return (StepNumber(word, tuple(refs), why) for (word, why), refs in alike.items())


def _numbers(rehearsal: Rehearsal, index: int, step: StepResult) -> Iterator[tuple[str, Ref, str]]:
    for ref in step.recreated:
        yield "recreated", ref, _why_recreated(rehearsal, index, ref)
    if step.outcome != "ok":
        return  # The error of the step is the reason.
    for ref in step.missing:
        yield "missing", ref, _why_missing(rehearsal, index, ref)
    for ref in step.orphans:
        yield "left behind", ref, _why_left(rehearsal, index, ref)


def _why_recreated(rehearsal: Rehearsal, index: int, ref: Ref) -> str:
    deletion = _deletion(rehearsal, index, ref)
    return _why_deleted(rehearsal, ref, deletion) if deletion else NOT_KNOWN


def _why_missing(rehearsal: Rehearsal, index: int, ref: Ref) -> str:
    deletion = _deletion(rehearsal, index, ref)
    if deletion is not None:
        return _why_deleted(rehearsal, ref, deletion)
    return f"{_who(rehearsal, rehearsal.engine.name)} does not create it"


def _why_deleted(rehearsal: Rehearsal, ref: Ref, deletion: Event) -> str:
    request = [*traced(rehearsal, deletion)][-1]
    actor = _who(rehearsal, request.actor)
    if request.object != ref:
        return f"{actor} {_verb(request)} {request.object}, and it is deleted with it"
    if hooks.is_hook(deletion.before or {}) or argocd_hooks.is_hook(deletion.before or {}):
        return f"{actor} deletes and recreates hooks as their delete policy says"
    return f"{actor} deletes it"


def _why_left(rehearsal: Rehearsal, index: int, ref: Ref) -> str:
    """By what the step did to it, then by what the object says itself, then by who created it."""
    in_step = [event for event in rehearsal.of_object(ref) if event.step == index]
    if refused := next((e for e in in_step if e.verb == "delete" and e.effect == "refused"), None):
        return f"the API server refuses to delete it: {refused.message}"
    going = next((event for event in reversed(in_step) if event.effect == "deleting"), None)
    if going is not None:
        held = metadata(going.after or {}).get("finalizers") or metadata(going.before or {}).get("finalizers") or ()
        return f"its finalizer {' and '.join(map(str, held))} is not removed"
    bodies = [event.after for event in rehearsal.of_object(ref) if event.after and event.step <= index]
    return _own_word(bodies[-1] if bodies else {}) or _creator(rehearsal, index, ref)


def _own_word(body: Body) -> str:
    """The annotation that keeps an object."""
    annotations = annotations_of(body)
    for name, value in (
        (hooks.RESOURCE_POLICY, "keep"),
        (FLUX_PRUNE, "disabled"),
        (argocd_hooks.SYNC_OPTIONS, "Delete=false"),
    ):
        if value in str(annotations.get(name, "")).replace(" ", "").split(","):
            return f"{name}: {value}"
    return ""


def _creator(rehearsal: Rehearsal, index: int, ref: Ref) -> str:
    created = [event for event in rehearsal.of_object(ref) if event.effect == "created" and event.step <= index]
    if not created:
        return NOT_KNOWN
    actor, body = created[-1].actor, created[-1].after or {}
    if actor != "argocd" and hooks.is_hook(body):
        return "Helm does not delete hooks"
    if ref.kind == "CustomResourceDefinition" and (actor == "helm" or _uninstalls(rehearsal, index)):
        return KEPT_CRD
    if ref.kind == "Namespace" and _is_created_for(rehearsal, ref, actor):
        return f"{_who(rehearsal, actor)} does not delete namespaces that it creates for a release"
    return _engine_word(rehearsal, ref, actor)


def _is_created_for(rehearsal: Rehearsal, namespace: Ref, actor: str) -> bool:
    """True for the namespace of a release that an engine creates. Helm needs a flag for that."""
    if actor == "helm" and rehearsal.engine.name == "helm":
        return any(step.namespace == namespace.name and "--create-namespace" in step.flags for step in rehearsal.steps)
    return actor != "pulumi"


def _uninstalls(rehearsal: Rehearsal, index: int) -> bool:
    """True if the step deletes the record of a Helm release, such as that of a Pulumi Release."""
    gone = (event.object for event in rehearsal.of_step(index) if event.effect in GOING)
    return any(ref.kind in records.KINDS and records.NAME.fullmatch(ref.name) for ref in gone)


def _engine_word(rehearsal: Rehearsal, ref: Ref, actor: str) -> str:
    """How the deleted owner is told to keep its objects."""
    match actor:
        case "argocd":
            return _argocd_word(rehearsal, ref)
        case "flux":
            return _flux_word(rehearsal, ref)
        case "pulumi":
            return "Pulumi is told to retain it"
        case "helm":
            return "the manifest of the release does not contain it, as with objects of crds/"
    return NOT_KNOWN


def _argocd_word(rehearsal: Rehearsal, ref: Ref) -> str:
    for step in reversed(rehearsal.steps):
        for operation in step.operations:
            if any(task.object == ref for task in operation.tasks):
                app = f"Application/{operation.namespace}/{operation.app}"
                return f"{app} has no finalizer {CASCADE}, so its objects stay"
    return NOT_KNOWN


def _flux_word(rehearsal: Rehearsal, ref: Ref) -> str:
    for step in rehearsal.steps:
        for owner in (one.object for one in step.reconciled if ref in one.objects):
            bodies = [event.after for event in rehearsal.of_object(owner) if event.after]
            spec = dig(bodies[-1], "spec") if bodies else {}
            if owner.kind == "HelmRelease":
                return KEPT_CRD if ref.kind == "CustomResourceDefinition" else NOT_KNOWN
            if dig(spec, "deletionPolicy") not in (None, "MirrorPrune"):
                return f"{owner} has deletionPolicy: {dig(spec, 'deletionPolicy')}"
            if dig(spec, "prune") is not True:
                return f"{owner} does not prune"
    return NOT_KNOWN


def _deletion(rehearsal: Rehearsal, index: int, ref: Ref) -> Event | None:
    found = (event for event in rehearsal.of_object(ref) if event.step == index and event.effect in GOING)
    return next(found, None)


def _verb(request: Event) -> str:
    return (
        "deletes" if request.effect in GOING else {"create": "creates", "patch": "patches"}.get(request.verb, "changes")
    )


def _who(rehearsal: Rehearsal, actor: str) -> str:
    """An actor as users call it: Helm, also inside another engine; the engine; a controller."""
    if actor == "helm":
        return "Helm"
    return rehearsal.label if rehearsal.label and actor == rehearsal.engine.name else actor
