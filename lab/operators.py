"""Plays the operators of a plan on the real cluster, with the behaviour that `kinds` has for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from apiclient import Api
from msgspec.structs import replace

from lab.node_time import NodeTime
from lab.resources import Resource, discovered
from seatrial.kinds import Act, Acts, Call, Create, Delete, Emit, Kind, Status, Update, known
from seatrial.kinds.core.objectmeta import controller_reference, generation_of
from seatrial.kinds.operators import starting
from seatrial.kinds.operators.generic import described_kinds, is_description, operator_in
from seatrial.kinds.operators.reconcile import CA_BUNDLE
from seatrial.kinds.operators.table import operator_kinds, workload_of
from seatrial.kinds.webhooks import cabundle
from seatrial.kinds.workloads.pods import is_ready
from seatrial.live.seen import IsServed, Read, Seen
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, dig, group_of, listed, metadata, name_of, ref_of, uid_of, version_of

RECONCILE_SECONDS = 0.25
"""How long an operator takes to notice a change."""
LOOKS_MAX = 40
"""How often a controller looks again because it wants to read more."""


class Operators:
    """The operators of one plan."""

    def __init__(self, api: Api, clock: NodeTime, bundle: str) -> None:
        self._api = api
        self._time = clock
        self._bundle = bundle
        """The CA in place of the one that the embedded cluster writes, which is no certificate."""
        self._are_used = False
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._served: dict[tuple[str, str], Resource] = {}

    def play(self, bodies: Iterable[Body]) -> None:
        """Play the operators of these objects from now on, and no others."""
        found: dict[tuple[str, str], Kind] = {}
        are_used = False
        for body in bodies:
            key = (group_of(str(body.get("apiVersion"))), str(body.get("kind")))
            are_used = (
                are_used or is_description(ref_of(body)) or key in operator_kinds() or workload_of(body) is not None
            )
            if is_description(ref_of(body)):
                found |= {(kind.group, kind.kind): kind for kind in described_kinds(operator_in(body))}
            elif key in operator_kinds():
                operator, _ = operator_kinds()[key]
                names = ((kind.group, kind.kind) for kind in operator.kinds)
                found |= {name: known()[name] for name in names if name in known()}
        self._are_used, self._kinds = are_used, found

    def act(self) -> None:
        if not self._are_used:
            return
        self._served = {(one.group, one.kind): one for one in discovered(self._api)}
        for (group, name), kind in self._kinds.items():
            for body in self._bodies(Read(name, group)):
                self._reconcile(body, kind.behave)
        for pod in self._bodies(Read("Pod", "")):
            if is_ready(pod) and not metadata(pod).get("deletionTimestamp"):
                self._reconcile(pod, starting.start)
        for holder in cabundle.HOLDERS:
            for body in self._bodies(Read(holder.kind, holder.group)):
                if cabundle.wants_injection(body):
                    self._reconcile(body, cabundle.behave)

    def _reconcile(self, body: Body, behave: Callable[[Body, Seen], Acts]) -> None:
        """Run a controller until it has read all that it wants to know; only then does it write."""
        state = f"{generation_of(body)} {bool(metadata(body).get('deletionTimestamp'))}"
        if not self._time.is_over(f"reconcile {uid_of(body)} {state}", RECONCILE_SECONDS):
            return
        world = Seen()
        for _ in range(LOOKS_MAX):
            if self._run(behave(body, world), world):
                return
            for read in list(world.unread):
                world.cover(read, self._bodies(read))
            for question in list(world.unanswered):
                is_served = isinstance(question, IsServed) and (question.group, question.kind) in self._served
                world.reply(question, "" if is_served else "not served")

    def _run(self, acts: Acts, world: Seen) -> bool:
        """Whether it ran to its end; it does not while it wants to read more."""
        refusal: Refusal | None = None
        try:
            while True:
                act = acts.send(refusal)
                if world.unread or world.unanswered:
                    return False
                refusal = self._execute(act)
        except StopIteration:
            return not (world.unread or world.unanswered)

    def _execute(self, act: Act) -> Refusal | None:
        match act:
            case Create(body, owner):
                meta = dict(metadata(body))
                if owner is not None:
                    meta["ownerReferences"] = [*listed(meta, "ownerReferences"), controller_reference(owner)]
                return self._send("POST", self._path(body, named=False), {**body, "metadata": meta})
            case Update(body):
                return self._send("PUT", self._path(body), body)
            case Status(body, status):
                return self._send("PUT", f"{self._path(body)}/status", {**body, "status": status})
            case Delete(body):
                return self._send("DELETE", self._path(body), None)
            case Emit() | Call():
                return None

    def _send(self, method: str, path: str, body: Body | None) -> Refusal | None:
        """The refusal, if there is one. A write that is based on an old state is repeated with the next look."""
        text = None if body is None else json.dumps(body).replace(CA_BUNDLE, self._bundle).encode()
        reply = self._api.send(method, path, text)
        if reply.code < 400 or reply.code == 409:
            return None
        return Refusal(reply.code, str(dig(reply.body, "reason") or ""), str(dig(reply.body, "message") or ""))

    def _path(self, body: Body, *, named: bool = True) -> str:
        group, kind = group_of(str(body["apiVersion"])), str(body["kind"])
        resource = self._served.get((group, kind)) or Resource(group, "v1", kind, f"{kind.lower()}s", True)
        resource = replace(resource, version=version_of(str(body["apiVersion"])))
        return resource.path(str(metadata(body).get("namespace") or ""), name_of(body) if named else "")

    def _bodies(self, read: Read) -> list[Body]:
        resource = self._served.get((read.group, read.kind))
        if resource is None:
            return []
        found = listed(self._api.get(resource.path(read.namespace)).body, "items")
        bodies = [{**body, "apiVersion": resource.api_version, "kind": resource.kind} for body in found]
        return [body for body in bodies if read.matches(ref_of(body), body)]
