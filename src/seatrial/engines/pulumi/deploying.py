"""`pulumi up` and `pulumi destroy`: which step may begin when, what becomes of failures, and what is deleted last.

Upstream: `pkg/resource/deploy` of Pulumi 3.259 (`step_generator.go`, `deployment_executor.go`). A resource is
registered when its inputs, its parent and what it depends on are done; there is no other order. The first failure
stops new steps. Deletions come after the program, in the reverse order of dependencies, and only if it ended well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.engines import Ended
from seatrial.engines.durations import seconds_in
from seatrial.engines.pulumi import messages, steps
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.helmrelease import install, uninstall, upgrade
from seatrial.engines.pulumi.replacing import deletes_first, replaces, without_ignored
from seatrial.engines.pulumi.steps import Move
from seatrial.engines.pulumi.together import Ending, Job, together
from seatrial.engines.script import Part, Pause, Script
from seatrial.kinds import webhook_rules
from seatrial.readiness.pulumi import timeout_seconds
from seatrial.registration import HELM_RELEASE, Program, Registration, inside_of
from seatrial.resource import Ref, dig, ref_of

HELM_SECONDS = 300


def up(program: Program, checkpoint: Checkpoint) -> Script:
    """Bring the cluster to what a program registers."""
    slow = (yield Pause()).code == 204
    unplanned = yield from _planned(program)
    if unplanned:
        return Ended("failed", "\n".join(unplanned), program.warnings)
    graph = _Graph(program, checkpoint)
    services = tuple(_services(program))
    known = {state.registration.urn for state in checkpoint}
    ending = yield from together(graph.startable, slow=slow, along=services, holds_up=graph.holds_up)
    if ending.failed or ending.stuck:
        patience = {
            one.urn: _patience(one, "update" if one.urn in known else "create") for one in program.registrations
        }
        return _ended(ending, program.registrations, program.warnings, patience)
    gone = checkpoint.not_in(one.urn for one in program.registrations)
    ending = yield from _delete(gone, checkpoint, slow=slow)
    return _ended(ending, gone, program.warnings, {one.urn: _patience(one, "delete") for one in gone})


def destroy(checkpoint: Checkpoint) -> Script:
    """Delete everything that a stack has."""
    slow = (yield Pause()).code == 204
    gone = checkpoint.not_in(())
    ending = yield from _delete(gone, checkpoint, slow=slow)
    return _ended(ending, gone, (), {one.urn: _patience(one, "delete") for one in gone})


def _planned(program: Program) -> Part[list[str]]:
    """What a preview fails with, which comes before every `up`: charts that ask the cluster for what is not there yet.

    A `v4.Chart` is rendered in the preview, and a `v3.Chart` whenever the program runs, whatever they depend on. A
    Release is not: Helm renders it when it is its turn.
    """
    failed = []
    for one in program.registrations:
        if one.unrendered and one.type != HELM_RELEASE and (yield from steps.lacks(one)):
            failed.append(messages.unrendered(one))
    return failed


def _services(program: Program) -> Iterator[Ref]:
    for one in program.registrations:
        for body in (one.object, *one.contents):
            if body is not None and body.get("kind") == "Service" and body.get("apiVersion") == "v1":
                yield ref_of(body, namespace="default")


class _Graph:
    """The registrations of a program that have not begun, and what each waits for."""

    def __init__(self, program: Program, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._pending = {one.urn: one for one in program.registrations}
        self._all = dict(self._pending)
        self._inside = inside_of(program.registrations)
        self._begun: set[str] = set()
        self._defined = {
            (str(dig(one.object, "spec", "group")), str(dig(one.object, "spec", "names", "kind"))): one.ref
            for one in program.registrations
            if one.ref and one.ref.kind == steps.CRD
        }

    def startable(self, ended: set[str], failed: bool) -> list[Job]:
        """The steps that may begin now; components begin and are done without one."""
        found: list[Job] = []
        moved = not failed
        while moved:
            moved = False
            for urn, one in list(self._pending.items()):
                if not self._may_begin(one, ended):
                    continue
                del self._pending[urn]
                self._begun.add(urn)
                moved = True
                move = self._move(one)
                if move is None:
                    ended.add(urn)
                else:
                    found.append(Job(urn, move, judges=one.ref is not None and one.ref.group == webhook_rules.GROUP))
        return found

    def holds_up(self, urn: str) -> bool:
        """Whether others cannot begin before this one is done."""
        return any(urn in one.dependencies for one in self._pending.values())

    def _may_begin(self, one: Registration, ended: set[str]) -> bool:
        if not all(self._is_done(urn, ended) for urn in one.dependencies):
            return False
        parent = self._all.get(one.parent)
        return parent is None or (parent.urn in (ended if parent.custom else self._begun))

    def _is_done(self, urn: str, ended: set[str]) -> bool:
        """A remote component is done when all that is in it is."""
        return urn in ended and self._inside.get(urn, set()) <= ended

    def _move(self, one: Registration) -> Move[str] | None:
        state = self._checkpoint.get(one.urn)
        if one.type == HELM_RELEASE:
            return _of_release(one, self._checkpoint)
        ref = one.ref
        if one.object is None or ref is None:
            self._checkpoint.put(one)
            return None
        if one.reads:
            return steps.read(one)
        if state is None or state.registration.object is None:
            return steps.create(one, self._checkpoint, self._defined_by(ref))
        one = without_ignored(state.registration, one)
        if state.registration.object == one.object and not state.unready:
            self._checkpoint.put(one)
            return None
        if replaces(state.registration, one):
            return _replace(state.registration, one, self._checkpoint, self._defined_by(ref))
        return steps.update(one, self._checkpoint)

    def _defined_by(self, ref: Ref) -> Ref | None:
        return self._defined.get((ref.group, ref.kind))


def _of_release(one: Registration, checkpoint: Checkpoint) -> Move[str] | None:
    state = checkpoint.get(one.urn)
    if state is None:
        return install(one, checkpoint)
    if state.registration.contents == one.contents and not state.unready:
        checkpoint.put(one)
        return None
    return upgrade(state.registration, one, checkpoint)


def _replace(old: Registration, new: Registration, checkpoint: Checkpoint, defined_by: Ref | None) -> Move[str]:
    """A new object in the place of the old one, which goes at once where both have one name, and else at the end."""
    if old.options.protect and new.options.protect:
        return messages.not_replaced(new)
    if deletes_first(old, new):
        words = yield from steps.delete(old, checkpoint)
        if words:
            return words
        return (yield from steps.create(new, checkpoint, defined_by))
    words = yield from steps.create(new, checkpoint, defined_by)
    checkpoint.replaced(old)
    return words


def _delete(gone: Iterable[Registration], checkpoint: Checkpoint, *, slow: bool) -> Part[Ending]:
    """Delete resources in the reverse order of dependencies: first those that nobody depends on."""
    left = list(gone)
    going = {one.urn for one in left}
    while left:
        needed = {urn for one in left for urn in _needs(one)}
        free = [one for one in left if one.urn not in needed] or left
        jobs = [Job(f"{one.urn} {index}", _deletion(one, checkpoint, going)) for index, one in enumerate(free)]
        once = iter((jobs,))
        ending = yield from together(lambda ended, failed, once=once: next(once, []), slow=slow)  # type: ignore[misc]
        if ending.failed or ending.stuck:
            return ending
        left = [one for one in left if one not in free]
    return Ending()


def _needs(one: Registration) -> Iterator[str]:
    yield from one.dependencies
    yield from filter(None, (one.parent, one.options.deleted_with))


def _deletion(one: Registration, checkpoint: Checkpoint, going: set[str]) -> Move[str]:
    if one.options.protect:
        return messages.protected(one)
    if one.options.deleted_with in going:  # It is taken to go with the other, and nobody looks whether it does.
        checkpoint.drop(one)
        return ""
    return (yield from (uninstall if one.type == HELM_RELEASE else steps.delete)(one, checkpoint))


def _patience(one: Registration, act: str) -> int:
    """For how many seconds Pulumi waits: by the option, else by the annotation of the object, else ten minutes."""
    options = one.options
    said = {"create": options.create_timeout, "update": options.update_timeout, "delete": options.delete_timeout}[act]
    if said:
        return int(seconds_in(said) or 0)
    if one.type == HELM_RELEASE:
        return int(one.inputs.get("timeout") or HELM_SECONDS)
    return timeout_seconds(one.object or {})


def _ended(ending: Ending, known: Iterable[Registration], warnings: tuple[str, ...], patience: dict[str, int]) -> Ended:
    by_urn = {one.urn: one for one in known}
    if ending.failed:
        words = [
            messages.of_resource(by_urn[key], said) if (key := urn.partition(" ")[0]) in by_urn else said
            for urn, said in ending.failed
        ]
        return Ended("failed", "\n".join(words), warnings)
    if ending.stuck is not None:
        waiting = [by_urn[key] for urn in ending.waiting if (key := urn.partition(" ")[0]) in by_urn]
        seconds = max((patience[one.urn] for one in waiting), default=0)
        names = ", ".join(f"{one.type} ({one.name})" for one in waiting)
        after = f"Pulumi would give up on {names} after {seconds} seconds"
        return Ended("hung", f"{ending.stuck.sentence}. {after}", warnings, ending.stuck)
    return Ended("ok", "", warnings)
