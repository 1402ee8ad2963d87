"""One sync operation of Argo CD, pass by pass as its controller runs it: each applies at most one wave, then looks.

Upstream: `Sync`, `runTasks` and `executeSyncFailPhase` in gitops-engine/pkg/sync/sync_context.go, Argo CD 3.5, with the
switches of `versions`. The results of tasks are all that is kept from one step to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Literal

from msgspec.structs import replace

from seatrial.engines import Stuck
from seatrial.engines.argocd import applying, messages, validity, versions
from seatrial.engines.argocd.app import App, Settings, SyncOptions, marks_of
from seatrial.engines.argocd.comparing import is_modified, respecting
from seatrial.engines.argocd.ignoring import comparison_error, given_up
from seatrial.engines.argocd.results import PENDING, TaskResult, judged, recorded, summary
from seatrial.engines.argocd.tasks import ArgocdTask, build, is_multi_step, with_namespace
from seatrial.engines.argocd.tracking import managed, shared, source_failure, unmarkable, wanted
from seatrial.engines.script import DescribedObject, Part, Pause, Say, Survey, about, wait_until
from seatrial.helm.argocd_hooks import BEFORE_CREATION, FAILED, SUCCEEDED
from seatrial.model.refusal import NO_FAILURE, Failure, joined
from seatrial.model.resource import Body, Ref, metadata, ref_of
from seatrial.model.timeline import ApplicationCondition, Operation, OperationPhase, SyncTask
from seatrial.readiness.argocd import health

COMPLETED = ("Succeeded", "Failed", "Error")

Results = Mapping[tuple[Ref, str], TaskResult]
"""By object and phase."""
Ran = Literal["successful", "pending", "failed"]


class SyncAttempt:
    """One attempt at a sync operation, while it runs."""

    def __init__(self, app: App, settings: Settings, asked: SyncOptions, stored: Results, noted: Results) -> None:
        """`stored` are the results in the Application's status, left by the attempt before; `noted`, by this one."""
        self.app, self.settings = app, settings
        self.asked = replace(asked, options=(*app.options, *asked.options))
        self.phase: OperationPhase = "Running"
        self.message = ""
        self.failure = NO_FAILURE
        self.stuck: Stuck | None = None
        targets, self.conditions = wanted(app, settings)
        self.conditions += (ApplicationCondition("", words) for words in given_up(app, settings))
        self._targets = [with_namespace(target, app) for target in targets]
        self._marked = [(target, marks_of(target)) for target in self._targets]
        self.stored = stored
        self._results: dict[tuple[Ref, str], TaskResult] = dict(noted)
        self.noted = noted
        """What the status has of this attempt: written after each pass, and read by a controller that restarts."""
        self._live: dict[Ref, Body | None] = {}
        self._home: Body | None = None
        self._installed: dict[tuple[Ref, str], str] = {}
        home = Ref("Namespace", "", app.destination)
        self._made_for_it = home if all(target.ref != home for target in targets) else None
        self._unmodified: set[Ref] = set()
        self._waited: set[tuple[str, int]] = set()
        self._waits_for: list[ArgocdTask] = []
        self._verdicts: dict[Ref, str] = {}
        self._deleted: list[Ref] = []
        self._tasks: list[ArgocdTask] = []
        self._seen: dict[tuple[Ref, str], ArgocdTask] = {}

    def run(self) -> Part[Operation]:
        """Run passes until the operation ends, or never will."""
        error = self.app.error or comparison_error(self.app, self.settings) or unmarkable(self.app, self.settings)
        if error:
            self.failure = source_failure(self.app, error)
            self._ends("Error", error)
            return self.operation()
        yield from self._look_around()
        if self._fails_on_shared():
            return self.operation()
        self.stuck = yield from wait_until(self._next, state=self._seen_now)
        yield Say(self.app.ref, self.message, "waiting" if self.phase == "Running" else "said")
        return self.operation()

    @property
    def results(self) -> Results:
        """What remains in the Application's status."""
        return self._results or self.stored

    def operation(self) -> Operation:
        """Its current state, for the record."""
        return Operation(
            app=self.app.name,
            phase=self.phase,
            message=self.message,
            tasks=tuple(self._recorded(task) for task in self._seen.values()),
            waits_for=tuple(task.ref for task in self._waits_for) if self.phase == "Running" else (),
            conditions=tuple(self.conditions),
            hooks_deleted=tuple(self._deleted),
            automated=self.asked.automated,
            failure=joined(self.failure, *(result.failure for result in self._results.values())),
            namespace=self.app.namespace,
        )

    def _recorded(self, task: ArgocdTask) -> SyncTask:
        health = self._verdicts.get(task.ref, "")
        return recorded(task, self._state(task), health, waited=task.place in self._waited)

    def _state(self, task: ArgocdTask) -> TaskResult:
        return self._results.get(task.key, PENDING)

    def _set(self, task: ArgocdTask, status: str, state: str, message: str = "", failure: Failure = NO_FAILURE) -> None:
        self._results[task.key] = TaskResult(status, state, message or self._state(task).message, failure)

    def _ends(self, phase: OperationPhase, message: str) -> None:
        self.phase, self.message = phase, message

    def _runs(self, tasks: Iterable[ArgocdTask], *, deletion: bool = False) -> None:
        """The operation continues and waits for these."""
        self._waits_for = list(tasks)
        if self._waits_for:
            self.message = messages.waiting(self._waits_for, self.settings.version, deletion=deletion)
            self._waited.update(task.place for task in self._waits_for)

    def _look_around(self) -> Part[None]:
        """The live objects that are tracked to the Application or have the name of a target."""
        found = yield Survey()
        everything: dict[Ref, Body] = {ref_of(body): body for body in found.body["items"]}
        self._live = {ref_of(body): body for body in managed(everything.values(), self.app, self.settings)}
        self._home = everything.get(Ref("Namespace", "", self.app.destination))
        hooks = build(self.app, self.settings, self.asked, self._marked, {}, self._home)
        # The namespace of the destination is not tracked: a task applies it, and none prunes it.
        for ref in (*(target.ref for target in self._targets), *(task.ref for task in hooks if task.is_hook)):
            if ref in everything:
                self._live[ref] = everything[ref]
        if "RespectIgnoreDifferences=true" in self.asked.options:
            self._targets = [respecting(t, self._live.get(t.ref), self.app, self.settings) for t in self._targets]
            self._marked = [(target, marks_of(target)) for target in self._targets]
        if "ApplyOutOfSyncOnly=true" in self.asked.options:
            self._unmodified = {target.ref for target in self._targets if self._is_unmodified(target)}
        self._build()

    def _fails_on_shared(self) -> bool:
        """Report objects that other Applications also have; whether that ends the operation."""
        wanted_live = [body for target in self._targets if (body := self._live.get(target.ref)) is not None]
        found = list(shared(wanted_live, self.app, self.settings))
        self.conditions += found
        if found and "FailOnSharedResource=true" in self.asked.options:
            self._ends("Failed", f"Shared resource found: {found[0].message}")
        return self.phase != "Running"

    def _is_unmodified(self, target: DescribedObject) -> bool:
        live = self._live.get(target.ref)
        return live is not None and not is_modified(target, live, self.app, self.settings)

    def _build(self) -> None:
        """The current tasks. A pruned object has none any more, but stays on record."""
        skipped = {task.key for task in self._tasks if task.skip_dry_run}
        built = build(self.app, self.settings, self.asked, self._marked, self._live, self._home)
        self._tasks = [replace(task, skip_dry_run=True) if task.key in skipped else task for task in built]
        known = {task.key: task for task in self._tasks}
        ran = {key: task for key, task in self._seen.items() if self._results.get(key, PENDING).status}
        self._seen = {**{key: task for key, task in ran.items() if key not in known}, **known, **ran}

    def _look_again(self, also: Iterable[ArgocdTask] = ()) -> Part[None]:
        """Objects that may have changed: running, pruned or awaited ones, and `also`."""
        running = [t for t in self._tasks if self._state(t).state == "Running" or self._state(t).status == "Pruned"]
        for task in {task.ref: task for task in (*running, *self._waits_for, *also)}.values():
            answer = yield about(task, "get")
            body = answer.body if answer.code == 200 else None
            if task.ref == self._made_for_it:
                self._home = body  # Its task is there only while the namespace is not; it is never pruned.
                continue
            self._live[task.ref] = body
        self._build()
        waited = {task.key for task in self._waits_for}
        self._waits_for = [task for task in self._tasks if task.key in waited]

    def _next(self) -> Part[tuple[Ref, ...] | None]:
        """Run one pass; returns what it waits for, or None when the operation has ended."""
        yield from self._step()
        if not self._results and self.phase == "Running":
            # The status is patched with the results, and a patch without any leaves those of before. The next pass
            # reads them as its own: argo-cd issues 14046 and 11872.
            self._results = dict(self.stored)
        for task in self._tasks:
            result = self._state(task)
            message = messages.augmented(task, result.message, self._installed.get(task.key, ""))
            if message != result.message:
                self._results[task.key] = replace(result, message=message)
        self.noted = dict(self._results)
        return tuple(task.ref for task in self._waits_for) if self.phase == "Running" else None

    def _seen_now(self) -> Part[object]:
        """Everything that the next pass depends on."""
        yield from self._look_again()
        seen = {task.ref: metadata(task.live).get("resourceVersion") for task in self._waits_for if task.live}
        states = {key: (result.status, result.state, result.message) for key, result in self._results.items()}
        return states, seen

    def _step(self) -> Part[None]:
        """One pass of the controller."""
        if not (yield from self._are_valid()):
            reasons = (self._state(task).message for task in self._tasks if self._state(task).status == "SyncFailed")
            self._ends("Failed", messages.invalid(reasons, self.settings.version))
            return
        if not self._results and not (yield from self._passes_dry_run()):
            return
        for task in self._tasks:
            if self._state(task).state == "Running" and task.live is not None:
                verdict = health(task.live, self.settings.scripts, self.settings.version)
                self._verdicts[task.ref] = summary(verdict)
                self._results[task.key] = judged(task, self._state(task), verdict)
        many = is_multi_step(self._tasks)
        running = [t for t in self._tasks if self._state(t).state == "Running" and (many or t.is_hook)]
        if running:
            yield from self._note_missing(running)
            self._runs(running)
            return
        leaving = [t for t in self._tasks if self._state(t).status == "Pruned" and _is_leaving(t.live)]
        if leaving and versions.has(self.settings.version, "prunes in reversed waves and waits for what it pruned"):
            self._runs(leaving, deletion=True)
            return
        yield from self._let_go([t for t in self._tasks if t.is_hook and self._state(t).state in COMPLETED])
        fails = [task for task in self._tasks if task.phase == "SyncFail"]
        tasks = [task for task in self._tasks if task.phase != "SyncFail"]
        if any(self._state(task).state in ("Failed", "Error") for task in tasks):
            yield from self._delete_hooks(FAILED)
            yield from self._fail(fails, self._refused(tasks), messages.UNSUCCESSFUL)
            return
        pending = [task for task in self._out_of_sync(tasks) if not self._state(task).state]
        if not pending:
            yield from self._delete_hooks(SUCCEEDED)
            self._ends("Succeeded", messages.NO_MORE)
            return
        yield from self._wave(pending, fails)

    def _wave(self, pending: list[ArgocdTask], fails: list[ArgocdTask]) -> Part[None]:
        """Run the first phase and wave of what is pending."""
        place = pending[0].place
        batch = [task for task in pending if task.place == place]
        rest = [task for task in pending if task.place != place]
        yield from self._look_again(batch)
        batch = [replace(task, live=self._live.get(task.ref)) for task in batch]
        if self._is_held_up(batch):
            return
        yield Say(self.app.ref, f"runs {place[0]} wave {place[1]}")
        ran = yield from self._run_tasks(batch)
        if ran != "failed" and rest:
            yield Pause()  # ARGOCD_SYNC_WAVE_DELAY, 2 seconds, after every wave but the last
        match ran:
            case "failed":
                yield from self._wave_failed(batch, fails)
            case "pending":
                self._runs([task for task in batch if self._goes_first(task)], deletion=True)
            case "successful" if not rest and not any(task.is_hook for task in batch):
                # Argo CD does not wait for the last wave.
                yield from self._delete_hooks(SUCCEEDED)
                self._ends("Succeeded", messages.ALL_RUN)
            case "successful":
                self._runs(batch)

    def _is_held_up(self, batch: list[ArgocdTask]) -> bool:
        """Whether a wave waits for a confirmation, or for the deletion of previous hooks."""
        unconfirmed = [task for task in batch if self._needs_confirmation(task)]
        old = [task for task in batch if self._goes_first(task)]
        if unconfirmed:
            self._runs(unconfirmed)
            self.message = messages.confirmation(unconfirmed, self.settings.version)
        elif old and all(_is_leaving(task.live) for task in old):
            self._runs(old, deletion=True)  # Argo CD deletes them again each time, which changes nothing.
        else:
            return False
        return True

    def _wave_failed(self, batch: list[ArgocdTask], fails: list[ArgocdTask]) -> Part[None]:
        running = [task for task in batch if self._state(task).state == "Running"]
        refused = self._refused(batch)
        if not running or not versions.has(self.settings.version, "waits for siblings of a failed apply"):
            if (yield from self._fail(fails, refused, messages.APPLY_FAILED)):
                yield from self._delete_hooks(FAILED)
            return
        if fails and not (yield from self._fail(fails, refused, messages.APPLY_FAILED)):
            running += fails
        self.phase = "Running"
        self._runs(running)

    def _fail(self, fails: list[ArgocdTask], refused: list[ArgocdTask], message: str) -> Part[bool]:
        """Fail, or first run the SyncFail hooks and wait for them; returns whether it is over."""
        words = messages.because(message, (self._state(task).message for task in refused))
        if all(self._state(task).state in COMPLETED for task in fails):
            failed = self._refused(fails)
            if failed:
                reasons = messages.because(messages.FAIL_HOOKS_FAILED, (self._state(t).message for t in failed))
                words = f"{words}\n{reasons}"
            self._ends("Failed", words)
            return True
        pending = [task for task in fails if not self._state(task).state]
        yield from self._look_again(pending)
        yield Say(self.app.ref, "runs SyncFail")
        yield from self._run_tasks([replace(task, live=self._live.get(task.ref)) for task in pending])
        self._runs(pending)
        return False

    def _refused(self, tasks: Iterable[ArgocdTask]) -> list[ArgocdTask]:
        return [task for task in tasks if self._state(task).status == "SyncFailed"]

    def _are_valid(self) -> Part[bool]:
        checked = yield from validity.checked(self.app, self._tasks, self._targets, self.asked, self.settings)
        self._tasks = [one.task for one in checked]
        for one in checked:
            if one.refusal:
                self._set(one.task, "SyncFailed", "", one.refusal, one.failure)
                self._installed[one.task.key] = one.installed
        return not any(one.refusal for one in checked)

    def _passes_dry_run(self) -> Part[bool]:
        """The dry run of all phases and waves, after the namespace is created; a client-side dry run finds little."""
        tasks = self._tasks
        if versions.has(self.settings.version, "namespace before the dry run"):
            home = Ref("Namespace", "", self.app.destination)
            first = next((t for t in tasks if t.ref == home and t.live is None and not t.is_prune), None)
            if first is not None and (yield from self._run_tasks([first])) == "failed":
                yield from self._fail([], [first], messages.NAMESPACE_FAILED)
                return False
            tasks = [task for task in tasks if task is not first]
        for task in self._out_of_sync(tasks):
            if task.is_prune or task.skip_dry_run:
                continue
            done = yield from applying.dry_run(task, self.asked, self.settings)
            if done.refused:
                self._set(task, "SyncFailed", "Failed", done.message, done.failure)
        if self._refused(tasks):
            self._ends("Failed", messages.DRY_RUN_FAILED)
            return False
        return True

    def _out_of_sync(self, tasks: Iterable[ArgocdTask]) -> Iterator[ArgocdTask]:
        """`ApplyOutOfSyncOnly`: skips regular resources that are in sync."""
        return (t for t in tasks if t.is_hook or t.is_prune or t.ref not in self._unmodified)

    def _note_missing(self, running: list[ArgocdTask]) -> Part[None]:
        if not versions.has(self.settings.version, "missing objects are errors"):
            return
        for task in running:
            if task.live is None and (yield about(task, "get")).code == 404:
                self._set(task, "SyncFailed", "Error", f"Resource {task} is missing, it might have been deleted")

    def _goes_first(self, task: ArgocdTask) -> bool:
        """Whether a previous hook is deleted before it is created."""
        return task.live is not None and not self._state(task).state and task.goes(BEFORE_CREATION)

    def _needs_confirmation(self, task: ArgocdTask) -> bool:
        asked_for = task.is_prune and versions.has(self.settings.version, "Prune=confirm")
        return asked_for and applying.prune_option(task, self.asked, self.settings) == "confirm"

    def _run_tasks(self, tasks: list[ArgocdTask]) -> Part[Ran]:
        """Prune, delete previous hooks, then create; each only if nothing before it failed or waits."""
        if versions.has(self.settings.version, "strips stale hook finalizers"):
            yield from self._let_go([t for t in tasks if t.is_hook and not self._state(t).state])
        if not (yield from self._prune([task for task in tasks if task.is_prune])):
            return "failed"
        old = [task for task in tasks if self._goes_first(task)]
        for task in old:
            answer = yield applying.delete(task, self.asked)
            if answer.message and answer.code != 404:
                words = f"failed to delete resource: {answer.message}"
                self._set(task, self._state(task).status, "Error", words, answer.failure)
                return "failed"
            self._deleted.append(task.ref)
        if old:
            return "pending"
        return (yield from self._create([task for task in tasks if not task.is_prune]))

    def _prune(self, tasks: list[ArgocdTask]) -> Part[bool]:
        well = True
        # All at once; a namespace takes longest, and what is in it is deleted before it has begun.
        for task in sorted(tasks, key=lambda task: task.ref.kind == "Namespace"):
            done = yield from applying.prune(task, self.asked, self.settings)
            if done is None:
                why = "ignored (no prune)" if self.asked.prune else "ignored (requires pruning)"
                self._set(task, "PruneSkipped", "Succeeded", why)
            elif done.refused:
                self._set(task, "SyncFailed", "Failed", done.message, done.failure)
                well = False
            else:
                self._set(task, "Pruned", "Succeeded", done.message)
        return well

    def _create(self, tasks: list[ArgocdTask]) -> Part[Ran]:
        """In order, kind by kind; a failure does not stop the rest of the wave."""
        ran: Ran = "successful"
        for _, run in groupby(tasks, lambda task: task.ref.kind):
            for task in run:
                done = yield from applying.apply(task, self.asked, self.settings)
                if done.refused:
                    ran = "failed"
                    self._set(task, "SyncFailed", "Failed", done.message, done.failure)
                else:
                    self._set(task, "Synced", "Running", done.message)
        return ran

    def _let_go(self, hooks: Iterable[ArgocdTask]) -> Part[None]:
        """Remove Argo CD's finalizer from hooks."""
        for task in hooks:
            yield from applying.without_finalizer(task)

    def _delete_hooks(self, policy: str) -> Part[None]:
        """At the end of the whole operation, whatever the result of the hook."""
        going = [t for t in self._tasks if t.goes(policy) and t.live is not None]
        for task in going:
            if self._state(task).state != "Running":
                yield applying.delete(task, self.asked)
                self._deleted.append(task.ref)


def _is_leaving(live: Body | None) -> bool:
    return live is not None and bool(metadata(live).get("deletionTimestamp"))
