"""Why a step failed or hung: the events that stopped it, the objects it is about, and what they lack.

Reads what the engine and the cluster recorded. Knows nothing of findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.moment import Moment, moments
from seatrial.helm.records import NAME as RECORD
from seatrial.model.refusal import Failure, FaultOf, joined
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Event, Operation, Rehearsal

DEFINITION = "CustomResourceDefinition"
WROTE = ("created", "changed", "deleting", "deleted", "refused")
CAUSE_MAX = 160
ABOUT_RECORDS: tuple[FaultOf, ...] = ("no-release", "no-deployed-release", "operation-in-progress")
"""Complaints about the state in which an earlier step left the release records of Helm."""
FOLLOWS: tuple[FaultOf, ...] = (*ABOUT_RECORDS, "retries-exceeded")
"""Complaints that only an earlier failure of the same release can cause, if there was one."""
NAMES_CAUSE: tuple[FaultOf, ...] = (
    "unserved",
    "not-owned",
    "not-found",
    "not-ready",
    "name-invalid",
    "source-not-rendered",
)
"""Complaints that say by themselves why the step failed."""


class StepFailure(Struct, frozen=True):
    """Why one step of one rehearsal failed or hung."""

    moment: Moment
    cause: str
    """The first cause in one line: the API server's answer, or the engine's error from the object on."""
    events: tuple[Event, ...] = ()
    """The refused writes and the messages that the error is about, and the last writes to what is lacking."""
    objects: tuple[Ref, ...] = ()
    """What was refused, failed or is waited for, and what that is held up by."""
    lacking: tuple[Ref, ...] = ()
    """What those objects need and did not find."""
    reasons: frozenset[tuple[str, ...]] = frozenset()
    """Two failures that share one fail for the same reason."""
    follows: int | None = None
    """The earlier failed step without which this one would not fail."""

    @property
    def step(self) -> int:
        return self.moment.index

    @property
    def hung(self) -> bool:
        return self.moment.ended.outcome == "hung"


def failures(rehearsal: Rehearsal, case: Case) -> Iterator[StepFailure]:
    """Every step that failed or hung by itself, in order."""
    stopped = (moment for moment in moments(rehearsal, case) if moment.ended.outcome != "ok")
    return (_failure(moment) for moment in stopped if not moment.ended.killed)


def _failure(moment: Moment) -> StepFailure:
    why = _why(moment)
    refused = [event for event in moment.rehearsal.timeline if event.index in why.events] or _hidden(moment, why)
    objects = tuple(dict.fromkeys(_objects(moment, why, refused)))
    said = list(_said(moment, objects))
    by_others = [event for event in said if event.actor not in moment.rehearsal.actors]
    spoken = refused or (by_others if moment.ended.outcome == "failed" else [])
    lacking = dict.fromkeys((*moment.ended.lacking, *_missing(refused), *_definitions(moment, why)))
    cause = _cause(moment, spoken, objects)
    return StepFailure(
        moment,
        cause,
        events=(*refused, *said, *_last_writes(moment, (*lacking, *_records(moment, why)))),
        objects=objects,
        lacking=tuple(lacking),
        reasons=frozenset((*map(reason_of, spoken), *_complaints(why))) or frozenset({(cause,)}),
        follows=_followed(moment, why),
    )


def _why(moment: Moment) -> Failure:
    ended = moment.ended
    syncs = (operation.failure for operation in _failed_syncs(moment))
    return joined(ended.failure, *syncs, *(one.failure for one in ended.reconciled if one.message))


def _hidden(moment: Moment, why: Failure) -> list[Event]:
    """The last refusal, where the engine's error says nothing: a deletion that Helm only calls failed."""
    refused = (e for e in moment.events() if e.effect == "refused" and e.object not in e.missing)
    return [] if why or moment.ended.outcome == "hung" else list(refused)[-1:]


def _failed_syncs(moment: Moment) -> Iterator[Operation]:
    return (operation for operation in moment.ended.operations if operation.phase != "Succeeded")


def _objects(moment: Moment, why: Failure, refused: list[Event]) -> Iterator[Ref]:
    yield from (event.object for event in refused)
    yield from moment.ended.waits_for
    for operation in _failed_syncs(moment):
        yield from operation.waits_for
        yield from (t.object for t in operation.tasks if t.status == "SyncFailed" or t.state in ("Failed", "Error"))
    yield from (one.object for one in moment.ended.reconciled if one.message)
    written = list(dict.fromkeys(resource.ref for resource in moment.case.all_resources()))
    for fault in why.faults:
        if fault.object is not None:
            yield from _written_as(fault.object, written)
        yield from (ref for ref in (_registered(moment, fault.urn),) if ref is not None)
    yield from _applications(moment, written)
    yield from _holding(moment)


def _written_as(named: Ref, written: list[Ref]) -> list[Ref]:
    """The object that an error names. It may leave out the group or the namespace."""
    found = [
        ref
        for ref in written
        if (ref.kind, ref.name) == (named.kind, named.name)
        and named.group in ("", ref.group)
        and named.namespace in ("", ref.namespace)
    ]
    return [named] if named in written or not found else found


def _registered(moment: Moment, urn: str) -> Ref | None:
    """The object of a resource in a Pulumi program."""
    release = moment.release
    own = release.program.find(urn) if urn and release and release.program else None
    return own.ref if own else None


def _applications(moment: Moment, written: list[Ref]) -> Iterator[Ref]:
    """The Applications whose sync failed, as Argo CD knows them, and those that were never synced."""
    names = {operation.app for operation in _failed_syncs(moment)}
    known = (*(event.object for event in moment.events()), *written)
    yield from (ref for ref in known if ref.kind == "Application" and ref.name in names)


def _said(moment: Moment, objects: tuple[Ref, ...]) -> Iterator[Event]:
    """The messages that the error repeats; one about the objects may be of an earlier step."""
    for event in moment.rehearsal.timeline:
        near = event.step == moment.index or (event.step < moment.index and event.object in objects)
        if near and event.effect == "said" and event.message and event.message in moment.ended.error:
            yield event


def _missing(refused: list[Event]) -> Iterator[Ref]:
    """What the API server did not find, or found being deleted."""
    for event in refused:
        yield from event.missing
        if event.refusal is not None and event.refusal.terminating is not None:
            yield event.refusal.terminating


def _holding(moment: Moment) -> Iterator[Ref]:
    """What keeps namespaces and CRDs that are waited for from being deleted: their objects with finalizers."""
    waited = moment.ended.waits_for
    namespaces = {ref.name for ref in waited if ref.kind == "Namespace"}
    kinds = {_defined(body) for ref in waited if ref.kind == DEFINITION and (body := moment.live(ref))}
    deleting = {event.object for event in moment.events() if event.effect == "deleting"}
    for ref in sorted(deleting):
        if (ref.namespace in namespaces or (ref.group, ref.kind) in kinds) and moment.live(ref) is not None:
            yield ref


def _definitions(moment: Moment, why: Failure) -> Iterator[Ref]:
    """The CRDs of the kinds that the API server does not serve."""
    unserved = {(fault.kind.group, fault.kind.kind) for fault in why.faults if fault.kind is not None}
    if not unserved:
        return
    written = ((resource.ref, resource.body) for resource in moment.case.all_resources())
    live = ((event.object, event.after) for event in moment.rehearsal.timeline if event.after is not None)
    yield from (ref for ref, body in (*written, *live) if _defined(body) in unserved)


def _defined(body: Body) -> tuple[str, str] | None:
    if body.get("kind") != DEFINITION:
        return None
    return str(dig(body, "spec", "group")), str(dig(body, "spec", "names", "kind"))


def _records(moment: Moment, why: Failure) -> Iterator[Ref]:
    """Helm's records of the release, where the error is about their state."""
    ended = moment.ended
    if not any(fault.of in ABOUT_RECORDS for fault in why.faults):
        return
    for ref in dict.fromkeys(event.object for event in moment.rehearsal.timeline):
        named = RECORD.fullmatch(ref.name) if ref.namespace == ended.namespace else None
        if named and named["release"] == ended.release:
            yield ref


def _last_writes(moment: Moment, refs: Iterable[Ref]) -> Iterator[Event]:
    """What last happened to each of these objects: it was deleted, or is no longer what is needed."""
    for ref in refs:
        wrote = [e for e in moment.rehearsal.of_object(ref) if e.step <= moment.index and e.effect in WROTE]
        yield from (event for event in wrote if event.step == wrote[-1].step)


def _followed(moment: Moment, why: Failure) -> int | None:
    ended = moment.ended
    if not any(fault.of in FOLLOWS for fault in why.faults) and not _is_not_synced_again(moment):
        return None
    earlier = reversed(list(enumerate(moment.rehearsal.steps[: moment.index])))
    same = (step for step, one in earlier if (one.release, one.namespace) == (ended.release, ended.namespace))
    before = next(same, None)
    if before is None or moment.at(before).ended.killed:
        return None
    return before if moment.at(before).ended.outcome != "ok" else None


def _is_not_synced_again(moment: Moment) -> bool:
    """Whether each sync that failed did not even start, because the one before it had failed."""
    syncs = [operation.failure.faults for operation in _failed_syncs(moment)]
    return bool(syncs) and all(any(fault.of == "last-sync-failed" for fault in faults) for faults in syncs)


def _cause(moment: Moment, spoken: list[Event], objects: tuple[Ref, ...]) -> str:
    error = moment.ended.error
    if moment.ended.outcome == "hung":
        text = error.rpartition(". ")[0].partition("; waits for ")[0]  # The last sentence is the timeout.
    else:
        text = spoken[0].message if spoken else error[_start(error, objects) :]
    lines = [line.strip() for line in text.strip().splitlines()] or [""]
    line = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return line if len(line) <= CAUSE_MAX else _shortened(line)


def _shortened(line: str) -> str:
    """Its beginning and its end, cut between words."""
    head, tail = line[: CAUSE_MAX - 60], line[-55:]
    return f"{head.rpartition(' ')[0] or head} ... {tail.partition(' ')[2] or tail}"


def _start(error: str, objects: tuple[Ref, ...]) -> int:
    """Where an error begins to speak of the objects; what is before that says how far the engine was."""
    written = (form for ref in objects for form in (str(ref), f'{ref.kind} "{ref.name}"', f'kind "{ref.kind}"'))
    found = [at for form in (*written, "no matches for kind") if (at := error.find(form)) >= 0]
    return min(found, default=0)


def reason_of(event: Event) -> tuple[str, ...]:
    """What is alike when the same write is refused again; messages may quote generated values."""
    refusal = event.refusal
    fields = tuple(cause.field for cause in refusal.causes) if refusal else ()
    reason = refusal.reason if refusal and fields else event.message.partition("\n")[0]
    return str(event.object), reason, *fields


def _complaints(why: Failure) -> Iterator[tuple[str, ...]]:
    """What the engine itself complains of, where that names the cause."""
    for fault in why.faults:
        if fault.of in NAMES_CAUSE:
            yield fault.of, str(fault.object or ""), fault.kind.kind if fault.kind else "", fault.status
