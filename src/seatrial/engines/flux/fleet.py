"""All Kustomizations and HelmReleases at once, each when what it depends on is Ready, and again while that may help.

Flux's controllers work on all their objects side by side; dependsOn is all the order there is between them. Where the
cluster is quick, a HelmRelease is done before what comes behind its Kustomization; where it is slow, all Kustomizations
go on first. `Ready` is what their conditions say: without `wait` and health checks, that all was applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Ended, Stuck
from seatrial.engines.flux import helmrelease, kustomization
from seatrial.engines.flux.applying import about
from seatrial.engines.flux.dependencies import Dependencies
from seatrial.engines.flux.kustomization import Attempt
from seatrial.engines.flux.objects import (
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    Fleet,
    HelmRelease,
    Kustomization,
    Memory,
)
from seatrial.engines.flux.uninstalling import leave
from seatrial.engines.script import (
    Answer,
    Command,
    Helm,
    Line,
    Part,
    Pause,
    Say,
    Script,
    Survey,
    Wait,
)
from seatrial.model.resource import Body, Ref, metadata, ref_of
from seatrial.model.timeline import Reconciled

WRITES = ("create", "apply", "strategic", "merge", "update", "delete")
ATTEMPTS_MAX = 5
ROUNDS_MAX = 100_000
OWN = ((KUSTOMIZE_GROUP, "Kustomization"), (HELM_GROUP, "HelmRelease"))


class _Tried(Struct, frozen=True):
    """How the last attempt ended, how many there were, and how much had happened by then."""

    attempt: Attempt
    count: int
    deeds: int


class _Run:
    """One reconciliation among others."""

    def __init__(self, ref: Ref, script: Part[Attempt], depth: int) -> None:
        self.ref, self.script, self.depth = ref, script, depth
        self.answer: Answer | None = None
        self.waits: tuple[Ref, ...] | None = None


class _Controllers:
    """Flux while it is at work."""

    def __init__(self, fleet: Fleet, memory: Memory, *, quick: bool) -> None:
        self.fleet, self.memory, self.quick = fleet, memory, quick
        self.there: dict[Ref, int] = {}
        """The objects of Flux's own that exist, and how far behind others they were made."""
        self.runs: list[_Run] = []
        self.tried: dict[Ref, _Tried] = {}
        self.depend = Dependencies(fleet, memory, self.tried)
        self.acts: dict[Ref, list[str]] = {}
        """What Helm was told to do, for whom."""
        self.deeds = 0
        self.looked_twice = False
        self.farewell = _Farewell(memory.known, memory, quick=True)

    def play(self) -> Part[None]:
        """Go on until all has ended and nothing that happened since could help what failed."""
        for _ in range(ROUNDS_MAX):
            self._begin()
            able = [run for run in self.runs if run.waits is None]
            if able:
                yield from self._advance(min(able, key=self._turn))
            elif self.runs:
                yield from self._wait()
            elif not (yield from self._again()):
                return

    def notice(self, line: Line, answer: Answer, depth: int = 0) -> None:
        """Remember what was done, and which objects of Flux's own there are."""
        if isinstance(line, Helm):
            self.deeds += 1
        if not isinstance(line, Command) or line.dry_run or answer.message or line.verb not in WRITES:
            return
        self.deeds += 1
        if (line.api_version.rpartition("/")[0], line.kind) in OWN and line.verb != "delete":
            self.find(_about(line), depth)

    def find(self, ref: Ref, depth: int = 0) -> None:
        if self.depend.is_known(ref):
            self.there.setdefault(ref, depth)

    def not_begun(self) -> Iterator[tuple[Ref, str]]:
        """What never came to its turn, and the words of its condition."""
        for ref in self.there:
            words = "" if ref in self.tried else self.depend.unmet(ref)
            if words:
                yield ref, words

    def _begin(self) -> None:
        busy = {run.ref for run in self.runs}
        for ref, depth in self.there.items():
            if ref in busy or ref in self.tried or self.depend.unmet(ref):
                continue
            script = self._script(ref)
            if script is None:
                self.tried[ref] = _Tried(Attempt(), 0, self.deeds)
                if self._own(ref).assumed:  # One that is suspended stays as it is: not Ready where it never was.
                    self.memory.ready[ref] = True
            else:
                behind = [self.there.get(other, 0) + 1 for other in self.depend.of(ref)]
                self.runs.append(_Run(ref, script, max([depth, *behind])))

    def _script(self, ref: Ref) -> Part[Attempt] | None:
        if ref in self.fleet.kustomizations:
            own = self.fleet.kustomizations[ref]
            return None if _is_left_alone(own) else kustomization.reconcile(own, self.memory)
        release = self.fleet.releases[ref]
        return None if _is_left_alone(release) else helmrelease.reconcile(release, self.memory)

    def _own(self, ref: Ref) -> Kustomization | HelmRelease:
        return self.fleet.kustomizations.get(ref) or self.fleet.releases[ref]

    def _turn(self, run: _Run) -> tuple[int, int, int]:
        """Who goes first of those that could; the newest first where the cluster is slow."""
        is_release = int(run.ref.kind == "HelmRelease")
        place = self.runs.index(run)
        return (run.depth, is_release, place) if self.quick else (is_release, -place, 0)

    def _advance(self, run: _Run) -> Part[None]:
        """Carry one reconciliation's lines until it waits or ends."""
        while True:
            try:
                line = next(run.script) if run.answer is None else run.script.send(run.answer)
            except StopIteration as end:
                self.runs.remove(run)
                yield from self._ended(run.ref, end.value)
                return
            if isinstance(line, Wait):
                run.waits, run.answer = line.refs, Answer(200)
                return
            run.answer = yield line
            if isinstance(line, Helm):
                self.acts.setdefault(run.ref, []).append(line.action)
            self.notice(line, run.answer, run.depth)
            if isinstance(line, Command) and line.verb == "delete" and not run.answer.message:
                yield from self.farewell.gone(_about(line))
            self._begin()
            if isinstance(line, Command | Helm):
                self.looked_twice = self.looked_twice and not _did(line, run.answer)

    def _ended(self, ref: Ref, attempt: Attempt) -> Part[None]:
        count = self.tried[ref].count + 1 if ref in self.tried else 1
        self.tried[ref] = _Tried(attempt, count, self.deeds)
        self.memory.ready[ref] = not attempt.words
        self.looked_twice = False
        if not attempt.words:
            yield from self._linger(ref)
        yield Say(ref, attempt.words or "Ready")

    def _linger(self, ref: Ref) -> Part[None]:
        """What was waited for has a moment before anybody acts on it: Flux looks at dependencies every 30 seconds.

        So endpoints follow pods that are ready, and authorities the webhooks that are called.
        """
        waited = tuple(dict.fromkeys(self._waited_for(ref)))
        while waited and (yield Wait(waited)).stuck is None:
            self.deeds += 1

    def _waited_for(self, ref: Ref) -> Iterator[Ref]:
        if ref in self.fleet.releases:
            release = self.fleet.releases[ref]
            yield from release.refs if release.install.waits else ()
            return
        own = self.fleet.kustomizations[ref]
        for target in own.targets if own.wait else ():
            yield from self._waited_for(target.ref) if self.depend.is_known(target.ref) else (target.ref,)

    def _wait(self) -> Part[None]:
        """All wait. When nothing moves any more and all have looked once more, the last one is told so."""
        answer = yield Wait(tuple(dict.fromkeys(ref for run in self.runs for ref in run.waits or ())))
        if answer.stuck is None:
            self.deeds += 1
            self.looked_twice = False
        elif self.looked_twice:
            last = max(self.runs, key=self._turn)
            own = yield Wait(last.waits or ())
            stuck = own.stuck or Stuck("nothing happens any more", last.waits or (), ())
            last.waits, last.answer = None, Answer(200, stuck=stuck)
            return
        else:
            self.looked_twice = True
        for run in self.runs:
            run.waits, run.answer = None, Answer(200)

    def _again(self) -> Part[bool]:
        """Let time pass, and have those tried again that failed before something else happened."""
        failed = {ref: tried for ref, tried in self.tried.items() if tried.attempt.words and not tried.attempt.is_final}
        if not failed:
            return False
        yield from self.rest()
        again = [r for r, tried in failed.items() if tried.deeds < self.deeds and tried.count < ATTEMPTS_MAX]
        for ref in again:
            script = self._script(ref)
            if script is not None:
                self.runs.append(_Run(ref, script, self.there[ref]))
        return bool(again)

    def rest(self) -> Part[None]:
        """Let time pass until nothing moves any more."""
        everything = tuple(dict.fromkeys(self._everything()))
        while (yield Wait(everything)).stuck is None:
            self.deeds += 1

    def _everything(self) -> Iterator[Ref]:
        for one in self.fleet.kustomizations.values():
            yield from (target.ref for target in one.targets)
        for release in self.fleet.releases.values():
            yield from release.refs


def sync_fleet(fleet: Fleet, memory: Memory) -> Script:
    """Apply what there is to begin with, and let Flux work until it rests."""
    quick = (yield Pause()).code == 200
    controllers = _Controllers(fleet, memory, quick=quick)
    errors = []
    for target in fleet.roots:
        command = about(target, "apply", target.body)
        answer = yield command
        controllers.notice(command, answer)
        if answer.message or not answer.served:
            errors.append(f"{target.ref}: {answer.message or 'its kind is not served'}")
    found = yield Survey()
    for body in found.body["items"]:
        controllers.find(_ref(body))
    yield from controllers.play()
    memory.known = fleet
    for ref, words in controllers.not_begun():
        yield Say(ref, words)
        errors.append(f"{ref}: {words}")
    errors += controllers.farewell.errors
    heals = []
    given_up = [ref for ref, tried in controllers.tried.items() if tried.attempt.is_final]
    for ref in [ref for ref in given_up if ref in fleet.releases and not fleet.releases[ref].invalid]:
        yield from controllers.rest()
        cause = controllers.tried[ref].attempt.cause
        if (yield from helmrelease.is_over(fleet.releases[ref], cause, memory)):
            heals.append(ref)
    everyone = (*fleet.kustomizations, *fleet.releases)
    reconciled = tuple(_reconciled(ref, controllers, heals=ref in heals) for ref in everyone)
    return replace(_end(controllers, errors), reconciled=(*reconciled, *controllers.farewell.left))


def delete_fleet(fleet: Fleet, memory: Memory) -> Script:
    """Delete what was applied to begin with; Kustomizations and HelmReleases take what is theirs with them."""
    quick = (yield Pause()).code == 200
    farewell = _Farewell(fleet, memory, quick=quick)
    for target in fleet.roots if quick else reversed(fleet.roots):
        ref, version = target.ref, str(target.body["apiVersion"])
        yield Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background")
        yield from farewell.gone(ref)
    while farewell.late:
        yield from farewell.finalize(farewell.late.pop(0))
    left = tuple(farewell.left)
    if not farewell.errors:
        return Ended("ok", reconciled=left)
    return Ended("failed", "\n".join(farewell.errors), stuck=farewell.stuck, reconciled=left)


class _Farewell:
    """What controllers do about the deletion of objects of Flux's own: at once, or where they are slow, in the end."""

    def __init__(self, fleet: Fleet, memory: Memory, *, quick: bool) -> None:
        self.fleet, self.memory, self.quick = fleet, memory, quick
        self.late: list[Ref] = []
        self.errors: list[str] = []
        self.stuck: Stuck | None = None
        self.left: list[Reconciled] = []
        """What Helm uninstalled."""

    def gone(self, ref: Ref) -> Part[None]:
        if self.quick:
            yield from self.finalize(ref)
        else:
            self.late.append(ref)

    def finalize(self, ref: Ref) -> Part[None]:
        if ref in self.fleet.releases:
            attempt = yield from leave(self.fleet.releases[ref], self.memory)
            release = self.fleet.releases[ref]
            objects = tuple(target.ref for target in (*release.targets, *release.hooks))
            left = Reconciled(ref, attempt.words, 1, objects, acts=("uninstall",), waits=release.uninstall.waits)
            self.left.append(left)
            if attempt.words:
                yield Say(ref, attempt.words)
                self.errors.append(f"{ref}: {attempt.words}")
                self.stuck = self.stuck or attempt.stuck
        elif ref in self.fleet.kustomizations:
            words = yield from self._objects(kustomization.finalize(self.fleet.kustomizations[ref], self.memory))
            if words:
                yield Say(ref, words)
                self.errors.append(f"{ref}: {words}")

    def _objects(self, script: Part[str]) -> Part[str]:
        """Carry the deletion of a Kustomization's objects, and see to those among them that are Flux's own."""
        answer: Answer | None = None
        while True:
            try:
                line = next(script) if answer is None else script.send(answer)
            except StopIteration as end:
                return str(end.value)
            answer = yield line
            if isinstance(line, Command) and line.verb == "delete":
                yield from self.gone(_about(line))


def _is_left_alone(own: Kustomization | HelmRelease) -> bool:
    return own.suspended or (own.assumed and not own.invalid)


def _did(line: Command | Helm, answer: Answer) -> bool:
    return isinstance(line, Helm) or (line.verb in WRITES and not line.dry_run and not answer.message)


def _end(controllers: _Controllers, errors: list[str]) -> Ended:
    failed = {ref: tried.attempt for ref, tried in controllers.tried.items() if tried.attempt.words}
    said = [*errors, *(f"{ref}: {attempt.words}" for ref, attempt in failed.items())]
    late = [f"{ref}: Ready at attempt {tried.count}" for ref, tried in controllers.tried.items() if tried.count > 1]
    warnings = tuple(one for one in late if not any(one.startswith(f"{ref}:") for ref in failed))
    if not said:
        return Ended("ok", warnings=warnings)
    stuck = next((attempt.stuck for attempt in failed.values() if attempt.stuck), None)
    return Ended("failed", "\n".join(said), warnings, stuck)


def _reconciled(ref: Ref, controllers: _Controllers, *, heals: bool) -> Reconciled:
    fleet, tried = controllers.fleet, controllers.tried.get(ref)
    words, count = (tried.attempt.words, tried.count) if tried else ("", 0)
    if ref in fleet.kustomizations:
        own = fleet.kustomizations[ref]
        objects = tuple(target.ref for target in own.targets)
        return Reconciled(ref, words, count, objects, heals, waits=own.wait or bool(own.health_checks))
    release = fleet.releases[ref]
    acts = tuple(controllers.acts.get(ref, ()))
    waits = (release.upgrade if "upgrade" in acts else release.install).waits
    objects = tuple(target.ref for target in (*release.everything, *release.hooks))
    return Reconciled(ref, words, count, objects, heals, acts, waits)


def _about(command: Command) -> Ref:
    return Ref(command.kind, command.namespace, command.name, command.api_version.rpartition("/")[0])


def _ref(body: Body) -> Ref:
    return ref_of(body, namespaced=bool(metadata(body).get("namespace")))
