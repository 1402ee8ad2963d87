"""A small world for tests of Argo CD: a cluster, and one Application that is synced to it again and again."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.fleet import Applications, ArgocdMemory, delete_fleet, sync_fleet
from seatrial.engines.argocd.reconciling import Compared, compare
from seatrial.engines.script import Command, DescribedObject, Part, Script, play
from seatrial.model.resource import Body, Ref, ref_of
from seatrial.play.in_process import InProcess

NEWEST = Settings((3, 5))
T = TypeVar("T")


class World:
    """A cluster, and an Application with these options."""

    def __init__(
        self, settings: Settings = NEWEST, options: tuple[str, ...] = (), ignored: tuple[Body, ...] = ()
    ) -> None:
        self.cluster, self.memory, self.settings = Cluster(), ArgocdMemory(), settings
        self.app = App("shop", "default", options=options, prune=True, ignore_differences=ignored)

    def sync(self, *bodies: Body, app: App | None = None) -> Ended:
        fleet = self._fleet(bodies, app)
        return self._play(sync_fleet(fleet, self.settings, self.memory, started=0))

    def delete(self, *bodies: Body, app: App | None = None) -> Ended:
        return self._play(delete_fleet(self._fleet(bodies, app), self.settings, self.memory))

    def compared(self, *bodies: Body) -> Compared:
        return self.asked(compare(self._fleet(bodies, None).roots[0], self.settings))

    def asked(self, script: Part[T]) -> T:
        """What a piece of a script finds out."""
        client = InProcess(self.cluster, "argocd")
        try:
            line = next(script)
            while True:
                line = script.send(client.do(line))
        except StopIteration as end:
            found: T = end.value
            return found

    def user(self, command: Command) -> None:
        answer = InProcess(self.cluster, "user").do(command)
        assert not answer.message, answer.message

    def there(self, ref: Ref) -> Body | None:
        return self.cluster.store.get(ref)

    def _fleet(self, bodies: tuple[Body, ...], app: App | None) -> Applications:
        targets = tuple(DescribedObject(ref_of(body), body) for body in bodies)
        return Applications((replace(app or self.app, targets=targets),))

    def _play(self, script: Script) -> Ended:
        return play(script, InProcess(self.cluster, "argocd"))


def config(name: str, marks: dict[str, str] | None = None, value: str = "value", namespace: str = "default") -> Body:
    meta = {"name": name, "namespace": namespace, "annotations": dict(marks or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"key": value}}
