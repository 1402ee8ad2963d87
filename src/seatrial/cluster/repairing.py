"""A cluster in which some obstacles are repaired: what was refused is accepted, what never got ready is ready.

Used to rehearse what comes after an obstacle. Decides nothing about which obstacles there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.cluster.discovery import crds
from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.refusal import Refused
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.verbs import writes
from seatrial.cluster.verbs.changes import defaulted, named_ref
from seatrial.cluster.verbs.reads import ref_for
from seatrial.cluster.view import View
from seatrial.kinds import Act, Acts, Create, Delete, Emit, Kind, Status, Update, World
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import controller_of, created_at, finalizers_of, is_terminating, with_metadata
from seatrial.kinds.operators.manifests import crd_of
from seatrial.kinds.operators.table import OperatorKind, is_cluster_scoped, plural_for
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.kinds.tables.removed import REMOVED
from seatrial.kinds.tables.shapes import shaped
from seatrial.kinds.webhooks.matching import NO_HOOKS
from seatrial.kinds.workloads.kubelet import ANY_KEY, continue_running
from seatrial.kinds.workloads.pod_status import ended, running, status
from seatrial.kinds.workloads.pods import is_finished, is_ready
from seatrial.kinds.workloads.scheduler import PINNED
from seatrial.model.refusal import GroupVersionKind, Refusal
from seatrial.model.repair import NO_REPAIRS, Repairs
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of, uid_of, without_mark

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
COUNTS_BY_NODE = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberReady",
)
ACTOR = "repair"
"""In the timeline, the actor of what only happens because an obstacle is assumed to be repaired."""
NODE = "node-a"
WRITTEN = ("create", "update", "patch")
NO_OBSTACLES = ("NotFound", "AlreadyExists")
"""Answers that are no obstacle: a client learns whether an object exists."""
WITH_PODS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"))
"""Kinds that get ready with their pods: those are repaired, and their own controllers do the rest."""
BY_OTHERS = frozenset(("Service", "CustomResourceDefinition", "Namespace"))
"""Kinds whose controllers always do their work."""
TRUE_CONDITIONS = ("Ready", "Available", "Established", "Synced")

Schemas = dict[tuple[str, str, str], Schema]
Write = Callable[["Cluster", ServedKind, Request], Reply]


class Repairing:
    """The repairs of one cluster."""

    def __init__(self, cluster: Cluster, repairs: Repairs = NO_REPAIRS) -> None:
        self._cluster = cluster
        self.repairs = repairs
        self._objects = frozenset(repairs.objects)
        self._removed = frozenset((one.group, one.kind) for one in repairs.kinds if _is_removed(one))
        """Built-in kinds of groups that have none any more, such as `extensions`: no controller acts on them."""
        self._services: set[tuple[object, object]] = set()
        """The backends of repaired webhooks."""
        self._pretended: set[Ref] = set()
        """Objects that the API server would not store. No controller acts on them."""

    def served(self, definitions: dict[tuple[str, str], Body]) -> Iterator[tuple[tuple[ServedKind, ...], Schemas]]:
        """The kinds that were not served, by their CRDs where there are any."""
        for kind in self.repairs.kinds:
            crd = definitions.get((kind.group, kind.kind)) or _made_up(kind)
            shown = {**crd, "status": {"conditions": [{"type": "Established", "status": "True"}]}}
            yield crds.served_kinds(shown), crds.schemas(shown)

    def write(self, kind: ServedKind, request: Request, write: Write) -> Reply:
        """Answer a write; one to a repaired object is not refused."""
        cluster = self._cluster
        if request.namespace in self.repairs.namespaces:
            self._provide_namespace(request.namespace)
        ref = named_ref(kind, request.body) if request.verb == "create" else ref_for(kind, request)
        ref = replace(ref, namespace=request.namespace) if kind.namespaced else ref
        if ref not in self._objects or request.verb not in WRITTEN:
            reply = write(cluster, kind, request)
            if ref in self._objects and (kind.kind, request.verb) == ("Namespace", "delete"):
                cluster.controllers.run_for((ref,))
            return reply
        hooks, cluster.hooks = cluster.hooks, NO_HOOKS
        try:
            return write(cluster, kind, replace(request, unheard=True))
        except Refused as refused:
            live = cluster.store.get(ref)
            if refused.refusal.reason in NO_OBSTACLES or not isinstance(request.body, dict):
                return write(cluster, kind, request)
            request = replace(request, body=without_mark(shaped(request.body)))
            if not request.dry_run:
                cluster.recorder.accepted(request.actor, request.verb, ref, request.body)
            return Reply(200, live if live is not None else self._pretend(kind, ref, request))
        finally:
            cluster.hooks = hooks

    def answers(self, name: str, client: Body) -> bool:
        """Whether a webhook answers: it is repaired, or its backend is that of a repaired one."""
        service = dig(client, "service", "namespace"), dig(client, "service", "name")
        if name in self.repairs.webhooks:
            self._services.add(service)
        return name in self.repairs.webhooks or (service[1] is not None and service in self._services)

    def concerns(self, ref: Ref) -> bool:
        return ref in self._objects or (ref.group, ref.kind) in self._removed

    def create_for(self, act: Create, actor: str, cause: int | None, view: View) -> None:
        """Create an object for a controller; a pod of a repaired object is not refused."""
        try:
            writes.create_for(self._cluster, act.body, act.owner, actor, cause, view)
        except Refused:
            if not self._was_created(act):
                raise

    def _was_created(self, act: Create) -> bool:
        owner = act.owner
        if owner is None or act.body.get("kind") != "Pod" or not self._is_of_repaired(self._cluster.ref_of(owner)):
            return False
        kind = self._cluster.kind_of(act.body)
        reference = {key: owner[key] for key in ("apiVersion", "kind")} | {"name": name_of(owner), "uid": uid_of(owner)}
        meta = {**metadata(act.body), "namespace": metadata(owner).get("namespace")}
        meta |= {"ownerReferences": [{**reference, "controller": True}]}
        if not meta.get("name"):
            meta["name"] = f"{meta.get('generateName', 'pod-')}repaired"
        if self._cluster.store.get(Ref("Pod", str(meta["namespace"]), str(meta["name"]))) is None:
            self._store(kind, {**act.body, "metadata": meta}, "create")
        return True

    def acts(self, ref: Ref, body: Body, kind: Kind | None, view: View) -> Acts | None:
        """What happens to an object instead of what its controller does; None if its controller acts."""
        if (ref.group, ref.kind) in self._removed and not is_terminating(body):
            return _run_workload(body)
        if not self._objects:
            return None
        if ref in self._pretended:
            return _nothing()
        if ref.kind == "Pod" and self._is_of_repaired(ref):
            stays = (dig(body, "spec", "restartPolicy") or "Always") == "Always"
            return None if is_ready(body) and stays and not is_terminating(body) else _run(body, view)
        if ref not in self._objects:
            return None
        if is_terminating(body):
            return _let_go(body) if finalizers_of(body) else None
        if ref.kind in WITH_PODS or ref.kind in BY_OTHERS:
            return None
        return _get_ready(body, kind)

    def _is_of_repaired(self, ref: Ref) -> bool:
        """Whether an object, or an object that owns it, is repaired."""
        while ref not in self._objects:
            body = self._cluster.store.get(ref)
            owner = controller_of(body) if body is not None else None
            above = self._cluster.store.by_uid(str(owner.get("uid"))) if owner else None
            if above is None:
                return False
            ref = above
        return True

    def _provide_namespace(self, name: str) -> None:
        if self._cluster.store.get(Ref("Namespace", "", name)) is None:
            kind = self._cluster.discovery.of_kind("", "Namespace")
            assert kind is not None
            self._store(kind, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "create")

    def _pretend(self, kind: ServedKind, ref: Ref, request: Request) -> Body:
        """Store an object that the API server would refuse. Dry runs store nothing."""
        meta = {**metadata(request.body), "name": ref.name}
        if ref.namespace:
            meta["namespace"] = ref.namespace
        body = {**request.body, "metadata": meta}
        if request.dry_run:
            return body
        self._pretended.add(ref)
        return self._store(kind, {**body, "status": _ready_status(body)}, request.verb, defaults=False)

    def _store(self, kind: ServedKind, body: Body, verb: str, *, defaults: bool = True) -> Body:
        cluster = self._cluster
        ref = named_ref(kind, body)
        whole = defaulted(kind, body) if defaults else body
        given = {"uid": cluster.store.new_uid(ref), "creationTimestamp": cluster.store.now(), "generation": 1}
        stored = cluster.store.put(ref, {**whole, "metadata": {**metadata(whole), **given}})
        index = cluster.recorder.note(ACTOR, verb, ref, "created", "as if it were repaired", after=stored)
        cluster.changed(ref, None, stored, index)
        return stored


def _nothing() -> Acts:
    yield from ()


def _let_go(body: Body) -> Acts:
    yield Update(with_metadata(body, finalizers=[]))


def _run(pod: Body, world: World) -> Acts:
    """A pod that starts, whatever it lacks, and ends well if it is meant to end."""
    mains, inits = listed(pod, "spec", "containers"), listed(pod, "spec", "initContainers")
    since = created_at(pod)
    done = [ended(container, 0, since, init=True) for container in inits]
    if is_terminating(pod):
        yield Delete(pod, why="its containers have stopped", now=True)
    elif is_finished(pod):
        return
    elif not dig(pod, "spec", "nodeName"):
        pinned = next((dig(field, "values", 0) for field in listed(pod, "spec", *PINNED)), None)
        yield Update({**pod, "spec": {**pod["spec"], "nodeName": pinned or NODE}})
    elif not is_ready(pod):
        yield Status(pod, status(pod, "Running", done, [running(container, since) for container in mains]))
    else:
        yield from _done(pod, world)
        yield Status(pod, status(pod, "Succeeded", done, [ended(container, 0, since) for container in mains]))


def _done(pod: Body, world: World) -> Acts:
    """What the scripts of a pod do, without how they end."""
    acts, answer = continue_running(pod, world), None
    while (act := _next(acts, answer)) is not None:
        answer = None if isinstance(act, Status | Emit) else (yield act)


def _next(acts: Acts, answer: Refusal | None) -> Act | None:
    try:
        return acts.send(answer)
    except StopIteration:
        return None


def _get_ready(body: Body, kind: Kind | None) -> Acts:
    """An object that says it is ready, and what its controller would have created for it."""
    for ref in kind.produces(body) if kind is not None else ():
        if ref.kind in ("Secret", "ConfigMap"):
            meta = {"name": ref.name, "namespace": ref.namespace, "annotations": {ANY_KEY: "assumed"}}
            yield Create({"apiVersion": "v1", "kind": ref.kind, "metadata": meta, "data": {}})
    yield Status(body, _ready_status(body))


def _run_workload(body: Body) -> Acts:
    """A workload of a removed kind whose pods run: clients look at the counts of some of these too."""
    count = dig(body, "spec", "replicas")
    count = 1 if count is None else count
    done = condition(body, "Progressing", "True", "NewReplicaSetAvailable")
    status = _ready_status(body)
    counts = dict.fromkeys(COUNTS, count) | dict.fromkeys(COUNTS_BY_NODE, 1)
    yield Status(body, {**status, **counts, "conditions": [*status["conditions"], done]})


def _ready_status(body: Body) -> Body:
    """A status that most readers take for ready."""
    if body.get("kind") == "PersistentVolumeClaim":
        spec = body.get("spec") or {}
        amount = dig(spec, "resources", "requests") or {}
        return {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": amount}
    if body.get("kind") == "Job":
        return {"succeeded": 1, "conditions": [condition(body, "Complete", "True", "Repaired")]}
    if body.get("kind") == "Pod":
        return {"phase": "Succeeded"}
    address = {"ingress": [{"ip": "192.0.2.1"}]}
    return {
        "conditions": [condition(body, name, "True", "Repaired") for name in TRUE_CONDITIONS],
        "loadBalancer": address,
        "observedGeneration": metadata(body).get("generation", 1),
    }


def _is_removed(kind: GroupVersionKind) -> bool:
    return (kind.group, kind.version, kind.kind) in REMOVED and (kind.group, kind.kind) not in CATALOGUE


def _made_up(kind: GroupVersionKind) -> Body:
    clustered = is_cluster_scoped(kind.group, kind.kind)
    plural = plural_for(kind.group, kind.kind)
    return crd_of(OperatorKind(kind.group, kind.kind, plural, not clustered, (), (), ()), [kind.version], kind.version)
