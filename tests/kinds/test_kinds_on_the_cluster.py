"""Kinds on the embedded cluster: which changes trigger which controllers, under both schedules."""

from __future__ import annotations

import pytest
import yaml

from seatrial.cluster import stuck
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.model.resource import Body, Ref, dig, group_of, version_of
from seatrial.model.timeline import Schedule

EAGER_AND_LAZY: tuple[Schedule, ...] = ("eager", "lazy")

DATABASE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: waiting}
provisioner: example.com/disks
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: db}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: waiting, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec: {storageClassName: waiting, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
USER = """
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers: [{name: main, image: app}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: claim-0}}]
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:1"}]}}
"""


def create(cluster: Cluster, text: str, namespace: str = "default") -> None:
    for body in yaml.safe_load_all(text):
        group, version = group_of(body["apiVersion"]), version_of(body["apiVersion"])
        kind = cluster.discovery.of_kind(group, body["kind"])
        assert kind is not None
        where = namespace if kind.namespaced else ""
        reply = cluster.request(Request("create", group, version, kind.plural, namespace=where, body=body))
        assert reply.code == 201, reply.body["message"]


def status(cluster: Cluster, ref: Ref) -> Body:
    found = cluster.store.get(ref)
    assert found is not None
    return found.get("status") or {}


@pytest.mark.parametrize("schedule", EAGER_AND_LAZY)
def test_waiting_for_a_stateful_set_binds_its_pvcs(schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    create(cluster, DATABASE)
    ref = Ref("StatefulSet", "default", "db", "apps")
    cluster.awaits([ref])
    assert status(cluster, ref)["readyReplicas"] == 2


def runs_for_a_pod(claims: int) -> int:
    """How many controllers run when a pod is created that uses one of this many PVCs."""
    cluster = Cluster()
    create(cluster, DATABASE.partition("---")[0])
    for number in range(claims):
        create(cluster, CLAIM.replace("NAME", f"claim-{number}"))
    before = cluster.controllers.moves
    create(cluster, USER)
    assert status(cluster, Ref("Pod", "default", "user"))["phase"] == "Running"
    return cluster.controllers.moves - before


def test_a_pod_and_its_volume_trigger_only_the_pvc_in_use() -> None:
    assert runs_for_a_pod(claims=20) == runs_for_a_pod(claims=1)


@pytest.mark.parametrize("schedule", EAGER_AND_LAZY)
def test_a_deployment_that_adopts_replica_sets_settles_with_a_complete_status(schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    create(cluster, WEB)
    cluster.settle()
    request = Request("delete", "apps", "v1", "deployments", "default", "web", propagation="Orphan")
    assert cluster.request(request).code == 200
    cluster.settle()
    pods = [dig(pod, "metadata", "name") for pod in cluster.store.of_kind(("", "Pod"))]
    create(cluster, WEB)
    cluster.settle()
    assert [dig(pod, "metadata", "name") for pod in cluster.store.of_kind(("", "Pod"))] == pods
    assert status(cluster, Ref("Deployment", "default", "web", "apps"))["availableReplicas"] == 1


@pytest.mark.parametrize("schedule", EAGER_AND_LAZY)
def test_a_job_waits_for_its_config_map(schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    ref = Ref("Job", "default", "migrate", "batch")
    create(
        cluster,
        """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: app, envFrom: [{configMapRef: {name: late}}]}]}
""",
    )
    cluster.awaits([ref])
    assert status(cluster, ref)["active"] == 1
    assert [event.message for event in cluster.timeline() if event.verb == "say"] == [
        'Error: configmap "late" not found'
    ]
    create(cluster, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}")
    cluster.awaits([ref])
    assert [found["type"] for found in status(cluster, ref)["conditions"]] == ["SuccessCriteriaMet", "Complete"]


@pytest.mark.parametrize("schedule", EAGER_AND_LAZY)
def test_a_deployment_continues_when_its_service_account_is_created(schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    ref = Ref("Deployment", "default", "web", "apps")
    create(cluster, WEB.replace("spec: {containers", "spec: {serviceAccountName: robot, containers"))
    cluster.awaits([ref])
    assert status(cluster, ref)["unavailableReplicas"] == 1
    create(cluster, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}")
    cluster.awaits([ref])
    assert status(cluster, ref)["availableReplicas"] == 1


def test_the_pod_of_a_job_is_an_endpoint_of_a_service_that_selects_it() -> None:
    cluster = Cluster()
    create(
        cluster,
        """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: m, image: m}]}}}
""",
    )
    seen = [
        dig(event.after, "endpoints", 0, "conditions", "ready")
        for event in cluster.timeline()
        if event.object.kind == "EndpointSlice" and event.after
    ]
    assert True in seen
    assert seen[-1] is None


def test_deleting_a_namespace_leaves_nothing() -> None:
    cluster = Cluster()
    create(cluster, "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}")
    create(cluster, DATABASE + "---" + WEB, "demo")
    assert len(cluster.store.of_kind(("", "PersistentVolume"))) == 2
    assert cluster.request(Request("delete", "", "v1", "namespaces", name="demo")).code == 200
    cluster.settle()
    assert cluster.store.content("demo") == []
    assert cluster.store.get(Ref("Namespace", "", "demo")) is None
    assert cluster.store.of_kind(("", "PersistentVolume")) == []


WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
HELD = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "held", "finalizers": ["example.com/x"]}}


GOING = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def cluster_with_a_terminating_crd() -> Cluster:
    cluster = Cluster()
    create(cluster, WIDGETS)
    create(cluster, yaml.safe_dump(HELD))
    cluster.request(Request("delete", *GOING, name="widgets.example.com"))
    return cluster


def test_a_terminating_crd_can_be_updated() -> None:
    cluster = cluster_with_a_terminating_crd()
    labels = {"metadata": {"labels": {"of": "helm"}}}
    patch = Request("patch", *GOING, name="widgets.example.com", body=labels, patch_type="merge")
    assert cluster.request(patch).body["metadata"]["labels"] == {"of": "helm"}


def test_no_custom_resource_is_created_while_its_crd_terminates() -> None:
    cluster = cluster_with_a_terminating_crd()
    other = {**HELD, "metadata": {"name": "other"}}
    reply = cluster.request(Request("create", "example.com", "v1", "widgets", namespace="default", body=other))
    assert reply.body["message"] == (
        'widgets.example.com "other" is forbidden: create not allowed while custom resource definition is terminating'
    )


def test_a_wait_for_an_object_whose_crd_is_gone_never_ends() -> None:
    cluster = Cluster()
    create(cluster, WIDGETS)
    create(cluster, yaml.safe_dump({**HELD, "metadata": {"name": "one"}}))
    cluster.request(Request("delete", *GOING, name="widgets.example.com"))
    refs = stuck.stuck_on(cluster, stuck.unserved(cluster), lambda body: True, certain=False)
    assert stuck.why(cluster, refs) == "waits for Widget/default/one, whose kind is no longer served"


LOCKED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: locks.canal.example}
spec:
  group: canal.example
  scope: Namespaced
  names: {plural: locks, kind: Lock}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              depth:
                type: integer
                x-kubernetes-validations: [{rule: self == oldSelf, message: depth is immutable}]
              name:
                type: string
                x-kubernetes-validations: [{rule: self == oldSelf}]
              share:
                type: number
                x-kubernetes-validations: [{rule: self==oldSelf, reason: FieldValueForbidden}]
              where:
                type: object
                x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}]
                properties: {town: {type: string}}
"""
NORTH = """
apiVersion: canal.example/v1
kind: Lock
metadata: {name: north}
spec: {depth: 4, name: a, share: 1.5, where: {town: x}}
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 5}, 'spec.depth: Invalid value: "integer": depth is immutable'),
        ({"name": "b"}, 'spec.name: Invalid value: "string": failed rule: self == oldSelf'),
        ({"share": 2.5}, "spec.share: Forbidden: failed rule: self==oldSelf"),
        ({"where": {"town": "y"}}, 'spec.where: Invalid value: "object": Value is immutable'),
        ({"where": {"town": None}}, 'spec.where: Invalid value: "object": Value is immutable'),
        ({"depth": None}, ""),
    ],
)
def test_a_transition_rule_in_cel_makes_a_field_immutable(change: Body, words: str) -> None:
    """As Kubernetes 1.34.10 reports it."""
    cluster = Cluster()
    create(cluster, LOCKED)
    create(cluster, NORTH)
    patch = Request(
        "patch", "canal.example", "v1", "locks", "default", "north", body={"spec": change}, patch_type="merge"
    )
    reply = cluster.request(patch)
    assert reply.body.get("message", "") == (f'Lock.canal.example "north" is invalid: {words}' if words else "")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("self == oldSelf", ()),
        ("self > 0", ()),
        (
            "quantity(string(self)).isInteger()",
            ("seatrial: 1 rule in CEL is not evaluated for locks.canal.example; assumed to pass",),
        ),
    ],
)
def test_unsupported_rules_in_cel_are_reported_on_creation(rule: str, said: tuple[str, ...]) -> None:
    cluster = Cluster()
    create(cluster, LOCKED.replace("rule: self == oldSelf, message: depth is immutable", f'rule: "{rule}"'))
    body = {"apiVersion": "canal.example/v1", "kind": "Lock", "metadata": {"name": "south"}, "spec": {"depth": 4}}
    reply = cluster.request(Request("create", "canal.example", "v1", "locks", "default", body=body))
    assert (reply.code, reply.warnings) == (201, said)
