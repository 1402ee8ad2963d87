"""What happened: events, steps and rehearsals. Pure data; knows neither the cluster nor the engine that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.engine import EngineId, Role
from seatrial.model.refusal import NO_FAILURE, Failure, Refusal, renumbered
from seatrial.model.resource import Body, Ref

K = TypeVar("K")
Schedule = Literal["eager", "lazy", "seeded"]
Outcome = Literal["ok", "failed", "hung"]

# What an event did to its object. `deleting` is an object that got a deletionTimestamp and stays for its finalizers.
Effect = Literal["created", "changed", "unchanged", "deleting", "deleted", "refused", "said", "read", "waiting"]


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One request that a client made, or one move that a controller made."""

    index: int
    step: int
    """Place of the step in the trial, from 0; -1 for what was assumed before the first."""
    actor: str
    """Who: an engine (`helm`), a controller (`deployment-controller`, `kubelet`), or `someone`."""
    verb: str
    """create, update, patch, apply, delete, get, wait, `dry run`; for controllers also `say`."""
    object: Ref
    effect: Effect
    message: str = ""
    """The API server's exact words where it refused; a controller's words where it spoke."""
    cause: int | None = None
    """The event that led to this one: the request a controller reacted to, the deletion that cascaded."""
    before: Body | None = None
    after: Body | None = None
    refusal: Refusal | None = None
    """Why the API server refused this request, or the one that a controller speaks of."""
    missing: tuple[Ref, ...] = ()
    """The objects that the API server, a controller, a kubelet or an engine looked for and did not find."""
    key: str = ""
    """The missing key, if the object in `missing` exists."""
    held_by: tuple[Ref, ...] = ()
    """The pods that hold the volume that a pod waits for."""
    reason: str = ""
    """Of what a controller or a kubelet said: the reason of the Kubernetes event, such as FailedMount."""
    failure: Failure = NO_FAILURE
    """Of what an engine said: why it failed."""


OperationPhase = Literal["Running", "Succeeded", "Failed", "Error"]


class SyncTask(Struct, frozen=True, omit_defaults=True):
    """One object in one phase of an Argo CD sync, and how far it came."""

    object: Ref
    phase: str
    """PreSync, Sync, PostSync, SyncFail."""
    wave: int
    """The one it ran in, or would have: not always the one that is written on it."""
    hook: bool = False
    prune: bool = False
    status: str = ""
    """Synced, SyncFailed, Pruned, PruneSkipped; empty where it was never reached."""
    state: str = ""
    """Running, Succeeded, Failed, Error; empty while it is pending."""
    message: str = ""
    health: str = ""
    """Argo CD's last verdict on the object, `Progressing: ...`; that of a check that fails begins with `error`."""
    waited: bool = False
    """Whether anything was waited for after its wave: what the last wave holds is not."""
    failure: Failure = NO_FAILURE
    """Why it was refused."""

    @property
    def place(self) -> tuple[str, int]:
        return self.phase, self.wave


class Operation(Struct, frozen=True, omit_defaults=True):
    """One sync operation of Argo CD, as its Application would show it in `status.operationState`."""

    app: str
    phase: OperationPhase
    """`Running` is one that never ends."""
    message: str
    """Argo CD's own words, exactly."""
    tasks: tuple[SyncTask, ...] = ()
    """In the order in which they run."""
    waits_for: tuple[Ref, ...] = ()
    conditions: tuple[str, ...] = ()
    """What the Application shows beside: `ExcludedResourceWarning: ...`."""
    attempts: int = 1
    hooks_deleted: tuple[Ref, ...] = ()
    automated: bool = False
    failure: Failure = NO_FAILURE
    """Why it failed: the reasons of all its tasks, or that there was nothing to sync."""

    def never_ran(self) -> tuple[tuple[str, int], ...]:
        """The phases and waves that were not reached; hooks for failures are not missed."""
        places = (task.place for task in self.tasks if not task.status and task.phase != "SyncFail")
        return tuple(dict.fromkeys(places))


class Reconciled(Struct, frozen=True, omit_defaults=True):
    """What became of one Kustomization or HelmRelease of Flux in a step, as its conditions would say it."""

    object: Ref
    message: str = ""
    """Flux's words of why it is not Ready; empty where it is."""
    attempts: int = 0
    """None where it never came to its turn."""
    objects: tuple[Ref, ...] = ()
    """What it brings."""
    heals: bool = False
    """Whether it failed for good, and would end well if it were only tried again."""
    acts: tuple[str, ...] = ()
    """What Helm did for it, in order: `install`, `upgrade`, `rollback`, `uninstall`."""
    waits: bool = False
    """Whether Flux waits for its objects."""
    failure: Failure = NO_FAILURE
    """Why the last attempt failed."""
    failed: str = ""
    """The action of Helm that failed in it."""
    release: str = ""
    """Of a HelmRelease: the name of the Helm release."""
    namespace: str = ""
    """Of a HelmRelease: the namespace of the Helm release."""


class StepResult(Struct, frozen=True, omit_defaults=True):
    """How one step of a trial ended, and what it did to the objects that people wrote."""

    action: str
    release: str
    namespace: str
    source: str
    outcome: Outcome
    error: str = ""
    """The engine's own words, exactly; for a hang, what it waits for and what is missing."""
    created: tuple[Ref, ...] = ()
    deleted: tuple[Ref, ...] = ()
    recreated: tuple[Ref, ...] = ()
    missing: tuple[Ref, ...] = ()
    """Objects that the release says it has and that are not there when the step ends."""
    orphans: tuple[Ref, ...] = ()
    """Objects of the release that stay behind after it is gone."""
    flags: tuple[str, ...] = ()
    """What the user would type beside the act: `--wait`."""
    warnings: tuple[str, ...] = ()
    waits_for: tuple[Ref, ...] = ()
    """For a hang: the objects that the engine would wait for until its timeout."""
    lacking: tuple[Ref, ...] = ()
    """For a hang: what those objects, and what they own, looked for and did not find."""
    operations: tuple[Operation, ...] = ()
    """Of Argo CD: one for each Application that was synced, in the order in which they ended."""
    reconciled: tuple[Reconciled, ...] = ()
    """Of Flux: one for each Kustomization and each HelmRelease."""
    failure: Failure = NO_FAILURE
    """Why it failed: the refused requests that its error is about, and what else the engine complains of."""
    by: str = ""
    """What ran it, as people call it: `Argo CD`; `kubectl` for what people do meanwhile."""
    act: str = ""
    """What it is called in a sentence: `helm upgrade`, `the sync`."""
    role: Role = "other"
    again: Outcome | None = None
    """How it ended when it was tried again as it is, which only a race lets end otherwise."""


class Rehearsal(Struct, frozen=True, omit_defaults=True, dict=True):
    """One trial played by one engine under one schedule."""

    engine: EngineId
    schedule: Schedule
    steps: tuple[StepResult, ...]
    timeline: tuple[Event, ...]
    not_modelled: tuple[str, ...] = ()
    label: str = ""
    """The engine as people call it: `Argo CD`."""
    actors: tuple[str, ...] = ()
    """Whose events are the engine's: its own, and those of an engine that it has in it."""
    otherwise: Rehearsal | None = None
    """The same by the rules of the engine's other major version, as far as that was played; its refusals alone."""

    def of_step(self, step: int) -> Iterator[Event]:
        return iter(self._by_step.get(step, ()))

    def of_object(self, ref: Ref) -> Iterator[Event]:
        """What happened to one object, in order."""
        return iter(self._by_object.get(ref, ()))

    @cached_property
    def _by_step(self) -> dict[int, list[Event]]:
        return _grouped(self.timeline, lambda event: event.step)

    @cached_property
    def _by_object(self) -> dict[Ref, list[Event]]:
        return _grouped(self.timeline, lambda event: event.object)


def renumbered_result(result: StepResult, place: Callable[[int], int]) -> StepResult:
    """The same where the events of the timeline have other indices."""

    def moved(failure: Failure) -> Failure:
        return renumbered(failure, place)

    return replace(
        result,
        failure=moved(result.failure),
        operations=tuple(
            replace(
                operation,
                failure=moved(operation.failure),
                tasks=tuple(replace(task, failure=moved(task.failure)) for task in operation.tasks),
            )
            for operation in result.operations
        ),
        reconciled=tuple(replace(one, failure=moved(one.failure)) for one in result.reconciled),
    )


def _grouped(events: Iterable[Event], key: Callable[[Event], K]) -> dict[K, list[Event]]:
    groups: dict[K, list[Event]] = {}
    for event in events:
        groups.setdefault(key(event), []).append(event)
    return groups
