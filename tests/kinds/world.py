"""A small world for kinds to behave in: objects in a dict, controllers that run until nothing moves any more.

It names, defaults, admits and collects garbage as far as the kinds can tell, and no further.
"""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

from seatrial.kinds import Act, Create, Delete, Emit, Kind, Status, Update, known
from seatrial.kinds.tables.catalogue import cluster_scoped
from seatrial.kinds.workloads.images import running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import ANY_CLAIM, claim_of_volume
from seatrial.model.refusal import Refusal
from seatrial.model.resource import (
    Body,
    Ref,
    dig,
    group_of,
    labels_of,
    metadata,
    name_of,
    ref_of,
    uid_of,
)

NODES = """
apiVersion: v1
kind: Node
metadata: {name: node-a}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
"""
ROUNDS_MAX = 300


def bodies(text: str) -> list[Body]:
    return [body for body in yaml.safe_load_all(text) if body]


class SmallWorld:
    """`kinds.World`, and what stands behind it."""

    def __init__(self, text: str = "", *, worst_case: bool = False) -> None:
        self.objects: dict[Ref, Body] = {}
        self.said: list[str] = []
        self.deleted: list[str] = []
        self.worst_case = worst_case
        self.idle = True
        self.now_seconds = 0.0
        self._memories: dict[str, dict[str, Any]] = {}
        self._lives: dict[str, int] = {}
        self.apply(NODES)
        self.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}")
        self.run()
        self.apply(text)

    # what a kind sees

    def get(self, ref: Ref) -> Body | None:
        return self.objects.get(ref)

    def peek(self, ref: Ref) -> Body | None:
        return self.objects.get(ref)

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        return [body for body in self._of(kind, group) if uid_of(owner) in _controllers(body)]

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        assert labels, "an empty selection is all()"
        return [body for body in self.all(kind, namespace, group) if labels.items() <= labels_of(body).items()]

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        return [body for body in self._of(kind, group) if namespace in ("", metadata(body).get("namespace"))]

    def content(self, namespace: str) -> list[Body]:
        return [body for ref, body in sorted(self.objects.items()) if ref.namespace == namespace]

    def running(self, image: str) -> list[Body]:
        return [body for _, body in sorted(self.objects.items()) if image in running_images(body)]

    def using(self, claim: Ref) -> list[Body]:
        return [body for _, body in sorted(self.objects.items()) if claim in used_claims(body)]

    def volumes_for(self, claim: Ref) -> list[Body]:
        wanted = {claim, ANY_CLAIM}
        return [body for _, body in sorted(self.objects.items()) if wanted & set(claim_of_volume(body))]

    def served(self, kind: str, group: str) -> bool:
        return True

    def age_seconds(self, body: Body) -> float:
        return self.now_seconds

    def memory(self, uid: str) -> dict[str, Any]:
        return self._memories.setdefault(uid, {})

    # what a test does

    def apply(self, text: str) -> SmallWorld:
        """Create what is new, change what is there."""
        for body in bodies(text):
            ref = _ref(body)
            if ref in self.objects:
                self.change(ref, body)
            else:
                refusal = self.create(body)
                assert refusal is None, refusal
        return self

    def change(self, ref: Ref, body: Body) -> None:
        """Put as a client: what it leaves out of metadata stays, its status does not count."""
        live, kind = self.objects[ref], _kind(ref)
        new = {**body, "metadata": {**metadata(live), **metadata(body)}, "status": live.get("status", {})}
        new = kind.default(new) if kind.default else new
        new = kind.prepare(new, live) if kind.prepare else new
        refusals = list(kind.immutable(live, new)) if kind.immutable else []
        assert not refusals, refusals
        self._put(ref, new)

    def delete(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> SmallWorld:
        self._mark(Ref(kind, namespace, name, group))
        return self

    def run(self) -> SmallWorld:
        """Until a whole round changes nothing; then once more, to see that nothing changes."""
        for _ in range(ROUNDS_MAX):
            before = dict(self.objects)
            for ref in sorted(self.objects):
                self._move(ref)
            self._collect()
            if before == self.objects:
                return self
        raise AssertionError("the controllers do not come to rest")

    def step(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> SmallWorld:
        """Let one object behave once."""
        self._move(Ref(kind, namespace, name, group))
        return self

    def object(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> Body:
        return self.objects[Ref(kind, namespace, name, group)]

    def status(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> Body:
        """The status without times."""
        found: Body = without_times(self.object(kind, name, namespace, group).get("status") or {})
        return found

    def names(self, kind: str, group: str = "") -> list[str]:
        return [name_of(body) for body in self._of(kind, group)]

    # what a kind does

    def create(self, body: Body, owner: Body | None = None) -> Refusal | None:
        if owner is not None:
            body = {**body, "metadata": {**metadata(body), "ownerReferences": [_owner_reference(owner)]}}
        body = self._placed(body)
        if refusal := self._refused(body):
            return refusal
        body = self._named(body)
        ref, kind = _ref(body), _kind(_ref(body))
        if ref in self.objects:
            return Refusal(409, "AlreadyExists", f'{ref.kind.lower()}s "{ref.name}" already exists')
        body = kind.default(body) if kind.default else body
        meta = {**metadata(body), "uid": self._uid(ref), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        body = {**body, "metadata": meta}
        self.objects[ref] = kind.prepare(body, None) if kind.prepare else body
        return None

    def _move(self, ref: Ref) -> None:
        body = self.objects.get(ref)
        if body is None:
            return
        acts = _kind(ref).behave(body, self)
        answer: Refusal | None = None
        try:
            while True:
                answer = self._do(acts.send(answer))
        except StopIteration:
            pass

    def _do(self, act: Act) -> Refusal | None:
        match act:
            case Create(body, owner):
                return self.create(body, owner)
            case Status(body, status):
                self._put(_ref(body), {**self.objects[_ref(body)], "status": status})
            case Update(body):
                self._put(_ref(body), body)
            case Delete(body, _, now):
                self._remove(_ref(body)) if now else self._mark(_ref(body))
            case Emit(body, reason, message):
                words = f"{_ref(body)} {reason}: {message}"
                self.said += [words] if words not in self.said else []
        return None

    def _put(self, ref: Ref, body: Body) -> None:
        live = self.objects[ref]
        if body.get("spec") != live.get("spec"):
            body = {**body, "metadata": {**metadata(body), "generation": metadata(live)["generation"] + 1}}
        self.objects[ref] = body
        if metadata(body).get("deletionTimestamp") and not self._is_held(ref, body):
            self._remove(ref)

    def _mark(self, ref: Ref) -> None:
        body = self.objects.get(ref)
        if body is None or metadata(body).get("deletionTimestamp"):
            return
        kind = _kind(ref)
        body = kind.deleting(body) if kind.deleting else body
        marked = {**body, "metadata": {**metadata(body), "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        if self._is_held(ref, marked):
            self.objects[ref] = marked
        else:
            self._remove(ref)

    def _is_held(self, ref: Ref, body: Body) -> bool:
        on_a_node = ref.kind == "Pod" and dig(body, "spec", "nodeName") is not None
        return bool(metadata(body).get("finalizers") or on_a_node or dig(body, "spec", "finalizers"))

    def _remove(self, ref: Ref) -> None:
        if not metadata(self.objects.get(ref) or {}).get("finalizers"):
            self.objects.pop(ref)
            self.deleted.append(str(ref))

    def _collect(self) -> None:
        there = {uid_of(body) for body in self.objects.values()}
        for ref, body in list(self.objects.items()):
            owners = [owner["uid"] for owner in metadata(body).get("ownerReferences") or ()]
            if owners and not there & set(owners):
                self._mark(ref)

    def _refused(self, body: Body) -> Refusal | None:
        """What the API server's own admission says of a creation."""
        name = metadata(body).get("name") or metadata(body).get("generateName")
        namespace = metadata(body).get("namespace")
        home = Ref("Namespace", "", str(namespace))
        if metadata(self.objects.get(home, {})).get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            return Refusal(403, "Forbidden", f'{body["kind"].lower()}s "{name}" is forbidden: {why}', terminating=home)
        account = dig(body, "spec", "serviceAccountName") or "default"
        if body["kind"] == "Pod" and Ref("ServiceAccount", str(namespace), account) not in self.objects:
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            return Refusal(403, "Forbidden", f'pods "{name}" is forbidden: {why}')
        return None

    def _placed(self, body: Body) -> Body:
        if cluster_scoped(group_of(body["apiVersion"]), body["kind"]):
            return body
        return {**body, "metadata": {"namespace": "demo", **metadata(body)}}

    def _named(self, body: Body) -> Body:
        meta = metadata(body)
        if "name" not in meta:
            count = self._lives[meta["generateName"]] = self._lives.get(meta["generateName"], 0) + 1
            meta = {**meta, "name": f"{meta['generateName']}{count}"}
        return {**body, "metadata": meta}

    def _uid(self, ref: Ref) -> str:
        life = self._lives[str(ref)] = self._lives.get(str(ref), 0) + 1
        return hashlib.md5(f"{ref}{life}".encode(), usedforsecurity=False).hexdigest()[:8]

    def _of(self, kind: str, group: str) -> list[Body]:
        return [body for ref, body in sorted(self.objects.items()) if (ref.kind, ref.group) == (kind, group)]


def without_times(value: Any) -> Any:
    """A status without the moments in it, which are all the same here."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if not key.endswith(("Time", "At"))}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def conditions_of(status: Body) -> dict[str, str]:
    """`True Reason: message` by type."""
    reported = {}
    for found in status.get("conditions") or ():
        reason = f" {found['reason']}" if found.get("reason") else ""
        words = f": {found['message']}" if found.get("message") else ""
        reported[found["type"]] = found["status"] + reason + words
    return reported


def _kind(ref: Ref) -> Kind:
    return known().get((ref.group, ref.kind)) or Kind(ref.kind, ref.group)


def _ref(body: Body) -> Ref:
    scoped = cluster_scoped(group_of(body["apiVersion"]), body["kind"])
    return ref_of(body, namespaced=not scoped, namespace="demo")


def _controllers(body: Body) -> set[str]:
    return {owner["uid"] for owner in metadata(body).get("ownerReferences") or () if owner.get("controller")}


def _owner_reference(owner: Body) -> Body:
    kept = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}
    return {**kept, "controller": True, "blockOwnerDeletion": True}
