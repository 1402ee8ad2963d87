"""A cluster with operators, and short methods to act on it. Not a test."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.kinds.core.conditions import find
from seatrial.model.resource import Body, Ref, metadata, name_of
from seatrial.model.timeline import Schedule
from seatrial.model.trial import Operator
from seatrial.plan.prerequisites.declared import assumed_objects
from seatrial.play.prerequisites import assume


class OperatorCluster:
    """The embedded cluster, with a namespace `demo` and the operators named `name@version`."""

    def __init__(self, *operators: str, schedule: Schedule = "eager") -> None:
        self.cluster = Cluster(schedule=schedule)
        for named in operators:
            name, _, version = named.partition("@")
            assume(self.cluster, assumed_objects(Operator(name, version)))
        assume(self.cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}])

    def create(self, *texts: str) -> list[str]:
        """The refusals."""
        bodies = (body for text in texts for body in yaml.safe_load_all(text) if body)
        return [words for body in bodies if (words := self._send("create", body))]

    def delete(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> str:
        found = self.cluster.discovery.of_kind(group, kind)
        assert found is not None
        body = {"apiVersion": found.api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
        return self._send("delete", body)

    def get(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> Body | None:
        return self.cluster.store.get(Ref(kind, namespace, name, group))

    def object(self, kind: str, name: str, namespace: str = "demo", group: str = "") -> Body:
        found = self.get(kind, name, namespace, group)
        assert found is not None, f"{kind}/{namespace}/{name} is not there"
        return found

    def status_of(self, kind: str, name: str, type_: str = "Ready", namespace: str = "demo", group: str = "") -> str:
        """A condition: `True Reason: message`."""
        found = find(self.object(kind, name, namespace, group), type_) or {}
        words = [str(found.get(key)) for key in ("status", "reason") if found.get(key)]
        return " ".join(words) + (f": {found['message']}" if found.get("message") else "")

    def said(self) -> list[str]:
        """The messages of controllers, in order."""
        return [f"{event.object}: {event.message}" for event in self.cluster.recorder.said()]

    def names(self, kind: str, group: str = "", namespace: str = "demo") -> list[str]:
        return [name_of(body) for body in self.cluster.store.of_kind((group, kind), namespace)]

    def acts(self, actor: str) -> list[str]:
        """What an actor did since the first step: `created Secret/demo/app`."""
        return list(self._acts(actor))

    def _acts(self, actor: str) -> Iterator[str]:
        for event in self.cluster.timeline():
            if event.actor == actor and event.verb not in ("status", "say"):
                yield f"{event.effect} {event.object}"

    def _send(self, verb: str, body: Body) -> str:
        kind = self.cluster.kind_of(body)
        namespace = str(metadata(body).get("namespace") or "demo") if kind.namespaced else ""
        name = "" if verb == "create" else name_of(body)
        request = Request(
            "create" if verb == "create" else "delete",
            kind.group,
            kind.version,
            kind.plural,
            namespace,
            name=name,
            body=body if verb == "create" else None,
            actor="user",
        )
        reply = self.cluster.request(request)
        return str(reply.body["message"]) if reply.code >= 400 else ""
