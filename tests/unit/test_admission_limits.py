"""Quotas, limits and classes, with the errors of an API server of 1.34."""

from __future__ import annotations

import pytest
from asking import OK, Api


def pod(
    name: str = "a", resources: str = "{}", more: str = "", containers: str = "", namespace: str = "default"
) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  containers: [{{name: app, image: x, resources: {resources}}}{containers}]
  {more}
"""


def quota(hard: str, more: str = "") -> str:
    return f"""
apiVersion: v1
kind: ResourceQuota
metadata: {{name: q, namespace: default}}
spec:
  hard: {hard}
  {more}
"""


def claim(size: str, name: str = "p") -> str:
    return f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}
"""


COUNTED = [
    ("pods", "2", [pod("a"), pod("b"), pod("c")], 'pods "c"', "requested: pods=1, used: pods=2, limited: pods=2"),
    (
        "count/deployments.apps",
        "0",
        [
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, "
            "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}"
        ],
        'deployments.apps "d"',
        "requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0",
    ),
    (
        "configmaps",
        "1",
        ["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"],
        'configmaps "c"',
        # Every namespace contains the root CA ConfigMap.
        "requested: configmaps=1, used: configmaps=1, limited: configmaps=1",
    ),
    (
        "services.loadbalancers",
        "0",
        ["apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {type: LoadBalancer, ports: [{port: 80}]}"],
        'services "s"',
        "requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0",
    ),
    (
        "requests.storage",
        "5Gi",
        [claim("3Gi", "p"), claim("2500Mi", "r")],
        'persistentvolumeclaims "r"',
        "requested: requests.storage=2500Mi, used: requests.storage=3Gi, limited: requests.storage=5Gi",
    ),
    (
        "limits.cpu",
        "2",
        [pod("a", "{limits: {cpu: 1300m}}"), pod("b", "{limits: {cpu: 1300m}}")],
        'pods "b"',
        "requested: limits.cpu=1300m, used: limits.cpu=1300m, limited: limits.cpu=2",
    ),
]


@pytest.mark.parametrize(("name", "hard", "bodies", "what", "reported"), COUNTED, ids=[case[0] for case in COUNTED])
def test_an_object_that_exceeds_a_quota_is_refused(
    name: str, hard: str, bodies: list[str], what: str, reported: str
) -> None:
    api = Api(quota(f'{{{name}: "{hard}"}}'))
    answers = [api.create(body) for body in bodies]
    assert answers == [OK] * (len(bodies) - 1) + [f"{what} is forbidden: exceeded quota: q, {reported}"]


def test_every_exceeded_resource_is_listed_in_order() -> None:
    api = Api(quota('{services: "0", services.loadbalancers: "0", services.nodeports: "9"}'))
    body = "apiVersion: v1\nkind: Service\nmetadata: {name: lb}\nspec: {type: LoadBalancer, ports: [{port: 80}]}"
    assert api.create(body) == (
        'services "lb" is forbidden: exceeded quota: q, requested: services=1,services.loadbalancers=1, '
        "used: services=0,services.loadbalancers=0, limited: services=0,services.loadbalancers=0"
    )


def test_a_quota_on_requests_requires_requests_in_every_container() -> None:
    api = Api(quota('{requests.cpu: "1", limits.cpu: "2", limits.memory: 2Gi}'))
    body = pod("a", "{requests: {cpu: 100m}, limits: {memory: 10Mi}}", containers=", {name: side, image: x}")
    assert api.create(body) == (
        'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: app,side; limits.memory for: side; '
        "requests.cpu for: side"
    )


def test_an_init_container_counts_only_if_it_needs_more_than_all_others() -> None:
    api = Api(quota('{requests.cpu: "1"}'))
    init = "initContainers: [{name: i, image: x, resources: {requests: {cpu: 900m}}}]"
    assert api.create(pod("a", "{requests: {cpu: 500m}}", init)) == OK
    assert api.create(pod("b", "{requests: {cpu: 200m}}")) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=200m, used: requests.cpu=900m, '
        "limited: requests.cpu=1"
    )


def test_a_scope_does_not_apply_to_other_pods() -> None:
    api = Api(quota('{pods: "0"}', "scopes: [BestEffort]"))
    assert api.create(pod("a", "{requests: {cpu: 1m}}")) == OK
    assert api.create(pod("b")) == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    )


def test_a_replica_set_continues_when_the_quota_allows() -> None:
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: b}]}}
"""
    api = Api(f"{quota('{pods: 2}')}---{pod('a')}---{deployment}")
    assert len(api.all("Pod")) == 2
    assert api.delete("Pod", "a") == OK
    assert len([p for p in api.all("Pod") if p["metadata"]["name"] != "a"]) == 2


LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: default}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 256Mi}
    defaultRequest: {cpu: 100m}
    min: {cpu: 50m}
    max: {cpu: "1", memory: 512Mi}
    maxLimitRequestRatio: {cpu: "6"}
  - {type: Pod, max: {cpu: 1500m}}
  - {type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 2Gi}}
"""


def test_a_container_without_resources_gets_the_defaults_of_the_limit_range() -> None:
    api = Api(f"{LIMITS}---{pod('a')}")
    found = api.get("Pod", "a")
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "256Mi"},
        "requests": {"cpu": "100m", "memory": "256Mi"},
    }
    assert found["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app"
        )
    }


def test_minimum_and_maximum_are_reported_together() -> None:
    api = Api(LIMITS)
    body = pod("b", "{requests: {cpu: 10m}, limits: {cpu: 2}}", containers=", {name: side, image: x}")
    assert api.create(body) == (
        'pods "b" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, maximum cpu usage per '
        "Container is 1, but limit is 2, cpu max limit to request ratio per Container is 6, but provided ratio is "
        "200.000000, maximum cpu usage per Pod is 1500m, but limit is 2500m]"
    )


def test_a_single_problem_has_no_brackets() -> None:
    assert Api(LIMITS).create(pod("b", "{limits: {memory: 1Gi}}")) == (
        'pods "b" is forbidden: maximum memory usage per Container is 512Mi, but limit is 1Gi'
    )


def test_limits_apply_to_pvcs() -> None:
    api = Api(LIMITS)
    start = 'persistentvolumeclaims "p" is forbidden:'
    assert (
        api.create(claim("3Gi"))
        == f"{start} maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    )
    assert (
        api.create(claim("500Mi"))
        == f"{start} minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("priorityClassName: nope", "no PriorityClass with name nope was found"),
        ("runtimeClassName: nope", 'pod rejected: RuntimeClass "nope" not found'),
        ("serviceAccountName: nope", 'error looking up service account default/nope: serviceaccount "nope" not found'),
        (
            "priority: 5",
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
    ],
)
def test_objects_that_a_pod_names_must_exist(more: str, why: str) -> None:
    assert Api().create(pod("x", more=more)) == f'pods "x" is forbidden: {why}'


def test_a_refused_pod_of_a_job_is_named_by_its_prefix() -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template: {spec: {restartPolicy: Never, priorityClassName: nope, containers: [{name: a, image: x}]}}
"""
    api = Api(job)
    words = 'Error creating: pods "j-" is forbidden: no PriorityClass with name nope was found'
    assert [event.message for event in api.events("Job", "said")] == [words]


def test_a_pod_gets_the_priority_of_its_class_or_the_default() -> None:
    priority = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\nglobalDefault: true"
    )
    api = Api(
        f"{pod('a')}\n---\n{priority}\n---\n{pod('b')}---\n{pod('c', more='priorityClassName: system-node-critical')}"
    )
    found = [api.get("Pod", name)["spec"] for name in "abc"]
    assert [(spec.get("priorityClassName"), spec["priority"]) for spec in found] == [
        (None, 0),
        ("high", 7),
        ("system-node-critical", 2_000_001_000),
    ]


def test_only_one_priority_class_is_the_default() -> None:
    body = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NAME}\nvalue: 7\nglobalDefault: true"
    )
    api = Api(body.replace("NAME", "d1"))
    assert api.create(body.replace("NAME", "d2")) == (
        'priorityclasses.scheduling.k8s.io "d2" is forbidden: PriorityClass d1 is already marked as default. Only one '
        "default can exist"
    )


def test_a_runtime_class_adds_its_overhead_and_node_selector() -> None:
    runtime = """
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor}
handler: runsc
overhead: {podFixed: {memory: 64Mi}}
scheduling: {nodeSelector: {sandbox: "yes"}}
"""
    spec = Api(f"{runtime}---{pod('a', more='runtimeClassName: gvisor')}").get("Pod", "a")["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"memory": "64Mi"}, {"sandbox": "yes"})


STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/disk
"""


def test_a_pvc_without_a_class_gets_the_default_one() -> None:
    assert Api(f"{STORAGE}---{claim('1Gi')}").get("PersistentVolumeClaim", "p")["spec"]["storageClassName"] == "fast"


def test_a_pvc_can_be_expanded_only_if_its_class_allows() -> None:
    api = Api(f"{STORAGE}---{claim('1Gi')}")
    assert api.apply(claim("2Gi"), force=True) == (
        'persistentvolumeclaims "p" is forbidden: only dynamically provisioned pvc can be resized and the storageclass '
        "that provisions the pvc must support resize"
    )
    api = Api(f"{STORAGE}allowVolumeExpansion: true\n---{claim('1Gi')}")
    assert api.apply(claim("2Gi"), force=True) == OK


def test_an_ingress_without_a_class_gets_the_default_one() -> None:
    ingress_class = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: k8s.io/ingress-nginx}
"""
    ingress = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
"""
    api = Api(f"{ingress_class}---{ingress}")
    assert api.get("Ingress", "web", group="networking.k8s.io")["spec"]["ingressClassName"] == "nginx"


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
def test_system_namespaces_cannot_be_deleted(name: str) -> None:
    words = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert Api().delete("Namespace", name) == words


def test_nothing_is_created_in_a_missing_or_terminating_namespace() -> None:
    api = Api("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}", "lazy")
    assert api.create(pod(namespace="nowhere")) == 'namespaces "nowhere" not found'
    api.delete("Namespace", "x")
    assert api.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x}") == (
        'configmaps "c" is forbidden: unable to create new content in namespace x because it is being terminated'
    )
