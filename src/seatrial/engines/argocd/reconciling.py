"""The Application controller: whether an automated sync starts, how often it is retried, and how it is resumed.

Upstream: `processRequestedAppOperation` and `autoSync` in controller/appcontroller.go, Argo CD 3.5.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Ended, Stuck
from seatrial.engines.argocd.app import App, Settings, SyncOptions
from seatrial.engines.argocd.asking import requested
from seatrial.engines.argocd.comparing import is_modified
from seatrial.engines.argocd.ignoring import comparison_error
from seatrial.engines.argocd.operation import Results, SyncAttempt
from seatrial.engines.argocd.results import ERROR, NOTHING
from seatrial.engines.argocd.tracking import managed, source_failure, speaks_of_itself, wanted
from seatrial.engines.script import WRITES, Answer, Command, Line, Part, Pause, Say, Survey, Wait, carry
from seatrial.helm.argocd_hooks import ignores_extraneous, is_hook, is_skipped
from seatrial.model.refusal import NO_FAILURE, Failure, Fault, joined
from seatrial.model.resource import Ref, ref_of
from seatrial.model.timeline import Operation

RETRIES_MAX = 100
"""The retries if the Application sets none."""
MESSAGES_MAX = 5
"""How many objects a failed operation lists with their messages."""


Attempt = tuple[str, tuple[tuple[str, Ref, int], ...]]
"""The message of an attempt, and its writes with the answers to them."""


class Tried(Struct, frozen=True):
    """An operation with all its attempts; `stuck` if it never ends."""

    operation: Operation
    stuck: Stuck | None = None
    results: Results = {}
    """What remains in the Application's status."""


class Skipped(Struct, frozen=True):
    """Why no automated sync starts."""

    words: str
    is_error: bool = False
    """Whether the Application shows it as a SyncError or ComparisonError."""
    failure: Failure = NO_FAILURE


class Compared(Struct, frozen=True):
    """What the comparison of an Application with the cluster shows."""

    modified: tuple[Ref, ...] = ()
    """Targets that are missing or differ."""
    extra: tuple[Ref, ...] = ()
    """Live objects that are no longer targets."""
    wanted: int = 0

    @property
    def out_of_sync(self) -> bool:
        return bool(self.modified or self.extra)


class Running(Struct, frozen=True):
    """An operation that has not ended, as the Application's status and its `operation` field keep it."""

    app: App
    """With the revision that it deploys, whatever the source has by then."""
    asked: SyncOptions
    sync: SyncAttempt
    attempts: tuple[Attempt, ...] = ()


def synced(app: App, settings: Settings, asked: SyncOptions, running: dict[Ref, Running]) -> Part[Tried]:
    """Sync. If the controller died in an operation of this Application, that one is resumed first."""
    left = running.get(app.ref)
    if left is not None:
        resumed = yield from resume(left, settings, running)
        if left.app == app or resumed.stuck is not None:
            return resumed
    return (yield from _tried(Running(app, asked, SyncAttempt(app, settings, asked, {}, {})), settings, running))


def written(
    app: App, settings: Settings, asked: SyncOptions, before: Tried | None, running: dict[Ref, Running]
) -> Part[Tried]:
    """Run an `operation` that somebody wrote into the Application, where `before` is in `status.operationState`.

    Nothing refuses it while another one runs: that one goes on instead. After one that has ended, its results stay in
    the status until a pass records others, since the patch of `setOperationState` leaves out what is empty. A first
    pass that only deletes a hook records none, and the next one takes the old results for its own.
    """
    results: Results = before.results if before is not None else {}
    noted: Results = {}
    if before is not None and before.operation.phase == "Running":
        noted = results
        yield Say(app.ref, f"Resuming in-progress operation. phase: Running, message: {before.operation.message}")
    alone = replace(app, options=())
    sync = SyncAttempt(alone, settings, asked, results, noted)
    return (yield from _tried(Running(alone, asked, sync), settings, running))


def resume(left: Running, settings: Settings, running: dict[Ref, Running]) -> Part[Tried]:
    """Go on with an operation after a restart: with its revision, its start time, and the results of whole passes."""
    app, before = left.app, left.sync
    yield Say(app.ref, f"Resuming in-progress operation. phase: Running, message: {before.message}")
    sync = SyncAttempt(app, settings, left.asked, before.stored, before.noted)
    return (yield from _tried(replace(left, sync=sync), settings, running))


def _tried(start: Running, settings: Settings, running: dict[Ref, Running]) -> Part[Tried]:
    """Run an operation, and retry from the start after a failure while retries are left.

    Retries that a flag asks for are all rehearsed; those of a policy until they repeat what was done before.
    """
    app, asked, sync = start.app, start.asked, start.sync
    limit = asked.retries if asked.retries >= 0 else RETRIES_MAX
    attempts = list(start.attempts)
    while True:
        running[app.ref] = Running(app, asked, sync, tuple(attempts))
        operation, done = yield from _attempted(sync)
        del running[app.ref]
        attempts.append(done)
        attempt = len(attempts) - 1
        if operation.phase not in ("Failed", "Error") or attempt >= limit:
            break
        if not asked.retries_given and _repeats(attempts, limit - attempt):
            if asked.retries < 0:
                return _without_end(operation, attempt)
            attempt = limit
            break
        sync = SyncAttempt(app, settings, asked, sync.results, {})
        yield Say(app.ref, f"retries, attempt #{attempt + 1}")
        yield Pause()  # The backoff is seconds at least: other Applications sync meanwhile.
        yield Wait(tuple(task.object for task in operation.tasks))
    message = f"{operation.message} (retried {attempt} times)." if attempt else operation.message
    return Tried(replace(operation, message=message, attempts=attempt + 1), sync.stuck, sync.results)


def _repeats(attempts: list[Attempt], left: int) -> bool:
    """Whether the attempts that are left would end as this one: all alike, or each as the one before the last."""
    if len(attempts) > 1 and attempts[-1][0] == attempts[-2][0] and all(code >= 400 for *_, code in attempts[-1][1]):
        return True  # It changed nothing.
    return any(
        len(attempts) > period and attempts[-1] == attempts[-1 - period] and left % period == 0 for period in (1, 2)
    )


def _attempted(sync: SyncAttempt) -> Part[tuple[Operation, Attempt]]:
    wrote: list[tuple[str, Ref, int]] = []

    def on_line(line: Line, answer: Answer) -> Part[Operation | None]:
        if isinstance(line, Command) and line.verb in WRITES:
            wrote.append((line.verb, line.ref, answer.code))
        yield from ()
        return None

    operation = yield from carry(sync.run(), on_line)
    return operation, (operation.message, tuple(wrote))


def _without_end(operation: Operation, attempt: int) -> Tried:
    """A limit below zero means unlimited retries."""
    refs = tuple(task.object for task in operation.tasks if task.status == "SyncFailed")
    stuck = Stuck("every attempt ends alike, and a limit below zero is none", refs, ())
    message = f"{operation.message}. Retrying attempt #{attempt + 1}"
    return Tried(replace(operation, phase="Running", message=message, attempts=attempt + 1), stuck)


def automatic(
    app: App, settings: Settings, last: Operation | None, revision: str, started: int
) -> Part[SyncOptions | Skipped]:
    """The automated sync that starts when the Application is compared again, or why none does.

    `last` is the last operation, and `revision` the one that it was about.
    """
    if not app.automated:
        return Skipped("automated sync is not enabled")
    error = app.error or comparison_error(app, settings)
    if error:
        return Skipped(error, is_error=True, failure=source_failure(app, error))
    compared = yield from compare(app, settings)
    if not compared.out_of_sync:
        return Skipped("Skipping auto-sync: application status is Synced")
    if not app.prune and not compared.modified:
        why = "need to prune extra resources only but automated prune is disabled"
        return Skipped(f"Skipping auto-sync: {why}")
    asked = requested(app, started=started)
    if last is not None and revision == app.revision:
        if last.phase != "Succeeded":
            words = f"Failed last sync attempt to [{app.revision}]: {last.message}"
            again = Failure(faults=(Fault("last-sync-failed", app.ref),))
            return Skipped(words, is_error=True, failure=joined(last.failure, again))
        if not app.self_heal:
            return Skipped(f"Skipping auto-sync: most recent sync already to [{app.revision}]")
        asked = replace(asked, selected=(*compared.modified, *compared.extra))
    if app.prune and not app.allow_empty and not compared.wanted:
        words = f"Skipping sync attempt to [{app.revision}]: auto-sync will wipe out all resources"
        return Skipped(words, is_error=True)
    return asked


def compare(app: App, settings: Settings) -> Part[Compared]:
    """What differs between an Application's source and the cluster. Hooks are not compared."""
    found = yield Survey()
    everything = {ref_of(body): body for body in found.body["items"]}
    targets, _ = wanted(app, settings)
    plain = [target for target in targets if not is_hook(target.body) and not is_skipped(target.body)]
    modified = []
    for target in plain:
        live = everything.get(target.ref)
        # What is a hook in the cluster is not compared, even where it is none in the source any more.
        if live is None or (not is_hook(live) and is_modified(target, live, app, settings)):
            modified.append(target.ref)
    known = {target.ref for target in targets}
    extra = [
        ref_of(body)
        for body in managed(everything.values(), app, settings)
        if ref_of(body) not in known
        and not is_hook(body)
        and not ignores_extraneous(body)
        and speaks_of_itself(body, settings)
    ]
    hidden = [t.ref for t in targets if is_hook(t.body) and (b := everything.get(t.ref)) is not None and not is_hook(b)]
    return Compared(tuple(modified), tuple(sorted({*extra, *hidden})), len(plain))


def ended(tried: list[Tried]) -> Ended:
    """The outcome of a step: that of its worst operation."""
    operations = tuple(one.operation for one in tried)
    conditions = tuple(f"{o.app}: {words}" for o in operations for words in o.conditions)
    for one in tried:
        if one.stuck is not None:
            return Ended("hung", _blocked(one), conditions, one.stuck, operations)
    failed = [_named(one.operation, operations) for one in tried if one.operation.phase != "Succeeded"]
    if failed:
        failure = joined(*(operation.failure for operation in operations if operation.phase != "Succeeded"))
        return Ended("failed", "\n".join(failed), conditions, operations=operations, failure=failure)
    return Ended("ok", warnings=conditions, operations=operations)


def _named(operation: Operation, among: tuple[Operation, ...]) -> str:
    """The message of an operation, followed by those of its failed objects, as the Application lists them."""
    message = f"{operation.app}: {operation.message}" if len(among) > 1 else operation.message
    failed = [task for task in operation.tasks if task.state in ("Failed", "Error") or task.status == "SyncFailed"]
    messages = [f"{task.object}: {task.message}" for task in failed if task.message and task.message not in message]
    return "\n".join((message, *messages[:MESSAGES_MAX]))


def _by_script(operation: Operation) -> str:
    """Errors of health checks, which Argo CD shows nowhere."""
    waited = [task for task in operation.tasks if task.object in operation.waits_for]
    messages = [f"; its health check says {task.health}" for task in waited if task.health.startswith((ERROR, NOTHING))]
    return messages[0] if messages else ""


def _blocked(tried: Tried) -> str:
    """The message that stays forever, why, and what it blocks."""
    operation, stuck = tried.operation, tried.stuck
    assert stuck is not None
    why = f"{stuck.sentence}{_by_script(operation)}".removesuffix(".")
    words = f"{operation.message}: {why}. Argo CD has no timeout for this"
    never = operation.never_ran()
    if not never:
        return words
    by_phase: dict[str, list[str]] = {}
    for phase, wave in never:
        by_phase.setdefault(phase, []).append(str(wave))
    hooks = " and ".join(
        f"{phase} wave{'s' if len(waves) > 1 else ''} {', '.join(waves)}" for phase, waves in by_phase.items()
    )
    return f"{words}; {hooks} never run{'s' if len(never) == 1 else ''}"
