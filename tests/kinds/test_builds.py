"""Builds on OpenShift: an image is there when its build has ended, and not before."""

from __future__ import annotations

from operatorcluster import OperatorCluster

BUILDS = "build.openshift.io"
IMAGES = "image.openshift.io"
IMAGE = "image-registry.openshift-image-registry.svc:5000/demo/app:latest"
STREAM = "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: app}}"
CONFIG = """
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: app}
spec:
  source: {git: {uri: "https://git/app"}, sourceSecret: {name: git-credentials}}
  strategy: {dockerStrategy: {}}
  output: {to: {kind: ImageStreamTag, name: "app:latest"}}
  triggers: [{type: ConfigChange}]
"""
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: git-credentials}}"
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec: {{containers: [{{name: main, image: "{IMAGE}"}}]}}
"""


def test_a_build_waits_for_its_stream_then_for_its_secret_and_a_pod_for_the_build() -> None:
    world = OperatorCluster("openshift")
    assert world.create(CONFIG) == []
    assert world.object("Build", "app-1", group=BUILDS)["status"] == {
        "phase": "New",
        "reason": "InvalidOutputReference",
        "message": "Output image could not be resolved.",
    }
    assert world.create(STREAM, POD) == []
    unknown = f"rpc error: code = Unknown desc = reading manifest latest in {IMAGE.removesuffix(':latest')}"
    assert world.said()[-2:] == [
        "Pod/demo/app-1-build: "
        'MountVolume.SetUp failed for volume "git-credentials-source" : secret "git-credentials" not found',
        f'Pod/demo/app: Failed to pull image "{IMAGE}": {unknown}: manifest unknown',
    ]
    waiting = world.object("Pod", "app")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ErrImagePull"
    assert world.create(SECRET) == []
    assert world.object("Build", "app-1", group=BUILDS)["status"] == {"phase": "Complete"}
    assert world.names("ImageStreamTag", IMAGES) == ["app:latest"]
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_a_build_that_nothing_triggers_is_not_started() -> None:
    world = OperatorCluster("openshift")
    assert world.create(STREAM, SECRET, CONFIG.replace("triggers: [{type: ConfigChange}]", "triggers: []")) == []
    assert world.names("Build", BUILDS) == []


def test_a_stream_that_imports_has_its_tag_at_once() -> None:
    world = OperatorCluster("openshift")
    imported = "{tags: [{name: latest, from: {kind: DockerImage, name: quay.io/team/app}}]}"
    assert world.create(STREAM.replace("{name: app}}", f"{{name: app}}, spec: {imported}}}"), POD) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_where_there_are_no_streams_every_image_can_be_had() -> None:
    world = OperatorCluster()
    assert world.create(POD) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_a_deployment_config_waits_for_its_image_and_makes_a_controller_for_each_template() -> None:
    world = OperatorCluster("openshift")
    config = """
    apiVersion: apps.openshift.io/v1
    kind: DeploymentConfig
    metadata: {name: web}
    spec:
      replicas: 1
      selector: {app: web}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "web:1"}]}}
      triggers: [{type: ImageChange, imageChangeParams: {from: {kind: ImageStreamTag, name: "app:latest"}}}]
    """
    assert world.create(config) == []
    assert world.names("ReplicationController") == []
    assert world.create(STREAM, SECRET, CONFIG) == []
    assert world.names("ReplicationController") == ["web-1"]
    assert world.object("DeploymentConfig", "web", group="apps.openshift.io")["status"]["availableReplicas"] == 1


def test_a_route_is_admitted_under_its_host() -> None:
    world = OperatorCluster("openshift")
    route = "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web}, spec: {to: {name: web}}}"
    assert world.create(route) == []
    ingress = world.object("Route", "web", group="route.openshift.io")["status"]["ingress"]
    assert [entry["host"] for entry in ingress] == ["web-demo.apps.example.com"]
