"""HelmReleases of Flux: which failures count, what remedies them, and when no more is tried."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.act import HelmAct
from seatrial.engines.flux.fleet import sync_fleet
from seatrial.engines.flux.objects import FluxMemory, FluxObjects, HelmRelease, ReleasePolicy
from seatrial.engines.script import Answer, Command, DescribedObject, Render, play
from seatrial.model.resource import Body, ref_of
from seatrial.play.in_process import InProcess

SHOP = HelmRelease("shop", "default", "shop", "default", chart_name="shop@1.0.0")
FAILED = "Helm install failed for release default/shop with chart shop@1.0.0: no"


def test_retry_on_failure_upgrades_again_without_remediation() -> None:
    world = _World(["no", "no", ""])
    policy = ReleasePolicy(retries_on_failure=True)
    assert world.sync(replace(SHOP, install=policy, upgrade=policy)).outcome == "ok"
    assert world.acts == ["install", "upgrade", "upgrade"]


def test_unlimited_retries_uninstall_in_between() -> None:
    world = _World(["no", "", "no", "", ""])
    assert world.sync(replace(SHOP, install=ReleasePolicy(retries=-1))).outcome == "ok"
    assert world.acts == ["install", "uninstall", "install", "uninstall", "install"]


def test_a_failure_without_a_release_record_is_neither_counted_nor_remediated() -> None:
    world = _World(["no"], stores=False)
    ended = world.sync(SHOP)
    assert (ended.error, world.acts) == (f"HelmRelease/default/shop: {FAILED}", ["install"])
    world.answers = iter([""])
    assert world.sync(SHOP).outcome == "ok"


def test_a_stalled_release_is_not_touched_until_its_values_change() -> None:
    world = _World(["no"])
    stalled = "HelmRelease/default/shop: RetriesExceeded: Failed to install after 1 attempt(s)"
    assert world.sync(SHOP).error == f"{stalled}. {FAILED}"
    assert (world.sync(SHOP).error, world.acts) == (stalled, ["install"])
    world.answers = iter([""])
    assert world.sync(replace(SHOP, values={"replicas": 2})).outcome == "ok"
    assert world.acts == ["install", "upgrade"]


def test_the_install_after_an_uninstalled_upgrade_has_its_own_retries() -> None:
    world = _World([""])
    world.sync(SHOP)
    world.answers = iter(["no", "", "no"])
    remedy = ReleasePolicy(strategy="uninstall", remediates_last=True)
    ended = world.sync(replace(SHOP, values={"replicas": 2}, upgrade=remedy))
    assert ended.error == f"HelmRelease/default/shop: RetriesExceeded: Failed to install after 1 attempt(s). {FAILED}"
    assert world.acts == ["install", "upgrade", "uninstall", "install"]


def test_failed_tests_may_be_ignored_for_an_action_and_still_keep_it_unready() -> None:
    words = "Helm test failed for release default/shop.v1 with chart shop@1.0.0: no"
    world = _World(["", "no"])
    tested = replace(SHOP, tests=True, install=ReleasePolicy(ignores_tests=True))
    assert world.sync(tested).error == f"HelmRelease/default/shop: {words}"
    assert (world.sync(tested).error, world.acts) == (f"HelmRelease/default/shop: {words}", ["install", "test"])
    ignored = _World(["", "no"])
    assert ignored.sync(replace(tested, needs_tests=False)).outcome == "ok"


OWN: Body = {
    "apiVersion": "helm.toolkit.fluxcd.io/v2",
    "kind": "HelmRelease",
    "metadata": {"name": "shop", "namespace": "default"},
}
DEFINITION: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "helmreleases.helm.toolkit.fluxcd.io"},
    "spec": {
        "group": "helm.toolkit.fluxcd.io",
        "names": {"kind": "HelmRelease", "plural": "helmreleases"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def _record(revision: int) -> Body:
    meta = {"name": f"sh.helm.release.v1.shop.v{revision}", "labels": {"name": "shop", "version": str(revision)}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "helm.sh/release.v1"}


class _World:
    """A cluster, a Flux with its memory, and a Helm with scripted results."""

    def __init__(self, answers: Iterable[str], *, stores: bool = True) -> None:
        self.answers, self.stores = iter(answers), stores
        self.acts: list[str] = []
        self.memory = FluxMemory()
        self._client = InProcess(Cluster("1.34", "eager"), "flux", self._helm)
        self._revision = 0

    def sync(self, release: HelmRelease) -> Ended:
        roots = tuple(DescribedObject(ref_of(body, namespaced=body is OWN), body) for body in (DEFINITION, OWN))
        return play(sync_fleet(FluxObjects(roots, {}, {release.ref: release}), self.memory), self._client)

    def _helm(self, act: HelmAct | Render) -> Answer:
        assert isinstance(act, HelmAct)
        self.acts.append(act.action)
        words = next(self.answers)
        if act.action in ("install", "upgrade") and (self.stores or not words):
            self._revision += 1
            self._client.do(Command("create", "v1", "Secret", "default", "", _record(self._revision)))
        return Answer(200, message=words)
