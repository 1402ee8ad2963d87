"""Several Applications at once: those that others make, to any depth, each with an operation of its own.

Argo CD's controller works on all Applications side by side; waves order the objects of one Application only. Where
time passes between the waves of a parent (`Pause`), children that are quick are done before the next wave; where it
does not, they move only when someone waits. That is all of the order there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from seatrial.argocdhooks import is_hook
from seatrial.engines import Ended, Stuck
from seatrial.engines.argocd import deletion
from seatrial.engines.argocd.app import API_VERSION, CASCADE, GROUP, App, Settings
from seatrial.engines.argocd.asking import requested
from seatrial.engines.argocd.reconciling import Skipped, Tried, automatic, compare, ended, synced
from seatrial.engines.argocd.tasks import live_ref
from seatrial.engines.script import Answer, Command, Line, Part, Pause, Say, Script, Survey, Wait
from seatrial.readiness.argocd import health, worst
from seatrial.readiness.argocd.verdict import HEALTHY, MISSING, Health
from seatrial.resource import Body, Ref, dig, metadata
from seatrial.timeline import Operation

WRITES = ("create", "apply", "strategic", "merge", "update")
LINES_MAX = 5_000_000


class Fleet(Struct, frozen=True):
    """The Applications that are synced on demand, and all that come of them."""

    roots: tuple[App, ...]
    others: Mapping[Ref, App] = {}
    """By the Application: those that some source makes, rendered."""
    sets: Mapping[Ref, tuple[Body, ...]] = {}
    """By the ApplicationSet: the Applications that it makes."""


class Memory:
    """What Argo CD remembers of each Application from one step to the next."""

    def __init__(self) -> None:
        self.last: dict[Ref, tuple[Operation, str]] = {}


class _Run:
    """One script among others: what it said last, and what it is to be answered."""

    def __init__(self, app: App, script: Part[None]) -> None:
        self.app = app
        self.script = script
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
            elif not (yield from self._is_told(waiting[-1])):
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
        """Begin to work on what was made or changed: Applications, and what sets of them make."""
        if not isinstance(line, Command) or answer.message or line.verb not in WRITES:
            return
        if group_kind(line) == (GROUP, "ApplicationSet"):
            ref = Ref(line.kind, line.namespace, line.name or str(dig(line.body, "metadata", "name")), GROUP)
            for body in self.fleet.sets.get(ref, ()):
                yield from self._make(body)
        elif group_kind(line) == (GROUP, "Application"):
            name = line.name or str(dig(line.body, "metadata", "name"))
            self.begin(Ref("Application", line.namespace, name, GROUP))

    def _make(self, body: Body) -> Part[None]:
        """What the controller of ApplicationSets does: all at once."""
        ref = live_ref(body)
        there = yield Command("get", API_VERSION, "Application", ref.namespace, ref.name)
        if there.code == 200:
            changed = {**there.body, "spec": body["spec"]}
            yield Command("update", API_VERSION, "Application", ref.namespace, ref.name, changed)
        else:
            yield Command("create", API_VERSION, "Application", ref.namespace, ref.name, body)
        self.begin(ref)

    def begin(self, ref: Ref) -> None:
        app = self.fleet.others.get(ref)
        if app is not None and ref not in self.begun:
            self.begun.add(ref)
            self.runs.append(_Run(app, self._child(app)))

    def root(self, app: App, flags: tuple[str, ...]) -> Part[None]:
        """Sync what is asked for, whatever its state."""
        asked = requested(app, flags, self.started)
        tried = yield from synced(app, self.settings, asked)
        self._remember(app, tried)

    def _child(self, app: App) -> Part[None]:
        """Sync what syncs by itself, and keep its health up to date."""
        if app.assumed:
            yield from self._write_status(app, {"sync": {"status": "Synced"}, "health": {"status": HEALTHY}})
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
        yield from self._write_status(app, status)
        return verdict

    def _write_status(self, app: App, status: Body) -> Part[None]:
        there = yield Command("get", API_VERSION, "Application", app.namespace, app.name)
        if there.code == 200 and there.body.get("status") != status:
            command = Command("merge", API_VERSION, "Application", app.namespace, app.name, {"status": status})
            answer = yield replace(command, subresource="status")
            if answer.code == 404:
                yield command  # The definition that Argo CD brings has no status of its own.


def sync_fleet(
    fleet: Fleet, settings: Settings, memory: Memory, *, started: int, flags: tuple[str, ...] = ()
) -> Script:
    """Sync the roots, and let all others that are or come to be there sync by themselves."""
    all_of_them = _Fleet(fleet, settings, memory, started)
    for app in fleet.roots:
        all_of_them.runs.append(_Run(app, all_of_them.root(app, flags)))
        all_of_them.begun.add(app.ref)
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
    for app in reversed(fleet.roots):
        result = yield from _deleted(app, fleet, settings)
        memory.last.clear()
        if result.outcome != "ok":
            worst_end = result
    return worst_end


def app_health(app: App, settings: Settings) -> Part[str]:
    """The health of a whole Application: the worst of its live objects, hooks and what has no check left out."""
    found = yield Survey()
    everything = {live_ref(body): body for body in found.body["items"]}
    plain = [target for target in app.targets if not is_hook(target.body)]
    live = [everything[target.ref] for target in plain if target.ref in everything]
    if plain and not live:
        return MISSING
    verdicts: list[Health] = []
    for body in live:
        if metadata(body).get("annotations", {}).get("argocd.argoproj.io/ignore-healthcheck") != "true":
            verdict = health(body, settings.scripts, settings.version)
            verdicts += [verdict] if verdict is not None else []
    return worst(verdicts)


def group_kind(command: Command) -> tuple[str, str]:
    return command.api_version.rpartition("/")[0], command.kind


def _deleted(app: App, fleet: Fleet, settings: Settings) -> Script:
    """One Application's deletion; those among its objects are deleted with theirs while it waits for them."""
    script = deletion.delete(app, settings)
    answer: Answer | None = None
    while True:
        try:
            line = next(script) if answer is None else script.send(answer)
        except StopIteration as end:
            result: Ended = end.value
            return result
        answer = yield line
        if isinstance(line, Command) and line.verb == "delete" and group_kind(line) == (GROUP, "Application"):
            child = fleet.others.get(Ref("Application", line.namespace, line.name, GROUP))
            if child is not None and any(word.startswith(CASCADE) for word in child.finalizers):
                inner = yield from _deleted(child, fleet, settings)
                if inner.outcome != "ok":
                    return inner
                done = {"metadata": {"finalizers": None}}
                yield Command("merge", API_VERSION, "Application", line.namespace, line.name, done)
