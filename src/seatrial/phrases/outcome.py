"""Sentences about what a failed step leaves behind: changed objects, release revisions, and how the next steps end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from seatrial.evidence.flux.reconciliations import (
    failed_kustomization,
    failed_release,
    flux_says,
    goes_on,
)
from seatrial.evidence.moment import Moment
from seatrial.evidence.records import last_record, records_of
from seatrial.helm import hooks
from seatrial.helm.records import NAME as RECORD
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, StepResult

DID = {"created": "created", "changed": "changed", "deleting": "deleted", "deleted": "deleted"}
NAMES_MAX = 3
"""Objects that a sentence names; the rest is counted."""
REPLACES = ("upgrade", "rollback")
TRIED_AGAIN = (*REPLACES, "apply", "up")


def helm_says(ended: StepResult, ref: Ref | None = None) -> str:
    """The error of Helm, or of Flux where it runs Helm; `ref` picks the HelmRelease or Kustomization that has it."""
    one = failed_release(ended, ref) or failed_release(ended) or (failed_kustomization(ended, ref) if ref else None)
    if one is not None:
        return flux_says(one)
    return f'Helm reports: "{ended.error.strip()}"'


def after_failure(moment: Moment, ref: Ref | None = None) -> str:
    """What the failed step changed and did not change, its release revision, and how the next steps end."""
    if one := failed_release(moment.ended, ref):
        return goes_on(one)
    done, records = _done(moment), _records(moment)
    if moment.speaker != "Helm":
        return " ".join(filter(None, (done or "Nothing was changed.", _next(moment))))
    if not done and not records:
        return "Nothing was changed and no revision was recorded. Retrying fails the same way."
    said = (
        done or "Nothing was changed.",
        _not_deleted(moment),
        records or "No revision was recorded.",
        _next(moment),
    )
    return " ".join(filter(None, said))


def revisions(moment: Moment) -> str:
    """Release revisions after a step that failed or hung: `Revision 2 has status failed, revision 1 stays deployed.`"""
    ended = moment.ended
    if ended.outcome == "ok" or ended.again is not None or moment.engine.name != "helm":
        return ""
    if new := _records(moment):
        return new
    before, after = (
        last_record(moment.rehearsal, ended.release, ended.namespace, before_step=at)
        for at in (moment.index, moment.index + 1)
    )
    if after is None:
        return "No revision was recorded."
    if before is not None and before.status == after.status:
        return f"No revision was recorded: revision {after.revision} stays {after.status}."
    return f"Revision {after.revision} has status {after.status}."


def named(refs: Iterable[Ref]) -> str:
    """The first objects by name, and how many more there are."""
    found = list(refs)
    more = f" and {len(found) - NAMES_MAX} more" if len(found) > NAMES_MAX else ""
    return ", ".join(map(str, found[:NAMES_MAX])) + more


def first_named(refs: Iterable[Ref]) -> str:
    """For headlines: `Lock/default/north`, `Lock/default/north and 3 more`."""
    first, *others = refs
    return f"{first} and {len(others)} more" if others else str(first)


def named_is(refs: Iterable[Ref]) -> str:
    """The same with its verb: `Job/default/a is`, `Job/default/a, Job/default/b are`."""
    found = list(refs)
    return f"{named(found)} {'is' if len(found) == 1 else 'are'}"


def _done(moment: Moment) -> str:
    to: dict[Ref, list[str]] = {}
    for event in _first_try(moment):
        if (
            event.actor in (*moment.rehearsal.actors, "user")
            and event.effect in DID
            and not RECORD.fullmatch(event.object.name)
        ):
            to.setdefault(event.object, []).append(DID[event.effect])
    did: dict[str, dict[Ref, None]] = {}
    for ref, effects in to.items():
        if (effects[0], effects[-1]) != ("created", "deleted"):  # That one is undone.
            for effect in effects:
                did.setdefault(effect, {})[ref] = None
    if not did:
        return ""
    changes = ", ".join(f"{verb} {named(refs)}" for verb, refs in did.items())
    return f"{moment.speaker} does not undo its other changes: {changes}."


def _first_try(moment: Moment) -> Iterator[Event]:
    """Events until the step first failed. A retried step had recorded no revision."""
    tried_again = moment.ended.again is not None
    return takewhile(lambda e: not tried_again or not RECORD.fullmatch(e.object.name), moment.events())


def _not_deleted(moment: Moment) -> str:
    """Helm deletes what left the manifest only after everything else succeeded."""
    old, new = moment.before, moment.release
    if old is None or new is None or moment.ended.action not in REPLACES:
        return ""
    dropped = [r.ref for r in old.resources if not hooks.is_hook(r.body) and new.find(r.ref) is None]
    return f"Dropped from the chart, but not deleted: {named(dropped)}." if dropped else ""


def _records(moment: Moment) -> str:
    """`Revision 2 has status failed, revision 1 stays deployed.`; empty if the step recorded none."""
    ended = moment.ended
    before, after = (
        records_of(moment.rehearsal, ended.release, ended.namespace, before_step=at)
        for at in (moment.index, moment.index + 1)
    )
    recorded = max(after, default=0)
    if recorded <= max(before, default=0) or ended.again is not None:
        return ""
    deployed = [revision for revision in before if after[revision].status == "deployed"]
    stays = f", revision {deployed[-1]} stays deployed" if deployed else ""
    return f"Revision {recorded} has status {after[recorded].status}{stays}."


def _next(moment: Moment) -> str:
    """How the steps after a failure end, until the release is removed."""
    if moment.ended.again == "ok":
        return "Running the same command again succeeds."
    said = ", ".join(dict.fromkeys(_following(moment)))
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _following(moment: Moment) -> Iterator[str]:
    failed = moment.ended
    for ended in moment.rehearsal.steps[moment.index + 1 :]:
        if (ended.release, ended.namespace) != (failed.release, failed.namespace) or ended.action not in TRIED_AGAIN:
            return
        if not failed.release and ended.source != failed.source:
            continue
        if ended.outcome == "ok":
            yield f"the next {ended.action} succeeds"
            return
        alike = ended.error == failed.error and ended.action == failed.action
        yield f"the next {ended.action} fails {'the same way' if alike else 'as well'}"
