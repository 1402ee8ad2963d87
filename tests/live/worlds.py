"""Embedded clusters behind a proxy with faults, for tests of what looks at real clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faultproxy import FaultProxy, faults_before

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.helm.history import existing_objects
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live.client import Client
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.model.resource import Body, name_of, ref_of, with_metadata
from seatrial.play.prerequisites import assume, put_deployed
from seatrial.sources.stored import read_history
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents


class World:
    """An embedded cluster, a proxy with faults before it, and a client of the proxy."""

    def __init__(self, cluster: Cluster, proxy: FaultProxy) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.client = Client(ClusterAccess(proxy.url, context="test"))

    def kind(self, name: str) -> ServedKind:
        found = self.client.served().named(name)
        assert found is not None
        return found

    def put(self, body: Body) -> Body:
        applied: Body = self.client.apply(body, "tester").body
        return applied

    def given(self, text: str) -> None:
        """Objects that exist from the start."""
        assume(self.cluster, [document.body for document in documents(Text("given", text))])

    def fill(self, bodies: Iterable[Body]) -> None:
        """Many cheap objects, without the work of an API server."""
        for number, body in enumerate(bodies):
            self.cluster.store.put(ref_of(body), with_metadata(body, uid=f"uid-{number}"))

    def names(self, kind: str, namespace: str = "") -> list[str]:
        return [name_of(body) for body in self.client.list(self.kind(kind), namespace)]

    def as_user(self, name: str) -> Client:
        return Client(ClusterAccess(self.proxy.url, context="test", acts_as=name))

    def kubeconfig(self) -> str:
        user = "users: [{name: a, user: {}}]"
        cluster = f"clusters: [{{name: a, cluster: {{server: '{self.proxy.url}'}}}}]"
        return f"{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], {user}, {cluster}}}"


@contextmanager
def opened() -> Iterator[World]:
    with ApiServer(Cluster()) as server, faults_before(server.url) as proxy:
        found = World(server.cluster, proxy)
        with found.client:
            yield found


@contextmanager
def deployed_shop(folder: Path, rendered: str, next_rendered: str = "") -> Iterator[World]:
    """A cluster in which Helm has deployed `rendered`. `folder` gets the next version of the chart and a kubeconfig."""
    (folder / "shop" / "templates").mkdir(parents=True)
    (folder / "shop" / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (folder / "shop" / "templates" / "all.yaml").write_text(next_rendered or rendered)
    (folder / "rendered.yaml").write_text(rendered)
    with opened() as found:
        history = read_history(str(folder / "rendered.yaml"), name="shop", usual="shop")
        put_deployed(found.cluster, existing_objects(history), server_side=True)
        found.cluster.settle()
        (folder / "kubeconfig").write_text(found.kubeconfig())
        yield found
