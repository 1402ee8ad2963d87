"""Why a step failed or hung, as data: the events that stopped it, the objects it is about, and what they lack.

Reads the rehearsal and the engine's error. Knows nothing of findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import ARGOCD
from seatrial.evidence.moment import Moment, moments
from seatrial.helm.records import NAME as RECORD
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Event, Rehearsal, StepResult

APPLICATION = "Application"
DEFINITION = "CustomResourceDefinition"
WROTE = ("created", "changed", "deleting", "deleted", "refused")
NO_KIND = 'no matches for kind "{kind}" in version "{group}'
BAD_VALUE = "Invalid value:"
CAUSE_MAX = 160
FOLLOWS = (
    "has no deployed releases",  # helm: storage/driver ErrNoDeployedReleases
    "release: not found",  # helm: storage/driver ErrReleaseNotFound
    "another operation (install/upgrade/rollback) is in progress",  # helm: action errPending
    "Failed last sync attempt to",  # argo-cd: appcontroller.go, autoSync does not retry a failed revision
    "RetriesExceeded: Failed to",  # helm-controller: no retries are left
)
"""Errors about the state in which an earlier step left the release."""


class StepFailure(Struct, frozen=True):
    """Why one step of one rehearsal failed or hung."""

    moment: Moment
    cause: str
    """The first cause in one line: the API server's answer, or the engine's error from the object on."""
    events: tuple[Event, ...] = ()
    """The events that the error repeats, and the last writes to what is lacking."""
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
    """Every step that failed or hung, in order."""
    return (_failure(moment) for moment in moments(rehearsal, case) if moment.ended.outcome != "ok")


def _failure(moment: Moment) -> StepFailure:
    ended = moment.ended
    refused = list(_refused(moment))
    known = dict.fromkeys((*(e.object for e in moment.events()), *(r.ref for r in moment.case.all_resources())))
    mentioned = {ref: at for ref in known if (at := _mention(ended.error, ref)) >= 0}
    objects = dict.fromkeys(
        (
            *(event.object for event in refused),
            *ended.waits_for,
            *_failed_tasks(ended),
            *(one.object for one in ended.reconciled if one.message),
            *_registered(moment),
            *mentioned,
            *_failed_apps(ended, known),
            *_holding(moment),
        )
    )
    lacking = dict.fromkeys((*ended.lacking, *_definitions(moment, objects), *_records(moment)))
    said = list(_said(moment, objects))
    by_others = [event for event in said if event.actor != moment.engine.name]
    spoken = refused or (by_others if ended.outcome == "failed" else [])
    cause = _cause(ended, spoken, min(mentioned.values(), default=0))
    return StepFailure(
        moment,
        cause,
        events=(*refused, *said, *_last_writes(moment, lacking)),
        objects=tuple(objects),
        lacking=tuple(lacking),
        reasons=frozenset((str(e.object), _stem(e.message)) for e in spoken) or frozenset({(_stem(cause),)}),
        follows=_followed(moment),
    )


def _repeats(ended: StepResult, event: Event) -> bool:
    first = event.message.partition("\n")[0]
    return first != "" and first in ended.error


def _refused(moment: Moment) -> Iterator[Event]:
    """The refusals that the error repeats; where it repeats none, the last one that could have caused it."""
    refused = [event for event in moment.events() if event.effect == "refused"]
    found = [event for event in refused if _repeats(moment.ended, event)]
    own = (e for e in refused if e.verb != "get" and f'"{e.object.name}" not found' not in e.message)
    yield from found or (list(own)[-1:] if moment.ended.outcome == "failed" else ())


def _said(moment: Moment, objects: Iterable[Ref]) -> Iterator[Event]:
    """The messages of controllers that the error repeats; one about the objects may be of an earlier step."""
    known = set(objects)
    for event in moment.rehearsal.timeline:
        near = event.step == moment.index or (event.step < moment.index and event.object in known)
        if near and event.effect == "said" and _repeats(moment.ended, event):
            yield event


def _failed_tasks(ended: StepResult) -> Iterator[Ref]:
    for operation in ended.operations:
        if operation.phase != "Succeeded":
            yield from operation.waits_for
            failed = (t for t in operation.tasks if t.status == "SyncFailed" or t.state in ("Failed", "Error"))
            yield from (task.object for task in failed)


def _failed_apps(ended: StepResult, known: Iterable[Ref]) -> Iterator[Ref]:
    apps = {operation.app for operation in ended.operations if operation.phase != "Succeeded"}
    yield from (ref for ref in known if ref.kind == APPLICATION and ref.name in apps)
    yield from (Ref(APPLICATION, ARGOCD, app, "argoproj.io") for app in sorted(apps))


def _registered(moment: Moment) -> Iterator[Ref]:
    """The resources of a Pulumi program that the error names, by URN or at the beginning of a line."""
    release, error = moment.release, moment.ended.error
    for one in release.program.registrations if release and release.program else ():
        if one.ref is not None and (f'"{one.urn}"' in error or f"{one.type} ({one.name}): error" in error):
            yield one.ref


def _mention(error: str, ref: Ref) -> int:
    """Where an error begins to speak of an object; -1 where it does not."""
    unmapped = error.find(NO_KIND.format(kind=ref.kind, group=ref.group))
    if unmapped >= 0 and f'name: "{ref.name}"' in error:
        return unmapped
    for written in (str(ref), f'{ref.kind} "{ref.name}" in namespace "{ref.namespace}"'):
        at = error.find(written)
        if at >= 0 and not _goes_on(error[at + len(written) :]):
            return at
    return -1


def _goes_on(rest: str) -> bool:
    """Whether a name that was found is only the beginning of a longer one."""
    return rest[:1].isalnum() or rest[:1] == "-" or (rest[:1] == "." and rest[1:2].isalnum())


def _holding(moment: Moment) -> Iterator[Ref]:
    """What keeps namespaces and CRDs that are waited for from being deleted: their objects with finalizers."""
    waited = moment.ended.waits_for
    namespaces = {ref.name for ref in waited if ref.kind == "Namespace"}
    kinds = {_defined(body) for ref in waited if ref.kind == DEFINITION and (body := moment.live(ref))}
    deleting = {event.object for event in moment.events() if event.effect == "deleting"}
    for ref in sorted(deleting):
        if (ref.namespace in namespaces or (ref.group, ref.kind) in kinds) and moment.live(ref) is not None:
            yield ref


def _definitions(moment: Moment, refs: Iterable[Ref]) -> Iterator[Ref]:
    """The CRDs of objects whose kind the API server does not serve."""
    error = moment.ended.error
    missing = {(ref.group, ref.kind) for ref in refs if NO_KIND.format(kind=ref.kind, group=ref.group) in error}
    if not missing:
        return
    written = ((resource.ref, resource.body) for resource in moment.case.all_resources())
    live = ((event.object, event.after) for event in moment.rehearsal.timeline if event.after is not None)
    yield from (ref for ref, body in (*written, *live) if _defined(body) in missing)


def _defined(body: Body) -> tuple[str, str] | None:
    if body.get("kind") != DEFINITION:
        return None
    return str(dig(body, "spec", "group")), str(dig(body, "spec", "names", "kind"))


def _records(moment: Moment) -> Iterator[Ref]:
    """Helm's records of the release, where the error is about the state in which they are."""
    ended = moment.ended
    if not _is_about_earlier(ended):
        return
    for event in moment.rehearsal.timeline:
        ref = event.object
        named = RECORD.fullmatch(ref.name) if ref.namespace == ended.namespace else None
        if named and named["release"] == ended.release:
            yield ref


def _last_writes(moment: Moment, refs: Iterable[Ref]) -> Iterator[Event]:
    """What last happened to each of these objects: it was deleted, or is no longer what is needed."""
    for ref in refs:
        wrote = [e for e in moment.rehearsal.of_object(ref) if e.step <= moment.index and e.effect in WROTE]
        yield from (event for event in wrote if event.step == wrote[-1].step)


def _followed(moment: Moment) -> int | None:
    ended = moment.ended
    if not _is_about_earlier(ended):
        return None
    earlier = reversed(list(enumerate(moment.rehearsal.steps[: moment.index])))
    same = (step for step, one in earlier if (one.release, one.namespace) == (ended.release, ended.namespace))
    before = next(same, None)
    return before if before is not None and moment.at(before).ended.outcome != "ok" else None


def _is_about_earlier(ended: StepResult) -> bool:
    return any(words in ended.error for words in FOLLOWS)


def _cause(ended: StepResult, spoken: list[Event], start: int) -> str:
    if ended.outcome == "hung":
        text = ended.error.rpartition(". ")[0].partition("; waits for ")[0]  # The last sentence is the timeout.
    else:
        text = spoken[0].message if spoken else ended.error[start:]
    lines = [line.strip() for line in text.strip().splitlines()] or [""]
    line = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return line if len(line) <= CAUSE_MAX else f"{line[: CAUSE_MAX - 60]} ... {line[-55:]}"


def _stem(message: str) -> str:
    """A message without values that differ from one try to the next."""
    return message.partition("\n")[0].partition(BAD_VALUE)[0]
