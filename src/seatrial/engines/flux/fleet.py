"""All Kustomizations and HelmReleases concurrently, each when its dependencies are Ready, with retries.

Flux's controllers work on all their objects side by side; dependsOn is all the order there is between them. Where the
cluster is quick, a HelmRelease is done before what comes behind its Kustomization; where it is slow, all Kustomizations
go on first. `Ready` is what their conditions say: without `wait` and health checks, that all was applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Ended, Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.concurrent import Job, awaited, give_up, interleave
from seatrial.engines.flux import helmrelease, kustomization
from seatrial.engines.flux.applying import about
from seatrial.engines.flux.dependencies import Dependencies
from seatrial.engines.flux.kustomization import Attempt
from seatrial.engines.flux.objects import (
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    FluxMemory,
    FluxObjects,
    HelmRelease,
    Kustomization,
)
from seatrial.engines.flux.uninstalling import leave
from seatrial.engines.script import (
    WRITES,
    Answer,
    Bring,
    Command,
    Line,
    Part,
    Pause,
    Say,
    Script,
    Survey,
    Wait,
    carry,
)
from seatrial.model.refusal import Failure, joined
from seatrial.model.resource import Ref, ref_of
from seatrial.model.timeline import Reconciled

ATTEMPTS_MAX = 5
OWN = ((KUSTOMIZE_GROUP, "Kustomization"), (HELM_GROUP, "HelmRelease"))


class _Tried(Struct, frozen=True):
    """How the last attempt ended, how many there were, and the count of changes by then."""

    attempt: Attempt
    count: int
    changes: int


class _Reconciliation(Struct, frozen=True):
    """Whose reconciliation a job is, and how many others it depends on, one behind the other."""

    ref: Ref
    depth: int


class _Controllers:
    """Flux at work: the `Schedule` of its controllers."""

    def __init__(self, fleet: FluxObjects, memory: FluxMemory, *, quick: bool) -> None:
        self.fleet, self.memory, self.quick = fleet, memory, quick
        self.there: dict[Ref, int] = {}
        """The Kustomizations and HelmReleases that exist, and the depth of the one that created each."""
        self.jobs: list[Job[_Reconciliation]] = []
        self.tried: dict[Ref, _Tried] = {}
        self.depend = Dependencies(fleet, memory, self.tried)
        self.acts: dict[Ref, list[str]] = {}
        """The actions of Helm, by HelmRelease."""
        self.changes = 0
        self.finalizers = _Finalizers(memory.known, memory, quick=True)

    def turn(self) -> Part[Job[_Reconciliation] | None]:
        """The next job that does not wait. When all have ended, those are retried that a later change may help."""
        self._begin()
        if not self.jobs and not (yield from self._retry()):
            return None
        if all(job.waits for job in self.jobs):
            yield from self._wait()
            self._begin()
        return min((job for job in self.jobs if not job.waits), key=self._order)

    def on_line(self, job: Job[_Reconciliation], line: Line, answer: Answer) -> Part[bool]:
        if isinstance(line, HelmAct):
            self.acts.setdefault(job.of.ref, []).append(line.action)
        self.notice(line, answer, job.of.depth)
        if isinstance(line, Command) and line.verb == "delete" and not answer.message:
            yield from self.finalizers.on_delete(line.ref)
        self._begin()
        return False

    def on_end(self, job: Job[_Reconciliation], attempt: Attempt) -> Part[None]:
        ref = job.of.ref
        count = self.tried[ref].count + 1 if ref in self.tried else 1
        self.tried[ref] = _Tried(attempt, count, self.changes)
        self.memory.ready[ref] = not attempt.words
        if not attempt.words:
            yield from self._linger(ref)
        yield Say(ref, attempt.words or "Ready", failure=attempt.failure)

    def notice(self, line: Line, answer: Answer, depth: int = 0) -> None:
        """Count changes, and find the Kustomizations and HelmReleases that are created."""
        if isinstance(line, HelmAct) or (isinstance(line, Bring) and answer.body["brought"]):
            self.changes += 1
        if not isinstance(line, Command) or line.dry_run or answer.message or line.verb not in WRITES:
            return
        self.changes += 1
        if (line.ref.group, line.kind) in OWN and line.verb != "delete":
            self.find(line.ref, depth)

    def find(self, ref: Ref, depth: int = 0) -> None:
        if self.depend.is_known(ref):
            self.there.setdefault(ref, depth)

    def not_begun(self) -> Iterator[tuple[Ref, str]]:
        """What was never reconciled, and the message of its condition."""
        for ref in self.there:
            words = "" if ref in self.tried else self.depend.unmet(ref)
            if words:
                yield ref, words

    def _begin(self) -> None:
        busy = {job.of.ref for job in self.jobs}
        for ref, depth in self.there.items():
            if ref in busy or ref in self.tried or self.depend.unmet(ref):
                continue
            script = self._script(ref)
            if script is None:
                self.tried[ref] = _Tried(Attempt(), 0, self.changes)
                if self._own(ref).assumed:  # One that is suspended stays as it is: not Ready where it never was.
                    self.memory.ready[ref] = True
            else:
                behind = [self.there.get(other, 0) + 1 for other in self.depend.of(ref)]
                self.jobs.append(Job(_Reconciliation(ref, max([depth, *behind])), script))

    def _script(self, ref: Ref) -> Part[Attempt] | None:
        if ref in self.fleet.kustomizations:
            own = self.fleet.kustomizations[ref]
            return None if _is_left_alone(own) else kustomization.reconcile(own, self.memory)
        release = self.fleet.releases[ref]
        if release.brings and not release.suspended and not release.invalid:
            return self._bring(release)
        return None if _is_left_alone(release) else helmrelease.reconcile(release, self.memory)

    def _bring(self, release: HelmRelease) -> Part[Attempt]:
        """Reconcile a HelmRelease with charts that are not at hand: what these bring comes in their place."""
        yield Bring(release.ref, early=True)
        attempt = Attempt() if release.assumed else (yield from helmrelease.reconcile(release, self.memory))
        if not attempt.words:
            yield Bring(release.ref)
        return attempt

    def _own(self, ref: Ref) -> Kustomization | HelmRelease:
        return self.fleet.kustomizations.get(ref) or self.fleet.releases[ref]

    def _order(self, job: Job[_Reconciliation]) -> tuple[int, int, int]:
        """On a slow cluster the newest first."""
        is_release = int(job.of.ref.kind == "HelmRelease")
        place = self.jobs.index(job)
        return (job.of.depth, is_release, place) if self.quick else (is_release, -place, 0)

    def _linger(self, ref: Ref) -> Part[None]:
        """Flux looks at dependencies every 30 seconds, so what became ready has a moment before others use it.

        Endpoints follow ready pods, and a webhook's CA bundle is injected.
        """
        waited = tuple(dict.fromkeys(self._waited_for(ref)))
        while waited and (yield Wait(waited)).stuck is None:
            self.changes += 1

    def _waited_for(self, ref: Ref) -> Iterator[Ref]:
        if ref in self.fleet.releases:
            release = self.fleet.releases[ref]
            yield from release.refs if release.install.waits else ()
            return
        own = self.fleet.kustomizations[ref]
        for target in own.targets if own.wait else ():
            yield from self._waited_for(target.ref) if self.depend.is_known(target.ref) else (target.ref,)

    def _wait(self) -> Part[None]:
        """All wait. When nothing moves and all have looked since, the last one gives up."""
        moved = (yield Wait(awaited(self.jobs))).stuck is None
        self.changes += moved
        if not moved and all(job.blocked for job in self.jobs):
            yield from give_up(max(self.jobs, key=self._order))
            return
        for job in self.jobs:
            job.wake(moved=moved)

    def _retry(self) -> Part[bool]:
        """Let time pass, and retry what failed before something else changed."""
        failed = {ref: tried for ref, tried in self.tried.items() if tried.attempt.words and not tried.attempt.is_final}
        if not failed:
            return False
        yield from self.rest()
        again = [r for r, tried in failed.items() if tried.changes < self.changes and tried.count < ATTEMPTS_MAX]
        for ref in again:
            script = self._script(ref)
            if script is not None:
                self.jobs.append(Job(_Reconciliation(ref, self.there[ref]), script))
        return bool(self.jobs)

    def rest(self) -> Part[None]:
        """Let time pass until nothing moves any more."""
        everything = tuple(dict.fromkeys(self._everything()))
        while (yield Wait(everything)).stuck is None:
            self.changes += 1

    def _everything(self) -> Iterator[Ref]:
        for one in self.fleet.kustomizations.values():
            yield from (target.ref for target in one.targets)
        for release in self.fleet.releases.values():
            yield from release.refs


def sync_fleet(fleet: FluxObjects, memory: FluxMemory) -> Script:
    """Apply what there is to begin with, and let Flux work until it rests."""
    quick = (yield Pause()).quick
    controllers = _Controllers(fleet, memory, quick=quick)
    errors, failures = [], []
    for target in fleet.roots:
        command = about(target, "apply", target.body)
        answer = yield command
        controllers.notice(command, answer)
        if answer.message or not answer.served:
            errors.append(f"{target.ref}: {answer.message or 'its kind is not served'}")
            failures.append(answer.failure)
    found = yield Survey()
    for body in found.body["items"]:
        controllers.find(ref_of(body))
    error = yield from interleave(controllers)
    errors += [error] if error else []
    memory.known = fleet
    for ref, words in controllers.not_begun():
        failures.append(controllers.depend.failure(ref))
        yield Say(ref, words, failure=failures[-1])
        errors.append(f"{ref}: {words}")
    errors += controllers.finalizers.errors
    failures += controllers.finalizers.failures
    heals = []
    given_up = [ref for ref, tried in controllers.tried.items() if tried.attempt.is_final]
    for ref in [ref for ref in given_up if ref in fleet.releases and not fleet.releases[ref].invalid]:
        yield from controllers.rest()
        cause = controllers.tried[ref].attempt.cause
        if (yield from helmrelease.is_over(fleet.releases[ref], cause, memory)):
            heals.append(ref)
    everyone = (*fleet.kustomizations, *fleet.releases)
    reconciled = tuple(_reconciled(ref, controllers, heals=ref in heals) for ref in everyone)
    ended = _end(controllers, errors, failures)
    return replace(ended, reconciled=(*reconciled, *controllers.finalizers.left))


def delete_fleet(fleet: FluxObjects, memory: FluxMemory) -> Script:
    """Delete the applied manifests; Kustomizations and HelmReleases delete their objects."""
    quick = (yield Pause()).quick
    finalizers = _Finalizers(fleet, memory, quick=quick)
    for target in fleet.roots if quick else reversed(fleet.roots):
        ref, version = target.ref, str(target.body["apiVersion"])
        yield Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background")
        yield from finalizers.on_delete(ref)
    while finalizers.late:
        yield from finalizers.finalize(finalizers.late.pop(0))
    left = tuple(finalizers.left)
    if not finalizers.errors:
        return Ended("ok", reconciled=left)
    failure = joined(*finalizers.failures)
    return Ended("failed", "\n".join(finalizers.errors), stuck=finalizers.stuck, reconciled=left, failure=failure)


class _Finalizers:
    """How controllers handle the deletion of Flux objects: at once, or at the end on a slow cluster."""

    def __init__(self, fleet: FluxObjects, memory: FluxMemory, *, quick: bool) -> None:
        self.fleet, self.memory, self.quick = fleet, memory, quick
        self.late: list[Ref] = []
        self.errors: list[str] = []
        self.failures: list[Failure] = []
        self.stuck: Stuck | None = None
        self.left: list[Reconciled] = []
        """What Helm uninstalled."""

    def on_delete(self, ref: Ref) -> Part[None]:
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
            self.left.append(_of_release(left, release, attempt))
            if attempt.words:
                yield Say(ref, attempt.words, failure=attempt.failure)
                self.errors.append(f"{ref}: {attempt.words}")
                self.failures.append(attempt.failure)
                self.stuck = self.stuck or attempt.stuck
        elif ref in self.fleet.kustomizations:
            script = kustomization.finalize(self.fleet.kustomizations[ref], self.memory)
            deleted = yield from carry(script, self._deleted)
            if deleted.words:
                yield Say(ref, deleted.words, failure=deleted.failure)
                self.errors.append(f"{ref}: {deleted.words}")
                self.failures.append(deleted.failure)

    def _deleted(self, line: Line, answer: Answer) -> Part[None]:
        """Handle Flux objects among those that a Kustomization deletes."""
        if isinstance(line, Command) and line.verb == "delete":
            yield from self.on_delete(line.ref)


def _is_left_alone(own: Kustomization | HelmRelease) -> bool:
    return own.suspended or (own.assumed and not own.invalid)


def _end(controllers: _Controllers, errors: list[str], failures: list[Failure]) -> Ended:
    failed = {ref: tried.attempt for ref, tried in controllers.tried.items() if tried.attempt.words}
    said = [*errors, *(f"{ref}: {attempt.words}" for ref, attempt in failed.items())]
    late = [f"{ref}: Ready at attempt {tried.count}" for ref, tried in controllers.tried.items() if tried.count > 1]
    warnings = tuple(one for one in late if not any(one.startswith(f"{ref}:") for ref in failed))
    if not said:
        return Ended("ok", warnings=warnings)
    stuck = next((attempt.stuck for attempt in failed.values() if attempt.stuck), None)
    failure = joined(*failures, *(attempt.failure for attempt in failed.values()))
    return Ended("failed", "\n".join(said), warnings, stuck, failure=failure)


def _reconciled(ref: Ref, controllers: _Controllers, *, heals: bool) -> Reconciled:
    fleet, tried = controllers.fleet, controllers.tried.get(ref)
    attempt, count = (tried.attempt, tried.count) if tried else (Attempt(), 0)
    words = attempt.words
    if ref in fleet.kustomizations:
        own = fleet.kustomizations[ref]
        objects = tuple(target.ref for target in own.targets)
        waits = own.wait or bool(own.health_checks)
        return Reconciled(ref, words, count, objects, heals, waits=waits, failure=attempt.failure)
    release = fleet.releases[ref]
    acts = tuple(controllers.acts.get(ref, ()))
    waits = (release.upgrade if "upgrade" in acts else release.install).waits
    objects = tuple(target.ref for target in (*release.everything, *release.hooks))
    return _of_release(Reconciled(ref, words, count, objects, heals, acts, waits), release, attempt)


def _of_release(one: Reconciled, release: HelmRelease, attempt: Attempt) -> Reconciled:
    name, namespace = release.release_name, release.target_namespace
    return replace(one, failure=attempt.failure, failed=attempt.failed, release=name, namespace=namespace)
