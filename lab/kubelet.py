"""A kubelet for all nodes: runs the scripts of containers, and reports every other container as running or finished.

It polls the API server, which is enough for a cluster with a handful of pods.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from apiclient import Api

from lab.cloud import Cloud
from lab.containers import Sandbox, Shell
from lab.node_time import NodeTime
from lab.operators import Operators
from lab.programs import make_secrets, write_ca
from lab.webhooks import Backends
from seatrial.cluster.cluster import NODES
from seatrial.kinds.workloads.kubelet import ANY_KEY, OUTCOME
from seatrial.kinds.workloads.pod_status import ended, running, status, waiting
from seatrial.kinds.workloads.pod_template import Source, env_sources, volume_sources
from seatrial.kinds.workloads.pods import is_ready
from seatrial.model.resource import Body, annotations_of, dig, labels_of, listed, metadata, name_of, uid_of

TICK_SECONDS = 0.25
START_SECONDS = 0.5
"""How long a node takes to pull the images of a pod and to start it."""
STOP_SECONDS = 0.25
RUN_SECONDS = 0.5
"""How long a container that is meant to finish is ready before it ends, if what it runs is not known."""
BACK_OFF_SECONDS = 0.5
BACK_OFF_SECONDS_MAX = 15.0
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "1Ti"}


class Kubelet:
    """Runs in a thread until it is stopped."""

    def __init__(self, api: Api, sandbox: Sandbox, backends: Backends, clock: NodeTime) -> None:
        self._api = api
        self._sandbox = sandbox
        self._backends = backends
        self.time = clock
        self._cloud = Cloud(api, clock)
        self.operators = Operators(api, clock, backends.authority.bundle)
        self._pods: dict[str, _Pod] = {}
        self._ran: set[str] = set()
        """Pods whose programs have done what they are known to do."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self.errors: list[str] = []
        self.provides: tuple[Body, ...] = ()
        """Prerequisites that come with their namespace."""
        self._provided: set[tuple[str, int]] = set()

    def start(self) -> None:
        for name in NODES:
            self._api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
            seen = {"conditions": [ready], "capacity": CAPACITY, "allocatable": CAPACITY}
            self._api.patch(f"/api/v1/nodes/{name}/status", {"status": seen})
            # The API server taints a new node as not ready; the controller that takes this back does not run.
            self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        for pod in self._pods.values():
            pod.end()
        self._backends.close()

    @property
    def bundle(self) -> str:
        """The CA of the certificates of all backends."""
        return self._backends.authority.bundle

    @property
    def is_busy(self) -> bool:
        """Whether a script is running, or a container is about to end or to be restarted soon."""
        return any(pod.is_busy for pod in list(self._pods.values()))

    def _run(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            try:
                self._tick()
            except (OSError, ValueError, KeyError, TypeError) as wrong:
                self.errors.append(repr(wrong))

    def _tick(self) -> None:
        self.time.tick()
        pods = self._items("/api/v1/pods")
        self._sandbox.knows_services(self._services(pods))
        self._cloud.act()
        self.operators.act()
        self._provide()
        alive = {uid_of(body) for body in pods}
        for uid in [uid for uid in self._pods if uid not in alive]:
            self._pods.pop(uid).end()
        for body in pods:
            if not dig(body, "spec", "nodeName"):
                if metadata(body).get("deletionTimestamp"):
                    self._remove(body)
                continue
            pod = self._pods.setdefault(uid_of(body), _Pod(self._api, self._sandbox))
            is_finished = dig(body, "status", "phase") in ("Succeeded", "Failed")
            if metadata(body).get("deletionTimestamp"):
                if is_finished or self.time.is_over(f"stop {uid_of(body)}", STOP_SECONDS):
                    pod.end()
                    self._remove(body)
            elif not is_finished:
                pod.sync(body, can_start=self.time.is_over(f"start {uid_of(body)}", START_SECONDS))
                if is_ready(body) and uid_of(body) not in self._ran:
                    self._ran.add(uid_of(body))
                    write_ca(body, self._api, self._backends.authority.bundle)
                    make_secrets(body, self._api)

    def _provide(self) -> None:
        """Once for each namespace of this name."""
        spaces = {name_of(body): uid_of(body) for body in self._items("/api/v1/namespaces")} if self.provides else {}
        for number, body in enumerate(self.provides):
            namespace = str(metadata(body).get("namespace"))
            if namespace in spaces and (spaces[namespace], number) not in self._provided:
                self._provided.add((spaces[namespace], number))
                path = f"/api/v1/namespaces/{namespace}/{str(body['kind']).lower()}s"
                if body["apiVersion"] != "v1":
                    path = path.replace("/api/v1", f"/apis/{body['apiVersion']}")
                self._api.post(path, body)

    def _remove(self, pod: Body) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        self._api.delete(_path(pod), {"apiVersion": "v1", "kind": "DeleteOptions", **options})

    def _items(self, path: str) -> list[Body]:
        return listed(self._api.get(path).body, "items")

    def _services(self, pods: list[Body]) -> dict[str, list[list[object]]]:
        """The ports of each Service at which something answers: [name, number]; by `namespace/name`."""
        ready: dict[str, set[str]] = {}
        # A program listens before its pod is ready.
        containers = [one for pod in pods for one in listed(pod, "spec", "containers")]
        ports = {int(port["containerPort"]) for one in containers for port in listed(one, "ports")}
        for piece in self._items("/apis/discovery.k8s.io/v1/endpointslices"):
            key = f"{metadata(piece)['namespace']}/{labels_of(piece).get('kubernetes.io/service-name')}"
            if any(dig(one, "conditions", "ready") for one in listed(piece, "endpoints")):
                ready.setdefault(key, set()).update(str(port.get("name") or "") for port in listed(piece, "ports"))
                ports.update(int(port["port"]) for port in listed(piece, "ports") if key != "default/kubernetes")
        services = self._items("/api/v1/services")
        targets = [port.get("targetPort") for one in services for port in listed(one, "spec", "ports")]
        self._backends.listen({*ports, *(port for port in targets if isinstance(port, int))})
        found: dict[str, list[list[object]]] = {}
        for service in services:
            key = f"{metadata(service)['namespace']}/{name_of(service)}"
            own = listed(service, "spec", "ports")
            always = "seatrial.dev/answers" in annotations_of(service) or not dig(service, "spec", "selector")
            open_ = [one for one in own if always or str(one.get("name") or "") in ready.get(key, ())]
            found[key] = [[str(one.get("name") or ""), one.get("port")] for one in open_]
            if dig(service, "spec", "clusterIP") == "None" and key in ready:
                found[key].append(["", 0])
        return found


class _Container:
    """One container of a pod, over all its restarts."""

    def __init__(self) -> None:
        self.shell: Shell | None = None
        self.started: float | None = None
        self.code: int | None = None
        self.restarts = 0
        self.again_at = 0.0


class _Pod:
    """One pod on a node. Containers start when what they refer to is there, and restart as their policy says."""

    def __init__(self, api: Api, sandbox: Sandbox) -> None:
        self._api = api
        self._sandbox = sandbox
        self._folder: Path | None = None
        self._containers: dict[tuple[str, int], _Container] = {}
        self._reported: object = {}
        self._started = time.monotonic()
        self._is_pulled = False

    @property
    def is_busy(self) -> bool:
        now = time.monotonic()
        return not self._is_pulled or any(
            (one.started is not None and one.code is None and (one.shell is not None or now - one.started < 1))
            or (one.code is not None and one.again_at > now)
            for one in self._containers.values()
        )

    def end(self) -> None:
        for one in self._containers.values():
            if one.shell is not None:
                one.shell.end()
        if self._folder is not None:
            self._sandbox.remove(self._folder)
            self._folder = None

    def sync(self, pod: Body, *, can_start: bool) -> None:
        """One look at the pod: start what can start, and report what has happened."""
        self._is_pulled = self._is_pulled or can_start
        if not self._is_pulled:
            self._report(pod, self._waiting(pod))
            return
        limit = dig(pod, "spec", "activeDeadlineSeconds")
        if limit and time.monotonic() - self._started > float(limit):
            self.end()
            self._report(pod, {"phase": "Failed", "reason": "DeadlineExceeded"})
            return
        if self._missing(pod, [one for volume in listed(pod, "spec", "volumes") for one in volume_sources(volume)]):
            self._report(pod, self._waiting(pod))
            return
        inits, all_done = self._inits(pod)
        if not all_done:
            phase = "Failed" if any(_failed_for_good(pod, one) for one in inits) else "Pending"
            mains = [waiting(container, "PodInitializing") for container in listed(pod, "spec", "containers")]
            self._report(pod, status(pod, phase, inits, mains))
            return
        mains = [self._state(pod, "containers", index) for index in range(len(listed(pod, "spec", "containers")))]
        self._report(pod, status(pod, _phase(pod, mains), inits, mains))

    def _inits(self, pod: Body) -> tuple[list[Body], bool]:
        states: list[Body] = []
        done = True
        for index, container in enumerate(listed(pod, "spec", "initContainers")):
            if not done:
                states.append(waiting(container, "PodInitializing"))
                continue
            states.append(self._state(pod, "initContainers", index))
            is_sidecar = container.get("restartPolicy") == "Always"
            code = dig(states[-1], "state", "terminated", "exitCode")
            done = "running" in states[-1]["state"] if is_sidecar else code == 0
        return states, done

    def _state(self, pod: Body, field: str, index: int) -> Body:
        """The status of a container after it was started, ended or restarted, if it is time."""
        container = pod["spec"][field][index]
        one = self._containers.setdefault((field, index), _Container())
        now = time.monotonic()
        if one.started is None or (one.code is not None and _restarts(pod, container, field, one.code)):
            if one.code is not None and now < one.again_at:
                words = f"back-off 10s restarting failed container={container.get('name')}"
                return waiting(container, "CrashLoopBackOff", words, restarts=one.restarts)
            if missing := self._missing(pod, list(env_sources(container))):
                return waiting(container, "CreateContainerConfigError", missing, restarts=one.restarts)
            self._begin(pod, container, one, now)
        if one.code is None:
            one.code = self._exit_code(pod, container, field, one, now)
            if one.code is not None:
                back_off = BACK_OFF_SECONDS * 2**one.restarts
                one.again_at = now + min(back_off, BACK_OFF_SECONDS_MAX)
        if one.code is None:
            return {**running(container, _stamp()), "restartCount": one.restarts}
        return ended(container, one.code, _stamp(), init=field == "initContainers", restarts=one.restarts)

    def _begin(self, pod: Body, container: Body, one: _Container, now: float) -> None:
        if one.code is not None:
            one.restarts += 1
        one.started, one.code = now, None
        if self._folder is None:
            self._folder = self._sandbox.folder(pod)
        one.shell = self._sandbox.run(pod, container, self._folder)

    def _exit_code(self, pod: Body, container: Body, field: str, one: _Container, now: float) -> int | None:
        if annotations_of(pod).get(OUTCOME) == "fail" and field == "containers":
            return 1
        if one.shell is not None:
            return one.shell.code()
        stays = dig(pod, "spec", "restartPolicy") == "Always" and field == "containers"
        if stays or container.get("restartPolicy") == "Always":
            return None
        assert one.started is not None
        return 0 if field == "initContainers" or now - one.started > RUN_SECONDS else None

    def _missing(self, pod: Body, sources: list[Source]) -> str:
        """The words for a ConfigMap or Secret, or a key of it, that is not there."""
        namespace = metadata(pod)["namespace"]
        for source in sources:
            if source.optional:
                continue
            found = self._api.get(f"/api/v1/namespaces/{namespace}/{source.kind.lower()}s/{source.name}")
            if found.code != 200:
                return f'{source.kind.lower()} "{source.name}" not found'
            data = {**(found.body.get("data") or {}), **(found.body.get("binaryData") or {})}
            if ANY_KEY not in annotations_of(found.body):
                for key in source.keys:
                    if key not in data:
                        return f"couldn't find key {key} in {source.kind} {namespace}/{source.name}"
        return ""

    def _waiting(self, pod: Body) -> Body:
        inits = [waiting(one, "PodInitializing") for one in listed(pod, "spec", "initContainers")]
        mains = [waiting(one, "ContainerCreating") for one in listed(pod, "spec", "containers")]
        return status(pod, "Pending", inits, mains, networked=False)

    def _report(self, pod: Body, new: Body) -> None:
        shown = _without_times(new)
        if shown != self._reported:
            reply = self._api.patch(f"{_path(pod)}/status", {"status": new}, "strategic")
            if reply.code not in (200, 404):
                raise ValueError(reply.refusal)
            self._reported = shown


def _failed_for_good(pod: Body, state: Body) -> bool:
    code = dig(state, "state", "terminated", "exitCode")
    return bool(code) and dig(pod, "spec", "restartPolicy") == "Never"


def _restarts(pod: Body, container: Body, field: str, code: int) -> bool:
    policy = container.get("restartPolicy") or dig(pod, "spec", "restartPolicy")
    if policy == "Always":
        return field == "containers" or code != 0
    return bool(policy == "OnFailure") and code != 0


def _phase(pod: Body, mains: list[Body]) -> str:
    if any("waiting" in one["state"] for one in mains):
        return "Running" if any(one["restartCount"] for one in mains) else "Pending"
    policy = dig(pod, "spec", "restartPolicy")
    codes = [dig(one, "state", "terminated", "exitCode") for one in mains]
    if None in codes or policy == "Always" or (policy == "OnFailure" and any(codes)):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _path(pod: Body) -> str:
    return f"/api/v1/namespaces/{metadata(pod)['namespace']}/pods/{name_of(pod)}"


def _stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _without_times(body: object) -> object:
    if isinstance(body, dict):
        return {key: _without_times(value) for key, value in body.items() if not key.endswith(("At", "Time"))}
    return [_without_times(one) for one in body] if isinstance(body, list) else body
