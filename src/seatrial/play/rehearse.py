"""Rehearses one trial with one engine under one schedule, and records it. Decides nothing about hazards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster import controllers
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.death import Death, Killed
from seatrial.cluster.server.http import ApiServer
from seatrial.cluster.server.transcript import ReplayDiffers, Transcript
from seatrial.cluster.touched import Touches
from seatrial.engines import Ended, Stalled
from seatrial.engines.act import Act, Apply, HelmAct, Invocation, RealControllers, Reconcile, Sync, Up
from seatrial.engines.engine import Before, Engine, PlannedStep, Scene, SeenByCluster, load
from seatrial.engines.script import Answer, Render, play
from seatrial.helm import records as helmrecords
from seatrial.helm.versions import CRDS_NOT_AWAITED
from seatrial.kinds.operators.olm import is_installed
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.engine import Action
from seatrial.model.errors import CannotContinue, TryAgain
from seatrial.model.mix import Mix, Pacing
from seatrial.model.refusal import joined, renumbered
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig, labels_of, metadata, uid_of
from seatrial.model.timeline import Event, Outcome, Rehearsal, Schedule, StepResult, renumbered_result
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play import timed_out_hooks
from seatrial.play.embedded_helm import writes_of
from seatrial.play.fields_left import Contents
from seatrial.play.heard import Heard, Recorded, Replays
from seatrial.play.in_process import InProcess
from seatrial.play.over_http import OverHttp, refuse_environment
from seatrial.play.prerequisites import HELM, assume, put_deployed, restore
from seatrial.play.rendering import copy_for, rendered_on

USER = "user"
CRDS = frozenset((("apiextensions.k8s.io", "CustomResourceDefinition"),))
Steps = tuple[PlannedStep[Any], ...]
MADE_BY_THE_CLUSTER = frozenset(
    ("Event", "Endpoints", "EndpointSlice", "Lease", "Node", "ControllerRevision", "PersistentVolume")
)
LOOKED_INTO = frozenset((("", "Pod"), ("apps", "ReplicaSet"), ("", "Namespace")))
"""Kinds that Helm needs by itself: it reads pods while it waits, and writes what `--create-namespace` asks for."""
TRIES_MAX = 3
BETWEEN_STEPS_SECONDS = 300.0
"""How long after a step the next one follows: long enough for scripts that sleep, and for short TTLs."""


def rehearse(
    plan: Plan,
    schedule: Schedule,
    *,
    seed: int = 0,
    mix: Mix | None = None,
    heard: Heard | None = None,
    observe: Callable[[Touches], None] | None = None,
    contents: dict[int, Contents] | None = None,
) -> Rehearsal:
    """Rehearse `plan`, replaying recorded requests instead of running Helm while the answers stay the same.

    Starts again where an answer differs, or if the engine itself locked up, which does not change the result.
    `observe` gets what was read and written by whom, at the end; `contents` the objects after each step.
    """
    pacing = Pacing(schedule, seed, mix)
    replays, tries = Replays(heard or Heard()), 0
    while True:
        try:
            return _rehearsed(plan, pacing, replays, observe, contents)
        except ReplayDiffers:
            continue
        except Stalled as why:
            tries += 1
            if tries == TRIES_MAX:
                raise TryAgain(f"{why}, {TRIES_MAX} times in a row: try again") from why


def _rehearsed(
    plan: Plan,
    pacing: Pacing,
    replays: Replays,
    observe: Callable[[Touches], None] | None = None,
    contents: dict[int, Contents] | None = None,
) -> Rehearsal:
    """Rehearse `plan` on its own cluster, or on several if it rebuilds."""
    replays.begin()
    results: list[StepResult] = []
    timeline: list[Event] = []
    not_modelled: set[str] = set()
    for first, steps in _clusters(plan.steps):
        cluster = Cluster(plan.kube_version, pacing.schedule, pacing.seed, mix=pacing.mix)
        cluster.discovery.unlist(_unneeded(plan))
        restore(cluster, plan.found, plan.case.before)
        assume(cluster, plan.assumed, plan.created_namespaces)
        cluster.provision.brought, cluster.provision.heralds = _brought(plan.case), plan.heralds
        if plan.repairs:
            cluster.repair(plan.repairs, dict(_definitions(plan)))
        if not first:
            put_deployed(cluster, plan.deployed, server_side=plan.server_side)
        stage = _Stage(cluster, plan, {}, replays)
        cluster.controllers.touches.records = observe is not None
        ended = []
        for index, planned in enumerate(steps, start=first):
            if index > first and plan.steps[index - 1].step.settle:
                cluster.pass_time(BETWEEN_STEPS_SECONDS)
            ended.append(_play(stage, index, planned))
            if contents is not None:
                contents[index] = {ref: body for ref, body in cluster.store if is_written(ref, body)}
        if observe is not None:
            observe(cluster.controllers.touches)
        results.extend(_placed(ended, cluster.recorder.places(), len(timeline)))
        timeline.extend(_moved(cluster.timeline(), len(timeline)))
        not_modelled.update(_not_modelled(cluster))
    engine = load(plan.engine.name)
    return Rehearsal(
        plan.engine,
        pacing.schedule,
        tuple(results),
        tuple(timeline),
        tuple(sorted(not_modelled)),
        label=engine.label,
        actors=engine.actors,
        repaired=plan.repairs.names,
    )


def _brought(case: Case) -> dict[tuple[Ref, bool], tuple[Body, ...]]:
    """By who brings it, and whether early."""
    found: dict[tuple[Ref, bool], tuple[Body, ...]] = {}
    for one in case.brought:
        found[one.by, one.early] = (*found.get((one.by, one.early), ()), one.resource.body)
    return found


def _definitions(plan: Plan) -> Iterator[tuple[tuple[str, str], Body]]:
    """The CRDs of the releases, by group and kind."""
    for resource in plan.case.all_resources():
        if resource.ref.kind == "CustomResourceDefinition":
            spec = resource.body.get("spec")
            yield (str(dig(spec, "group")), str(dig(spec, "names", "kind"))), resource.body


def _unneeded(plan: Plan) -> frozenset[tuple[str, str]]:
    """Built-in kinds that no Helm action needs: Helm re-reads every listed kind for every object.

    None where a template asks what there is, or where it is not known what Helm will deploy.
    """
    rendered = [step for step in plan.steps if isinstance(step.act, HelmAct) and step.act.chart]
    if plan.engine.name != HELM or any(step.act.asks or step.release is None for step in rendered):
        return frozenset()
    releases = (plan.case.before, *plan.case.releases, *(release for _, release in plan.revisions))
    written = (r for release in releases if release for r in (*release.resources, *release.crds))
    return frozenset(CATALOGUE) - LOOKED_INTO - {(resource.ref.group, resource.ref.kind) for resource in written}


class _Stage(Struct, frozen=True):
    """Where steps are rehearsed."""

    cluster: Cluster
    plan: Plan
    memories: dict[str, Any]
    """By engine: what each remembers of this cluster; its real client, in a form of its own."""
    replays: Replays

    def memory(self, engine: Engine[Any]) -> Any:
        if engine.name not in self.memories:
            before = Before((*self.plan.found, *self.plan.assumed), self.plan.case.before, self.plan.revisions)
            self.memories[engine.name] = engine.memory(before)
        return self.memories[engine.name]


def _clusters(steps: Steps) -> Iterator[tuple[int, Steps]]:
    """Runs of steps that share a cluster, with the place of the first of each."""
    starts = [0, *(i for i, planned in enumerate(steps) if i and planned.step.fresh), len(steps)]
    return ((start, steps[start:end]) for start, end in pairwise(starts))


def _placed(results: Iterable[StepResult], places: dict[int, int], after: int) -> Iterator[StepResult]:
    """Steps whose events stand at these places of a timeline that follows that of an earlier cluster."""
    return (renumbered_result(result, lambda index: places[index] + after) for result in results)


def _moved(events: Iterable[Event], by: int) -> Iterator[Event]:
    """Events that follow those of an earlier cluster."""
    for event in events:
        cause = None if event.cause is None else event.cause + by
        failure = renumbered(event.failure, by.__add__)
        yield replace(event, index=event.index + by, cause=cause, failure=failure) if by else event


def _play(stage: _Stage, index: int, planned: PlannedStep[Any]) -> StepResult:
    cluster, step, engine = stage.cluster, planned.step, load(planned.by)
    action = engine.action(step.action)
    assert action is not None
    cluster.recorder.begin(index, engine.name, action.unordered)
    before = _people_wrote(cluster)
    ended = _killed(stage, index, planned) if step.kill else _run(stage, index, planned)
    if step.settle:
        cluster.settle()
    again = _again(stage, index, planned) if _is_unserved(ended) and not step.kill else None
    after = _people_wrote(cluster)
    gone = {ref for ref in before if ref not in after and ref not in cluster.recorder.hidden}
    expected = engine.expected(planned, ended) if ended.outcome == "ok" and planned.release else ()
    orphans = _orphans(stage, planned, engine.actors, after) if action.role == "remove" and planned.name else ()
    return StepResult(
        action=step.action,
        release=planned.name,
        namespace=planned.namespace,
        source=step.source,
        outcome=ended.outcome,
        error=ended.error,
        created=tuple(sorted(ref for ref in after if ref not in before)),
        deleted=tuple(sorted(gone)),
        recreated=tuple(sorted(ref for ref, uid in after.items() if before.get(ref, uid) != uid)),
        missing=tuple(sorted({ref for ref in expected if cluster.store.get(ref) is None})),
        orphans=tuple(sorted(orphans)),
        flags=step.flags,
        warnings=(*ended.warnings, *_unrest(cluster)),
        fights=tuple(cluster.controllers.fights.seen()),
        waits_for=ended.stuck.waits_for if ended.stuck else (),
        lacking=ended.stuck.lacking if ended.stuck else (),
        operations=ended.operations,
        reconciled=ended.reconciled,
        by=engine.label,
        act=_called(action, step),
        role=action.role,
        explicit=engine.explicit,
        failure=ended.failure,
        again=again,
        killed=bool(step.kill),
        settled=step.settle,
        next_version=step.next.version if step.next else "",
    )


def _called(action: Action, step: Step) -> str:
    """The act in sentences: `helm upgrade`, `helm upgrade to the next version`."""
    return f"{action.called(step.flags)} to the next version" if step.next else action.called(step.flags)


def _unrest(cluster: Cluster) -> tuple[str, ...]:
    """The warning about a step after which controllers were stopped."""
    if not cluster.controllers.unrest:
        return ()
    return (f"the cluster did not come to rest: its controllers were stopped after {controllers.RUNS_MAX:,} moves",)


def _again(stage: _Stage, index: int, planned: PlannedStep[Any]) -> Outcome | None:
    """Repeat an install that Helm has not recorded: where it created CRDs and was too fast for them, it goes on.

    Without this a race in the first step would hide whatever the lazy schedule has to show of all the others.
    """
    cluster, act = stage.cluster, planned.act
    if not isinstance(act, HelmAct) or act.action != "install" or cluster.schedule == "eager":
        return None
    made = any(event.effect == "created" and event.step == cluster.recorder.step for event in cluster.timeline())
    if not made or _is_recorded(cluster, planned.name):
        return None
    outcome = _run(stage, index, planned).outcome
    cluster.settle()
    return outcome


def _is_unserved(ended: Ended) -> bool:
    """Whether a step failed because of a kind that was not served: what else stops an install stops it again."""
    return ended.outcome == "failed" and any(fault.of == "unserved" for fault in ended.failure.faults)


def _killed(stage: _Stage, index: int, planned: PlannedStep[Any]) -> Ended:
    """Run a step whose process dies before it writes an object, or after a number of writes."""
    engine, cluster, when = load(planned.by), stage.cluster, planned.step.kill
    cluster.death = death = Death((*engine.actors, USER), when)
    if not death.counts:
        stage.replays.stop()
    ended = Ended("ok")
    with suppress(Killed):
        ended = _run(stage, index, planned)
    stage.replays.stop()
    cluster.death = Death()
    if death.is_fault:
        return ended
    if death.at is None:
        why = f"the step does not write {'so often' if death.counts else 'this object'}"
        raise CannotContinue(f"step {planned.step.action}: kill: {when}: {why}")
    return Ended("failed", f"killed {f'after write {when},' if death.counts else 'before it wrote'} {death.at}")


def _is_recorded(cluster: Cluster, release: str) -> bool:
    records = (body for body in cluster.store.of_kind(("", "Secret")) if body.get("type") == helmrecords.TYPE)
    return any(labels_of(body).get("name") == release for body in records)


def _run(stage: _Stage, index: int, planned: PlannedStep[Any]) -> Ended:
    """How each act is run: a real client over HTTP, or the script of an engine in process."""
    act: Act = planned.act
    match act:
        case HelmAct(simulated=False):
            return _over_http(stage, index, HELM, act)
        case Invocation():
            remembered = f"{planned.by} of {planned.name}"
            kept = stage.memories.get(remembered, act.kept)
            ended = _over_http(stage, index, planned.by, replace(act, kept=kept))
            if stage.cluster.death.at is None:  # One that died has written nothing down.
                stage.memories[remembered] = ended.kept
            return ended
        case RealControllers():
            # Not replayed: controllers work side by side, and what they request when is left to chance.
            start = stage.cluster.recorder.count
            return _with_failure(stage.cluster, start, planned.by, _real_client(stage.cluster, planned.by, act, None))
        case HelmAct() | Apply() | Sync() | Reconcile() | Up():
            engine, cluster = load(planned.by), stage.cluster
            scene = Scene(index, stage.memory(engine), cluster.controllers.knows)
            actor = engine.name if engine.name == stage.plan.engine.name else USER
            client = InProcess(cluster, actor, lambda inner: _helm_inside(stage, index, inner))
            return play(engine.script(planned, scene), client)


def _over_http(stage: _Stage, index: int, engine: str, act: HelmAct | Invocation) -> Ended:
    """A real client, or its recorded requests while the answers stay the same."""
    cluster, replays = stage.cluster, stage.replays
    newer = isinstance(act, HelmAct) and act.as_version and act.as_version not in CRDS_NOT_AWAITED
    cluster.awaited_kinds = CRDS if newer else frozenset()
    place = replays.place(index, act)
    start = cluster.recorder.count
    if recorded := replays.next(place, act):
        try:
            recorded.transcript.replay(cluster)
        except ReplayDiffers:
            replays.drop(place, recorded)
            raise
        _delete_timed_out_hooks(cluster, act, engine, start, recorded.ended)
        return _with_failure(cluster, start, engine, recorded.ended)
    transcript = replays.transcript()
    ended = _real_client(cluster, engine, act, transcript)
    replays.keep(place, Recorded(act, transcript, ended))  # Without its reasons, which name events of this timeline.
    return _with_failure(cluster, start, engine, ended)


def _real_client(
    cluster: Cluster, engine: str, act: HelmAct | Invocation | RealControllers, transcript: Transcript | None
) -> Ended:
    """Each act has a server of its own: what a cancelled client still sends ends with it."""
    run, action = load(engine).run, load(engine).action(act.action)
    assert run is not None
    start = cluster.recorder.count
    in_turn = action is not None and bool(action.unordered)
    with ApiServer(cluster, actor=engine, transcript=transcript, in_turn=in_turn, **writes_of(act)) as server:
        ended = run(act, OverHttp(cluster, server))
    if ended.outcome == "failed":
        refuse_environment(ended.error)
    _delete_timed_out_hooks(cluster, act, engine, start, ended)
    return ended


def _delete_timed_out_hooks(cluster: Cluster, act: Act, engine: str, start: int, ended: Ended) -> None:
    if isinstance(act, HelmAct):
        timed_out_hooks.delete_hooks(cluster, engine, start, ended)


def _with_failure(cluster: Cluster, start: int, engine: str, ended: Ended) -> Ended:
    """How an act of a real client ended, with the reasons of its error: it began at the event `start`."""
    read = load(engine).read_error
    if ended.outcome != "failed" or read is None:
        return ended
    with cluster.lock:
        refused, reads = cluster.recorder.refused_since(start, engine)
        seen = SeenByCluster(refused, reads, tuple(ref for ref, _ in cluster.store))
    return replace(ended, failure=joined(ended.failure, read(ended.error, seen)))


def _helm_inside(stage: _Stage, index: int, asked: HelmAct | Render) -> Answer:
    """An act of a Helm that another engine embeds, or what the real Helm renders for a simulated one."""
    if isinstance(asked, Render):
        copy = copy_for(stage.cluster, asked)
        return rendered_on(copy, asked, _with_failure(copy, 0, HELM, _real_client(copy, HELM, asked.act, None)))
    ended = _over_http(stage, index, HELM, asked)
    code = 200 if ended.outcome == "ok" else 500
    return Answer(code, message=ended.error, stuck=ended.stuck, failure=ended.failure)


def _people_wrote(cluster: Cluster) -> dict[Ref, str]:
    """Objects of engines and users, with their uids: no pods of controllers, no Helm records, no prerequisites."""
    others = cluster.provision.refs | cluster.recorder.hidden
    return {ref: uid_of(body) for ref, body in cluster.store if ref not in others and is_written(ref, body)}


def is_written(ref: Ref, body: Body) -> bool:
    """Whether an engine or a user wrote an object, and not the cluster itself."""
    if ref.kind in MADE_BY_THE_CLUSTER or body.get("type") == helmrecords.TYPE or is_installed(body):
        return False
    if (ref.kind, ref.name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
        return False
    return not any(owner.get("controller") for owner in metadata(body).get("ownerReferences") or ())


def _orphans(stage: _Stage, planned: PlannedStep[Any], actors: tuple[str, ...], after: dict[Ref, str]) -> Iterable[Ref]:
    """What the engine created for a release and leaves behind when it removes it."""
    release = planned.name, planned.namespace
    own = {i for i, other in enumerate(stage.plan.steps) if (other.name, other.namespace) == release}
    events = (event for event in stage.cluster.timeline() if event.effect == "created" and event.actor in actors)
    made = {event.object for event in events if event.step < 0 or event.step in own}
    return (ref for ref in after if ref in made)


def _not_modelled(cluster: Cluster) -> Iterable[str]:
    """Custom kinds that were used and whose behaviour is not modelled."""
    seen = {(event.object.kind, event.object.group) for event in cluster.timeline() if event.effect == "created"}
    unknown = (of for of in seen if cluster.is_custom_kind(of[1], of[0]) and not cluster.controllers.knows(*of))
    return sorted(f"{kind}.{group}" for kind, group in unknown)
