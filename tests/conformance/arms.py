"""One of the two API servers under test, and a namespace for one test."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from apiclient import Api, Reply

from seatrial.cluster.cluster import Cluster
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.resource import Body, Ref, group_of, version_of

PATIENCE_SECONDS = 30
"""How long controllers of a real cluster may take. The embedded cluster is done when it replies."""

Found = TypeVar("Found")


class Arm:
    """An API server: the embedded one of `cluster`, or a real one."""

    def __init__(self, api: Api, cluster: Cluster | None = None) -> None:
        self.api = api
        self.cluster = cluster
        self.is_real = is_real = cluster is None
        # A real one keeps objects of earlier runs, and several processes use it at once.
        self._prefix = f"here-{os.getpid()}-{int(time.time()) % 100_000}" if is_real else "here"
        self._numbers = itertools.count(1)
        probe = self.new_namespace()
        self.has_controllers = bool(probe.soon(lambda: probe.get("ServiceAccount", "default").code == 200, 5))

    def new_namespace(self) -> Here:
        name = f"{self._prefix}-{next(self._numbers)}"
        self.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return Here(self, name)


class Here:
    """A namespace, and short methods to access its objects; cluster-scoped kinds work as well."""

    def __init__(self, arm: Arm, name: str) -> None:
        self.api = arm.api
        self.is_real = arm.is_real
        self.name = name
        self._cluster = arm.cluster

    def at(self, kind: str, name: str = "", *, version: str = "v1", namespace: str | None = None) -> str:
        """The path of a built-in kind, or of an object; `name` may end in `/status`."""
        group = next(group for group, found in CATALOGUE if found == kind)
        entry = CATALOGUE[group, kind]
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        home = f"/namespaces/{namespace or self.name}" if entry.namespaced else ""
        return f"{root}{home}/{entry.plural}" + (f"/{name}" if name else "")

    def create(self, body: Body, **query: str | int) -> Reply:
        return self.api.post(self._of(body), body, **query)

    def get(self, kind: str, name: str) -> Reply:
        return self.api.get(self.at(kind, name))

    def put(self, body: Body, **query: str | int) -> Reply:
        return self.api.put(f"{self._of(body)}/{body['metadata']['name']}", body, **query)

    def patch(self, kind: str, name: str, body: Any, type_: str = "merge", **query: str | int) -> Reply:
        return self.api.patch(self.at(kind, name), body, type_, **query)

    def apply(self, body: Body, manager: str = "tester", **query: str | int) -> Reply:
        return self.api.apply(f"{self._of(body)}/{body['metadata']['name']}", body, manager, **query)

    def delete(self, kind: str, name: str, options: Body | None = None, **query: str | int) -> Reply:
        return self.api.delete(self.at(kind, name), options, **query)

    def names(self, kind: str, **query: str | int) -> list[str]:
        """Names of the objects in a list, without those that every namespace has."""
        items = self.api.get(self.at(kind), **query).body["items"]
        return [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]

    def version(self) -> str:
        """The resourceVersion of a list of ConfigMaps, once the namespace is stable."""
        self.soon(lambda: self.get("ConfigMap", "kube-root-ca.crt").code == 200)
        version: str = self.api.get(self.at("ConfigMap")).body["metadata"]["resourceVersion"]
        return version

    def soon(self, ask: Callable[[], Found], seconds: float = PATIENCE_SECONDS) -> Found:
        """The first true result, or the last one: the embedded cluster comes to rest first."""
        if self._cluster is not None:
            self._cluster.settle()
        until = time.monotonic() + (seconds if self.is_real else 0)
        while not (found := ask()) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def wait_out(self, kind: str, name: str, seconds: int) -> None:
        """Let the deadline of a stuck object pass. On a real cluster time passes by itself, and `soon` waits for it."""
        if self._cluster is not None:
            group = next(group for group, found in CATALOGUE if found == kind)
            self._cluster.outwait([Ref(kind, self.name, name, group)], seconds)

    def _of(self, body: Body) -> str:
        version = str(body["apiVersion"])
        if (group_of(version), body["kind"]) in CATALOGUE:
            return self.at(body["kind"], version=version_of(version))
        plural = f"{body['kind'].lower()}s"
        return f"/apis/{version}/namespaces/{self.name}/{plural}"


def config(name: str = "app", data: dict[str, str] | None = None, **metadata: Any) -> Body:
    """A ConfigMap."""
    body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return {**body, "data": data} if data is not None else body


def deployment(name: str = "web", replicas: int = 1) -> Body:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
