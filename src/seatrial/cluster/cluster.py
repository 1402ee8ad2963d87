"""One Kubernetes in memory: answers requests, runs controllers as its schedule says, records everything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from seatrial import kinds
from seatrial.cluster.controllers import Controllers
from seatrial.cluster.death import Death, written_ref
from seatrial.cluster.discovery import crds
from seatrial.cluster.discovery.openapi import OpenAPI
from seatrial.cluster.discovery.schema import Schema, builtin_schema
from seatrial.cluster.discovery.served import Discovery
from seatrial.cluster.events import EmittedEvent
from seatrial.cluster.pace import Pace
from seatrial.cluster.program_calls import request_of
from seatrial.cluster.provision import Provision
from seatrial.cluster.record import CLOCK, Recorder
from seatrial.cluster.refusal import Refused, unavailable, unknown_resource
from seatrial.cluster.repairing import Repairing
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.server import routes
from seatrial.cluster.store import Store
from seatrial.cluster.touched import REQUEST
from seatrial.cluster.verbs import changes, deletion, rbac, reads, reviews, writes
from seatrial.cluster.verbs.instantiate import instantiate
from seatrial.cluster.view import View
from seatrial.cluster.watch import Watch, Watches
from seatrial.kinds import Act, Call, Create, Deadline, Delete, Emit, Status, Update
from seatrial.kinds.operators import generic
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.webhooks import apiservice, matching
from seatrial.model.mix import Mix
from seatrial.model.refusal import Refusal
from seatrial.model.repair import Repairs
from seatrial.model.resource import Body, Ref, dig, group_of, ref_of, uid_of, version_of
from seatrial.model.timeline import Event, Schedule

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
NODES = ("node-a", "node-b")

WRITES = {
    "create": writes.create,
    "update": writes.update,
    "patch": writes.patch,
    "delete": deletion.delete,
    "deletecollection": deletion.delete_collection,
}
NOT_FOUND = 404
PASSES_MAX = 1_000  # of deadlines while no client waits


class Cluster:
    """The API server and everything behind it."""

    def __init__(
        self,
        kube_version: str = "1.34",
        schedule: Schedule = "eager",
        seed: int = 0,
        *,
        mix: Mix | None = None,
        explains: bool = False,
    ) -> None:
        """`explains`: the OpenAPI documents have full schemas, for `kubectl explain`. Helm only needs their paths."""
        self.kube_version = kube_version
        self.minor = int(kube_version.partition(".")[2])
        self.schedule = schedule
        self._idle = False
        self._program: View | None = None
        self.store = Store()
        self.discovery = Discovery(kube_version)
        self.openapi = OpenAPI(self.discovery, self.custom_schema_of, with_schemas=explains)
        self.recorder = Recorder()
        self.watches = Watches(self.store)
        self.lock = threading.RLock()
        self.controllers = Controllers(self.store, kinds.known(), self.view, self._do, self._collect)
        self.pace = Pace(schedule, self.controllers, seed, mix)
        self._custom_schemas: dict[tuple[str, str, str], Schema] = {}
        self.emitted: list[EmittedEvent] = []
        self._last_messages: dict[tuple[str, str], str] = {}
        self.stored_in: dict[Ref, str] = {}
        """The storage version of each custom resource: that of its CRD at the last write."""
        self.hooks = matching.NO_HOOKS
        self.warnings: list[str] = []
        """Warnings for the client."""
        self.notes: list[str] = []
        self.unanswered: list[str] = []
        """Notes on the current write for the timeline."""
        self.provision = Provision(self)
        self.repairing = Repairing(self)
        self.death = Death()
        self.awaited_kinds: frozenset[tuple[str, str]] = frozenset()
        """Groups and kinds whose objects the client waits for after each write, although it does not ask."""
        self._start()

    def repair(self, repairs: Repairs, definitions: dict[tuple[str, str], Body]) -> None:
        """Assume that obstacles are repaired, from the start; `definitions` are the known CRDs by group and kind."""
        self.repairing = self.controllers.repairing = Repairing(self, repairs)
        for kinds_served, schemas in self.repairing.served(definitions):
            self._custom_schemas.update(schemas)
            self.discovery.add(kinds_served)

    def view(self) -> View:
        """A new view of the cluster, which records what is read through it; for a program, that of its pod."""
        if self._program is not None:
            return self._program
        controllers, worst_case = self.controllers, self.schedule == "lazy"
        of = self.store, self._serves, controllers.indexes, controllers.clock
        return controllers.touches.viewed(View(*of, worst_case, idle=self._idle))

    def request(self, request: Request) -> Reply:
        """Answer one request. After a write, controllers run as far as the schedule allows."""
        with self.lock:
            self._begin()
            try:
                kind = self.admitted_kind(request)
                self.death.refuse(kind, request)
                if (review := reviews.answer(self, request)) is not None:
                    return review
                if request.verb not in WRITES:
                    return reads.answer(self, kind, request)
                self.controllers.begin()
                reply = self._write(kind, request)
                self.death.wrote(kind, request)
                return reply
            except Refused as refused:
                refusal = refused.refusal
                if request.verb not in WRITES and refusal.code != NOT_FOUND and self.death.at is None:
                    self.recorder.read_refused(refusal)
                return Reply(refused.code, refused.status(), tuple(self.warnings), refusal=refusal)

    def watch(self, request: Request, *, initial_events: bool | None, bookmarks: bool) -> Watch:
        """Open a watch; raises `Refused` if the requested version has expired."""
        with self.lock:
            kind = self.admitted_kind(request)
            return self.watches.open(kind, request, initial_events=initial_events, bookmarks=bookmarks)

    def admitted_kind(self, request: Request) -> ServedKind:
        """The kind of a request; raises `Refused` if it is not served, or not for this user."""
        rbac.authorize(self, request)
        return self._kind_for(request)

    def awaits(self, targets: Iterable[Ref], *, rarely: bool = False) -> None:
        """A client waits for these objects: a slow cluster runs controllers for them, and for nothing else.

        On an ordinary cluster seconds pass if they need them, and all controllers run. A client that polls `rarely`
        also gives time to objects that only wait for time.
        """
        awaited = tuple(targets)
        with self.lock:
            if self.schedule == "eager" and self.controllers.idle:
                return
            self.recorder.fence()
            if self.schedule in ("eager", "ordinary"):
                self._pass_seconds(awaited)
                return
            self.pace.run_for(awaited)
            if rarely:
                self._run_idle(lambda: self.pace.run_for(awaited))

    def outwait(self, targets: Iterable[Ref], seconds: float) -> dict[Ref, float]:
        """A client waits this many seconds for these objects and nothing changes: the first of their deadlines passes.

        Returns the objects whose deadline passed, and after how many seconds.
        """
        awaited = tuple(targets)
        with self.lock:
            self.recorder.fence()
            overdue = self.controllers.outwait(awaited, seconds, self._note_deadline)
            if self.schedule in ("eager", "ordinary"):
                self.controllers.run()
            self.awaits(awaited)
            return overdue

    def settle(self) -> None:
        """Run all controllers until they are idle."""
        with self.lock:
            self.recorder.fence()
            self.controllers.run()
            self._run_idle(self.controllers.run)

    def _pass_seconds(self, awaited: tuple[Ref, ...]) -> None:
        """Run all controllers, unless the awaited objects are ready and no controller is to act for them."""
        controllers = self.controllers
        if not all(map(controllers.is_ready, awaited)) or controllers.needs_seconds(awaited):
            controllers.run()

    def _run_idle(self, run: Callable[[], None]) -> None:
        self._idle = True
        self.controllers.rest()
        run()
        self._idle = False

    def timeline(self) -> tuple[Event, ...]:
        return self.recorder.timeline()

    def changed(self, ref: Ref, before: Body | None, after: Body | None, cause: int | None) -> None:
        """An object was stored or removed: notify watches, controllers and discovery."""
        self.watches.changed()
        self.controllers.touches.wrote(ref)
        if ref.kind == "CustomResourceDefinition":
            self._crd_changed(before, after, cause)
        elif ref.group == matching.GROUP and ref.kind in matching.CONFIGURATIONS:
            bodies = (self.store.of_kind((ref.group, kind)) for kind in matching.CONFIGURATIONS)
            self.hooks = matching.read(*bodies)
        elif ref.kind == "APIService" and ref.group == apiservice.GROUP:
            self._api_service_changed(before, after)
        elif after is not None and generic.is_description(ref):
            self.controllers.learn(generic.described_kinds(generic.operator_in(after)))
        self.controllers.changed(ref, before, after, cause)
        self.provision.changed(ref, before, after, cause)
        if after is None and before is not None:
            self._removed(before, cause)

    def warn(self, message: str) -> None:
        """Warn the client and the timeline."""
        self.warnings.append(message)
        self.notes.append(message)

    def missing_owners(self, body: Body) -> Iterable[str]:
        """Owners that an object names and that do not exist."""
        owners = body["metadata"].get("ownerReferences") or ()
        return (uid for owner in owners if self.store.by_uid(uid := str(owner.get("uid", ""))) is None)

    def _start(self) -> None:
        for name in SYSTEM_NAMESPACES:
            self._create_initial({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in NODES:
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            node: Body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}}
            self._create_initial({**node, "status": {"conditions": [ready]}})
        self.controllers.run()

    def _create_initial(self, body: Body) -> None:
        kind = self.discovery.of_kind("", body["kind"])
        assert kind is not None
        writes.create_object(self, kind, body, actor="kubernetes", cause=None, view=self.view())

    def _kind_for(self, request: Request) -> ServedKind:
        if self.discovery.is_down(request.group, request.version):
            raise unavailable()
        kind = self.discovery.find(request.group, request.version, request.plural)
        if kind is None:
            raise unknown_resource()
        routes.refuse_misplaced(kind, request)
        return kind

    def _write(self, kind: ServedKind, request: Request) -> Reply:
        self.controllers.touches.begin((REQUEST, written_ref(kind, request)))
        write = instantiate if request.subresource == "instantiate" else WRITES[request.verb]
        request = writes.as_written(self, kind, request, write)
        reply = self.repairing.write(kind, request, write) if self.repairing.repairs else write(self, kind, request)
        if self.warnings:
            reply = replace(reply, warnings=(*reply.warnings, *self.warnings))
        self.pace.after_write()
        if (kind.group, kind.kind) in self.awaited_kinds and reply.body:
            self.awaits((self.ref_of(reply.body),))
        return reply

    def _begin(self) -> None:
        """Warnings and notes belong to one write."""
        self.warnings, self.notes, self.unanswered = [], [], []

    def _serves(self, kind: str, group: str) -> bool:
        return self.discovery.of_kind(group, kind) is not None

    def _do(self, act: Act, actor: str, cause: int | None, view: View) -> Refusal | None:
        """Execute an act of a controller; the API server may refuse it."""
        self._begin()
        try:
            match act:
                case Create():
                    self.repairing.create_for(act, act.by or actor, cause, view)
                case Status(body, status):
                    changes.put_status(self, body, status, actor, cause)
                case Update(body, by):
                    changes.replace(self, body, by or actor, cause, view, manager=by)
                case Delete():
                    deletion.delete_for(self, act, actor, cause, view)
                case Emit():
                    self._emit(act, actor, cause)
                case Call():
                    self._call(act, cause, view)
        except Refused as refused:
            self._note_refusal(act, refused.refusal, actor, cause)
            return refused.refusal
        return None

    def _call(self, call: Call, cause: int | None, view: View) -> None:
        """Answer a request of the program in a pod."""
        kind = self.kind_of({"apiVersion": call.api_version, "kind": call.kind})
        request = request_of(kind, call, cause)
        self._program, start = view, self.recorder.count
        try:
            WRITES[call.verb](self, kind, request)
        finally:
            self._program = None
        self.recorder.mark_made_up(start, call.by, call.not_followed)

    def _note_refusal(self, act: Act, refusal: Refusal, actor: str, cause: int | None) -> None:
        """Controllers report refused creations themselves. Refused updates and deletions are recorded here."""
        match act:
            case Update(body) | Delete(body):
                verb = "delete" if isinstance(act, Delete) else "update"
                if self._last_messages.get((uid_of(body), verb)) != refusal.message:
                    self._last_messages[uid_of(body), verb] = refusal.message
                    self.recorder.refused(actor, verb, self.ref_of(body), refusal, cause)

    def pass_time(self, seconds: float) -> None:
        """No client waits this long. What scripts and Jobs wait for in that time happens."""
        with self.lock:
            end = self.controllers.clock.now_seconds + seconds
            for _ in range(PASSES_MAX):
                refs = self.store.refs(("", "Pod"), ("batch", "Job"))
                left = end - self.controllers.clock.now_seconds
                if not self.controllers.outwait(refs, left, self._note_deadline):
                    return
                self.settle()

    def _note_deadline(self, ref: Ref, deadline: Deadline) -> int:
        message = f"its deadline passed after {deadline.seconds:g} seconds without a change"
        message = deadline.says.format(f"{deadline.seconds:g}") or message
        return self.recorder.note(CLOCK, "say", ref, "said", message)

    def _emit(self, event: Emit, actor: str, cause: int | None) -> None:
        body, reason, message = event.body, event.reason, event.message
        ref, uid = self.ref_of(body), uid_of(body)
        if self._last_messages.get((uid, reason)) == message:
            return
        self._last_messages[uid, reason] = message  # by uid: a recreated object starts from zero
        self.recorder.controller_said(actor, ref, event, cause)
        api_version, now = str(body.get("apiVersion")), self.store.now()
        self.emitted.append(EmittedEvent(ref, uid, api_version, actor, reason, message, event.warning, now))

    def finish_deletion(self, ref: Ref, body: Body, actor: str, cause: int | None) -> None:
        deletion.finish(self, ref, body, actor, cause)

    def kind_of(self, body: Body) -> ServedKind:
        """The kind of an object that a controller writes."""
        api_version = str(body.get("apiVersion", ""))
        kind = self.discovery.of_kind(group_of(api_version), body["kind"], version_of(api_version))
        if kind is None:
            raise unknown_resource()
        return kind

    def is_custom(self, kind: ServedKind) -> bool:
        return (kind.group, kind.version, kind.kind) in self._custom_schemas

    def is_custom_kind(self, group: str, kind: str) -> bool:
        return any(key[0] == group and key[2] == kind for key in self._custom_schemas)

    def custom_schema_of(self, kind: ServedKind) -> Schema | None:
        return self._custom_schemas.get((kind.group, kind.version, kind.kind))

    def printer_columns(self, kind: ServedKind) -> list[Body]:
        """The columns of `kubectl get` for a custom kind."""
        return crds.printer_columns(self.crd_of(kind), kind.version)

    def crd_of(self, kind: ServedKind) -> Body:
        """The CRD of a custom kind."""
        return self.store.get(self.crd_ref(kind)) or {}

    def crd_ref(self, kind: ServedKind) -> Ref:
        return Ref("CustomResourceDefinition", "", f"{kind.plural}.{kind.group}", "apiextensions.k8s.io")

    def schema_of(self, kind: ServedKind) -> Schema | None:
        custom = self.custom_schema_of(kind)
        return custom if custom is not None else self.builtin_schema_of(kind)

    def builtin_schema_of(self, kind: ServedKind) -> Schema | None:
        return builtin_schema(self.kube_version, kind.group, kind.version, kind.kind)

    def ref_of(self, body: Body) -> Ref:
        kind = self.discovery.of_kind(str(body.get("apiVersion", "")).rpartition("/")[0], body["kind"])
        return ref_of(body, namespaced=kind is None or kind.namespaced)

    def _collect(self, uid: str, cause: int | None, view: View) -> None:
        deletion.collect(self, uid, cause, view)

    def _removed(self, before: Body, cause: int | None) -> None:
        uid = uid_of(before)
        if self.store.dependents(uid):
            self.controllers.orphaned(uid, cause)
        for owner in before["metadata"].get("ownerReferences") or ():
            self.controllers.orphaned(str(owner.get("uid", "")), cause)

    def _api_service_changed(self, before: Body | None, after: Body | None) -> None:
        """An aggregated group-version is unavailable until its APIService is Available."""
        for body in filter(None, (before, after)):
            self.discovery.set_up(*apiservice.group_version_of(body))
        if after is not None and dig(after, "spec", "service") and not apiservice.ready(after):
            self.discovery.set_down(*apiservice.group_version_of(after))

    def _crd_changed(self, before: Body | None, after: Body | None, cause: int | None) -> None:
        """A kind is served while its CRD is Established."""
        old, new = crds.served_kinds(before), crds.served_kinds(after)
        for key, schema in crds.schemas(after).items():
            known = self._custom_schemas.get(key)
            # Results are cached by schema, and most writes to a CRD change its status alone.
            if known is None or known.node != schema.node:
                self._custom_schemas[key] = schema
        if old == new:
            return
        for kind in old:
            self.discovery.remove(kind.group, kind.plural)
        self.discovery.add(new)
        for group, name in sorted({(kind.group, kind.kind) for kind in (*old, *new)}):
            self.controllers.served_changed(group, name, cause)
        self.provision.served(cause)
