"""One stage of a Kustomization: a dry run of every object, then apply those that would change.

Upstream: `ApplyAll` in `ssa/manager_apply.go` and `ssa/errors` of fluxcd/pkg; `apply` in
internal/controller/kustomization_controller.go of kustomize-controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from seatrial.engines import script
from seatrial.engines.flux.ignoring import as_live, paths
from seatrial.engines.flux.normalizing import normalized
from seatrial.engines.flux.objects import Kustomization
from seatrial.engines.flux.takeover import MANAGER, takeover
from seatrial.engines.script import Answer, Command, DescribedObject, Part, Wait
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, metadata, with_metadata

PREFIX = "kustomize.toolkit.fluxcd.io"
REASONS = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 422: "Invalid", 500: "InternalError"}
IMMUTABLE = ("is immutable", "immutable field")
OWNED_BY_SERVER = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")

about = partial(script.about, manager=MANAGER, force=True)


class Staged(Struct, frozen=True):
    """The result of a stage: its error, if any, and the skipped objects."""

    words: str = ""
    skipped: frozenset[Ref] = frozenset()
    failure: Failure = NO_FAILURE


def apply_stage(stage: Iterable[DescribedObject], kustomization: Kustomization) -> Part[Staged]:
    """Apply the objects of a stage. One failed dry run stops all."""
    changed = []
    skipped = []
    for target in stage:
        if target.ref in kustomization.without_namespace:
            return Staged(_no_namespace(target.ref), failure=Failure(faults=(Fault("not-found", target.ref),)))
        live = yield about(target, "get")
        if _is_left_alone(target.body, live):
            skipped.append(target.ref)
            continue
        body = marked(normalized(target.body), kustomization)
        sent = as_live(body, live.body, paths(target, kustomization.ignored))
        tried = yield about(target, "apply", sent, dry_run=True)
        if live.code == 200 and _is_immutable(tried) and _is_forced(target.body, live.body, kustomization):
            tried = yield from _made_way(target, sent)
            live = Answer(404)
        words = dry_run_words(target, tried)
        if words:
            return Staged(words, failure=tried.failure)
        patch = _taken_over(target.body, live.body)
        answer = (yield about(target, "merge", patch)) if patch else Answer(200)
        if answer.message:
            words = f"{target.ref} metadata.managedFields cleanup failed: {answer.message}"
            return Staged(words, failure=answer.failure)
        if patch or live.code != 200 or said_by(live.body) != said_by(tried.body):
            changed.append((target, sent))
    for target, sent in changed:
        answer = yield about(target, "apply", sent)
        if answer.message or not answer.served:
            return Staged(f"{target.ref} apply failed: {answer.message}", failure=answer.failure)
    return Staged(skipped=frozenset(skipped))


def dry_run_words(target: DescribedObject, answer: Answer) -> str:
    """Flux's error about an object that failed its dry run."""
    if not answer.served:
        kind, version = target.ref.kind, target.body["apiVersion"]
        return f'{target.ref} dry-run failed: no matches for kind "{kind}" in version "{version}"'
    if not answer.message:
        return ""
    if answer.code == 404:
        return f"{target.ref} not found: {answer.message}"
    reason = REASONS.get(answer.code)
    return f"{target.ref} dry-run failed{f' ({reason})' if reason else ''}: {answer.message}"


def _no_namespace(ref: Ref) -> str:
    """Flux's error about an object that needs a namespace and has none, with the words of client-go for its path."""
    resource = f"{CATALOGUE[ref.group, ref.kind].plural}{f'.{ref.group}' if ref.group else ''}"
    no_path = f"the server could not find the requested resource (patch {resource} {ref.name})"
    return f"{ref.kind}/{ref.name} namespace not specified: {no_path}"


def owner_labels(kustomization: Kustomization) -> dict[str, str]:
    return {f"{PREFIX}/name": kustomization.name, f"{PREFIX}/namespace": kustomization.namespace}


def marked(body: Body, kustomization: Kustomization) -> Body:
    """An object with Flux's ownership labels."""
    return with_metadata(body, labels={**labels_of(body), **owner_labels(kustomization)})


def is_set(body: Body, switch: str, value: str) -> bool:
    """Whether a Flux annotation or label has this value, ignoring case."""
    key = f"{PREFIX}/{switch}"
    said = annotations_of(body).get(key), labels_of(body).get(key)
    return any(str(word).lower() == value.lower() for word in said if word is not None)


def is_excluded(body: Body) -> bool:
    """Whether an object, in the source or live, tells Flux to ignore it."""
    return is_set(body, "reconcile", "disabled") or is_set(body, "ssa", "Ignore")


def _is_left_alone(body: Body, live: Answer) -> bool:
    if is_excluded(body) or is_excluded(live.body):
        return True
    return live.code == 200 and is_set(body, "ssa", "IfNotPresent")


def _taken_over(body: Body, live: Body) -> Body | None:
    """The patch before apply, unless the object keeps what others wrote."""
    return None if is_set(body, "ssa", "Merge") or is_set(live, "ssa", "Merge") else takeover(live)


def _is_forced(body: Body, live: Body, kustomization: Kustomization) -> bool:
    return kustomization.force or is_set(body, "force", "enabled") or is_set(live, "force", "enabled")


def _is_immutable(answer: Answer) -> bool:
    return answer.code in (409, 422) or any(words in answer.message for words in IMMUTABLE)


def _made_way(target: DescribedObject, sent: Body) -> Part[Answer]:
    """Recreate an object that cannot be changed: delete, wait, and retry."""
    ref, version = target.ref, str(target.body["apiVersion"])
    yield Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background")
    if (yield Command("get", version, ref.kind, ref.namespace, ref.name)).code == 200:
        yield Wait((ref,))
    return (yield about(target, "apply", sent, dry_run=True))


def said_by(body: Body) -> Body:
    """An object without server-managed fields."""
    meta = {key: value for key, value in metadata(body).items() if key not in OWNED_BY_SERVER}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}
