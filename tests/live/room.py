"""An embedded cluster over HTTP with faults in between, and small objects to put there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from faultproxy import FaultProxy, faults_before

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.helm import records
from seatrial.helm.hooks import HOOK, is_hook
from seatrial.kinds.operators.reconcile import CA_BUNDLE
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.seen import Seen
from seatrial.live.waiting import Progress, wait_for
from seatrial.live.wanted import parse
from seatrial.model.refusal import Denial
from seatrial.model.resource import Body

SECONDS_MAX = 20.0
"""So that a test fails instead of hanging: no test waits that long."""
SHORT_SECONDS = 0.3

Action = Callable[[], object]


class Enough(Exception):
    """Ends a wait whose report has shown what a test asks."""


class Room:
    """An embedded cluster, a proxy with faults before it, and what is done when a wait reports something."""

    def __init__(self, cluster: Cluster, proxy: FaultProxy) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.hands = Client(ClusterAccess(proxy.url))
        """A client of its own for changes to the cluster."""
        self.said: list[str] = []
        self.denials: tuple[Denial, ...] = ()

    def put(self, body: Body) -> None:
        if self.hands.kind_of(body) is None:
            self.hands.served(again=True)
        self.hands.apply(body, "tester")
        self.cluster.settle()

    def namespace(self, name: str) -> None:
        self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def kubeconfig(self, folder: Path) -> str:
        """A kubeconfig file for the proxy."""
        file = folder / "kubeconfig"
        cluster = {"name": "room", "cluster": {"server": self.proxy.url}}
        context = {"name": "room", "context": {"cluster": "room", "user": ""}}
        config = {"clusters": [cluster], "contexts": [context], "current-context": "room"}
        file.write_bytes(msgspec.yaml.encode(config))
        return str(file)

    def wait(
        self, *targets: str, seconds: float = SECONDS_MAX, then: Sequence[tuple[str, Action]] = ()
    ) -> list[Progress]:
        """Wait for targets. Each action of `then` is done once, when a report has said its words."""
        left = list(then)

        def report(progress: Sequence[Progress]) -> None:
            self.said += [one.verdict.missing or "usable" for one in progress]
            while left and left[0][0] in " ".join(self.said):
                left.pop(0)[1]()

        with Client(ClusterAccess(self.proxy.url)) as client, Fetching(client, Seen(), seconds) as fetching:
            wanted = [parse(text, "default", lambda kind: client.served().named(kind)) for text in targets]
            found = wait_for(wanted, fetching, report)
            self.denials = client.denials
        return found

    def missing(self, target: str) -> str:
        """The first sentence about a target that is not about our own requests."""

        def report(progress: Sequence[Progress]) -> None:
            if "is being" not in progress[0].verdict.missing:
                raise Enough(progress[0].verdict.missing)

        with Client(ClusterAccess(self.proxy.url)) as client, Fetching(client, Seen(), SECONDS_MAX) as fetching:
            wanted = parse(target, "default", lambda kind: client.served().named(kind))
            try:
                wait_for([wanted], fetching, report)
            except Enough as enough:
                return str(enough)
        return ""


@contextmanager
def embedded() -> Iterator[Room]:
    with ApiServer(Cluster()) as server, faults_before(server.url) as proxy:
        room = Room(server.cluster, proxy)
        with room.hands:
            yield room


def config(name: str, **data: str) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def deployment(name: str = "web", image: str = "nginx:1", **pod: object) -> Body:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}], **pod}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def replicas(count: int) -> Body:
    return {**deployment(), "spec": {**deployment()["spec"], "replicas": count}}


def secret(name: str, **data: str) -> Body:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def service(name: str = "web") -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443}]},
    }


def webhook(name: str = "guard", bundle: str = CA_BUNDLE, **fields: object) -> Body:
    client = {"service": {"name": "web", "namespace": "default"}, "caBundle": bundle}
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    called = {
        "name": f"{name}.example.com",
        "clientConfig": client if bundle else {"service": client["service"]},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [called],
    }


def crd() -> Body:
    return custom("example.com", "Widget")


def custom(group: str, kind: str, version: str = "v1") -> Body:
    """A CRD whose objects may have any field."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def record(name: str, number: int, status: str, *objects: Body) -> Body:
    """A release Secret as Helm writes it."""
    regular, hooks = [body for body in objects if not is_hook(body)], [body for body in objects if is_hook(body)]
    manifest = "---\n".join(msgspec.yaml.encode(body).decode() for body in regular)
    content: Body = {"name": name, "version": number, "namespace": "default", "manifest": manifest}
    content["info"] = {"status": status}
    content["hooks"] = [{"path": "hook.yaml", "manifest": msgspec.yaml.encode(body).decode()} for body in hooks]
    labels = {"name": name, "owner": "helm", "status": status, "version": str(number)}
    meta = {"name": records.record_name(name, number), "namespace": "default", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": records.TYPE,
        "metadata": meta,
        "data": {"release": records.encode(content)},
    }


def as_hook(body: Body, events: str = "pre-install,pre-upgrade") -> Body:
    return {**body, "metadata": {**body["metadata"], "annotations": {HOOK: events}}}
