"""PVCs, PersistentVolumes and StorageClasses: binding, and what blocks their deletion."""

from __future__ import annotations

import pytest
from world import SmallWorld

CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/disks
volumeBindingMode: MODE
---
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {CLASS accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers: [{name: main, image: app}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec: {capacity: {storage: SIZE}, accessModes: [MODE], storageClassName: manual, hostPath: {path: /d}}
---
"""
FAST = CLASS.replace("MODE", "Immediate")
WAITING = CLASS.replace("MODE", "WaitForFirstConsumer")


def claim(storage_class: str = "storageClassName: fast,") -> str:
    return CLAIM.replace("CLASS", storage_class)


def phase(world: SmallWorld) -> str:
    return str(world.status("PersistentVolumeClaim", "data")["phase"])


def test_a_pvc_is_bound_at_once() -> None:
    world = SmallWorld(FAST + claim()).run()
    found = world.object("PersistentVolumeClaim", "data")
    name = f"pvc-{found['metadata']['uid']}"
    assert found["spec"]["volumeName"] == name
    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    volume = world.object("PersistentVolume", name, "")
    assert volume["status"]["phase"] == "Bound"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


def test_a_pvc_that_waits_for_its_first_consumer() -> None:
    world = SmallWorld(WAITING + claim()).run()
    assert phase(world) == "Pending"
    assert world.said == [
        "PersistentVolumeClaim/demo/data WaitForFirstConsumer: waiting for first consumer to be created before binding"
    ]
    world.apply(POD).run()
    assert (phase(world), world.status("Pod", "app")["phase"]) == ("Bound", "Running")


def test_a_blocked_consumer_does_not_bind_the_pvc() -> None:
    more = POD.replace("{claimName: data}}", "{claimName: data}}, {name: b, persistentVolumeClaim: {claimName: none}}")
    world = SmallWorld(WAITING + claim() + more).run()
    assert phase(world) == "Pending"


@pytest.mark.parametrize(
    ("storage_class", "words"),
    [
        ("storageClassName: none,", 'ProvisioningFailed: storageclass.storage.k8s.io "none" not found'),
        (
            'storageClassName: "",',
            "FailedBinding: no persistent volumes available for this claim and no storage class is set",
        ),
        ("", "FailedBinding: no persistent volumes available for this claim and no storage class is set"),
    ],
)
def test_a_pvc_without_a_class_stays_pending(storage_class: str, words: str) -> None:
    world = SmallWorld(FAST + claim(storage_class)).run()
    assert (phase(world), world.said) == ("Pending", [f"PersistentVolumeClaim/demo/data {words}"])


def test_a_pvc_gets_a_default_class_that_is_created_later() -> None:
    world = SmallWorld(claim("")).run()
    assert phase(world) == "Pending"
    marked = "{name: fast, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}"
    world.apply(FAST.replace("{name: fast}", marked)).run()
    assert phase(world) == "Bound"
    assert world.object("PersistentVolumeClaim", "data")["spec"]["storageClassName"] == "fast"


def test_a_pvc_is_bound_to_the_smallest_volume_that_fits() -> None:
    volumes = "".join(
        VOLUME.replace("NAME", name).replace("SIZE", size).replace("MODE", mode)
        for name, size, mode in (
            ("large", "10Gi", "ReadWriteOnce"),
            ("medium", "3Gi", "ReadWriteOnce"),
            ("other", "2Gi", "ReadWriteMany"),
            ("small", "1Gi", "ReadWriteOnce"),
        )
    )
    world = SmallWorld(volumes + claim("storageClassName: manual,")).run()
    assert world.object("PersistentVolumeClaim", "data")["spec"]["volumeName"] == "medium"
    assert world.status("PersistentVolumeClaim", "data")["capacity"] == {"storage": "3Gi"}
    phases = {name: world.status("PersistentVolume", name, "")["phase"] for name in world.names("PersistentVolume")}
    assert phases == {"large": "Available", "medium": "Bound", "other": "Available", "small": "Available"}


@pytest.mark.parametrize("restarts", ["Always", "Never"])
def test_a_pvc_in_use_is_deleted_after_its_pod_and_with_its_volume(restarts: str) -> None:
    world = SmallWorld(FAST + claim() + POD.replace("spec:\n", f"spec:\n  restartPolicy: {restarts}\n")).run()
    assert world.status("Pod", "app")["phase"] == {"Always": "Running", "Never": "Succeeded"}[restarts]
    world.delete("PersistentVolumeClaim", "data").run()
    assert world.names("PersistentVolumeClaim") == ["data"]
    world.delete("Pod", "app").run()
    assert (world.names("PersistentVolumeClaim"), world.names("PersistentVolume")) == ([], [])


def test_a_retained_volume_is_released() -> None:
    world = SmallWorld(VOLUME.replace("NAME", "disk").replace("SIZE", "5Gi").replace("MODE", "ReadWriteOnce"))
    world.apply(claim("storageClassName: manual,")).run()
    world.delete("PersistentVolume", "disk", "").run()
    assert world.names("PersistentVolume") == ["disk"], "a volume that is bound is protected"
    world = SmallWorld(VOLUME.replace("NAME", "disk").replace("SIZE", "5Gi").replace("MODE", "ReadWriteOnce"))
    world.apply(claim("storageClassName: manual,")).run()
    world.delete("PersistentVolumeClaim", "data").run()
    assert world.status("PersistentVolume", "disk", "") == {"phase": "Released"}


def test_a_bound_pvc_can_be_expanded() -> None:
    world = SmallWorld(FAST + claim()).run()
    grown = world.object("PersistentVolumeClaim", "data")
    spec = {**grown["spec"], "resources": {"requests": {"storage": "5Gi"}}}
    world.change(next(ref for ref in world.objects if ref.kind == "PersistentVolumeClaim"), {**grown, "spec": spec})
    assert world.run().status("PersistentVolumeClaim", "data")["capacity"] == {"storage": "5Gi"}


def test_a_pvc_without_its_volume_is_lost() -> None:
    world = SmallWorld(FAST + claim()).run()
    world.objects = {ref: body for ref, body in world.objects.items() if ref.kind != "PersistentVolume"}
    world.run()
    assert phase(world) == "Lost"
    words = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert world.said == [f"PersistentVolumeClaim/demo/data ClaimLost: {words}"]
