"""Commands of engine scripts, sent to a live cluster: those that an apply set needs, and no others."""

from __future__ import annotations

from typing import TypeVar

from seatrial.engines.kubectl.applyset import PREFIX, Parent
from seatrial.engines.script import Answer, Command, Part, next_line
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live.client import Client
from seatrial.live.transport import RefusedRequest
from seatrial.model.resource import Body, annotations_of, group_of, listed, metadata, name_of, uid_of, version_of

T = TypeVar("T")


class MemberCommands:
    """The commands of one apply set. Lists show only members that `manager` has applied: nothing else is deleted."""

    def __init__(self, client: Client, parent: Parent, manager: str) -> None:
        self._client = client
        self.parent = parent
        self._manager = manager
        self._uids: dict[tuple[str, str, str], str] = {}
        self.deleted: list[Body] = []

    def run(self, part: Part[T]) -> T:
        """Send the commands of a part of a script until it ends."""
        answer: Answer | None = None
        try:
            while True:
                line = next_line(part, answer)
                assert isinstance(line, Command)
                answer = self._do(line)
        except StopIteration as ended:
            result: T = ended.value
            return result

    def all(self) -> list[Body]:
        """Every member, in the kinds and namespaces that the parent lists."""
        secrets = self._client.served().find("", self.parent.kind)
        body = self._client.get(secrets, self.parent.namespace, self.parent.name) if secrets else None
        listed_kinds = str(annotations_of(body or {}).get(f"{PREFIX}/contains-group-kinds") or "")
        elsewhere = str(annotations_of(body or {}).get(f"{PREFIX}/additional-namespaces") or "")
        namespaces = sorted({self.parent.namespace, *filter(None, elsewhere.split(","))})
        found: list[Body] = []
        for named in filter(None, listed_kinds.split(",")):
            name, _, group = named.partition(".")
            if kind := self._client.served().find(group, name):
                for namespace in namespaces if kind.namespaced else ("",):
                    found += self._members(kind, namespace)
        return found

    def _do(self, command: Command) -> Answer:
        group, version = group_of(command.api_version), version_of(command.api_version)
        kind = self._client.served().find(group, command.kind, version)
        if kind is None:
            return Answer(404, served=False)
        match command.verb:
            case "discover":
                return Answer(200, {"namespaced": kind.namespaced, "plural": kind.plural})
            case "get":
                body = self._client.get(kind, command.namespace, command.name, metadata_only=True)
                return Answer(404) if body is None else Answer(200, body)
            case "list":
                return Answer(200, {"items": self._members(kind, command.namespace)})
            case "apply":
                assert command.body is not None
                return Answer(200, self._client.apply(command.body, command.field_manager, force=True).body)
            case "delete":
                return self._delete(kind, command)
        raise AssertionError(command.verb)

    def _members(self, kind: ServedKind, namespace: str) -> list[Body]:
        label = f"{PREFIX}/part-of={self.parent.id}"
        found = [
            body
            for body in self._client.list(kind, namespace, labels=label, metadata_only=True)
            if any(owner.get("manager") == self._manager for owner in listed(body, "metadata", "managedFields"))
        ]
        for body in found:
            self._uids[kind.plural, str(metadata(body).get("namespace") or ""), name_of(body)] = uid_of(body)
        return found

    def _delete(self, kind: ServedKind, command: Command) -> Answer:
        namespace = command.namespace if kind.namespaced else ""
        uid = self._uids[kind.plural, namespace, command.name]
        try:
            self._client.delete(kind, namespace, command.name, uid=uid, policy=command.propagation)
        except RefusedRequest as refused:
            if refused.code != 409:  # Another object of the same name: not the member that was listed.
                raise
            return Answer(409, message=refused.refusal.message)
        meta = {"name": command.name, **({"namespace": namespace} if namespace else {})}
        self.deleted.append({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta})
        return Answer(200)
