"""The reconcile machine: who looks at what, who wakes when it changes, who moves next. Knows no kind by name."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from seatrial.cluster.indexes import Indexes
from seatrial.cluster.store import Store
from seatrial.kinds import Act, Acts, Deadline, Kind, inert
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.workloads.images import WORKLOADS, running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import ANY_CLAIM, claim_of_volume
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, uid_of

MOVES_MAX = 500_000
"""Reconciles in one run of a cluster. Two controllers that undo each other would go on for ever."""

GARBAGE = "(garbage)"
"""Stands in the queue for the dependents of one owner; no object has such a kind."""

TRACED = frozenset((*WORKLOADS, "Pod", "PersistentVolume"))
"""Kinds whose objects are also found by an image or a claim that they name."""

Look = tuple[str, ...] | tuple[str, Ref]
REST: Look = ("rest",)
"""The look of those who wait for nothing but time."""


class Hands(Protocol):
    """Does what a controller wants done; its answer is the API server's refusal, or None."""

    def __call__(self, act: Act, actor: str, cause: int | None, view: View) -> Refusal | None: ...


class View:
    """The cluster as one controller sees it (`kinds.World`); remembers every look."""

    def __init__(
        self,
        store: Store,
        served: Callable[[str, str], bool],
        indexes: Indexes,
        *,
        worst_case: bool,
        idle: bool = False,
    ) -> None:
        self._store = store
        self._served = served
        self._indexes = indexes
        self._worst_case = worst_case
        self._idle = idle
        self.looks: set[Look] = set()

    def get(self, ref: Ref) -> Body | None:
        self.looks.add(("get", ref))
        return self._store.get(ref)

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        uid = uid_of(owner)
        self.looks.add(("owned", uid, group, kind))
        return [
            body
            for ref, body in self._store.dependents(uid)
            if ref.kind == kind and ref.group == group and _controller_uid(body) == uid
        ]

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        label, value = min(labels.items())
        self.looks.add(("label", group, kind, namespace, label, value))
        found = self._store.labelled((group, kind), namespace, label, value)
        wanted = labels.items()
        return [body for _, body in found if wanted <= (body["metadata"].get("labels") or {}).items()]

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        self.looks.add(("all", group, kind, namespace))
        return self._store.of_kind((group, kind), namespace)

    def content(self, namespace: str) -> list[Body]:
        self.looks.add(("content", namespace))
        return [body for _, body in self._store.content(namespace)]

    def running(self, image: str) -> list[Body]:
        self.looks.add(("image", image))
        return self._found(self._indexes.workloads.get(image, ()))

    def volumes_for(self, claim: Ref) -> list[Body]:
        wanted = (claim, ANY_CLAIM)
        self.looks.update(("volume", name) for name in wanted)
        return self._found(ref for name in wanted for ref in self._indexes.volumes.get(name, ()))

    def using(self, claim: Ref) -> list[Body]:
        self.looks.add(("claim", claim))
        return self._found(self._indexes.users.get(claim, ()))

    def served(self, kind: str, group: str) -> bool:
        self.looks.add(("served", group, kind))
        return self._served(kind, group)

    @property
    def worst_case(self) -> bool:
        return self._worst_case

    @property
    def idle(self) -> bool:
        self.looks.add(REST)
        return self._idle

    def _found(self, refs: Iterable[Ref]) -> list[Body]:
        found = (self._store.get(ref) for ref in sorted(refs))
        return [body for body in found if body is not None]


class Controllers:
    """Every controller of the cluster, waiting for something to do."""

    def __init__(
        self,
        store: Store,
        kinds: dict[tuple[str, str], Kind],
        view: Callable[[], View],
        hands: Hands,
        collect: Callable[[str, int | None, View], None],
    ) -> None:
        self._collect = collect
        self._store = store
        self._kinds = {key: kind for key, kind in kinds.items() if kind.behave is not inert}
        self._silent = kinds.keys() - self._kinds.keys()
        self._view = view
        self._hands = hands
        self._queue: dict[Ref, int | None] = {}
        self._lookers: dict[Look, set[Ref]] = {}
        self._looks: dict[Ref, set[Look]] = {}
        self.indexes = Indexes()
        self.moves = 0
        self.gave_up = False

    def changed(self, ref: Ref, before: Body | None, after: Body | None, cause: int | None) -> None:
        """An object was made, changed or removed: whoever looked at it has something to do."""
        kind = self._kinds.get((ref.group, ref.kind))
        self.indexes.changed(ref, before, after, kind)
        if kind is not None and after is not None:
            self._queue.setdefault(ref, cause)
        for look in _seen_by(ref, before, after):
            for looker in sorted(self._lookers.get(look, ())):
                self._queue.setdefault(looker, cause)

    def rest(self) -> None:
        """Nobody is at work any more: wake whoever waited for that."""
        for looker in sorted(self._lookers.get(REST, ())):
            self._queue.setdefault(looker, None)

    def learn(self, kinds: Iterable[Kind]) -> None:
        """Behave for these kinds too: an operator that a trial describes brings its own."""
        self._kinds.update({(kind.group, kind.kind): kind for kind in kinds})

    def knows(self, kind: str, group: str) -> bool:
        """Whether anything is said here of a kind, be it only that nobody acts on it."""
        return (group, kind) in self._kinds or (group, kind) in self._silent

    def orphaned(self, uid: str, cause: int | None) -> None:
        """The owner with this uid is gone or going: its dependents are garbage, or will be."""
        self._queue.setdefault(Ref(GARBAGE, "", uid), cause)

    def served_changed(self, group: str, kind: str, cause: int | None) -> None:
        for looker in sorted(self._lookers.get(("served", group, kind), ())):
            self._queue.setdefault(looker, cause)

    @property
    def idle(self) -> bool:
        return not self._queue

    def run(self) -> None:
        """Move until nobody has anything to do."""
        while self._queue and not self.gave_up:
            self._round(lambda ref: True)

    def run_some(self, dice: random.Random) -> None:
        """Let chance decide who moves, and when it is enough."""
        while self._queue and dice.random() < 0.7 and self._may_move():
            self._move(dice.choice(sorted(self._queue)))

    def run_for(self, targets: Iterable[Ref]) -> None:
        """Move only what `targets` are, own and need, until none of it has anything to do."""
        wanted = Wanted(self._store, self._looks, self.indexes)
        for target in targets:
            wanted.add(target)
        while self._round(wanted.has, wanted.grow) and not self.gave_up:
            pass

    def outwait(self, refs: Iterable[Ref], seconds: float, passed: Callable[[Ref, int], int | None]) -> dict[Ref, int]:
        """Nobody has anything to do: let time pass until the first deadline of `refs`, unless it is later than this.

        Gives back whose it was, and after how many seconds; `passed` is told before anybody acts on it.
        """
        members = sorted({member for ref in refs for member in self.family(ref)})
        running = [(ref, found) for ref in members if (found := self._deadline(ref)) is not None]
        first = min((found.seconds for _, found in running), default=None)
        if first is None or first > seconds:
            return {}
        late = {ref: found.acts for ref, found in running if found.seconds == first}
        for ref, acts in late.items():
            self._act(acts, self._kinds[ref.group, ref.kind], passed(ref, first), self._view())
        return dict.fromkeys(late, first)

    def lacks(self, ref: Ref) -> set[Ref]:
        """What was looked for on behalf of `ref` and is not there."""
        wanted = Wanted(self._store, self._looks, self.indexes)
        wanted.add(ref)
        return {other for other in wanted.refs if self._store.get(other) is None}

    def family(self, ref: Ref) -> set[Ref]:
        """An object, what it owns, and what that owns."""
        found = {ref}
        pending = [ref]
        while pending:
            body = self._store.get(pending.pop())
            for other, _ in self._store.dependents(uid_of(body)) if body else ():
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    def _round(self, may: Callable[[Ref], bool], moved: Callable[[Ref], None] = lambda ref: None) -> bool:
        """Let everyone who has something to do, and may, move once. Whether anyone did.

        They move in order of names: not in that in which a client that sends several requests at once was heard.
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
        self.gave_up = self.gave_up or self.moves > MOVES_MAX
        return not self.gave_up

    def _move(self, ref: Ref) -> None:
        cause = self._queue.pop(ref)
        view = self._view()
        if ref.kind == GARBAGE:
            self._collect(ref.name, cause, view)
            self._remember(ref, view.looks)
            return
        body = self._store.get(ref)
        kind = self._kinds.get((ref.group, ref.kind))
        if body is not None and kind is not None:
            self._act(kind.behave(body, view), kind, cause, view)
        self._remember(ref, view.looks)

    def _act(self, acts: Acts, kind: Kind, cause: int | None, view: View) -> None:
        answer: Refusal | None = None
        try:
            while True:
                answer = self._hands(acts.send(answer), kind.actor or "controller", cause, view)
        except StopIteration:
            pass

    def _deadline(self, ref: Ref) -> Deadline | None:
        body, kind = self._store.get(ref), self._kinds.get((ref.group, ref.kind))
        if body is None or kind is None or kind.deadline is None:
            return None
        return kind.deadline(body, self._view())

    def _remember(self, ref: Ref, looks: set[Look]) -> None:
        for look in self._looks.pop(ref, set()) - looks:
            self._lookers[look].discard(ref)
        if looks:
            self._looks[ref] = looks
        for look in looks:
            self._lookers.setdefault(look, set()).add(ref)


class Wanted:
    """The objects that some waiting is about: what is waited for, what that owns, and what those need."""

    def __init__(self, store: Store, looks: dict[Ref, set[Look]], indexes: Indexes) -> None:
        self._store = store
        self._looks = looks
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
        """`ref` has moved: it may own and need more now."""
        for other in list(self._next(ref)):
            self.add(other)

    def has(self, ref: Ref) -> bool:
        return ref in self.refs or self._owned_by_wanted(ref)

    def _owned_by_wanted(self, ref: Ref) -> bool:
        if ref.kind == GARBAGE:
            dependents = (other for other, _ in self._store.dependents(ref.name))
            return self._store.by_uid(ref.name) in self.refs or any(other in self.refs for other in dependents)
        body = self._store.get(ref)
        owner = self._store.by_uid(_controller_uid(body)) if body else None
        if owner not in self.refs:
            return False
        self.add(ref)
        return True

    def _next(self, ref: Ref) -> Iterable[Ref]:
        if self._store.get(ref) is None:
            # Whoever leads to what is missing has to move, too.
            yield from sorted(self._indexes.producers.get(ref, ()))
        for look in self._looks.get(ref, ()):
            match look:
                case ("get", Ref() as other):
                    yield other
                case ("owned", uid, group, kind):
                    yield from (r for r, _ in self._store.dependents(str(uid)) if (r.group, r.kind) == (group, kind))
                case ("label", group, kind, namespace, label, value):
                    found = self._store.labelled((group, kind), namespace, label, value)
                    yield from (r for r, _ in found)
                case ("claim", Ref() as claim) if is_terminating(self._store.get(claim) or {}):
                    # A claim that is to go stays until no pod uses it.
                    yield from sorted(self._indexes.users.get(claim, ()))
                case ("image", image):
                    yield from sorted(self._indexes.workloads.get(str(image), ()))
                case ("content", namespace):
                    yield from (r for r, _ in self._store.content(str(namespace)))


def _controller_uid(body: Body) -> str:
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")


def _seen_by(ref: Ref, before: Body | None, after: Body | None) -> Iterable[Look]:
    """Every way in which someone may have looked at this object, or would see it now; always in the same order."""
    looks: dict[Look, None] = {
        ("get", ref): None,
        ("all", ref.group, ref.kind, ref.namespace): None,
        ("all", ref.group, ref.kind, ""): None,
        ("content", ref.namespace): None,
    }
    for body in (before, after):
        if body is None:
            continue
        meta = body["metadata"]
        for owner in meta.get("ownerReferences") or ():
            looks["owned", owner.get("uid", ""), ref.group, ref.kind] = None
        for label, value in (meta.get("labels") or {}).items():
            looks["label", ref.group, ref.kind, ref.namespace, label, value] = None
        if ref.kind in TRACED:
            looks.update((look, None) for look in _traces(body))
    return looks


def _traces(body: Body) -> Iterable[Look]:
    """The ways to an object that lead over what stands in it."""
    yield from (("image", image) for image in running_images(body))
    yield from (("claim", claim) for claim in used_claims(body))
    yield from (("volume", claim) for claim in claim_of_volume(body))
