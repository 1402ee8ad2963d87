"""Several Applications concurrently, with child Applications to any depth, each with its own operation.

Argo CD's controller works on all Applications side by side; waves order the objects of one Application only. Where
time passes between the waves of a parent (`Pause`), children that are quick are done before the next wave; where it
does not, they move only when the engine waits. That is all of the order there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Ended
from seatrial.engines.argocd import leaving, sets, versions
from seatrial.engines.argocd.app import API_VERSION, App, Settings
from seatrial.engines.argocd.asking import by_hand, of_rollout, requested
from seatrial.engines.argocd.ignoring import comparison_error
from seatrial.engines.argocd.reconciling import (
    Running,
    Skipped,
    Tried,
    automatic,
    compare,
    ended,
    resume,
    synced,
    written,
)
from seatrial.engines.argocd.rollout import (
    MOVED,
    PENDING,
    ApplicationStatus,
    Rollout,
    RolloutProgress,
    current_step,
    may_sync,
)
from seatrial.engines.argocd.sets import AppSet
from seatrial.engines.argocd.terminating import terminated
from seatrial.engines.concurrent import Job, give_up, interleave
from seatrial.engines.script import WRITES, Answer, Bring, Command, Line, Part, Pause, Say, Script, Survey, Wait
from seatrial.helm.argocd_hooks import is_hook, is_skipped
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Body, Ref, annotations_of, ref_of
from seatrial.model.timeline import Operation
from seatrial.readiness.argocd import counts_as_missing, health, worst
from seatrial.readiness.argocd.verdict import HEALTHY, MISSING, Health


class Applications(Struct, frozen=True):
    """The Applications that are synced on request, and all their children."""

    roots: tuple[App, ...]
    others: Mapping[Ref, App] = {}
    """By Application: the rendered child Applications."""
    sets: Mapping[Ref, AppSet] = {}
    given: tuple[Ref, ...] = ()
    """The ApplicationSets of the input."""


class ArgocdMemory:
    """What Argo CD remembers from one step to the next."""

    def __init__(self) -> None:
        self.last: dict[Ref, tuple[Operation, str]] = {}
        """By Application: its last operation and the revision of it."""
        self.tried: dict[Ref, Tried] = {}
        """The same with the results of its tasks."""
        self.apps: dict[Ref, App] = {}
        self.sets: dict[Ref, AppSet] = {}
        self.progress: dict[Ref, RolloutProgress] = {}
        """The RollingSync progress of each Application."""
        self.running: dict[Ref, Running] = {}
        """Operations in progress: what is left here when the next step begins was interrupted."""


class _Priority(Struct):
    """The priority of a job."""

    is_root: bool = False
    follows: bool = False
    """Whether it only waits for others."""
    paused: bool = False


class _Applications:
    """All Applications in progress: the `Schedule` of Argo CD's controllers.

    On a fast cluster all go on side by side. On a slow one, one goes on as far as it can before others do: the roots
    first, then the Applications that they created, the youngest before the oldest.
    """

    def __init__(self, fleet: Applications, settings: Settings, memory: ArgocdMemory, started: int) -> None:
        self.fleet, self.settings, self.memory, self.started = fleet, settings, memory, started
        self.quick = True
        self.jobs: list[Job[_Priority]] = []
        self.tried: list[Tried] = []
        self.begun: set[Ref] = set()
        self.leaving: set[Ref] = set()
        self.phases: dict[Ref, str] = {}
        """Operations that sets have started."""
        self.rolled = {app: one.rollout for one in fleet.sets.values() if one.rollout for app in one.rollout.apps}

    def add(self, script: Part[None], *, is_root: bool = False, follows: bool = False) -> None:
        self.jobs.append(Job(_Priority(is_root, follows), script))

    def turn(self) -> Part[Job[_Priority] | None]:
        """The first job that is not blocked. If all are, the last one gives up, first those that follow no other."""
        jobs = self._in_order()
        if not jobs:
            return None
        able = [job for job in jobs if not job.blocked]
        if not able:
            last = min(reversed(jobs), key=lambda job: job.of.follows)
            yield from give_up(last)
            return last
        # Where time passes between two waves, others use it first.
        job = next((job for job in able if not job.of.paused), able[0])
        job.of.paused = False
        if job.waits is not None:
            answer = yield Wait(tuple(dict.fromkeys(self._awaited(job.refs))))
            job.wake(moved=answer.stuck is None)
        return job

    def on_line(self, job: Job[_Priority], line: Line, answer: Answer) -> Part[bool]:
        """Start jobs for created, changed or deleted Applications and sets."""
        job.of.paused = isinstance(line, Pause) and answer.quick
        if not isinstance(line, Command) or line.verb not in WRITES or line.ref.group != GROUP:
            return job.of.paused
        if answer.message or answer.code == 404:
            return False
        match line.kind, line.verb:
            case "Application" | "ApplicationSet", "delete" if line.ref not in self.leaving:
                self.add(self._leaves(line.ref))
            case "ApplicationSet", _ if line.ref in self.fleet.sets:
                yield from self._make(self.fleet.sets[line.ref])
            case "Application", _:
                self.begin(line.ref)
        return False

    def on_end(self, job: Job[_Priority], result: None) -> Part[None]:
        yield from ()

    def _in_order(self) -> list[Job[_Priority]]:
        roots = [job for job in self.jobs if job.of.is_root]
        others = [job for job in self.jobs if not job.of.is_root]
        return [*roots, *(others if self.quick else reversed(others))]

    def _awaited(self, refs: Iterable[Ref]) -> Iterator[Ref]:
        """A job that waits for an Application waits for everything in it."""
        for ref in refs:
            yield ref
            app = self.fleet.others.get(ref)
            if app is not None:
                yield from (target.ref for target in app.targets)

    def _make(self, made: AppSet) -> Part[None]:
        """The jobs of the ApplicationSet controller, which run concurrently."""
        for body in made.applications:
            yield from sets.write(body, made, self.settings)
        self.manage(made)
        if made.rollout is None:
            yield from sets.tell(made, None)

    def manage(self, made: AppSet) -> None:
        """Sync the Applications of a set, and delete those that it no longer generates."""
        for body in made.applications:
            self.begin(ref_of(body))
        for ref in sets.dropped(made, self.memory.sets.get(made.ref)):
            self.add(self._drops(ref))
        self.memory.sets[made.ref] = made

    def _drops(self, ref: Ref) -> Part[None]:
        """Delete an Application; if it is not an object of the cluster, delete its objects anyway."""
        answer = yield Command("delete", API_VERSION, ref.kind, ref.namespace, ref.name)
        if answer.code == 404:
            yield from self._leaves(ref)

    def _leaves(self, ref: Ref) -> Part[None]:
        """Delete the children of a deleted Application, or the Applications of a deleted set."""
        made = self.memory.sets[ref].applications if ref in self.memory.sets else ()
        self.leaving.update((ref, *map(ref_of, made)))
        yield from leaving.follow(ref, self.memory.apps, self.memory.sets, self.settings)

    def begin(self, ref: Ref) -> None:
        app, rollout = self.fleet.others.get(ref), self.rolled.get(ref)
        name = rollout.ref if rollout is not None else ref
        if app is None or name in self.begun:
            return
        self.begun.add(name)
        if rollout is None:
            self.add(self._child(app))
        else:
            self.add(self._rolls(rollout), follows=True)

    def _rolls(self, rollout: Rollout) -> Part[None]:
        """Sync the Applications of a set step by step, each step when all before it are healthy."""
        made, progress = self.fleet.sets[rollout.ref], self.memory.progress
        yield from sets.name_unselected(rollout)
        while True:
            for ref in rollout.apps:
                seen = yield from self._seen(self.fleet.others[ref])
                yield from sets.judge(rollout, ref, seen, progress, self.settings)
            for ref in list(may_sync(rollout, progress)):
                yield from sets.note(rollout, ref, RolloutProgress(PENDING, MOVED, progress[ref].revision), progress)
                self.phases[ref] = "Running"
                self.add(self._rolled(self.fleet.others[ref]))
            yield from sets.tell(made, progress)
            if current_step(rollout, progress) is None:
                return
            waited = [ref for ref in rollout.apps if ref in self.phases]
            answer = yield Wait(tuple(target.ref for ref in waited for target in self.fleet.others[ref].targets))
            if answer.stuck is not None and not self._moves(rollout):
                failed = any(self.phases.get(ref) in ("Failed", "Error") for ref in rollout.apps)
                self.tried.append(sets.halted(rollout, progress, None if failed else answer.stuck))
                return

    def _moves(self, rollout: Rollout) -> bool:
        return any(self.phases.get(ref) == "Running" for ref in rollout.apps)

    def _seen(self, app: App) -> Part[ApplicationStatus]:
        if app.assumed:
            return ApplicationStatus(app.revision, synced=True, health=HEALTHY, operation="Succeeded")
        compared = yield from compare(app, self.settings)
        verdict = yield from app_health(app, self.settings)
        error = app.error or comparison_error(app, self.settings)
        synced_now = not compared.out_of_sync and not error
        return ApplicationStatus(app.revision, synced_now, verdict, self.phases.get(app.ref, ""))

    def _rolled(self, app: App) -> Part[None]:
        """The sync that the ApplicationSet controller starts."""
        yield from self._bring(app)
        asked = of_rollout(app, self.settings, self.started)
        tried = yield from synced(app, self.settings, asked, self.memory.running)
        self.phases[app.ref] = tried.operation.phase
        self._remember(app, tried)
        yield from self._watch(app)

    def root(self, app: App, flags: tuple[str, ...]) -> Part[None]:
        """Run a requested sync, whatever the state of the Application."""
        yield from self._bring(app)
        if app.operation is None:
            asked = requested(app, flags, self.started)
            tried = yield from synced(app, self.settings, asked, self.memory.running)
        else:
            before = None if app.forgets else self.memory.tried.get(app.ref)
            asked = by_hand(app, self.started)
            tried = yield from written(app, self.settings, asked, before, self.memory.running)
        self._remember(app, tried)

    def _child(self, app: App) -> Part[None]:
        """Run automated syncs, and update the health."""
        yield from self._bring(app)
        if app.assumed:
            yield from sets.write_status(app.ref, {"sync": {"status": "Synced"}, "health": {"status": HEALTHY}})
            return
        if left := self.memory.running.get(app.ref):
            self._remember(app, (yield from resume(left, self.settings, self.memory.running)))
        last, revision = self.memory.last.get(app.ref, (None, ""))
        asked = yield from automatic(app, self.settings, last, revision, self.started)
        if isinstance(asked, Skipped):
            yield Say(app.ref, asked.words, failure=asked.failure)
            if asked.is_error:
                operation = Operation(
                    app.name, "Failed", asked.words, automated=True, failure=asked.failure, namespace=app.namespace
                )
                self.tried.append(Tried(operation))
        else:
            tried = yield from synced(app, self.settings, asked, self.memory.running)
            self._remember(app, tried)
        yield from self._watch(app)

    def _bring(self, app: App) -> Part[None]:
        """What the charts of an Application bring that are not at hand. Argo CD applies CRDs before all else."""
        if app.brings:
            yield Bring(app.ref, early=True)
            yield Bring(app.ref)

    def _watch(self, app: App) -> Part[None]:
        """Update an Application's status until it is healthy, or never will be."""
        while True:
            verdict = yield from self._tell(app)
            if verdict == HEALTHY:
                return
            answer = yield Wait(tuple(target.ref for target in app.targets))
            if answer.stuck is not None:
                return

    def _remember(self, app: App, tried: Tried) -> None:
        self.tried.append(tried)
        self.memory.last[app.ref] = tried.operation, app.revision
        self.memory.tried[app.ref] = tried

    def _tell(self, app: App) -> Part[str]:
        """Write an Application's status, as the health checks of others may read it."""
        compared = yield from compare(app, self.settings)
        verdict = yield from app_health(app, self.settings)
        status: Body = {
            "sync": {"status": "OutOfSync" if compared.out_of_sync else "Synced"},
            "health": {"status": verdict},
        }
        if app.ref in self.memory.last:
            operation, _ = self.memory.last[app.ref]
            status["operationState"] = {"phase": operation.phase, "message": operation.message}
        yield from sets.write_status(app.ref, status)
        return verdict


def sync_fleet(
    fleet: Applications, settings: Settings, memory: ArgocdMemory, *, started: int, flags: tuple[str, ...] = ()
) -> Script:
    """Sync the roots, and let all other existing and new Applications sync by themselves."""
    schedule = _Applications(fleet, settings, memory, started)
    apart = {app.ref for app in fleet.roots if app.operation is not None}  # Nothing refuses these.
    yield from terminated({ref: last for ref, last in memory.last.items() if ref not in apart}, memory.apps)
    memory.apps.update({**fleet.others, **{app.ref: app for app in fleet.roots}})
    for app in fleet.roots:
        schedule.add(schedule.root(app, flags), is_root=True)
        schedule.begun.add(app.ref)
    for ref in fleet.given:
        schedule.manage(fleet.sets[ref])
    found = yield Survey()
    for body in found.body["items"]:
        if body.get("kind") == "Application" and str(body["apiVersion"]).startswith(f"{GROUP}/"):
            schedule.begin(ref_of(body))
    schedule.quick = (yield Pause()).quick
    error = yield from interleave(schedule)
    memory.running.clear()  # Of Applications that are gone.
    return replace(ended(schedule.tried), outcome="failed", error=error) if error else ended(schedule.tried)


def delete_fleet(fleet: Applications, settings: Settings, memory: ArgocdMemory) -> Script:
    """Delete the roots; a child Application is deleted with its objects if it has the finalizer."""
    worst_end = Ended("ok")
    for left in tuple(memory.running.values()):
        yield from resume(left, settings, memory.running)  # It is not deleted while it has an operation.
    yield from terminated(memory.last, memory.apps)
    rolled = [fleet.sets[ref] for ref in fleet.given if fleet.sets[ref].rollout is not None]
    of_sets = (fleet.others[ref] for made in rolled for ref in leaving.order(made, settings))
    for app in (*of_sets, *reversed(fleet.roots)):
        there = yield Command("get", API_VERSION, "Application", app.namespace, app.name)
        if there.code == 200:  # It contains itself, and its cascade waits until nothing of it is being deleted.
            yield Command("delete", API_VERSION, "Application", app.namespace, app.name)
            result = yield from leaving.follow(app.ref, {**fleet.others, app.ref: app}, fleet.sets, settings)
        else:
            result = yield from leaving.gone(app, fleet.others, fleet.sets, settings)
        memory.last.clear()
        memory.progress.clear()
        if result.outcome != "ok":
            worst_end = result
    return worst_end


def app_health(app: App, settings: Settings) -> Part[str]:
    """The health of an Application: the worst of its live objects, without hooks and objects that have no check."""
    found = yield Survey()
    everything = {ref_of(body): body for body in found.body["items"]}
    plain = [target.ref for target in app.targets if not is_hook(target.body) and not is_skipped(target.body)]
    live = [everything[ref] for ref in plain if ref in everything]
    missing = [ref for ref in plain if ref not in everything]
    verdicts: list[Health] = []
    if not versions.has(settings.version, "Missing where all are"):
        missed = (counts_as_missing(ref.group, ref.kind, settings.scripts, settings.version) for ref in missing)
        verdicts += [Health(MISSING)] if any(missed) else []
    elif plain and not live:
        return MISSING
    for body in live:
        ignored = annotations_of(body).get("argocd.argoproj.io/ignore-healthcheck") == "true"
        if not (ignored and versions.has(settings.version, "ignore-healthcheck")):
            verdict = health(body, settings.scripts, settings.version)
            verdicts += [verdict] if verdict is not None else []
    return worst(verdicts)
