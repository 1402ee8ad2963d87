"""A cluster that is asked in YAML and answers in the API server's words, for tests of what it refuses."""

from __future__ import annotations

from typing import Any

import yaml

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Reply, Request
from seatrial.kinds.access.authorizer import ADMIN, User
from seatrial.model.resource import Body, Ref, group_of, name_of, version_of
from seatrial.model.timeline import Event, Schedule

OK = "ok"


class Api:
    """One cluster, and what a client sends it."""

    def __init__(self, text: str = "", schedule: Schedule = "eager", kube_version: str = "1.34") -> None:
        self.cluster = Cluster(kube_version, schedule)
        self.reply = Reply(200, {})
        self.put(text)

    def put(self, text: str) -> None:
        """Create every object of a text; all are taken in."""
        for body in yaml.safe_load_all(text):
            refusal = self.create(body) if body else OK
            assert refusal == OK, refusal

    @property
    def warnings(self) -> list[str]:
        """What the last answer warned of."""
        return list(self.reply.warnings)

    def create(self, body: Body | str, **options: Any) -> str:
        """The refusal, or `ok`."""
        return self._write("create", body, **options)

    def update(self, body: Body | str, **options: Any) -> str:
        return self._write("update", body, **options)

    def apply(self, body: Body | str, **options: Any) -> str:
        return self._write("patch", body, patch_type="apply", field_manager="test", **options)

    def delete(self, kind: str, name: str, namespace: str = "default", group: str = "", user: User = ADMIN) -> str:
        served = self.cluster.discovery.of_kind(group, kind)
        assert served is not None
        home = namespace if served.namespaced else ""
        request = Request("delete", served.group, served.version, served.plural, home, name, actor="user", user=user)
        return self._message(self.cluster.request(request))

    def let_time_pass(self) -> None:
        """Let the controllers finish that need seconds, such as that of namespaces."""
        self.cluster.settle()

    def get(self, kind: str, name: str, namespace: str = "default", group: str = "") -> Any:
        return self.cluster.store.get(Ref(kind, namespace, name, group))

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        return self.cluster.store.of_kind((group, kind), namespace)

    def events(self, kind: str, effect: str) -> list[Event]:
        return [e for e in self.cluster.timeline() if e.object.kind == kind and e.effect == effect]

    def _write(self, verb: Any, body: Body | str, **options: Any) -> str:
        body = yaml.safe_load(body) if isinstance(body, str) else body
        api_version = str(body["apiVersion"])
        kind = self.cluster.discovery.of_kind(group_of(api_version), body["kind"], version_of(api_version))
        assert kind is not None, body["kind"]
        namespace = str((body.get("metadata") or {}).get("namespace") or "default") if kind.namespaced else ""
        name = "" if verb == "create" else name_of(body)
        options = {"actor": "user", **options}
        request = Request(verb, kind.group, kind.version, kind.plural, namespace, name, body=body, **options)
        return self._message(self.cluster.request(request))

    def _message(self, reply: Reply) -> str:
        self.reply = reply
        return OK if reply.code < 400 else str(reply.body["message"])
