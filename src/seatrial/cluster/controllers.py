"""The reconcile loop: what each controller reads, which controllers run when an object changes, in which order.

Knows no kind by name.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from seatrial.cluster.clock import Clock
from seatrial.cluster.fights import Fights
from seatrial.cluster.indexes import Indexes
from seatrial.cluster.store import Store
from seatrial.cluster.touched import CONTROLLERS, Touches
from seatrial.cluster.view import IDLE, Read, View, controller_uid
from seatrial.kinds import Act, Acts, Deadline, Kind, inert
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.workloads.images import WORKLOADS, running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import claim_of_volume
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, uid_of

RUNS_MAX = 200_000
"""Reconciles that follow from one request. `Fights` stops controllers that undo each other's changes much earlier."""
REPAIRED_RUNS_MAX = 20_000
"""The same where something is assumed to be repaired: controllers may then meet what they never meet."""

GARBAGE = "(garbage)"
"""In the queue, stands for the dependents of one owner. No object has this kind."""

INDEXED = frozenset((*WORKLOADS, "Pod", "PersistentVolume"))
"""Kinds whose objects are also found by an image or PVC that they name."""


class Executor(Protocol):
    """Executes an act of a controller. Returns the API server's refusal, or None."""

    def __call__(self, act: Act, actor: str, cause: int | None, view: View) -> Refusal | None: ...


class Repairer(Protocol):
    """Replaces what controllers do to objects that are assumed to be repaired (`cluster.repairing`)."""

    def concerns(self, ref: Ref) -> bool: ...

    def acts(self, ref: Ref, body: Body, kind: Kind | None, view: View) -> Acts | None: ...


REPAIRED = Kind("", actor="repair")


class Controllers:
    """Every controller of the cluster, and the queue of their work."""

    def __init__(
        self,
        store: Store,
        kinds: dict[tuple[str, str], Kind],
        view: Callable[[], View],
        execute: Executor,
        collect: Callable[[str, int | None, View], None],
    ) -> None:
        self._collect = collect
        self._store = store
        self._kinds = {key: kind for key, kind in kinds.items() if kind.behave is not inert}
        self._inert = kinds.keys() - self._kinds.keys()
        self._view = view
        self._execute = execute
        self._queue: dict[Ref, int | None] = {}
        self._fresh: set[Ref] = set()
        """Queued since the quick controllers last ran. Whether one is quick only changes with its object."""
        self._readers: dict[Read, set[Ref]] = {}
        self._reads: dict[Ref, set[Read]] = {}
        self.indexes = Indexes()
        self.clock = Clock()
        self.repairing: Repairer | None = None
        self.touches = Touches(store)
        self.moves = 0
        self.gave_up = False
        self.unrest = False
        """Whether they ever gave up."""
        self.fights = Fights()

    def begin(self) -> None:
        """A client acts: limits hold for what follows from one request."""
        self.moves, self.gave_up = 0, False
        self.fights.begin()

    def changed(self, ref: Ref, before: Body | None, after: Body | None, cause: int | None) -> None:
        """An object was created, updated or deleted: enqueue the controllers that read it."""
        kind = self._kinds.get((ref.group, ref.kind))
        self.indexes.changed(ref, before, after, kind)
        self.clock.note(ref, before, after)
        if after is None:
            self._record_reads(ref, set())
        elif kind is not None or self._is_repaired(ref):
            self._enqueue(ref, cause)
        self.fights.changed(ref, before, after)
        for read in _reads_of(ref, before, after):
            for reader in sorted(self._readers.get(read, ())):
                self._enqueue(reader, cause)

    def rest(self) -> None:
        """All controllers are idle: enqueue those that wait for that."""
        for reader in sorted(self._readers.get(IDLE, ())):
            self._enqueue(reader, None)

    def learn(self, kinds: Iterable[Kind]) -> None:
        """Add kinds of an operator that a trial describes."""
        self._kinds.update({(kind.group, kind.kind): kind for kind in kinds})

    def leave_alone(self, groups: frozenset[str]) -> None:
        """Forget what the controllers of these API groups do: others do that from now on."""
        self._inert |= (left := {key for key in self._kinds if key[0] in groups})
        self._kinds = {key: kind for key, kind in self._kinds.items() if key not in left}

    def is_ready(self, ref: Ref) -> bool:
        """Whether an object is there to stay and as its kind says that it is ready, whatever an engine believes."""
        body, kind = self._store.get(ref), self._kinds.get((ref.group, ref.kind))
        if body is None or is_terminating(body):
            return False
        return kind is None or kind.ready is None or kind.ready(body)

    def knows(self, kind: str, group: str) -> bool:
        """Whether this kind is modelled (possibly as inert)."""
        return (group, kind) in self._kinds or (group, kind) in self._inert

    def orphaned(self, uid: str, cause: int | None) -> None:
        """The owner with this uid is gone or terminating: its dependents are garbage, or will be."""
        self._enqueue(Ref(GARBAGE, "", uid), cause)

    def served_changed(self, group: str, kind: str, cause: int | None) -> None:
        for reader in sorted(self._readers.get(("served", group, kind), ())):
            self._enqueue(reader, cause)

    @property
    def idle(self) -> bool:
        return not self._queue

    def run(self) -> None:
        """Run until the queue is empty."""
        while self._queue and not self.gave_up:
            self._round(lambda ref: True)

    def run_at_once(self) -> None:
        """Run the controllers that do not let seconds pass, until none of them is queued."""
        while self._round(lambda ref: not self._is_late(ref)) and not self.gave_up:
            pass

    def run_if(self, may: Callable[[Ref], bool]) -> None:
        """The same for those whose object, or whose owner's owner, may act."""
        while self._round(lambda ref: not self._is_late(ref) and may(self.root(ref))) and not self.gave_up:
            pass

    def root(self, ref: Ref) -> Ref:
        """The owner of the owner, and so on, of an object; itself if nothing owns it."""
        seen = {ref}
        while (body := self._store.get(ref)) is not None:
            owner = self._store.by_uid(controller_uid(body))
            if owner is None or owner in seen:
                break
            seen.add(owner)
            ref = owner
        return ref

    def run_quick(self) -> None:
        """Run the controllers that need milliseconds, until none of them is queued."""
        while self._fresh and not self.gave_up:
            fresh, self._fresh = sorted(self._fresh), set()
            for ref in fresh:
                if ref in self._queue and self._is_quick(ref) and self._may_move():
                    self._move(ref)

    def needs_seconds(self, targets: Iterable[Ref]) -> bool:
        """Whether a controller that needs seconds is queued for `targets`, for what they own or for what they need."""
        scope = self._scope(targets)
        return any(scope.has(ref) and not self._is_quick(ref) for ref in sorted(self._queue))

    def run_some(self, dice: random.Random) -> None:
        """Run randomly chosen controllers, and stop at random."""
        while (queued := self._punctual()) and dice.random() < 0.7 and self._may_move():
            self._move(dice.choice(queued))

    def run_for(self, targets: Iterable[Ref]) -> None:
        """Run only the controllers of `targets`, of what they own and of what they need, until none is queued."""
        scope = self._scope(targets)
        while self._round(scope.has, scope.grow) and not self.gave_up:
            pass

    def outwait(
        self, refs: Iterable[Ref], seconds: float, passed: Callable[[Ref, Deadline], int | None]
    ) -> dict[Ref, float]:
        """With an empty queue, let time pass to the first deadline of `refs`, unless it is later than `seconds`.

        Returns the objects whose deadline passed, and after how many seconds. `passed` is called before they act.
        """
        running = [(ref, found) for ref in self._timed(refs) if (found := self._deadline(ref)) is not None]
        left = {ref: self.clock.left(ref, found) for ref, found in running}
        first = min(left.values(), default=None)
        if first is None or first > seconds:
            return {}
        self.clock.now_seconds += first
        overdue = [(ref, found) for ref, found in running if left[ref] == first]
        for ref, found in overdue:
            cause = passed(ref, found)
            self._act(found.acts, self._kinds[ref.group, ref.kind], cause, self._view())
            self._enqueue(ref, cause)
        return {ref: first for ref, _ in overdue}

    def _timed(self, refs: Iterable[Ref]) -> list[Ref]:
        """What a wait for `refs` sees end: what they own, and the pods whose programs all this waits for."""
        members = {member for ref in refs for member in self.family(ref)}
        scope = WaitScope(self._store, self._reads, self.indexes)
        for member in sorted(members):
            scope.add(member)
        return sorted(members | {ref for ref in scope.refs if ref.kind == "Pod" and not ref.group})

    def missing_for(self, ref: Ref) -> set[Ref]:
        """Objects that were read on behalf of `ref` and that are missing."""
        scope = self._scope((ref,))
        return {other for other in scope.refs if self._store.get(other) is None}

    def family(self, ref: Ref) -> set[Ref]:
        """An object, what it owns, and what those own."""
        found = {ref}
        pending = [ref]
        while pending:
            body = self._store.get(pending.pop())
            for other, _ in self._store.dependents(uid_of(body)) if body else ():
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    def _enqueue(self, ref: Ref, cause: int | None) -> None:
        if ref in self.fights.stopped:
            return
        self._queue.setdefault(ref, cause)
        self._fresh.add(ref)

    def _punctual(self) -> list[Ref]:
        return [ref for ref in sorted(self._queue) if not self._is_late(ref)]

    def _is_late(self, ref: Ref) -> bool:
        kind, body = self._kinds.get((ref.group, ref.kind)), self._store.get(ref)
        return kind is not None and body is not None and kind.late(body)

    def _is_quick(self, ref: Ref) -> bool:
        kind, body = self._kinds.get((ref.group, ref.kind)), self._store.get(ref)
        return kind is None or body is None or kind.quick(body)

    def _scope(self, targets: Iterable[Ref]) -> WaitScope:
        scope = WaitScope(self._store, self._reads, self.indexes)
        for target in targets:
            scope.add(target)
        return scope

    def _round(self, may: Callable[[Ref], bool], moved: Callable[[Ref], None] = lambda ref: None) -> bool:
        """Run each queued and permitted controller once. Returns whether any ran.

        In the order of names, not in the order in which concurrent requests of a client arrived.
        """
        anyone = False
        for ref in sorted(self._queue):
            if ref in self._queue and may(ref) and self._may_move():
                self._move(ref)
                moved(ref)
                anyone = True
        return anyone

    def _may_move(self) -> bool:
        self.moves += 1
        self.gave_up = self.gave_up or self.moves > (RUNS_MAX if self.repairing is None else REPAIRED_RUNS_MAX)
        self.unrest = self.unrest or self.gave_up
        return not self.gave_up

    def _move(self, ref: Ref) -> None:
        self.fights.writer = ref
        try:
            self._moved(ref)
        finally:
            self.fights.writer = None

    def _moved(self, ref: Ref) -> None:
        cause = self._queue.pop(ref)
        self._fresh.discard(ref)
        if self.touches.records:
            self.touches.begin((CONTROLLERS, self.root(ref)))
        view = self._view()
        if ref.kind == GARBAGE:
            self._collect(ref.name, cause, view)
            self._record_reads(ref, view.reads)
            return
        body = self._store.get(ref)
        kind = self._kinds.get((ref.group, ref.kind))
        repaired = self.repairing.acts(ref, body, kind, view) if self.repairing and body is not None else None
        if repaired is not None:
            self._act(repaired, REPAIRED, cause, view)
        elif body is not None and kind is not None:
            self._act(kind.behave(body, view), kind, cause, view)
        self._record_reads(ref, view.reads)

    def _is_repaired(self, ref: Ref) -> bool:
        return self.repairing is not None and self.repairing.concerns(ref)

    def _act(self, acts: Acts, kind: Kind, cause: int | None, view: View) -> None:
        refusal: Refusal | None = None
        try:
            while True:
                refusal = self._execute(acts.send(refusal), kind.actor or "controller", cause, view)
        except StopIteration:
            pass

    def _deadline(self, ref: Ref) -> Deadline | None:
        body, kind = self._store.get(ref), self._kinds.get((ref.group, ref.kind))
        if body is None or kind is None or kind.deadline is None:
            return None
        return kind.deadline(body, self._view())

    def _record_reads(self, ref: Ref, reads: set[Read]) -> None:
        for read in self._reads.pop(ref, set()) - reads:
            self._readers[read].discard(ref)
            if not self._readers[read]:
                del self._readers[read]
        if reads:
            self._reads[ref] = reads
        for read in reads:
            self._readers.setdefault(read, set()).add(ref)


class WaitScope:
    """The objects that a wait is about: the awaited objects, what they own, and what those need."""

    def __init__(self, store: Store, reads: dict[Ref, set[Read]], indexes: Indexes) -> None:
        self._store = store
        self._reads = reads
        self._indexes = indexes
        self.refs: set[Ref] = set()

    def add(self, ref: Ref) -> None:
        pending = deque([ref])
        while pending:
            current = pending.popleft()
            if current in self.refs:
                continue
            self.refs.add(current)
            pending.extend(self._next(current))

    def grow(self, ref: Ref) -> None:
        """`ref` has run: it may own and need more now."""
        for other in list(self._next(ref)):
            self.add(other)

    def has(self, ref: Ref) -> bool:
        return ref in self.refs or self._owned_by_scope(ref)

    def _owned_by_scope(self, ref: Ref) -> bool:
        if ref.kind == GARBAGE:
            dependents = (other for other, _ in self._store.dependents(ref.name))
            return self._store.by_uid(ref.name) in self.refs or any(other in self.refs for other in dependents)
        body = self._store.get(ref)
        owner = self._store.by_uid(controller_uid(body)) if body else None
        if owner not in self.refs:
            return False
        self.add(ref)
        return True

    def _next(self, ref: Ref) -> Iterable[Ref]:
        if self._store.get(ref) is None:
            # The producers of a missing object must run too.
            yield from sorted(self._indexes.producers.get(ref, ()))
        for read in self._reads.get(ref, ()):
            match read:
                case ("get", Ref() as other):
                    yield other
                case ("owned", uid, group, kind):
                    yield from (r for r, _ in self._store.dependents(str(uid)) if (r.group, r.kind) == (group, kind))
                case ("label", group, kind, namespace, label, value):
                    found = self._store.labelled((group, kind), namespace, label, value)
                    yield from (r for r, _ in found)
                case ("claim", Ref() as claim) if is_terminating(self._store.get(claim) or {}):
                    # A terminating PVC stays until no pod uses it.
                    yield from sorted(self._indexes.users.get(claim, ()))
                case ("image", image):
                    yield from sorted(self._indexes.workloads.get(str(image), ()))
                case ("content", namespace):
                    yield from (r for r, _ in self._store.content(str(namespace)))


def _reads_of(ref: Ref, before: Body | None, after: Body | None) -> Iterable[Read]:
    """Every read that this object would be part of, before or after the change, in a fixed order."""
    reads: dict[Read, None] = {
        ("get", ref): None,
        ("peek", ref): None,
        ("all", ref.group, ref.kind, ref.namespace): None,
        ("all", ref.group, ref.kind, ""): None,
        ("content", ref.namespace): None,
    }
    for body in (before, after):
        if body is None:
            continue
        meta = body["metadata"]
        for owner in meta.get("ownerReferences") or ():
            reads["owned", owner.get("uid", ""), ref.group, ref.kind] = None
        for label, value in (meta.get("labels") or {}).items():
            reads["label", ref.group, ref.kind, ref.namespace, label, value] = None
        if ref.kind in INDEXED:
            reads.update((read, None) for read in _content_reads(body))
    return reads


def _content_reads(body: Body) -> Iterable[Read]:
    """The reads that find an object by its content."""
    yield from (("image", image) for image in running_images(body))
    yield from (("claim", claim) for claim in used_claims(body))
    yield from (("volume", claim) for claim in claim_of_volume(body))
