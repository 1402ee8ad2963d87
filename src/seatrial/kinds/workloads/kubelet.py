"""What a kubelet does with a pod on its node, and its errors. Probes pass.

Error texts from pkg/kubelet (kubelet_pods.go, kuberuntime) and pkg/volume of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from seatrial.kinds import PRINTED, Acts, Emit, Status, World
from seatrial.kinds.core.objectmeta import controller_of, created_at, namespace_of
from seatrial.kinds.scripts.commands import RefusedOutput, refusals
from seatrial.kinds.scripts.containers import Gone, failed_start, failures_of, notes, run_script
from seatrial.kinds.scripts.programs import make_secrets
from seatrial.kinds.workloads import scheduler
from seatrial.kinds.workloads.images import pull_failure
from seatrial.kinds.workloads.pod_status import ended, running, status, waiting
from seatrial.kinds.workloads.pod_template import Source, env_sources, volume_sources
from seatrial.kinds.workloads.pods import is_ready
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed, name_of, uid_of

OUTCOME = "seatrial.dev/outcome"
"""`fail` on a pod (template): its containers exit with code 1. A trial makes a Job fail with it."""

ANY_KEY = "seatrial.dev/any-key"
"""On an object whose keys come from outside the cluster: every key is assumed to exist."""

FAILED_AT = "failed at"
"""When a pod failed for lack of something that may come, in its memory."""
BACKOFF_LIMIT = 6
"""The default of a Job."""


class Obstacle(Struct, frozen=True):
    """Why a container or a volume cannot start yet."""

    reason: str
    """The event's reason: FailedMount, Failed..."""
    message: str
    state: str = "ContainerCreating"
    """The reason in the container's waiting state."""
    detail: str = ""
    missing: tuple[Ref, ...] = ()
    key: str = ""
    """The missing key of an existing object."""
    held_by: tuple[Ref, ...] = ()
    """The pods that hold the volume."""

    def event(self, pod: Body) -> Emit:
        missing, key, held_by = self.missing, self.key, self.held_by
        return Emit(pod, self.reason, self.message, missing=missing, key=key, held_by=held_by)


class MissingSource(Struct, frozen=True):
    """An object that a volume or an environment variable refers to and that does not exist, or lacks the key."""

    object: Ref
    key: str = ""
    """The missing key of an existing object."""

    @property
    def message(self) -> str:
        return f'{self.object.kind.lower()} "{self.object.name}" not found'


def start(pod: Body, world: World) -> Acts:
    """Attach and mount volumes, run init containers, start containers, as far as possible."""
    yield from _missing_pull_secrets(pod, world)
    if obstacle := next(_volume_obstacles(pod, world), None):
        yield Status(pod, _not_started(pod))
        yield obstacle.event(pod)
        return
    yield from _run(pod, world)


def continue_running(pod: Body, world: World) -> Acts:
    """The next step of a running pod: one that is meant to finish is ready once and then ends, or fails and
    restarts; one that is meant to stay is started again if it has failed."""
    if _restart_policy(pod) == "Always":
        if not is_ready(pod):
            yield from _start_mains(pod, world)
        return
    inits = [_init_ended(container, pod) for container in listed(pod, "spec", "initContainers")]
    mains = listed(pod, "spec", "containers")
    if not is_ready(pod) and not _has_restarted(pod):
        yield Status(pod, status(pod, "Running", inits, [running(container, created_at(pod)) for container in mains]))
        return
    scripts: dict[int, Gone] = {}
    for index in range(0 if _fails(pod) else len(mains)):
        gone = yield from run_script(pod, ("containers", index), world)
        scripts |= {index: gone} if gone is not None else {}
    yield from (_printed(pod, message, gone) for gone in scripts.values() for message in gone.hidden)
    if endless := [gone for gone in scripts.values() if gone.course.code is None]:
        yield from (_printed(pod, gone.course.says, gone) for gone in endless if gone.course.says)
        return
    fails = _failures(pod, world, scripts)
    yield from (said for said in fails.values() if said is not None)
    if fails and is_curable(pod, world):
        world.memory(uid_of(pod)).setdefault(FAILED_AT, world.now_seconds)
    if fails and _restart_policy(pod) == "OnFailure":
        yield from _crash_loop(pod, world, range(len(mains)))
    else:
        states = [ended(container, int(index in fails), created_at(pod)) for index, container in enumerate(mains)]
        yield Status(pod, status(pod, "Failed" if fails else "Succeeded", inits, states))


def is_curable(pod: Body, world: World) -> bool:
    """Whether a script of the pod failed for lack of something that may come in time."""
    gone = (one for one in world.memory(uid_of(pod)).values() if isinstance(one, Gone))
    return any(one.course.in_time for one in gone)


def _printed(pod: Body, message: str, gone: Gone) -> Emit:
    return Emit(pod, PRINTED, message, refusal=gone.refused.get(message), missing=gone.course.waits_for)


def missing_from(source: Source, namespace: str, world: World) -> MissingSource | None:
    """The missing object, or the missing key of an existing object."""
    ref = Ref(source.kind, namespace, source.name)
    found = world.get(ref)
    if found is None:
        return None if source.optional else MissingSource(ref)
    if source.optional or ANY_KEY in annotations_of(found):
        return None
    data = {**(found.get("data") or {}), **(found.get("binaryData") or {}), **(found.get("stringData") or {})}
    key = next((key for key in source.keys if key not in data), "")
    return MissingSource(ref, key) if key else None


def _missing_pull_secrets(pod: Body, world: World) -> Acts:
    names = [str(secret.get("name")) for secret in listed(pod, "spec", "imagePullSecrets") if secret.get("name")]
    refs = [Ref("Secret", namespace_of(pod), name) for name in names]
    missing = tuple(ref for ref in refs if world.get(ref) is None)
    if missing:
        message = f"Unable to retrieve some image pull secrets ({', '.join(ref.name for ref in missing)}); "
        message += "attempting to pull the image may not succeed."
        yield Emit(pod, "FailedToRetrieveImagePullSecret", message, missing=missing)


def _volume_obstacles(pod: Body, world: World) -> Iterator[Obstacle]:
    for name, claim in scheduler.claims(pod, world):
        holders = _attached_elsewhere(name, claim, pod, world) if claim is not None else ()
        if holders:
            names = ", ".join(ref.name for ref in holders)
            volume = f'volume "{dig(claim, "spec", "volumeName")}"'
            words = f"Multi-Attach error for {volume} Volume is already used by pod(s) {names}"
            yield Obstacle("FailedAttachVolume", words, held_by=holders)
    for volume in listed(pod, "spec", "volumes"):
        for source in volume_sources(volume):
            if lack := missing_from(source, namespace_of(pod), world):
                message = f'MountVolume.SetUp failed for volume "{volume.get("name")}" : {_not_mountable(lack)}'
                yield Obstacle("FailedMount", message, missing=(lack.object,), key=lack.key)


def _attached_elsewhere(name: str, claim: Body, pod: Body, world: World) -> tuple[Ref, ...]:
    """The pods on other nodes that hold a ReadWriteOnce volume."""
    if scheduler.has_mode(claim, "ReadWriteMany", "ReadOnlyMany"):
        return ()
    node = dig(pod, "spec", "nodeName")
    holders = (o for o in scheduler.others_using(name, pod, world) if dig(o, "spec", "nodeName") != node)
    return tuple(Ref("Pod", namespace_of(pod), name_of(other)) for other in holders)


def _not_mountable(lack: MissingSource) -> str:
    if not lack.key:
        return lack.message
    if lack.object.kind == "Secret":
        return f"references non-existent secret key: {lack.key}"
    return f"configmap references non-existent config key: {lack.key}"


def _run(pod: Body, world: World) -> Acts:
    """Init containers one after another, then all others at once."""
    inits = listed(pod, "spec", "initContainers")
    mains = listed(pod, "spec", "containers")
    done: list[Body] = []
    refused = refusals(pod, world) if inits else {}
    for index, container in enumerate(inits):
        obstacle = _container_obstacle(container, pod, world)
        ran = obstacle is None and not _is_sidecar(container)
        gone = (yield from run_script(pod, ("initContainers", index), world)) if ran else None
        said = _refused(pod, refused.get(("initContainers", index))) if gone is None else None
        if gone is not None and gone.course.code != 0 and gone.course.says:
            said = _printed(pod, gone.course.says, gone)
        if said is not None:
            yield said
        if gone is not None and gone.course.code is None:
            rest = [waiting(other, "PodInitializing") for other in inits[index + 1 :]]
            others = [waiting(other, "PodInitializing") for other in mains]
            yield Status(pod, status(pod, "Pending", [*done, running(container, created_at(pod)), *rest], others))
            return
        if said is not None or (gone is not None and gone.course.code):
            yield from _init_failed(pod, world, done, index)
            return
        if obstacle is not None:
            stuck = waiting(container, obstacle.state, obstacle.detail)
            rest = [waiting(other, "PodInitializing") for other in inits[index + 1 :]]
            others = [waiting(other, "PodInitializing") for other in mains]
            yield Status(pod, status(pod, "Pending", [*done, stuck, *rest], others))
            yield obstacle.event(pod)
            return
        yield from make_secrets(pod, world, "initContainers", index)
        done.append(_init_started(container, pod))
    obstacles = [_container_obstacle(container, pod, world) for container in mains]
    if _restart_policy(pod) == "Always" and not any(obstacles):
        yield from _start_mains(pod, world)
        return
    # A pod that is meant to finish becomes ready only in its next step, so that watchers see it ready before it ends.
    stays = _restart_policy(pod) == "Always"
    states = [
        waiting(container, obstacle.state, obstacle.detail)
        if obstacle
        else running(container, created_at(pod), ready=stays)
        for container, obstacle in zip(mains, obstacles, strict=True)
    ]
    first = next((obstacle for obstacle in obstacles if obstacle), None)
    yield Status(pod, status(pod, "Pending" if first else "Running", done, states))
    if first:
        yield first.event(pod)


def _start_mains(pod: Body, world: World) -> Acts:
    """Start containers that are meant to stay. One whose script fails was never ready: a probe would have failed."""
    mains = listed(pod, "spec", "containers")
    if _fails(pod):
        yield from _crash_loop(pod, world, range(len(mains)))
        return
    starts = {index: failed_start(pod, ("containers", index), world) for index in range(len(mains))}
    failed = {index: gone for index, gone in starts.items() if gone is not None}
    for index, gone in failed.items():
        yield from notes(pod, ("containers", index), world, gone, gone.unfollowed)
    yield from (_printed(pod, gone.course.says, gone) for gone in failed.values() if gone.course.says)
    if failed:
        yield from _crash_loop(pod, world, failed)
        return
    inits = [_init_started(container, pod) for container in listed(pod, "spec", "initContainers")]
    states = [running(container, created_at(pod), ready=True) for container in mains]
    yield Status(pod, status(pod, "Running", inits, states))


def _init_failed(pod: Body, world: World, done: list[Body], index: int) -> Acts:
    """An init container that fails ends the pod, or is restarted forever."""
    inits = listed(pod, "spec", "initContainers")
    failed, where = inits[index], f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    rest = [waiting(other, "PodInitializing") for other in inits[index + 1 :]]
    others = [waiting(other, "PodInitializing") for other in listed(pod, "spec", "containers")]
    if _restart_policy(pod) == "Never":
        if is_curable(pod, world):
            world.memory(uid_of(pod)).setdefault(FAILED_AT, world.now_seconds)
        states = [*done, ended(failed, 1, created_at(pod), init=True), *rest]
        yield Status(pod, status(pod, "Failed", states, others))
        return
    message = f"back-off 10s restarting failed container={failed.get('name')} pod={where}"
    stuck = waiting(failed, "CrashLoopBackOff", message, restarts=_restarts(pod, world))
    yield Status(pod, status(pod, "Pending", [*done, stuck, *rest], others))
    yield Emit(pod, "BackOff", f"Back-off restarting failed container {failed.get('name')} in pod {where}")


def _container_obstacle(container: Body, pod: Body, world: World) -> Obstacle | None:
    """The image is pulled first, then the environment is resolved."""
    image = str(container.get("image") or "")
    if failed := pull_failure(image, namespace_of(pod), world):
        words, tag = failed
        detail = f'failed to pull image "{image}": {words}'
        message = f'Failed to pull image "{image}": {words}'
        return Obstacle("Failed", message, "ErrImagePull", detail, missing=(tag,))
    for source in env_sources(container):
        if lack := missing_from(source, namespace_of(pod), world):
            where = f"{source.kind} {namespace_of(pod)}/{source.name}"
            words = f"couldn't find key {lack.key} in {where}" if lack.key else lack.message
            state = "CreateContainerConfigError"
            return Obstacle("Failed", f"Error: {words}", state, words, missing=(lack.object,), key=lack.key)
    return None


def _not_started(pod: Body) -> Body:
    inits, mains = listed(pod, "spec", "initContainers"), listed(pod, "spec", "containers")
    reason = "PodInitializing" if inits else "ContainerCreating"
    waits = [waiting(container, "PodInitializing") for container in inits]
    return status(pod, "Pending", waits, [waiting(container, reason) for container in mains], networked=False)


def _crash_loop(pod: Body, world: World, failed: Collection[int]) -> Acts:
    mains = listed(pod, "spec", "containers")
    inits = [_init_started(container, pod) for container in listed(pod, "spec", "initContainers")]
    where = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    states = [running(container, created_at(pod), ready=True) for container in mains]
    for index in failed:
        message = f"back-off 10s restarting failed container={mains[index].get('name')} pod={where}"
        states[index] = waiting(mains[index], "CrashLoopBackOff", message, restarts=_restarts(pod, world))
    yield Status(pod, status(pod, "Running", inits, states))
    if failed:
        name = mains[min(failed)].get("name")
        yield Emit(pod, "BackOff", f"Back-off restarting failed container {name} in pod {where}")


def _restarts(pod: Body, world: World) -> int:
    """One more than its Job allows, where time does not help. Nothing else counts restarts."""
    if is_curable(pod, world):
        return failures_of(pod, world)
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != "Job":
        return 1
    job = world.get(Ref("Job", namespace_of(pod), str(owner.get("name")), "batch"))
    limit = dig(job, "spec", "backoffLimit")
    return (BACKOFF_LIMIT if limit is None else int(limit)) + 1


def _init_started(container: Body, pod: Body) -> Body:
    return running(container, created_at(pod)) if _is_sidecar(container) else _init_ended(container, pod)


def _init_ended(container: Body, pod: Body) -> Body:
    return ended(container, 0, created_at(pod), init=True)


def _has_restarted(pod: Body) -> bool:
    return any(container.get("restartCount") for container in listed(pod, "status", "containerStatuses"))


def _failures(pod: Body, world: World, scripts: dict[int, Gone]) -> dict[int, Emit | None]:
    """The containers that fail, by index, and what they print."""
    if _fails(pod):
        return dict.fromkeys(range(len(listed(pod, "spec", "containers"))))
    wrong = {
        index: _printed(pod, gone.course.says, gone) if gone.course.says else None
        for index, gone in scripts.items()
        if gone.course.code
    }
    refused = {int(place[1]): said for place, said in refusals(pod, world).items() if place[0] == "containers"}
    return wrong | {index: _refused(pod, said) for index, said in refused.items() if index not in scripts}


def _refused(pod: Body, printed: RefusedOutput | None) -> Emit | None:
    return Emit(pod, PRINTED, printed.words, refusal=printed.refusal) if printed and printed.words else None


def _fails(pod: Body) -> bool:
    return annotations_of(pod).get(OUTCOME) == "fail"


def _restart_policy(pod: Body) -> str:
    return str(dig(pod, "spec", "restartPolicy") or "Always")


def _is_sidecar(container: Body) -> bool:
    return container.get("restartPolicy") == "Always"
