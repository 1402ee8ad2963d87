"""Apply objects in the order of their graph, each after what it needs is usable. Changes the cluster.

Every write is a server-side apply, so that a run that was killed can be repeated: it applies the same objects in the
same order, and waits for the same things. Nothing is kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from seatrial import __version__
from seatrial.engines.kubectl import applyset
from seatrial.engines.kubectl.applyset import PREFIX, Kinds, Parent
from seatrial.engines.script import Part
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.live import words
from seatrial.live.client import Client, is_secret, partial_of, path_of
from seatrial.live.commands import MemberCommands
from seatrial.live.fetching import Fetching
from seatrial.live.order import ApplyGate, ApplyOrder, ApplyStep
from seatrial.live.seen import Seen
from seatrial.live.stuck import ChainLink, explained
from seatrial.live.transport import LiveRequest, RefusedRequest
from seatrial.live.usable import (
    USABLE,
    Verdict,
    joined,
    lacks,
    object_usable,
    secret_usable,
    service_usable,
    webhook_usable,
)
from seatrial.live.waiting import wait_for
from seatrial.live.wanted import Target
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, metadata, ref_of, with_metadata

MANAGER = "seatrial"
SET_MANAGER = "seatrial-applyset"
TOOLING = f"seatrial/v{__version__}"
ATTEMPTS_MAX = 5
"""Of one object, while a webhook that is called for it does not answer."""
RETRIES = 2
REFUSED_FOR_GOOD = (400, 403, 404, 409, 413, 422)
"""What waiting does not help against. A webhook that does not answer is a 500."""
NOT_COMPARED = ("managedFields", "resourceVersion", "generation")

State = Literal["create", "update", "unchanged", "unknown", "refused"]

_WEBHOOK = lazy_re.compile(r'failed calling webhook "(?P<name>[^"]+)"')


class Planned(Struct, frozen=True):
    """What an apply would do with an object, by a dry run."""

    step: ApplyStep
    state: State
    why: str = ""


class ApplyResult(Struct, frozen=True):
    applied: tuple[Ref, ...]
    pruned: tuple[Ref, ...] = ()
    failed: Ref | None = None
    says: str = ""
    """Why the run stopped; empty if everything was applied and is usable."""
    links: tuple[ChainLink, ...] = ()
    """From the object that failed to the one at the root."""
    notes: tuple[str, ...] = ()


class ApplySettings(Struct, frozen=True):
    seconds: float = 300.0
    """For each wait."""
    force: bool = False
    """Take over fields that others manage."""
    wait: bool = True
    """Whether to wait for all objects in the end."""
    parent: Parent | None = None
    prune: bool = False


Report = Callable[[str], None]
T = TypeVar("T")


def parent_of(name: str, namespace: str) -> Parent:
    """The Secret by which an apply set of seatrial is known."""
    given = applyset.parent_of(name, namespace)
    return Parent(given.kind, given.name, given.namespace, TOOLING, SET_MANAGER)


def plan(order: ApplyOrder, client: Client, options: ApplySettings) -> list[Planned]:
    """Every object by a dry run. What this very input brings about first cannot be tried yet."""
    return [_planned(step, _marked(step.resource.body, options), client, options) for step in order.steps]


def run(order: ApplyOrder, fetching: Fetching, options: ApplySettings, report: Report = lambda _: None) -> ApplyResult:
    """Apply all objects. Stops at the first one that fails, or whose needs do not become usable in time."""
    running = _Run(fetching, options, report)
    try:
        return running.all(order)
    except _Stopped as stopped:
        links = explained(stopped.ref, fetching)
        return ApplyResult(tuple(running.applied), (), stopped.failed, str(stopped), links, tuple(running.notes))


class _Stopped(Exception):
    def __init__(self, failed: Ref, says: str, ref: Ref | None) -> None:
        super().__init__(says)
        self.failed = failed
        self.ref = ref


class _Run:
    """State over time: what was applied so far, and the apply set."""

    def __init__(self, fetching: Fetching, options: ApplySettings, report: Report) -> None:
        self.applied: dict[Ref, Body] = {}
        self.notes: dict[str, None] = {}
        self._fetching = fetching
        self._client = fetching.client
        self._options = options
        self._report = report
        self._kinds: Kinds | None = None
        self._members = MemberCommands(self._client, options.parent, MANAGER) if options.parent else None

    def all(self, order: ApplyOrder) -> ApplyResult:
        home = Ref("Namespace", "", self._options.parent.namespace) if self._options.parent else None
        steps = sorted(order.steps, key=lambda step: step.ref != home)
        bodies = [_marked(step.resource.body, self._options) for step in steps]
        for step, body in zip(steps, bodies, strict=True):
            if step.ref != home:  # Only the namespace of an apply set is applied before it is written down.
                self._begin(bodies)
            self._pass(step)
            self._report(f"apply {step.ref}")
            self._apply(step, body)
        if self._options.wait:
            self._wait_for_all(order)
        pruned = self._finish(bodies)
        return ApplyResult(tuple(self.applied), pruned, notes=tuple(self.notes))

    def _begin(self, bodies: Sequence[Body]) -> None:
        """Write down which kinds and namespaces the members have, before the first is applied."""
        if self._members is not None and self._kinds is None:
            self._kinds = self._of_the_set(applyset.begin(self._members.parent, bodies))

    def _finish(self, bodies: Sequence[Body]) -> tuple[Ref, ...]:
        """Delete the members that are not in the input any more."""
        if self._members is None or not self._options.prune:
            return ()
        self._begin(bodies)
        assert self._kinds is not None
        self._report("prune")
        self._of_the_set(applyset.finish(self._members.parent, list(self.applied.values()), self._kinds))
        return tuple(ref_of(body) for body in self._members.deleted)

    def _of_the_set(self, part: Part[T]) -> T:
        assert self._members is not None
        parent = self._members.parent
        try:
            return self._members.run(part)
        except RefusedRequest as refused:
            raise _Stopped(Ref(parent.kind, parent.namespace, parent.name), _refusal(refused), None) from None

    def _pass(self, step: ApplyStep) -> None:
        """Wait for what an object needs, and until an object of its name that is being deleted is gone."""
        self._wait(step.ref, [Target(str(step.ref), _not_terminating(step.ref))])
        if not step.gates:
            return
        for gate in step.gates:
            self._report(f"  wait for {gate.object}: {gate.why}")
        self._wait(step.ref, [Target(str(gate.object), _look(gate)) for gate in step.gates])

    def _wait_for_all(self, order: ApplyOrder) -> None:
        self._report("wait for all objects")
        self._wait(None, [Target(str(ref), _usable(ref)) for ref in self.applied])

    def _wait(self, user: Ref | None, targets: Sequence[Target]) -> None:
        self._fetching.allow(self._options.seconds)
        for one in (progress := wait_for(targets, self._fetching)):
            self.notes |= dict.fromkeys(one.verdict.notes)
        missing = [one for one in progress if not one.verdict.usable]
        if not missing:
            return
        first = next((one.verdict for one in missing if one.verdict.final), missing[0].verdict)
        failed = user or first.object
        assert failed is not None
        raise _Stopped(
            failed, first.missing if user is None else f"it needs {missing[0].target}: {first.missing}", first.object
        )

    def _apply(self, step: ApplyStep, body: Body) -> None:
        for attempt in range(ATTEMPTS_MAX):
            if self._client.kind_of(body) is None:
                self._client.served(again=True)
            try:
                reply = self._client.apply(body, MANAGER, force=self._options.force, retries=RETRIES).body
            except CannotContinue as why:
                raise _Stopped(step.ref, str(why), None) from None
            except RefusedRequest as refused:
                called = _WEBHOOK.search(refused.refusal.message)
                if called is None or attempt == ATTEMPTS_MAX - 1:
                    raise _Stopped(step.ref, _refusal(refused), None) from None
                self._report(f"  wait for webhook {called['name']}: {refused.refusal.message}")
                self._wait(step.ref, [Target(f"webhook/{called['name']}", _webhook(called["name"]))])
                continue
            kind = self._client.kind_of(body)
            assert kind is not None
            kept = partial_of(reply, kind) if is_secret(kind) else reply
            self.applied[step.ref] = kept
            self._fetching.seen.wrote(kept)
            return


def _marked(body: Body, options: ApplySettings) -> Body:
    """An object as a member of the apply set, if there is one."""
    return options.parent.marked(body) if options.parent else body


def prunable(client: Client, parent: Parent, order: ApplyOrder) -> list[Ref]:
    """Members of the apply set that are not in the input: what pruning deletes."""
    members = MemberCommands(client, parent, MANAGER)
    kept = {step.ref for step in order.steps}
    return sorted(ref for body in members.all() if (ref := ref_of(body)) not in kept)


def check_parent(client: Client, parent: Parent) -> None:
    """Refuse a parent that is not ours, as kubectl does."""
    kind = client.served().find("", parent.kind)
    assert kind is not None
    body = client.get(kind, parent.namespace, parent.name, metadata_only=True)
    if body is None:
        return
    where = f"{parent.kind}/{parent.namespace}/{parent.name}"
    tooling = str(annotations_of(body).get(f"{PREFIX}/tooling") or "")
    if tooling.rpartition("/")[0] != TOOLING.rpartition("/")[0]:
        owner = f"an apply set of {tooling}" if tooling else "no apply set"
        raise CannotContinue(f"--applyset {parent.name}: {where} exists and is {owner}; choose another name")
    if labels_of(body).get(f"{PREFIX}/id") != parent.id:
        raise CannotContinue(
            f"--applyset {parent.name}: {where} has another id than the name says; choose another name"
        )


def _planned(step: ApplyStep, body: Body, client: Client, options: ApplySettings) -> Planned:
    kind = client.kind_of(body)
    brought = [
        gate for gate in step.gates if gate.why in ("its CRD", "its namespace", "a webhook that is called for it")
    ]
    if kind is None:
        if any(gate.why == "its CRD" for gate in brought):
            return Planned(step, "unknown", "its CRD is applied first")
        return Planned(step, "refused", f"the cluster does not serve {body.get('kind')} in {body.get('apiVersion')}")
    try:
        after = client.apply(body, MANAGER, force=options.force, dry_run=True, retries=RETRIES).body
    except RefusedRequest as refused:
        if brought:
            why = f"{brought[0].why} is applied first" if refused.code == 404 else _refusal(refused)
            return Planned(step, "unknown", why)
        return Planned(step, "refused" if refused.code in REFUSED_FOR_GOOD else "unknown", _refusal(refused))
    home = str(metadata(body).get("namespace") or "") if kind.namespaced else ""
    try:
        before = client.transport.send(LiveRequest("GET", path_of(kind, home, step.ref.name))).body
    except RefusedRequest as refused:
        return Planned(step, "create" if refused.code == 404 else "unknown")
    return Planned(step, "unchanged" if _compared(before) == _compared(after) else "update")


def _compared(body: Body) -> Body:
    return with_metadata(body, **dict.fromkeys(NOT_COMPARED))


def _refusal(refused: RefusedRequest) -> str:
    conflicts = [cause for cause in refused.refusal.causes if cause.reason == "FieldManagerConflict"]
    if not conflicts:
        return refused.refusal.message
    fields = ", ".join(f"{cause.field} ({cause.message})" for cause in conflicts[:3])
    more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
    return f"others manage {fields}{more}; --force-conflicts takes these fields over"


def _look(gate: ApplyGate) -> Callable[[Seen], Verdict]:
    if gate.endpoints:
        return lambda seen: joined([object_usable(gate.object, seen), service_usable(gate.object, seen)])
    if gate.key and gate.object.kind == "Secret":
        return lambda seen: secret_usable(gate.object, seen, (gate.key,))
    return _usable(gate.object)


def _usable(ref: Ref) -> Callable[[Seen], Verdict]:
    return lambda seen: object_usable(ref, seen)


def _not_terminating(ref: Ref) -> Callable[[Seen], Verdict]:
    def look(seen: Seen) -> Verdict:
        body = seen.get(ref)
        return lacks(words.state(body), ref) if body is not None and is_terminating(body) else USABLE

    return look


def _webhook(name: str) -> Callable[[Seen], Verdict]:
    return lambda seen: webhook_usable(name, seen)
