"""Play one trial with one engine under one schedule, and keep what happened. Decides nothing about hazards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster import controllers
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.cluster.server.transcript import ReplayDiffers, Transcript
from seatrial.engines import Ended, Stalled, argocd, flux, pulumi
from seatrial.engines.argocd import versions
from seatrial.engines.helm import process
from seatrial.engines.helm import sdk as helm
from seatrial.engines.helm import v3 as helm3
from seatrial.engines.kubectl import commands as kubectl
from seatrial.engines.script import Answer, Helm, Script, play
from seatrial.helm import hooks
from seatrial.helm import records as helmrecords
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import Binary
from seatrial.kinds.tables.catalogue import GROUPS
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.program import Program, acted_on
from seatrial.model.resource import Body, Ref, labels_of, metadata, uid_of
from seatrial.model.timeline import Event, Outcome, Rehearsal, Schedule, StepResult
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan, Played
from seatrial.play.in_process import InProcess
from seatrial.play.over_http import OverHttp
from seatrial.play.prerequisites import assume, put_deployed, stack_before

SOMEONE = "someone"
FIRST_SYNC_SECONDS = 1_750_000_000
SYNC_SECONDS = 3_600
"""When syncs are taken to begin, and how far apart; hooks that have no name of their own are named by it."""
LEAVES = {argocd.NAME: "delete", flux.NAME: "delete", pulumi.NAME: "destroy", helm.NAME: "uninstall"}
"""The act by which a release goes."""
MODELLED = {flux.NAME: flux.VERSION, kubectl.NAME: kubectl.VERSION, pulumi.NAME: pulumi.VERSION}
"""The versions of engines that are scripts."""
MADE_BY_THE_CLUSTER = frozenset(
    ("Event", "Endpoints", "EndpointSlice", "Lease", "Node", "ControllerRevision", "PersistentVolume")
)
LOOKED_INTO = frozenset(("apps", "batch"))
"""Groups with what Helm looks into while it waits."""
TRIES_MAX = 3


class Memory:
    """What engines remember of one cluster between two steps, outside of it."""

    def __init__(self) -> None:
        self.argocd = argocd.Memory()
        self.flux = flux.Memory()
        self.stacks: dict[str, pulumi.Checkpoint] = {}


class Heard:
    """What a client has asked in each act of one rehearsal, and how the act ended.

    Up to the first that hung: how much a client that was cancelled still does is not settled.
    """

    def __init__(self) -> None:
        self.acts: dict[int, tuple[Transcript, Ended]] = {}
        self._hung = False

    def begin(self) -> None:
        self.acts.clear()
        self._hung = False

    def keep(self, index: int, transcript: Transcript, ended: Ended) -> None:
        self._hung = self._hung or ended.outcome == "hung"
        if not self._hung:
            self.acts.setdefault(index, (transcript, ended))


def rehearse(plan: Plan, engine: str, schedule: Schedule, *, seed: int = 0, keeps: Heard | None = None) -> Rehearsal:
    """Play `plan`, and again from the start where the engine itself locked up; what happens is the same each time."""
    for _ in range(TRIES_MAX - 1):
        with suppress(Stalled):
            return _rehearsed(plan, engine, schedule, seed, keeps or Heard(), Heard())
    try:
        return _rehearsed(plan, engine, schedule, seed, keeps or Heard(), Heard())
    except Stalled as why:
        raise CannotContinue(f"{why}, {TRIES_MAX} times in a row: try again") from why


def rehearse_again(plan: Plan, engine: str, schedule: Schedule, heard: Heard) -> Rehearsal:
    """Play `plan` under another schedule, where nobody has to play who would be told what he was told before."""
    with suppress(ReplayDiffers):
        return _rehearsed(plan, engine, schedule, 0, Heard(), heard)
    return rehearse(plan, engine, schedule)


def _rehearsed(plan: Plan, engine: str, schedule: Schedule, seed: int, keeps: Heard, knows: Heard) -> Rehearsal:
    """Play `plan` on a cluster of its own, or on several where it rebuilds."""
    keeps.begin()
    results: list[StepResult] = []
    timeline: list[Event] = []
    not_modelled: set[str] = set()
    for first, steps in _clusters(plan.steps):
        cluster = Cluster(plan.kube_version, schedule, seed)
        cluster.discovery.unlist(_unneeded(plan, engine))
        assume(cluster, plan.assumed)
        if not first:
            put_deployed(cluster, plan.deployed, server_side=plan.server_side)
        stage = _Stage(cluster, plan, engine, _shelf(plan), Memory(), keeps, knows)
        results.extend(_play(stage, index, played) for index, played in enumerate(steps, start=first))
        timeline.extend(_moved(cluster.timeline(), len(timeline)))
        not_modelled.update(_not_modelled(cluster))
    return Rehearsal(_versioned(plan, engine), schedule, tuple(results), tuple(timeline), tuple(sorted(not_modelled)))


def _unneeded(plan: Plan, engine: str) -> frozenset[str]:
    """Groups of Kubernetes that no act of Helm is about: it reads all that are listed anew for every single object.

    None where a template asks what there is, or where it is not known what Helm will deploy.
    """
    steps = zip(plan.steps, plan.case.releases, strict=True)
    rendered = [(played, release) for played, release in steps if played.chart]
    if engine != helm.NAME or any(played.asks or release is None for played, release in rendered):
        return frozenset()
    releases = (plan.case.before, *plan.case.releases, *(release for _, release in plan.revisions))
    written = (r for release in releases if release for r in (*release.resources, *release.crds))
    return frozenset(GROUPS) - LOOKED_INTO - {resource.ref.group for resource in written}


def _versioned(plan: Plan, engine: str) -> EngineId:
    if plan.argocd is not None:
        return EngineId(engine, versions.shown(plan.argocd.version))
    if engine != helm.NAME:
        return EngineId(engine, MODELLED[engine])
    if plan.by_rules_of_helm_3:
        return EngineId(engine, helm3.VERSION)
    return EngineId(engine, plan.helm.version if plan.helm else helm.VERSION)


class _Stage(Struct, frozen=True):
    """Where steps are played, and by whom."""

    cluster: Cluster
    plan: Plan
    engine: str
    shelf: helm3.Shelf
    memory: Memory
    keeps: Heard
    knows: Heard


def _shelf(plan: Plan) -> helm3.Shelf:
    before = plan.case.before
    return {(before.namespace, before.name, number): release for number, release in plan.revisions} if before else {}


def _clusters(steps: tuple[Played, ...]) -> Iterator[tuple[int, list[Played]]]:
    """Runs of steps that share a cluster, with the place of the first of each."""
    starts = [0, *(i for i, played in enumerate(steps) if i and played.step.fresh), len(steps)]
    return ((start, list(steps[start:end])) for start, end in pairwise(starts))


def _moved(events: Iterable[Event], by: int) -> Iterator[Event]:
    """Events that follow those of an earlier cluster."""
    for event in events:
        cause = None if event.cause is None else event.cause + by
        yield replace(event, index=event.index + by, cause=cause) if by else event


def _play(stage: _Stage, index: int, played: Played) -> StepResult:
    cluster, plan, step = stage.cluster, stage.plan, played.step
    cluster.recorder.begin(index, stage.engine, helm.UNORDERED.get(step.action, ()))
    before = _people_wrote(cluster)
    ended = _act(stage, index, played)
    if step.settle:
        cluster.settle()
    again = _again(stage, index, played) if ended.outcome == "failed" else None
    after = _people_wrote(cluster)
    gone = {ref for ref in before if ref not in after}
    return StepResult(
        action=step.action,
        release=played.release_name,
        namespace=played.namespace,
        source=step.source,
        outcome=ended.outcome,
        error=ended.error,
        created=tuple(sorted(ref for ref in after if ref not in before)),
        deleted=tuple(sorted(gone)),
        recreated=tuple(sorted(ref for ref, uid in after.items() if before.get(ref, uid) != uid)),
        missing=tuple(sorted(_missing(plan, index, ended, after))),
        orphans=tuple(sorted(_orphans(cluster, plan, played, after))),
        flags=step.flags,
        warnings=(*ended.warnings, *_unrest(cluster)),
        waits_for=ended.stuck.waits_for if ended.stuck else (),
        lacking=ended.stuck.lacking if ended.stuck else (),
        operations=ended.operations,
        reconciled=ended.reconciled,
        again=again,
    )


def _unrest(cluster: Cluster) -> tuple[str, ...]:
    """What is said of a step after which controllers would still have something to do."""
    if not cluster.controllers.gave_up:
        return ()
    return (f"the cluster did not come to rest: its controllers were stopped after {controllers.RUNS_MAX:,} moves",)


def _again(stage: _Stage, index: int, played: Played) -> Outcome | None:
    """Repeat an install that Helm has not recorded: where it made definitions and was too fast for them, it goes on.

    Without this a race in the first step would hide whatever the lazy schedule has to show of all the others.
    """
    cluster = stage.cluster
    if stage.engine != helm.NAME or played.step.action != "install" or cluster.schedule == "eager":
        return None
    made = any(event.effect == "created" and event.step == cluster.recorder.step for event in cluster.timeline())
    if not made or _is_recorded(cluster, played.release_name):
        return None
    outcome = _act(stage, index, played).outcome
    cluster.settle()
    return outcome


def _is_recorded(cluster: Cluster, release: str) -> bool:
    records = (body for body in cluster.store.of_kind(("", "Secret")) if body.get("type") == helmrecords.TYPE)
    return any(labels_of(body).get("name") == release for body in records)


def _act(stage: _Stage, index: int, played: Played) -> Ended:
    cluster, plan, step = stage.cluster, stage.plan, played.step
    if played.fleet is not None and plan.argocd is not None:
        script = _of_argocd(step, played.fleet, plan.argocd, stage.memory.argocd, cluster.recorder.step)
        return play(script, InProcess(cluster, stage.engine))
    if played.program is not None:
        stack = stage.memory.stacks.setdefault(played.release_name, stack_before(played.program, plan.assumed))
        program = acted_on(played.program, cluster.controllers.knows)
        return play(_of_pulumi(step.action, program, stack), InProcess(cluster, stage.engine))
    if played.flux is not None:
        script = (flux.delete_fleet if step.action == "delete" else flux.sync_fleet)(played.flux, stage.memory.flux)
        return play(script, InProcess(cluster, stage.engine, lambda asked: _helm_inside(cluster, asked)))
    if stage.engine != helm.NAME or step.action not in hooks.EVENTS_OF:
        script = _of_kubectl(played)
        return play(script, InProcess(cluster, kubectl.NAME if stage.engine == kubectl.NAME else SOMEONE))
    if plan.by_rules_of_helm_3:
        act = helm3.Act(step, played.release_name, played.namespace, stage.shelf, plan.case.releases[index])
        return play(helm3.play_act(act), InProcess(cluster, helm.NAME))
    if index in stage.knows.acts:
        transcript, ended = stage.knows.acts[index]
        transcript.replay(cluster)
        return ended
    transcript = Transcript()
    ended = _real_helm(cluster, plan.helm, played, transcript)
    stage.keeps.keep(index, transcript, ended)
    return ended


def _real_helm(cluster: Cluster, binary: Binary | None, played: Played, transcript: Transcript | None = None) -> Ended:
    """Each act has a server of its own: what a cancelled Helm still does behind our back ends with it."""
    step, name, namespace = played.step, played.release_name, played.namespace
    if binary:
        with ApiServer(cluster, actor=helm.NAME, transcript=transcript) as server:
            api, chart = OverHttp(cluster, server), played.archive
            return process.act(step, api, binary, release=name, namespace=namespace, chart=chart, values=played.values)
    with ApiServer(cluster, actor=helm.NAME, client_manager=helmsdk.FIELD_MANAGER, transcript=transcript) as server:
        api = OverHttp(cluster, server)
        return helm.act(step, api, release=name, namespace=namespace, chart=played.chart, values=played.values)


def _helm_inside(cluster: Cluster, asked: Helm) -> Answer:
    """An act of the Helm that another engine has in it."""
    step = Step(asked.action, flags=asked.flags)
    ended = _real_helm(cluster, None, Played(step, asked.release, asked.namespace, asked.chart, asked.values))
    return Answer(200 if ended.outcome == "ok" else 500, message=ended.error, stuck=ended.stuck)


def _of_argocd(step: Step, fleet: argocd.Fleet, settings: argocd.Settings, memory: argocd.Memory, index: int) -> Script:
    if step.action == "delete":
        return argocd.delete_fleet(fleet, settings, memory)
    started = FIRST_SYNC_SECONDS + index * SYNC_SECONDS
    return argocd.sync_fleet(fleet, settings, memory, started=started, flags=step.flags)


def _of_kubectl(played: Played) -> Script:
    if played.step.action == "apply":
        return kubectl.apply(played.objects, played.namespace, played.step.flags)
    return kubectl.delete(played.objects, played.namespace, played.step.flags)


def _of_pulumi(action: str, program: Program, stack: pulumi.Checkpoint) -> Script:
    match action:
        case "destroy":
            return pulumi.destroy(stack)
        case "refresh":
            return pulumi.refresh(stack)
    return pulumi.up(program, stack)


def _people_wrote(cluster: Cluster) -> dict[Ref, str]:
    """Objects that someone wrote, with their uids: no pods of controllers, no records of Helm's."""
    return {ref: uid_of(body) for ref, body in cluster.store if _is_written(ref, body)}


def _is_written(ref: Ref, body: Body) -> bool:
    if ref.kind in MADE_BY_THE_CLUSTER or body.get("type") == helmrecords.TYPE:
        return False
    if (ref.kind, ref.name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
        return False
    return not any(owner.get("controller") for owner in metadata(body).get("ownerReferences") or ())


def _missing(plan: Plan, index: int, ended: Ended, after: dict[Ref, str]) -> Iterable[Ref]:
    """What the release says it has and what is not there; nothing is expected of an act that did not succeed."""
    action, release = plan.steps[index].step.action, plan.case.releases[index]
    if ended.outcome != "ok" or release is None or plan.steps[index].flux is not None:
        return ()
    if plan.argocd is not None:
        tasks = (task for operation in ended.operations for task in operation.tasks if not task.hook)
        return (task.object for task in tasks if task.status == "Synced" and task.object not in after)
    return (ref for ref in helm.expected(release, action) if ref not in after)


def _orphans(cluster: Cluster, plan: Plan, played: Played, after: dict[Ref, str]) -> Iterable[Ref]:
    """What the engine made for a release and leaves behind when it goes."""
    by_kind = ((played.fleet, argocd.NAME), (played.program, pulumi.NAME), (played.flux, flux.NAME))
    engine = next((name for what, name in by_kind if what), helm.NAME)
    if played.step.action != LEAVES[engine]:
        return ()
    release = played.release_name, played.namespace
    own = {i for i, other in enumerate(plan.steps) if (other.release_name, other.namespace) == release}
    actors = (engine, helm.NAME) if engine == flux.NAME else (engine,)
    by_engine = (event for event in cluster.timeline() if event.effect == "created" and event.actor in actors)
    made = {event.object for event in by_engine if event.step < 0 or event.step in own}
    return (ref for ref in after if ref in made)


def _not_modelled(cluster: Cluster) -> Iterable[str]:
    """Custom kinds that were used and that nothing here knows the behaviour of."""
    seen = {(event.object.kind, event.object.group) for event in cluster.timeline() if event.effect == "created"}
    unknown = (of for of in seen if cluster.is_custom_kind(of[1], of[0]) and not cluster.controllers.knows(*of))
    return sorted(f"{kind}.{group}" for kind, group in unknown)
