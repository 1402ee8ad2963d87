"""`pulumi up` and `pulumi destroy`: when each step may start, what follows from failures, and what is deleted last.

Upstream: `pkg/resource/deploy` of Pulumi 3.259 (`step_generator.go`, `deployment_executor.go`). A resource is
registered when its inputs, its parent and what it depends on are done; there is no other order. The first failure
stops new steps. Deletions come after the program, in the reverse order of dependencies, and only if it ended well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from msgspec import structs

from seatrial.engines import Ended
from seatrial.engines.concurrent import Steps
from seatrial.engines.pulumi import messages, steps
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.deciding import Decision, decide
from seatrial.engines.pulumi.helmrelease import install, uninstall, upgrade
from seatrial.engines.pulumi.refreshing import inputs_of
from seatrial.engines.pulumi.replacing import deletes_first, is_replaced_unless_ready
from seatrial.engines.pulumi.together import ResourceSteps, TasksEnd, together
from seatrial.engines.script import NO_ERROR, Answer, Error, Part, Pause, Script
from seatrial.kinds.webhooks import matching
from seatrial.model.program import HELM_RELEASE, Program, Registration, inside_of, is_rendered_after
from seatrial.model.refusal import Failure, Fault, joined
from seatrial.model.resource import Ref, dig, ref_of
from seatrial.readiness.pulumi import timeout_seconds
from seatrial.text.durations import seconds_in

HELM_SECONDS = 300
ALONG = "along"
ANSWER = ("DaemonSet", "Deployment", "Pod", "Service", "StatefulSet")
"""Kinds that can be a webhook backend."""


def up(program: Program, checkpoint: Checkpoint) -> Script:
    """Deploy what a program registers."""
    pace = yield Pause()
    unrendered = yield from _unrendered(program)
    unplanned = [*map(messages.unrendered, unrendered), *_unpermitted(program, checkpoint)]
    if unplanned:
        faults = tuple(Fault("source-not-rendered", urn=one.urn) for one in unrendered)
        return Ended("failed", "\n".join(unplanned), program.warnings, failure=Failure(faults=faults))
    program = yield from _as_rendered(program)
    graph = _Graph(program, checkpoint)
    services = tuple(_services(program))
    before = {state.registration.urn: state.registration for state in checkpoint}
    ending = yield from together(graph.startable, pace=pace, along=services, holds_up=graph.holds_up)
    if ending.failed or ending.stuck:
        known = {one.urn: (one, "update" if one.urn in before else "create") for one in program.registrations}
        return _ended(ending, known | {_key(one): (one, "delete") for one in before.values()}, program.warnings)
    gone = checkpoint.not_in(one.urn for one in program.registrations)
    return (yield from _delete(gone, checkpoint, program.warnings, pace=pace))


def destroy(checkpoint: Checkpoint) -> Script:
    """Delete everything that a stack has."""
    pace = yield Pause()
    if unplanned := list(_protected(checkpoint, ())):
        return Ended("failed", "\n".join(unplanned))
    return (yield from _delete(checkpoint.not_in(()), checkpoint, (), pace=pace))


def _unpermitted(program: Program, checkpoint: Checkpoint) -> Iterator[str]:
    """Errors of the preview before every `up`: the deletion of protected resources."""
    for one in program.registrations:
        decision = decide(one, checkpoint)
        if decision.act == "refuse":
            yield messages.of_resource(one, decision.words)
    yield from _protected(checkpoint, [one.urn for one in program.registrations])


def _protected(checkpoint: Checkpoint, wanted: Collection[str]) -> Iterator[str]:
    for one in (state.registration for state in checkpoint if not state.pending):
        if one.options.protect and one.urn not in wanted:
            yield messages.of_resource(one, f"Preview failed: {messages.protected(one)}")


def _unrendered(program: Program) -> Part[list[Registration]]:
    """Charts that ask the cluster for what is not there yet, which a preview fails with, too.

    A `v4.Chart` is rendered in the preview, and a `v3.Chart` whenever the program runs, whatever they depend on. A
    Release is not: Helm renders it when it is its turn.
    """
    failed = []
    for one in program.registrations:
        if one.unrendered and one.type != HELM_RELEASE and (yield from steps.lacks(one.after)):
            failed.append(one)
    return failed


def _as_rendered(program: Program) -> Part[Program]:
    """The program without the objects that its charts omit, because their CRDs do not exist when they are rendered."""
    inside, omitted = inside_of(program.registrations), set[str]()
    for chart in program.registrations:
        for guarded in chart.guarded if chart.type != HELM_RELEASE else ():
            if not is_rendered_after(program, chart, guarded.crds) and not (yield from steps.serves(guarded.crds)):
                own = inside.get(chart.urn, set())
                omitted |= {one.urn for one in program.registrations if one.urn in own and one.ref == guarded.object}
    if not omitted:
        return program
    left = (one for one in program.registrations if one.urn not in omitted)
    ordered = (
        structs.replace(one, dependencies=tuple(u for u in one.dependencies if u not in omitted)) for one in left
    )
    return structs.replace(program, registrations=tuple(ordered))


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
        self._behind: dict[str, str] = {}
        """What each was last seen to wait for: it is not checked again before that one has ended."""
        self._decided: dict[str, Decision] = {}
        self._replaced: set[str] = set()
        self._condemned: set[str] = set()
        """Resources that are deleted along with replaced ones, and recreated when they are registered."""
        self._defined = {
            (str(dig(body, "spec", "group")), str(dig(body, "spec", "names", "kind"))): ref_of(body, namespaced=False)
            for one in program.registrations
            for body in (one.object or {}, *one.definitions, *one.contents)
            if body.get("kind") == steps.CRD
        }

    def startable(self, ended: set[str], failed: bool) -> list[ResourceSteps]:
        """The steps that may start now; components need none."""
        found: list[ResourceSteps] = []
        moved = not failed
        while moved:
            moved = False
            for urn, one in list(self._pending.items()):
                if (urn in self._behind and self._behind[urn] not in ended) or not self._may_begin(one, ended):
                    continue
                decision = self._decide(one)
                going = [other for other in reversed(decision.along) if _key(other) not in ended]
                if going:
                    found += self._deletion_of(going[0])
                    continue
                del self._pending[urn]
                self._begun.add(urn)
                moved = True
                move = self._move(decision)
                if move is None:
                    ended.add(urn)
                else:
                    found.append(
                        ResourceSteps(urn, move, judges=one.ref is not None and one.ref.group == matching.GROUP)
                    )
        return found

    def holds_up(self, urn: str) -> bool:
        """Whether others cannot begin before this one is done."""
        return any(urn in one.dependencies for one in self._pending.values())

    def _may_begin(self, one: Registration, ended: set[str]) -> bool:
        behind = next((urn for urn in one.dependencies if not self._is_done(urn, ended)), None)
        if behind is not None:
            self._behind[one.urn] = behind
            return False
        parent = self._all.get(one.parent)
        return parent is None or (parent.urn in (ended if parent.custom else self._begun))

    def _is_done(self, urn: str, ended: set[str]) -> bool:
        """A remote component is done when all that is in it is."""
        return urn in ended and self._inside.get(urn, set()) <= ended

    def _decide(self, one: Registration) -> Decision:
        if one.urn not in self._decided:
            replaced = self._replaced | self._condemned
            decision = decide(one, self._checkpoint, self._begun | self._condemned, self._condemned, replaced)
            self._decided[one.urn] = decision
            if decision.act == "replace":
                self._replaced.add(one.urn)
            self._condemned.update(other.urn for other in decision.along)
        return self._decided[one.urn]

    def _deletion_of(self, one: Registration) -> list[ResourceSteps]:
        """The deletion of a resource that will be recreated, unless it has started."""
        if _key(one) in self._begun:
            return []
        self._begun.add(_key(one))
        going = self._condemned | {urn for urn, decision in self._decided.items() if decision.along}
        return [ResourceSteps(_key(one), _pended(one, self._checkpoint, going))]

    def _move(self, decision: Decision) -> Steps[Error] | None:
        one = decision.new
        match decision.act:
            case "leave" | "change" if is_replaced_unless_ready(one) and self._checkpoint.get(one.urn):
                return self._unless_ready(decision)
            case "leave":
                self._checkpoint.put(one)
                return None
            case "refuse" | "fail":
                return _refused(decision.words)
            case "import":
                return self._takeover(one)
            case "read":
                return steps.read(one)
            case "make":
                return self._creation(one)
            case "change":
                return self._change(decision)
            case "replace":
                return self._replacement(decision)

    def _creation(self, one: Registration) -> Steps[Error]:
        if one.type == HELM_RELEASE:
            return install(one, self._checkpoint)
        return steps.create(
            one, self._checkpoint, self._defined.get((one.ref.group, one.ref.kind)) if one.ref else None
        )

    def _takeover(self, one: Registration) -> Steps[Error]:
        """Import an existing object and update it, unless that would replace it."""
        live = yield steps.about(steps.made(one), "get")
        if live.code != 200:
            return Error(messages.missing(one.options.imports), live.failure)
        self._checkpoint.put(structs.replace(one, object=inputs_of(live.body)))
        decision = decide(one, self._checkpoint)
        if decision.act == "leave":
            self._checkpoint.put(one)
            return NO_ERROR
        return (yield from self._change(decision)) if decision.act == "change" else Error(decision.words)

    def _unless_ready(self, decision: Decision) -> Steps[Error]:
        """A Job with replaceUnready is recreated until it has completed, changed or not."""
        one, state = decision.new, self._checkpoint.get(decision.new.urn)
        assert state is not None
        live = yield steps.about(steps.made(state.registration), "get")
        if live.code == 200 and not (yield from steps.is_content(live.body)):
            again = Decision("replace", one, state.registration, first=deletes_first(state.registration, one))
            return (yield from self._replacement(again))
        if decision.act == "change":
            return (yield from self._change(decision))
        self._checkpoint.put(one)
        return NO_ERROR

    def _change(self, decision: Decision) -> Steps[Error]:
        one = decision.new
        if one.type == HELM_RELEASE:
            return upgrade(one, self._checkpoint)
        return steps.update(one, self._checkpoint)

    def _replacement(self, decision: Decision) -> Steps[Error]:
        """Replace an object; the old one is deleted first if both have one name, otherwise at the end."""
        new, old = decision.new, decision.old
        assert old is not None
        if decision.first and not decision.gone:
            error = yield from _pended(old, self._checkpoint, {old.urn})
            if error:
                return error
        error = yield from self._creation(new)
        state = self._checkpoint.get(new.urn)
        if not decision.first and state is not None and state.registration is new:
            self._checkpoint.replaced(old)
        return error


def _refused(words: str) -> Steps[Error]:
    yield from ()
    return Error(words)


def _pended(one: Registration, checkpoint: Checkpoint, going: Set[str]) -> Steps[Error]:
    """Delete a resource that will be recreated."""
    error = yield from _gone(one, checkpoint, going - {one.urn})
    if not error:
        checkpoint.pend(one.urn)
    return error


def _gone(one: Registration, checkpoint: Checkpoint, going: Set[str]) -> Steps[Error]:
    """Delete a resource, unless it is retained, or assumed to be deleted with another (deletedWith)."""
    if one.reads or one.options.retain_on_delete or one.options.deleted_with in going:
        return NO_ERROR
    return (yield from uninstall(one, checkpoint) if one.type == HELM_RELEASE else steps.delete(one))


def _delete(gone: list[Registration], checkpoint: Checkpoint, warnings: tuple[str, ...], *, pace: Answer) -> Script:
    """Delete resources in reverse dependency order, all of one depth concurrently."""
    going = {one.urn for one in gone}
    for turn in _turns(gone, pace=pace):
        known = {f"{one.urn} {index}": one for index, one in enumerate(turn)}
        jobs = [ResourceSteps(key, _deletion(one, checkpoint, going)) for key, one in known.items()]
        once = iter((jobs,))
        ending = yield from together(lambda ended, failed, once=once: next(once, []), pace=pace)  # type: ignore[misc]
        if ending.failed or ending.stuck:
            return _ended(ending, {key: (one, "delete") for key, one in known.items()}, warnings)
    return Ended("ok", "", warnings)


def _turns(gone: list[Registration], *, pace: Answer) -> Iterator[list[Registration]]:
    """What is deleted at once. Pulumi does so many at a time, in the order of chance; on a slow cluster one by one.

    There those come first whom others ask, and last those on whose behalf they are asked: the worst that may happen.
    """
    for depth in reversed(_by_depth(gone)):
        if not pace.quick:
            yield from ([one] for one in sorted(depth, key=_asked_for))
        else:
            yield depth


def _asked_for(one: Registration) -> int:
    if one.ref is None:
        return 0
    if one.ref.group == matching.GROUP:
        return 3
    return 2 if one.ref.kind == steps.CRD else 0 if one.ref.kind in ANSWER else 1


def _by_depth(gone: list[Registration]) -> list[list[Registration]]:
    """Those that depend on no other of them, then those that depend on these alone, and so on: `ScheduleDeletes`.

    A resource without dependents is not deleted earlier for that: it is deleted with all others of its depth.
    """
    inside = inside_of(gone)
    known: dict[str, list[int]] = {}
    for index, one in enumerate(gone):
        known.setdefault(one.urn, []).append(index)
    needs = {
        index: [other for urn in _needs(one, inside) for other in known.get(urn, ())] for index, one in enumerate(gone)
    }
    order = TopologicalSorter(needs)
    with suppress(CycleError):  # Those that need each other go last, and at once.
        order.prepare()
    found = []
    while free := order.get_ready():
        order.done(*free)
        found.append(sorted(free))
    done = {index for depth in found for index in depth}
    found.append([index for index in needs if index not in done])
    return [[gone[index] for index in depth] for depth in found if depth]


def _needs(one: Registration, inside: dict[str, set[str]]) -> set[str]:
    """Whom a resource comes after; a component on which it depends stands for all that is in it."""
    named = {*one.dependencies, *(urn for urns in one.property_dependencies.values() for urn in urns)}
    within = {urn for other in named for urn in inside.get(other, ())}
    return {*named, *within, one.parent, one.provider, one.options.deleted_with} - {"", one.urn}


def _deletion(one: Registration, checkpoint: Checkpoint, going: set[str]) -> Steps[Error]:
    error = yield from _gone(one, checkpoint, going)
    if not error:
        checkpoint.drop(one)
    return error


def _key(one: Registration) -> str:
    """The key of the deletion of a resource that the same run recreates."""
    return f"{one.urn} {ALONG}"


def _patience(one: Registration, act: str) -> int:
    """For how many seconds Pulumi waits: by the option, else by the annotation of the object, else ten minutes."""
    options = one.options
    said = {"create": options.create_timeout, "update": options.update_timeout, "delete": options.delete_timeout}[act]
    if said:
        return int(seconds_in(said) or 0)
    if one.type == HELM_RELEASE:
        return int(one.inputs.get("timeout") or HELM_SECONDS)
    return timeout_seconds(one.object or {}, deleted=act == "delete")


def _ended(ending: TasksEnd, known: dict[str, tuple[Registration, str]], warnings: tuple[str, ...]) -> Ended:
    """How it ended, given whose each step is and what it does."""
    if ending.failed:
        failed = [(known[key][0] if key in known else None, error) for key, error in ending.failed]
        words = [messages.of_resource(one, error.words) if one else error.words for one, error in failed]
        faults = (Fault("not-deployed", one.ref, urn=one.urn) for one, _ in failed if one)
        failure = joined(Failure(faults=tuple(faults)), *(error.failure for _, error in failed))
        return Ended("failed", "\n".join(words), warnings, failure=failure)
    if ending.stuck is not None:
        waiting = [known[key] for key in ending.waiting if key in known]
        seconds = max((_patience(one, act) for one, act in waiting), default=0)
        names = ", ".join(f"{one.type} ({one.name})" for one, _ in waiting)
        after = f"Pulumi times out after {seconds} seconds on {names}"
        return Ended("hung", f"{ending.stuck.sentence}. {after}", warnings, ending.stuck)
    return Ended("ok", "", warnings)
