"""Kinds that become workloads: Prometheus and related kinds, and InferenceServices."""

from __future__ import annotations

from operatorcluster import OperatorCluster

MONITORING = "monitoring.coreos.com"
SERVING = "serving.kserve.io"
PROMETHEUS = """
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: main}
spec: {replicas: 2, serviceAccountName: prometheus, secrets: [certs]}
"""
INFERENCE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: flowers}
spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: "pvc://models/flowers"}}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: fast}
"""
CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
volumeBindingMode: WaitForFirstConsumer
"""


def test_a_prometheus_is_available_when_its_pods_are() -> None:
    world = OperatorCluster("prometheus-operator")
    assert world.create(PROMETHEUS) == []
    assert world.names("StatefulSet", "apps") == ["prometheus-main"]
    assert world.names("Service") == ["prometheus-operated"]
    assert world.status_of("Prometheus", "main", "Available", group=MONITORING) == "False NoPodReady"
    account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus}}"
    assert world.create(account, "{apiVersion: v1, kind: Secret, metadata: {name: certs}}") == []
    assert world.status_of("Prometheus", "main", "Available", group=MONITORING) == "True"


def test_the_products_of_a_prometheus_are_deleted_with_it() -> None:
    world = OperatorCluster("prometheus-operator")
    assert world.create(PROMETHEUS) == []
    assert world.delete("Prometheus", "main", group=MONITORING) == ""
    assert (world.names("StatefulSet", "apps"), world.names("Service")) == ([], [])


def test_an_inference_service_is_ready_when_its_model_can_be_mounted() -> None:
    world = OperatorCluster("kserve")
    assert world.create(INFERENCE) == []
    assert world.names("Deployment", "apps") == ["flowers-predictor"]
    assert world.status_of("InferenceService", "flowers", group=SERVING) == "False PredictorNotReady"
    assert world.create(CLASS, CLAIM) == []
    assert world.status_of("InferenceService", "flowers", group=SERVING) == "True"
