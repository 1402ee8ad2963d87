"""Findings about changes of immutable fields, which the API server rejects. Knows no kind by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.argocd.blocked import never_run
from seatrial.evidence.argocd.syncs import ARGOCD, is_argocd
from seatrial.evidence.flux.reconciliations import (
    FLUX,
    by_hand,
    failed_kustomization,
    failed_release,
    flux_says,
)
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.masking import FIELDS, hidden
from seatrial.model.refusal import Refusal
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import after_failure, named

LONG = 160
DIFFERENCES_MAX = 4

VERSION_LABELS = ("helm.sh/chart", "app.kubernetes.io/version", "chart")
"""Labels that charts put their version into; the last one predates the convention."""
VERSION = lazy_re.compile(r"[0-9]+\.[0-9]+")

NO_FORCE = (
    "--force (Helm 3) and --force-replace (Helm 4) do not help: they send the whole object instead of a patch, which "
    "is rejected the same way. Neither deletes the object."
)

NO_FORCE_OF_FLUX = (
    "upgrade.force does not help: with server-side apply it is ignored; without it the whole object is sent instead of "
    "a patch, which is rejected the same way. It does not delete the object."
)

FORCE_OF_FLUX = (
    "With kustomize.toolkit.fluxcd.io/force: enabled on the object (or force: true on the Kustomization, for all its "
    "objects) Flux deletes and recreates it when a change is rejected. Its pods or its data are lost."
)

FORCE_OF_ARGOCD = (
    "With argocd.argoproj.io/sync-options: Force=true on the object Argo CD deletes and recreates it when a change is "
    "rejected. Its pods or its data are lost. Replace=true alone is rejected the same way."
)

GENERATED = (
    "The template did not change; it generates a new value on every render (revision number, timestamp or random "
    "string)."
)

OF_OTHERS = {
    "kubectl": "kubectl apply --force and kubectl replace --force delete and recreate the object. Its pods or its data "
    "are lost.",
    "Pulumi": "Pulumi replaces an object only for fields that it knows to be immutable; this is not one of them. With "
    'replaceOnChanges: ["spec"] on the resource Pulumi deletes and recreates it. Its data is lost.',
}

Path = tuple[str | int, ...]


class RejectedChange(Struct, frozen=True):
    """A change of an existing object that the API server rejected."""

    step: int
    event: Event
    written: Resource | None
    """The object in the rejected release."""
    was: Resource | None
    """The object in the release before."""

    @property
    def ref(self) -> Ref:
        return self.event.object


class Difference(Struct, frozen=True):
    path: Path
    was: Any
    now: Any


def refusals(rehearsal: Rehearsal, case: Case, kinds: Iterable[str] = ()) -> Iterator[RejectedChange]:
    """Each object of these kinds (all kinds if none is given) once, where its change was first rejected."""
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        if (
            event.actor not in rehearsal.actors
            or event.effect != "refused"
            or event.verb == "delete"
            or event.object in seen
        ):
            continue
        if kinds and event.object.kind not in kinds:
            continue
        if event.actor == "kubectl" and "--force" in rehearsal.steps[event.step].flags:
            continue  # kubectl deletes and recreates it: force-replace-side-effects reports that.
        if event.actor == FLUX and not failed_kustomization(rehearsal.steps[event.step], event.object):
            continue  # Only the dry run was rejected; Flux then deleted the object.
        unchangeable = event.refusal is not None and event.refusal.by == "unchangeable"
        if unchangeable and Moment(rehearsal, case, event.step).was(event.object):
            seen.add(event.object)
            refusal = _refusal(rehearsal, case, event)
            if not _has_its_own_rule(refusal):
                yield refusal


def differences(refusal: RejectedChange, *under: Path) -> list[Difference]:
    """What differs between the two releases, under these paths."""
    if refusal.written is None or refusal.was is None:
        return []
    found = _differences(refusal.was.body, refusal.written.body, ())
    return [one for one in found if not under or any(one.path[: len(path)] == path for path in under)]


def refused(
    rule: Rule,
    rehearsal: Rehearsal,
    case: Case,
    refusal: RejectedChange,
    *,
    message: str,
    changed: list[Difference],
    way_out: Iterable[str],
    confirm: str,
) -> Finding:
    """One finding: what changed, the error, what the failed step leaves behind, and what does not help.

    `way_out` is that of a change which was meant; for a version in such a field the rule has its own.
    """
    written = refusal.written
    paths = [difference.path for difference in changed] or [("metadata", "name")]
    return found(
        rule,
        Moment(rehearsal, case, refusal.step),
        objects=[refusal.ref],
        damage="failed-deploy",
        message=message,
        details=(
            f"Changed: {_changes(_shown(refusal.ref, changed))}." if changed else GENERATED,
            f'The API server rejects it: "{shortened(refusal.event.message, refusal.event.refusal)}"',
            *_what_else(rehearsal, case, refusal),
        ),
        way_out=() if rehearsal.steps[refusal.step].next_version else way_out,
        places=[written.place(*path) for path in paths[:DIFFERENCES_MAX]] if written else [],
        evidence=[refusal.event],
        confirm=confirm,
    )


def _what_else(rehearsal: Rehearsal, case: Case, refusal: RejectedChange) -> Iterator[str]:
    """What the failed step leaves behind, and what is often tried and does not help."""
    moment = Moment(rehearsal, case, refusal.step)
    ended = rehearsal.steps[refusal.step]
    if one := failed_kustomization(ended, refusal.ref):
        yield f"{shortened(flux_says(one), refusal.event.refusal)} None of its other objects is applied."
        yield FORCE_OF_FLUX
        return
    if not is_argocd(rehearsal):
        yield after_failure(moment, refusal.ref)
        no_force = NO_FORCE_OF_FLUX if failed_release(ended, refusal.ref) else NO_FORCE
        yield OF_OTHERS.get(moment.speaker, no_force)
        return
    done = {e.object for e in rehearsal.of_step(refusal.step) if e.actor == ARGOCD and e.effect == "changed"}
    yield f"Argo CD still applies the rest of the wave: {named(sorted(done))} changed." if done else ""
    operations = rehearsal.steps[refusal.step].operations
    yield " ".join(filter(None, map(never_run, operations)))
    yield FORCE_OF_ARGOCD


def try_again(rehearsal: Rehearsal, refusal: RejectedChange) -> str:
    """How to retry: `upgrade again`, or the command that makes Flux retry."""
    ended = rehearsal.steps[refusal.step]
    one = failed_release(ended, refusal.ref) or failed_kustomization(ended, refusal.ref)
    return by_hand(one) if one else f"{ended.action} again"


def shortened(words: str, refusal: Refusal | None) -> str:
    """The first line of an error that quotes a refusal, without long values."""
    return without_values(words, refusal).split("\n")[0]


def without_values(words: str, refusal: Refusal | None) -> str:
    """An error that quotes a refusal, without long values."""
    for cause in refusal.causes if refusal else ():
        quoted = cause.message.removesuffix(f": {cause.detail}").partition(": ")[2]
        if cause.detail and not cause.value and len(quoted) > LONG:
            words = words.replace(quoted, f"{quoted[0]}...{quoted[-1]}")
    return words


def changes_with_version(
    rule: Rule, moment: Moment, resource: Resource, paths: Sequence[Path], message: str, detail: str, confirm: str
) -> Finding:
    """A finding of immutable fields that contain the chart version: the next version changes them."""
    return found(
        rule,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=message,
        details=(detail,),
        places=[resource.place(*path) for path in paths],
        confirm=confirm,
    )


def version_labels(labels: Any) -> list[str]:
    """Labels that change with every chart version."""
    given = labels if isinstance(labels, dict) else {}
    return [name for name in VERSION_LABELS if VERSION.search(str(given.get(name, "")))]


def in_cluster(ref: Ref, path: str) -> str:
    """The command that shows a field."""
    return f"kubectl get {in_kubectl(ref)} -o jsonpath='{{{path}}}'"


def dotted(path: Path) -> str:
    """`spec.template.spec.containers[0].image`"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _refusal(rehearsal: Rehearsal, case: Case, event: Event) -> RejectedChange:
    old, new = Moment(rehearsal, case, event.step).before, case.releases[event.step]
    written = new.find(event.object) if new else None
    return RejectedChange(event.step, event, written, old.find(event.object) if old else None)


def _has_its_own_rule(refusal: RejectedChange) -> bool:
    """Existing hooks are hook-resource-already-exists; forced updates are force-replace-side-effects."""
    helms = refusal.event.actor == "helm"
    hook = helms and refusal.written is not None and hooks.is_hook(refusal.written.body)
    return hook or (refusal.event.verb == "update" and not differences(refusal))


def _differences(was: Any, now: Any, at: Path) -> Iterator[Difference]:
    if was == now:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from _differences(was.get(key), now.get(key), (*at, key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, pair in enumerate(zip(was, now, strict=True)):
            yield from _differences(*pair, (*at, index))
    else:
        yield Difference(at, was, now)


def _shown(ref: Ref, changed: list[Difference]) -> list[Difference]:
    """Values of a Secret are shown as their lengths."""

    def length(value: Any) -> Any:
        return value if value is None else hidden(str(value))

    return [
        replace(one, was=length(one.was), now=length(one.now))
        if ref.kind == "Secret" and one.path[0] in FIELDS
        else one
        for one in changed
    ]


def _changes(changed: list[Difference]) -> str:
    more = f", and {len(changed) - DIFFERENCES_MAX} more" if len(changed) > DIFFERENCES_MAX else ""
    return "; ".join(_change(difference) for difference in changed[:DIFFERENCES_MAX]) + more


def _change(one: Difference) -> str:
    if one.was is None:
        return f"{dotted(one.path)} is new ({_short(one.now)})"
    if one.now is None:
        return f"{dotted(one.path)} has no value any more (was {_short(one.was)})"
    return f"{dotted(one.path)} from {_short(one.was)} to {_short(one.now)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONG else f"{text[:LONG]}..."
