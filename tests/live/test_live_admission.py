"""`seatrial preflight`: nodes that take the pods of a release, a dry run of every object, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from msgspec.structs import replace
from worlds import World, opened

from seatrial.cli import main
from seatrial.live.placing import unplaceable
from seatrial.live.preflight import Preflight, preflight
from seatrial.live.snapshot import releases_of, take
from seatrial.model.options import CheckOptions
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, ref_of
from seatrial.model.snapshot import Snapshot
from seatrial.plan.plans import plans

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: shop:1}]}
"""
QUOTA = (
    "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {configmaps: 0}}}"
)
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}"


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


def written(folder: Path, text: str) -> str:
    file = folder / "input.yaml"
    file.write_text(text)
    return str(file)


def looked_at(world: World, file: str) -> Preflight:
    options = CheckOptions((file,), namespace="default")
    snapshot = take(world.client, lambda found: releases_of(plans(replace(options, snapshot=found))))
    return preflight(world.client, snapshot, plans(replace(options, snapshot=snapshot)))


def test_what_the_api_server_refuses_is_reported_in_its_words(world: World, tmp_path: Path) -> None:
    world.given(QUOTA)
    version = world.cluster.store.version
    found = looked_at(world, written(tmp_path, CONFIG))
    assert [(one.state, one.what) for one in found.refused] == [("fails", "ConfigMap/default/shop")]
    assert "exceeded quota: few" in found.refused[0].why
    assert not found.is_ready
    assert world.cluster.store.version == version


def test_an_immutable_field_is_refused_before_anything_is_deployed(world: World, tmp_path: Path) -> None:
    world.given(DEPLOYMENT.replace("app: shop", "app: old"))
    assert "field is immutable" in looked_at(world, written(tmp_path, DEPLOYMENT)).refused[0].why


def test_what_judges_and_comes_with_the_release_is_not_held_against_it(world: World, tmp_path: Path) -> None:
    world.given(QUOTA)
    larger = QUOTA.replace("configmaps: 0", "configmaps: 9")
    assert looked_at(world, written(tmp_path, f"{CONFIG}\n---\n{larger}")).refused == ()


def test_a_namespace_that_is_not_there_yet_is_no_refusal(world: World, tmp_path: Path) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: new}}"
    text = f"{namespace}\n---\n{CONFIG.replace('name: shop', 'name: shop, namespace: new')}"
    assert looked_at(world, written(tmp_path, text)).refused == ()


def test_a_missing_permission_is_not_taken_for_a_refusal(world: World, tmp_path: Path) -> None:
    denied = 'configmaps is forbidden: User "ci" cannot create resource "configmaps" in API group ""'
    world.proxy.faults.append(Fault("dryRun=All", 403, denied, FOREVER))
    assert looked_at(world, written(tmp_path, CONFIG)).refused == ()
    assert world.client.denials == ()


def test_programs_read_json(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world.given(QUOTA)
    config = tmp_path / "kubeconfig"
    config.write_text(world.kubeconfig())
    assert main(["preflight", written(tmp_path, CONFIG), "-o", "json", "--kubeconfig", str(config)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["ready"], document["missing"]) == (1, False, [])
    assert document["refused"][0]["place"]["line"] == 1


def test_nodes_are_kept_by_labels_and_taints_only(world: World, tmp_path: Path) -> None:
    options = CheckOptions((written(tmp_path, DEPLOYMENT),))
    snapshot = take(world.client, lambda found: releases_of(plans(replace(options, snapshot=found))))
    nodes = [body for body in snapshot.objects if body["kind"] == "Node"]
    assert "Node" in snapshot.whole
    assert nodes
    assert all(set(body) == {"apiVersion", "kind", "metadata", "spec"} for body in nodes)
    assert looked_at(world, written(tmp_path, CONFIG)).is_ready  # Without pods, no node is read.


def test_volumes_that_are_free_and_admission_policies_are_kept(world: World) -> None:
    volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 1Gi}, "
    world.given(volume + "accessModes: [ReadWriteOnce], storageClassName: manual, hostPath: {path: /data}}}")
    rules = "[{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]"
    world.given(
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: two}, "
        f"spec: {{matchConstraints: {{resourceRules: {rules}}}, validations: [{{expression: 'true'}}]}}}}"
    )
    found = take(world.client).refs
    assert Ref("PersistentVolume", "", "disk") in found
    assert Ref("ValidatingAdmissionPolicy", "", "two", "admissionregistration.k8s.io") in found


def node(name: str, labels: dict[str, str] | None = None, **spec: object) -> Body:
    meta = {"name": name, "labels": {"kubernetes.io/os": "linux", **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}


def pod(**spec: object) -> list[Release]:
    body: Body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    return [Release("shop", "default", "", (Resource(ref_of(body), body, Origin("")),))]


def why(releases: list[Release], *nodes: Body) -> list[str]:
    snapshot = Snapshot("1.34", objects=nodes, whole=("Node",))
    return [f"{point.state}: {point.why}" for point in unplaceable(releases, snapshot)]


TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
SSD = {"nodeSelector": {"disk": "ssd"}}
IN_ZONE = {"key": "zone", "operator": "In", "values": ["b"]}


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        ({}, [], "the cluster has no node"),
        ({}, [node("a", unschedulable=True)], "all 1 nodes are cordoned"),
        (SSD, [node("a")], "no node has the labels disk=ssd"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [IN_ZONE]}]
                        }
                    }
                }
            },
            [node("a", {"zone": "a"})],
            "no node fits its node affinity",
        ),
        (
            {},
            [node("a", taints=[TAINT])],
            "no node that it selects is without a taint that it does not tolerate (dedicated=gpu:NoSchedule)",
        ),
    ],
)
def test_pods_that_no_node_takes_stay_pending(spec: Body, nodes: list[Body], expected: str) -> None:
    assert why(pod(**spec), *nodes) == [f"fails: its pods stay Pending: {expected}"]


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        (SSD, [node("a"), node("b", {"disk": "ssd"})]),
        ({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, [node("a", taints=[TAINT])]),
        ({"tolerations": [{"operator": "Exists"}]}, [node("a", taints=[TAINT])]),
        ({}, [node("a", taints=[{**TAINT, "effect": "PreferNoSchedule"}])]),
        ({"nodeName": "a"}, []),
    ],
)
def test_pods_that_a_node_takes_are_no_problem(spec: Body, nodes: list[Body]) -> None:
    assert why(pod(**spec), *nodes) == []


def test_a_pool_may_grow() -> None:
    grows = node("a", {"karpenter.sh/nodepool": "default"})
    assert why(pod(**SSD), grows)[0].startswith("note: its pods stay Pending")
