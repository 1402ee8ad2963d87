"""Several Applications at once: those that others make, to any depth, each with an operation of its own.

Argo CD's controller works on all Applications side by side; waves order the objects of one Application only. Where
time passes between the waves of a parent (`Pause`), children that are quick are done before the next wave; where it
does not, they move only when someone waits. That is all of the order there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from seatrial.engines import Ended, Stuck
from seatrial.engines.argocd import leaving, sets, versions
from seatrial.engines.argocd.app import API_VERSION, GROUP, App, Settings
from seatrial.engines.argocd.asking import of_rollout, requested
from seatrial.engines.argocd.reconciling import Skipped, Tried, automatic, compare, ended, synced
from seatrial.engines.argocd.rollout import (
    MOVED,
    PENDING,
    Progress,
    Rollout,
    Seen,
    current_step,
    may_sync,
)
from seatrial.engines.argocd.sets import AppSet
from seatrial.engines.argocd.tasks import live_ref
from seatrial.engines.argocd.terminating import terminated
from seatrial.engines.script import Answer, Command, Line, Part, Pause, Say, Script, Survey, Wait
from seatrial.helm.argocd_hooks import is_hook, is_skipped
from seatrial.model.resource import Body, Ref, annotations_of, dig
from seatrial.model.timeline import Operation
from seatrial.readiness.argocd import counts_as_missing, health, worst
from seatrial.readiness.argocd.verdict import HEALTHY, MISSING, Health

WRITES = ("create", "apply", "strategic", "merge", "update")
LINES_MAX = 5_000_000


class Fleet(Struct, frozen=True):
    """The Applications that are synced on demand, and all that come of them."""

    roots: tuple[App, ...]
    others: Mapping[Ref, App] = {}
    """By the Application: those that some source makes, rendered."""
    sets: Mapping[Ref, AppSet] = {}
    given: tuple[Ref, ...] = ()
    """The sets that are there from the beginning."""


class Memory:
    """What Argo CD remembers from one step to the next."""

    def __init__(self) -> None:
        self.last: dict[Ref, tuple[Operation, str]] = {}
        """By the Application: its last operation, and the revision that it was about."""
        self.apps: dict[Ref, App] = {}
        self.sets: dict[Ref, AppSet] = {}
        self.progress: dict[Ref, Progress] = {}
        """How far each Application has come that its set syncs in steps."""


class _Run:
    """One script among others: what it said last, and what it is to be answered."""

    def __init__(self, script: Part[None], *, follows: bool = False) -> None:
        self.script = script
        self.follows = follows
        """Whether it does nothing but wait for others."""
        self.answer: Answer | None = None
        self.begun = False
        self.waits: tuple[Ref, ...] | None = None
        self.paused = False
        self.blocked = False
        """Whether it waits in vain, until someone else does something."""
        self.is_over = False


class _Fleet:
    """All Applications while they are worked on."""

    def __init__(self, fleet: Fleet, settings: Settings, memory: Memory, started: int) -> None:
        self.fleet, self.settings, self.memory, self.started = fleet, settings, memory, started
        self.runs: list[_Run] = []
        self.tried: list[Tried] = []
        self.begun: set[Ref] = set()
        self.leaving: set[Ref] = set()
        self.phases: dict[Ref, str] = {}
        """Of the operations that sets have begun."""
        self.rolled = {app: one.rollout for one in fleet.sets.values() if one.rollout for app in one.rollout.apps}

    def play(self, *, quick: bool) -> Part[None]:
        """Let all go on until each has ended, or nothing moves any more.

        Where the cluster is quick, all go on side by side. Where it is slow, one goes on as far as it can before others
        do: who was asked first, then those that came of it, the youngest before the oldest.
        """
        for _ in range(LINES_MAX):
            waiting = [run for run in self._in_turn(quick=quick) if not run.is_over]
            if not waiting:
                return
            able = [run for run in waiting if not run.blocked]
            # Where time passes between two waves, others use it first.
            run = next((run for run in able if not run.paused), able[0] if able else None)
            if run is not None:
                if not (yield from self._goes_on(run)):
                    run.blocked = True
                    continue
            # Whoever depends on others is told last: what becomes of them may be what it waits for.
            elif not (yield from self._is_told(min(reversed(waiting), key=lambda run: run.follows))):
                continue
            for other in waiting:
                other.blocked = False

    def _in_turn(self, *, quick: bool) -> list[_Run]:
        roots, others = self.runs[: len(self.fleet.roots)], self.runs[len(self.fleet.roots) :]
        return [*roots, *(others if quick else reversed(others))]

    def _goes_on(self, run: _Run) -> Part[bool]:
        """Wait for what it waits for, and let it look; whether anything happened."""
        moved, run.paused = False, False
        if run.waits is not None:
            answer = yield Wait(tuple(dict.fromkeys(self._awaited(run))))
            moved = answer.stuck is None
        run.waits, run.answer = None, Answer(200)
        did = yield from self._advance(run)
        return did or moved

    def _is_told(self, run: _Run) -> Part[bool]:
        """Tell one that its wait will never end; whether it did something about it."""
        refs = run.waits or ()
        answer = yield Wait(refs)
        stuck = answer.stuck or Stuck("nothing happens any more", refs, ())
        run.waits, run.answer = None, Answer(200, stuck=stuck)
        return (yield from self._advance(run))

    def _advance(self, run: _Run) -> Part[bool]:
        """Carry one script's lines until it waits or ends; whether it did more than look."""
        did = not run.begun
        while True:
            try:
                line = run.script.send(run.answer or Answer(200)) if run.begun else next(run.script)
            except StopIteration:
                run.is_over = True
                return True
            run.begun = True
            if isinstance(line, Wait):
                run.waits = line.refs
                return did
            did = did or isinstance(line, Say) or (isinstance(line, Command) and line.verb in (*WRITES, "delete"))
            run.answer = yield line
            yield from self._notice(line, run.answer)
            if isinstance(line, Pause) and run.answer.code == 200:
                run.paused = True
                return True

    def _awaited(self, run: _Run) -> Iterator[Ref]:
        """What is waited for; who waits for an Application waits for all that is in it."""
        for ref in run.waits or ():
            yield ref
            app = self.fleet.others.get(ref)
            if app is not None:
                yield from (target.ref for target in app.targets)

    def _notice(self, line: Line, answer: Answer) -> Part[None]:
        """Begin to work on what was made, changed or deleted: Applications, and sets of them."""
        written = isinstance(line, Command) and line.verb in (*WRITES, "delete")
        if not isinstance(line, Command) or not written or answer.message or answer.code == 404:
            return
        ref = Ref(line.kind, line.namespace, line.name or str(dig(line.body, "metadata", "name")), GROUP)
        match leaving.group_kind(line), line.verb:
            case (group, "Application" | "ApplicationSet"), "delete" if group == GROUP and ref not in self.leaving:
                self.runs.append(_Run(self._leaves(ref)))
            case (group, "ApplicationSet"), _ if group == GROUP and ref in self.fleet.sets:
                yield from self._make(self.fleet.sets[ref])
            case (group, "Application"), _ if group == GROUP:
                self.begin(ref)

    def _make(self, made: AppSet) -> Part[None]:
        """What the controller of ApplicationSets does: all at once."""
        for body in made.applications:
            yield from sets.write(body, made, self.settings)
        self.manage(made)
        if made.rollout is None:
            yield from sets.tell(made, None)

    def manage(self, made: AppSet) -> None:
        """Let the Applications of a set sync, and those go that it no longer makes."""
        for body in made.applications:
            self.begin(live_ref(body))
        for ref in sets.dropped(made, self.memory.sets.get(made.ref)):
            self.runs.append(_Run(self._drops(ref)))
        self.memory.sets[made.ref] = made

    def _drops(self, ref: Ref) -> Part[None]:
        """Delete an Application; where it is none of the cluster's objects, what is its own goes all the same."""
        answer = yield Command("delete", API_VERSION, ref.kind, ref.namespace, ref.name)
        if answer.code == 404:
            yield from self._leaves(ref)

    def _leaves(self, ref: Ref) -> Part[None]:
        """What goes with an Application that was deleted, or with a set and all that it makes."""
        made = self.memory.sets[ref].applications if ref in self.memory.sets else ()
        self.leaving.update((ref, *map(live_ref, made)))
        yield from leaving.follow(ref, self.memory.apps, self.memory.sets, self.settings)

    def begin(self, ref: Ref) -> None:
        app, rollout = self.fleet.others.get(ref), self.rolled.get(ref)
        name = rollout.ref if rollout is not None else ref
        if app is None or name in self.begun:
            return
        self.begun.add(name)
        self.runs.append(_Run(self._child(app)) if rollout is None else _Run(self._rolls(rollout), follows=True))

    def _rolls(self, rollout: Rollout) -> Part[None]:
        """Let the Applications of a set sync, step by step, each step when all before it are healthy."""
        made, progress = self.fleet.sets[rollout.ref], self.memory.progress
        yield from sets.name_unselected(rollout)
        while True:
            for ref in rollout.apps:
                seen = yield from self._seen(self.fleet.others[ref])
                yield from sets.judge(rollout, ref, seen, progress, self.settings)
            for ref in list(may_sync(rollout, progress)):
                yield from sets.note(rollout, ref, Progress(PENDING, MOVED, progress[ref].revision), progress)
                self.phases[ref] = "Running"
                self.runs.append(_Run(self._rolled(self.fleet.others[ref])))
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

    def _seen(self, app: App) -> Part[Seen]:
        if app.assumed:
            return Seen(app.revision, synced=True, health=HEALTHY, operation="Succeeded")
        compared = yield from compare(app, self.settings)
        verdict = yield from app_health(app, self.settings)
        synced_now = not compared.out_of_sync and not app.error
        return Seen(app.revision, synced_now, verdict, self.phases.get(app.ref, ""))

    def _rolled(self, app: App) -> Part[None]:
        """The sync that the controller of ApplicationSets begins."""
        tried = yield from synced(app, self.settings, of_rollout(app, self.settings, self.started))
        self.phases[app.ref] = tried.operation.phase
        self._remember(app, tried)
        yield from self._watch(app)

    def root(self, app: App, flags: tuple[str, ...]) -> Part[None]:
        """Sync what is asked for, whatever its state."""
        asked = requested(app, flags, self.started)
        tried = yield from synced(app, self.settings, asked)
        self._remember(app, tried)

    def _child(self, app: App) -> Part[None]:
        """Sync what syncs by itself, and keep its health up to date."""
        if app.assumed:
            yield from sets.write_status(app.ref, {"sync": {"status": "Synced"}, "health": {"status": HEALTHY}})
            return
        last, revision = self.memory.last.get(app.ref, (None, ""))
        asked = yield from automatic(app, self.settings, last, revision, self.started)
        if isinstance(asked, Skipped):
            yield Say(app.ref, asked.words)
            if asked.is_error:
                self.tried.append(Tried(Operation(app.name, "Failed", asked.words, automated=True)))
        else:
            tried = yield from synced(app, self.settings, asked)
            self._remember(app, tried)
        yield from self._watch(app)

    def _watch(self, app: App) -> Part[None]:
        """Keep an Application's status up to date until it is healthy, or never will be."""
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
    fleet: Fleet, settings: Settings, memory: Memory, *, started: int, flags: tuple[str, ...] = ()
) -> Script:
    """Sync the roots, and let all others that are or come to be there sync by themselves."""
    all_of_them = _Fleet(fleet, settings, memory, started)
    yield from terminated(memory.last, memory.apps)
    memory.apps.update({**fleet.others, **{app.ref: app for app in fleet.roots}})
    for app in fleet.roots:
        all_of_them.runs.append(_Run(all_of_them.root(app, flags)))
        all_of_them.begun.add(app.ref)
    for ref in fleet.given:
        all_of_them.manage(fleet.sets[ref])
    found = yield Survey()
    for body in found.body["items"]:
        if body.get("kind") == "Application" and str(body["apiVersion"]).startswith(f"{GROUP}/"):
            all_of_them.begin(live_ref(body))
    quick = (yield Pause()).code == 200
    yield from all_of_them.play(quick=quick)
    return ended(all_of_them.tried)


def delete_fleet(fleet: Fleet, settings: Settings, memory: Memory) -> Script:
    """Delete the roots; an Application among their objects goes with all that is its own, if it has the finalizer."""
    worst_end = Ended("ok")
    yield from terminated(memory.last, memory.apps)
    rolled = [fleet.sets[ref] for ref in fleet.given if fleet.sets[ref].rollout is not None]
    of_sets = (fleet.others[ref] for made in rolled for ref in leaving.order(made, settings))
    for app in (*of_sets, *reversed(fleet.roots)):
        result = yield from leaving.gone(app, fleet.others, fleet.sets, settings)
        memory.last.clear()
        memory.progress.clear()
        if result.outcome != "ok":
            worst_end = result
    return worst_end


def app_health(app: App, settings: Settings) -> Part[str]:
    """The health of a whole Application: the worst of its live objects, hooks and what has no check left out."""
    found = yield Survey()
    everything = {live_ref(body): body for body in found.body["items"]}
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
