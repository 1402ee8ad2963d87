"""Events, steps and rehearsals. Pure data; knows neither the cluster nor the engine."""

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
Schedule = Literal["ordinary", "lazy", "eager", "seeded", "mixed"]
ORDINARY: Schedule = "ordinary"
SCHEDULES: tuple[Schedule, ...] = (ORDINARY, "lazy", "eager")
"""The schedules of a check. The ordinary cluster comes first, and is the one that is shown; the others are bounds."""
Outcome = Literal["ok", "failed", "hung"]

# What an event did to its object. `deleting`: the object got a deletionTimestamp and remains because of finalizers.
Effect = Literal["created", "changed", "unchanged", "deleting", "deleted", "refused", "said", "read", "waiting"]


class ScriptLine(Struct, frozen=True, gc=False):
    """A line of a script in a container."""

    number: int = 0
    """From 1; 0 for a command line that is no script."""
    text: str = ""

    def __str__(self) -> str:
        return f"line {self.number} `{self.text}`" if self.number else f"command `{self.text}`"


class NotFollowed(Struct, frozen=True):
    """A line of a script that is not evaluated, and what the script may change from there on."""

    line: ScriptLine
    owner: Ref
    """The Job, or the pod, that runs the script."""
    may_change: tuple[Ref, ...] = ()
    """Without a name: any object of the kind in the namespace."""
    fails: bool = False
    """Whether the script fails or never ends after that line."""
    made_up: bool = False
    """Whether the event is a write of the script with a made-up value, as the value of that line is not known."""


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One request of a client, or one action of a controller."""

    index: int
    step: int
    """Index of the step in the trial, from 0; -1 for what was assumed before the first."""
    actor: str
    """An engine (`helm`), a controller (`deployment-controller`, `kubelet`), or `user`."""
    verb: str
    """create, update, patch, apply, delete, get, wait, `dry run`; for controllers also `say`."""
    object: Ref
    effect: Effect
    message: str = ""
    """The API server's exact error, or a controller's message."""
    cause: int | None = None
    """The event that caused this one: the request a controller reacted to, the deletion that cascaded."""
    before: Body | None = None
    after: Body | None = None
    refusal: Refusal | None = None
    """Why the API server refused this request, or the one that a controller reports."""
    missing: tuple[Ref, ...] = ()
    """The objects that the API server, a controller, a kubelet or an engine did not find."""
    key: str = ""
    """The missing key, if the object in `missing` exists."""
    held_by: tuple[Ref, ...] = ()
    """The pods that hold the volume that a pod waits for."""
    unanswered: tuple[str, ...] = ()
    """Webhooks with failurePolicy Ignore that were called for this write and did not answer."""
    reason: str = ""
    """For messages of a controller or kubelet: the reason of the Kubernetes Event, such as FailedMount."""
    failure: Failure = NO_FAILURE
    """For messages of an engine: why it failed."""
    not_followed: NotFollowed | None = None
    """For messages of a kubelet and writes of a script: what the rehearsal does not know of the script."""


OperationPhase = Literal["Running", "Succeeded", "Failed", "Error"]


class SyncTask(Struct, frozen=True, omit_defaults=True):
    """One object in one phase of an Argo CD sync, and its progress."""

    object: Ref
    phase: str
    """PreSync, Sync, PostSync, SyncFail."""
    wave: int
    """The wave it ran in, or would have: not always the annotated one."""
    hook: bool = False
    prune: bool = False
    status: str = ""
    """Synced, SyncFailed, Pruned, PruneSkipped; empty if it was never reached."""
    state: str = ""
    """Running, Succeeded, Failed, Error; empty while it is pending."""
    message: str = ""
    health: str = ""
    """Argo CD's last health of the object, `Progressing: ...`; for a failing check it begins with `error`."""
    waited: bool = False
    """Whether Argo CD waited after its wave. It does not wait after the last one."""
    failure: Failure = NO_FAILURE
    """Why it was refused."""

    @property
    def place(self) -> tuple[str, int]:
        return self.phase, self.wave


class ApplicationCondition(Struct, frozen=True, omit_defaults=True):
    """A condition of an Argo CD Application."""

    type: str
    """`ExcludedResourceWarning`; empty for what Argo CD only logs."""
    message: str
    object: Ref | None = None
    """The object that it is about."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.type else self.message


class Operation(Struct, frozen=True, omit_defaults=True):
    """One sync operation of Argo CD, as in the Application's `status.operationState`."""

    app: str
    phase: OperationPhase
    """`Running` never ends."""
    message: str
    """Argo CD's exact message."""
    tasks: tuple[SyncTask, ...] = ()
    """In the order in which they run."""
    waits_for: tuple[Ref, ...] = ()
    conditions: tuple[ApplicationCondition, ...] = ()
    """Further conditions of the Application."""
    attempts: int = 1
    hooks_deleted: tuple[Ref, ...] = ()
    automated: bool = False
    failure: Failure = NO_FAILURE
    """Why it failed: the reasons of all its tasks, or that there was nothing to sync."""
    namespace: str = "argocd"
    """Of the Application."""

    def never_ran(self) -> tuple[tuple[str, int], ...]:
        """The phases and waves that were not reached, without SyncFail hooks."""
        places = (task.place for task in self.tasks if not task.status and task.phase != "SyncFail")
        return tuple(dict.fromkeys(places))


class Reconciled(Struct, frozen=True, omit_defaults=True):
    """The result of one Kustomization or HelmRelease of Flux in a step, as in its conditions."""

    object: Ref
    message: str = ""
    """Flux's message why it is not Ready; empty if it is."""
    attempts: int = 0
    """0 if it was never reconciled."""
    objects: tuple[Ref, ...] = ()
    """Its objects."""
    heals: bool = False
    """Whether it failed finally, but would succeed if it were retried."""
    acts: tuple[str, ...] = ()
    """Helm's actions for it, in order: `install`, `upgrade`, `rollback`, `uninstall`."""
    waits: bool = False
    """Whether Flux waits for its objects."""
    failure: Failure = NO_FAILURE
    """Why the last attempt failed."""
    failed: str = ""
    """The Helm action that failed."""
    release: str = ""
    """For a HelmRelease: the name of the Helm release."""
    namespace: str = ""
    """For a HelmRelease: the namespace of the Helm release."""


class Fight(Struct, frozen=True):
    """An object that controllers change without end, and for which objects they do so."""

    object: Ref
    writers: tuple[Ref, ...]


class StepResult(Struct, frozen=True, omit_defaults=True):
    """How one step of a trial ended, and what it did to the objects of the release."""

    action: str
    release: str
    namespace: str
    source: str
    outcome: Outcome
    error: str = ""
    """The engine's exact error; for a hang, what it waits for and what is missing."""
    created: tuple[Ref, ...] = ()
    deleted: tuple[Ref, ...] = ()
    recreated: tuple[Ref, ...] = ()
    missing: tuple[Ref, ...] = ()
    """Objects that are in the release and missing in the cluster when the step ends."""
    orphans: tuple[Ref, ...] = ()
    """Objects of the release that remain after it is removed."""
    flags: tuple[str, ...] = ()
    """The flags of the action: `--wait`."""
    warnings: tuple[str, ...] = ()
    waits_for: tuple[Ref, ...] = ()
    """For a hang: the objects that the engine would wait for until its timeout."""
    lacking: tuple[Ref, ...] = ()
    """For a hang: what those objects, and what they own, need and is missing."""
    operations: tuple[Operation, ...] = ()
    """For Argo CD: one for each synced Application, in the order in which they ended."""
    reconciled: tuple[Reconciled, ...] = ()
    """For Flux: one for each Kustomization and each HelmRelease."""
    failure: Failure = NO_FAILURE
    """Why it failed: the refused requests behind its error, and other reasons of the engine."""
    by: str = ""
    """The engine as users call it: `Argo CD`; `kubectl` for steps of other people."""
    act: str = ""
    """Its name in a sentence: `helm upgrade`, `the sync`."""
    role: Role = "other"
    explicit: bool = False
    """Whether the user lists every object in the input, and so expects it to go when the input goes."""
    killed: bool = False
    """Whether the trial killed the engine's process in this step."""
    settled: bool = True
    """Whether the cluster came to rest before the next step."""
    fights: tuple[Fight, ...] = ()
    """Controllers that never converge. They were stopped."""
    again: Outcome | None = None
    """The outcome when the step was repeated unchanged. It differs only after a race."""
    next_version: str = ""
    """The version to which the chart of `source` was raised in memory; empty for a source as it is."""

    @property
    def deploys(self) -> str:
        """Its source as reports name it: `v2`, `v2 (next version 1.2.4)`."""
        return f"{self.source} (next version {self.next_version})" if self.next_version else self.source


class Rehearsal(Struct, frozen=True, omit_defaults=True, dict=True):
    """One trial rehearsed with one engine under one schedule."""

    engine: EngineId
    schedule: Schedule
    steps: tuple[StepResult, ...]
    timeline: tuple[Event, ...]
    not_modelled: tuple[str, ...] = ()
    label: str = ""
    """The engine as users call it: `Argo CD`."""
    mix: str = ""
    """For the schedule `mixed`: which objects are slow, or fast, as in a schedule file."""
    actors: tuple[str, ...] = ()
    """The actors whose events are the engine's: its own, and those of an embedded engine."""
    repaired: tuple[str, ...] = ()
    """Obstacles that are assumed to be repaired; empty for a rehearsal of what really happens."""
    otherwise: Rehearsal | None = None
    """The same simulated with the engine's other major version, as far as it was rehearsed; only its refusals."""

    def of_step(self, step: int) -> Iterator[Event]:
        return iter(self._by_step.get(step, ()))

    def of_object(self, ref: Ref) -> Iterator[Event]:
        """The events of one object, in order."""
        return iter(self._by_object.get(ref, ()))

    def refusals_of(self, failure: Failure) -> Iterator[Event]:
        """The refused requests that an error is about."""
        return (self._by_index[index] for index in failure.events if index in self._by_index)

    @cached_property
    def _by_index(self) -> dict[int, Event]:
        return {event.index: event for event in self.timeline}

    @cached_property
    def _by_step(self) -> dict[int, list[Event]]:
        return _grouped(self.timeline, lambda event: event.step)

    @cached_property
    def _by_object(self) -> dict[Ref, list[Event]]:
        return _grouped(self.timeline, lambda event: event.object)


def renumbered_result(result: StepResult, place: Callable[[int], int]) -> StepResult:
    """The same for a timeline with other indices."""

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
