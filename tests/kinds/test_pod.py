"""Pods: messages of schedulers and kubelets while something is missing, and the phases of a pod."""

from __future__ import annotations

import pytest
from world import SmallWorld, conditions_of

POD = """
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  restartPolicy: RESTART
  containers: [{name: main, image: "app:1"}]
"""


def pod(spec: str, restart: str = "Always") -> str:
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return POD.replace("RESTART", restart) + lines


def test_a_pod_is_bound_started_and_ready() -> None:
    world = SmallWorld(pod("")).run()
    assert world.object("Pod", "app")["spec"]["nodeName"] == "node-a"
    assert world.status("Pod", "app") == {
        "phase": "Running",
        "conditions": [
            {"type": "PodReadyToStartContainers", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True"},
            {"type": "ContainersReady", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "hostIP": "192.168.0.21",
        "hostIPs": [{"ip": "192.168.0.21"}],
        "qosClass": "BestEffort",
        "podIP": "10.244.248.199",
        "podIPs": [{"ip": "10.244.248.199"}],
        "containerStatuses": [
            {
                "name": "main",
                "image": "app:1",
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {}},
                "lastState": {},
            }
        ],
    }


def test_a_pod_that_does_not_restart_succeeds() -> None:
    world = SmallWorld(pod("", restart="Never"))
    steps = []
    for _ in range(5):
        world.step("Pod", "app")
        status = world.status("Pod", "app")
        steps.append((status["phase"], conditions_of(status).get("Ready")))
    assert steps == [
        ("Pending", None),
        ("Running", "False ContainersNotReady: containers with unready status: [main]"),
        ("Running", "True"),
        ("Succeeded", "False PodCompleted"),
        ("Succeeded", "False PodCompleted"),
    ]
    assert conditions_of(world.status("Pod", "app")) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True PodCompleted",
        "Ready": "False PodCompleted",
        "ContainersReady": "False PodCompleted",
        "PodScheduled": "True",
    }


def test_a_trial_can_make_a_pod_fail() -> None:
    text = pod("", restart="Never").replace("{name: app}", "{name: app, annotations: {seatrial.dev/outcome: fail}}")
    world = SmallWorld(text).run()
    status = world.status("Pod", "app")
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"] == {"terminated": {"exitCode": 1, "reason": "Error"}}


def test_a_failing_pod_that_always_restarts_is_never_ready() -> None:
    text = pod("").replace("{name: app}", "{name: app, annotations: {seatrial.dev/outcome: fail}}")
    world = SmallWorld(text).run()
    uid = world.object("Pod", "app")["metadata"]["uid"]
    assert world.status("Pod", "app")["containerStatuses"][0]["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": f"back-off 10s restarting failed container=main pod=app_demo({uid})",
        }
    }
    assert world.said == [f"Pod/demo/app BackOff: Back-off restarting failed container main in pod app_demo({uid})"]


MOUNTS = [
    ("configMap: {name: x}", 'configmap "x" not found'),
    ("secret: {secretName: x}", 'secret "x" not found'),
    ("projected: {sources: [{secret: {name: x}}]}", 'secret "x" not found'),
    ("configMap: {name: there, items: [{key: k, path: p}]}", "configmap references non-existent config key: k"),
    ("secret: {secretName: there, items: [{key: k, path: p}]}", "references non-existent secret key: k"),
]
THERE = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: there}
stringData: {a: b}
"""


@pytest.mark.parametrize(("source", "words"), MOUNTS)
def test_a_missing_volume_source_is_reported(source: str, words: str) -> None:
    world = SmallWorld(pod(f"volumes: [{{name: config, {source}}}]") + THERE).run()
    assert world.said == [f'Pod/demo/app FailedMount: MountVolume.SetUp failed for volume "config" : {words}']
    status = world.status("Pod", "app")
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert conditions_of(status) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False ContainersNotReady: containers with unready status: [main]",
        "ContainersReady": "False ContainersNotReady: containers with unready status: [main]",
        "PodScheduled": "True",
    }


def test_a_pod_starts_once_the_config_map_exists() -> None:
    world = SmallWorld(pod("volumes: [{name: config, configMap: {name: late}}]")).run()
    assert world.status("Pod", "app")["phase"] == "Pending"
    world.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}").run()
    assert world.status("Pod", "app")["phase"] == "Running"


VARIABLES = [
    ("envFrom: [{configMapRef: {name: x}}]", 'configmap "x" not found'),
    ("envFrom: [{secretRef: {name: x}}]", 'secret "x" not found'),
    ("env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]", 'secret "x" not found'),
    (
        "env: [{name: A, valueFrom: {secretKeyRef: {name: there, key: k}}}]",
        "couldn't find key k in Secret demo/there",
    ),
    (
        "env: [{name: A, valueFrom: {configMapKeyRef: {name: there, key: k}}}]",
        "couldn't find key k in ConfigMap demo/there",
    ),
]


@pytest.mark.parametrize(("source", "words"), VARIABLES)
def test_a_missing_environment_source_is_reported(source: str, words: str) -> None:
    world = SmallWorld(POD.replace("RESTART", "Always").replace('"app:1"}', f'"app:1", {source}}}') + THERE).run()
    assert world.said == [f"Pod/demo/app Failed: Error: {words}"]
    assert world.status("Pod", "app")["containerStatuses"][0]["state"] == {
        "waiting": {"reason": "CreateContainerConfigError", "message": words}
    }


@pytest.mark.parametrize(
    "source",
    [
        "envFrom: [{secretRef: {name: x, optional: true}}]",
        "env: [{name: A, valueFrom: {configMapKeyRef: {name: there, key: k, optional: true}}}]",
    ],
)
def test_optional_sources_may_be_missing(source: str) -> None:
    world = SmallWorld(POD.replace("RESTART", "Always").replace('"app:1"}', f'"app:1", {source}}}') + THERE).run()
    assert (world.status("Pod", "app")["phase"], world.said) == ("Running", [])


def test_a_stuck_init_container_blocks_the_others() -> None:
    init = "initContainers:\n- {name: first, image: i}\n- {name: second, image: i, envFrom: [{secretRef: {name: x}}]}"
    world = SmallWorld(pod(init)).run()
    status = world.status("Pod", "app")
    assert [container["state"] for container in status["initContainerStatuses"]] == [
        {"terminated": {"exitCode": 0, "reason": "Completed"}},
        {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}},
    ]
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions_of(status)["Initialized"] == (
        "False ContainersNotInitialized: containers with incomplete status: [second]"
    )


def test_a_sidecar_keeps_running() -> None:
    world = SmallWorld(pod("initContainers: [{name: proxy, image: p, restartPolicy: Always}]")).run()
    status = world.status("Pod", "app")
    assert status["phase"] == "Running"
    assert status["initContainerStatuses"][0]["state"] == {"running": {}}


def test_a_missing_pull_secret_is_only_a_warning() -> None:
    world = SmallWorld(pod("imagePullSecrets: [{name: a}, {name: b}]")).run()
    assert world.status("Pod", "app")["phase"] == "Running"
    assert world.said == [
        "Pod/demo/app FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (a, b); "
        "attempting to pull the image may not succeed."
    ]


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("", 'persistentvolumeclaim "data" not found'),
        (
            "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: x}}",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
)
def test_a_pod_is_not_scheduled_without_its_pvc(claim: str, why: str) -> None:
    text = pod("volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]")
    world = SmallWorld(text + claim).run()
    preemption = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    words = f"0/2 nodes are available: {why}. {preemption}"
    assert f"Pod/demo/app FailedScheduling: {words}" in world.said
    assert conditions_of(world.status("Pod", "app")) == {"PodScheduled": f"False Unschedulable: {words}"}


def test_a_kubelet_removes_a_terminating_pod() -> None:
    world = SmallWorld(pod("")).run()
    world.delete("Pod", "app")
    assert world.names("Pod") == ["app"]
    world.run()
    assert world.names("Pod") == []


SHARED = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [MODE], storageClassName: "", hostPath: {path: /d}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [MODE], storageClassName: "", resources: {requests: {storage: 1Gi}}}
---
"""
USES = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"


@pytest.mark.parametrize(("worst_case", "phase"), [(False, "Running"), (True, "Pending")])
def test_a_read_write_once_volume_is_shared_only_on_one_node(worst_case: bool, phase: str) -> None:
    world = SmallWorld(SHARED.replace("MODE", "ReadWriteOnce") + pod(USES), worst_case=worst_case).run()
    world.apply(pod(USES).replace("{name: app}", "{name: other}")).run()
    assert world.status("Pod", "app")["phase"] == "Running"
    assert world.status("Pod", "other")["phase"] == phase
    reported = [
        'Pod/demo/other FailedAttachVolume: Multi-Attach error for volume "disk" Volume is already used by pod(s) app'
    ]
    assert [words for words in world.said if words.startswith("Pod/demo/other")] == (reported if worst_case else [])


def test_a_read_write_once_pod_volume_is_never_shared() -> None:
    world = SmallWorld(SHARED.replace("MODE", "ReadWriteOncePod") + pod(USES)).run()
    world.apply(pod(USES).replace("{name: app}", "{name: other}")).run()
    assert [words for words in world.said if words.startswith("Pod/demo/other")] == [
        "Pod/demo/other FailedScheduling: 0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim "
        "with ReadWriteOncePod access mode already in-use by another pod. preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod."
    ]
    world.delete("Pod", "app").run()
    assert world.status("Pod", "other")["phase"] == "Running"


RIGHTLESS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: app, namespace: demo}
"""
ASKS = "command: [kubectl, get, pods]"
WORDS = (
    'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:demo:app" cannot list resource '
    '"pods" in API group "" in the namespace "demo"'
)


def calling(restart: str, *, first: bool = False, account: str = "app") -> str:
    inits = f'initContainers: [{{name: ask, image: "kubectl:1", {ASKS}}}]' if first else ""
    mains = f'containers: [{{name: main, image: "kubectl:1"{"" if first else f", {ASKS}"}}}]'
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: app, namespace: demo}}
spec:
  serviceAccountName: {account}
  restartPolicy: {restart}
  {inits}
  {mains}
"""


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("restart", "phase"), [("Never", "Failed"), ("OnFailure", "Pending")])
def test_a_pod_fails_if_its_account_lacks_the_rights_of_its_command(restart: str, phase: str, first: bool) -> None:
    world = SmallWorld(f"{RIGHTLESS}---{calling(restart, first=first)}").run()
    assert world.status("Pod", "app")["phase"] == (phase if first or restart == "Never" else "Running")
    assert WORDS in " ".join(world.said)


@pytest.mark.parametrize("worst_case", [False, True])
def test_the_default_account_may_have_rights_from_elsewhere(worst_case: bool) -> None:
    world = SmallWorld(RIGHTLESS.replace("name: app", "name: default"), worst_case=worst_case)
    world.apply(calling("Never", account="default"))
    assert world.run().status("Pod", "app")["phase"] == ("Failed" if worst_case else "Succeeded")


def test_an_assumed_account_may_do_anything() -> None:
    granted = RIGHTLESS.replace("name: app,", "name: app, annotations: {seatrial.dev/any-right: assumed},")
    assert SmallWorld(f"{granted}---{calling('Never')}").run().status("Pod", "app")["phase"] == "Succeeded"
