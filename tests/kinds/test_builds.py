"""Builds on OpenShift: an image exists once its build has completed."""

from __future__ import annotations

from apiclient import Api
from operatorcluster import OperatorCluster

from seatrial.cluster.request import Request
from seatrial.cluster.server.http import ApiServer
from seatrial.model.resource import Body

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


def test_a_build_waits_for_its_stream_and_secret_and_a_pod_for_the_build() -> None:
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


def test_a_build_without_a_trigger_is_not_started() -> None:
    world = OperatorCluster("openshift")
    assert world.create(STREAM, SECRET, CONFIG.replace("triggers: [{type: ConfigChange}]", "triggers: []")) == []
    assert world.names("Build", BUILDS) == []


def instantiated(world: OperatorCluster, body: Body | None = None, dry_run: bool = False) -> tuple[int, Body]:
    """The response to `oc start-build app`."""
    asked = {"kind": "BuildRequest", "apiVersion": f"{BUILDS}/v1", "metadata": {"name": "app"}, **(body or {})}
    reply = world.cluster.request(
        Request(
            "create",
            BUILDS,
            "v1",
            "buildconfigs",
            "demo",
            "app",
            subresource="instantiate",
            body=asked,
            dry_run=dry_run,
        )
    )
    return reply.code, reply.body


def test_start_build_creates_a_build() -> None:
    world = OperatorCluster("openshift")
    assert world.create(STREAM, SECRET, CONFIG.replace("triggers: [{type: ConfigChange}]", "triggers: []")) == []
    code, build = instantiated(world, {"metadata": {"name": "app", "labels": {"by": "hand"}}})
    assert (code, build["kind"], build["metadata"]["name"]) == (201, "Build", "app-1")
    names = {"openshift.io/build-config.name": "app"}
    assert build["metadata"]["labels"] == {"by": "hand", "buildconfig": "app", **names}
    assert build["metadata"]["annotations"] == {"openshift.io/build.number": "1", **names}
    assert [owner["kind"] for owner in build["metadata"]["ownerReferences"]] == ["BuildConfig"]
    assert build["spec"]["triggeredBy"] == [{"message": "Manually triggered"}]
    assert build["spec"]["output"] == {"to": {"kind": "ImageStreamTag", "name": "app:latest"}}
    assert world.object("BuildConfig", "app", group=BUILDS)["status"]["lastVersion"] == 1
    assert world.object("Build", "app-1", group=BUILDS)["status"] == {"phase": "Complete"}
    assert world.names("ImageStreamTag", IMAGES) == ["app:latest"]
    assert instantiated(world)[1]["metadata"]["name"] == "app-2"
    assert world.names("Build", BUILDS) == ["app-1", "app-2"]


def test_start_build_with_a_dry_run_creates_nothing() -> None:
    world = OperatorCluster("openshift")
    assert world.create(STREAM, SECRET, CONFIG) == []
    assert instantiated(world, dry_run=True)[1]["metadata"]["name"] == "app-2"
    assert world.names("Build", BUILDS) == ["app-1"]


def test_start_build_is_refused_with_openshifts_errors() -> None:
    world = OperatorCluster("openshift")
    code, status = instantiated(world)
    assert (code, status["message"]) == (404, f'buildconfigs.{BUILDS} "app" not found')
    assert world.create(STREAM, SECRET, CONFIG) == []
    code, status = instantiated(world, {"lastVersion": 7})
    words = "the LastVersion(1) on build config demo/app does not match the build request LastVersion(7)"
    assert (code, status["message"]) == (400, words)
    paused = CONFIG.replace("{name: app}", '{name: app, annotations: {openshift.io/build-config.paused: "true"}}')
    world.delete("BuildConfig", "app", group=BUILDS)
    assert world.create(paused) == []
    assert world.names("Build", BUILDS) == []
    code, status = instantiated(world)
    words = "can't instantiate from BuildConfig demo/app: BuildConfig is paused"
    assert (code, status["message"]) == (400, words)


def test_instantiate_is_in_discovery_and_accepts_only_posts() -> None:
    world = OperatorCluster("openshift")
    assert world.create(STREAM, SECRET, CONFIG) == []
    with ApiServer(world.cluster) as server, Api(server.url) as api:
        resources = {found["name"]: found for found in api.get(f"/apis/{BUILDS}/v1").body["resources"]}
        assert resources["buildconfigs/instantiate"]["kind"] == "BuildRequest"
        assert resources["buildconfigs/instantiate"]["verbs"] == ["create"]
        path = f"/apis/{BUILDS}/v1/namespaces/demo/buildconfigs/app/instantiate"
        asked = {"kind": "BuildRequest", "apiVersion": f"{BUILDS}/v1", "metadata": {"name": "app"}}
        assert api.post(path, asked).body["metadata"]["name"] == "app-2"
        assert api.get(path).code == 405
        assert api.post(path.replace("buildconfigs/app", "builds/app-1"), asked).code == 404


def test_an_imported_tag_exists_at_once() -> None:
    world = OperatorCluster("openshift")
    imported = "{tags: [{name: latest, from: {kind: DockerImage, name: quay.io/team/app}}]}"
    assert world.create(STREAM.replace("{name: app}}", f"{{name: app}}, spec: {imported}}}"), POD) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_without_image_streams_every_image_can_be_pulled() -> None:
    world = OperatorCluster()
    assert world.create(POD) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_a_deployment_config_waits_for_its_image_and_creates_a_controller_per_template() -> None:
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


def test_a_route_is_admitted_with_its_host() -> None:
    world = OperatorCluster("openshift")
    route = "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web}, spec: {to: {name: web}}}"
    assert world.create(route) == []
    ingress = world.object("Route", "web", group="route.openshift.io")["status"]["ingress"]
    assert [entry["host"] for entry in ingress] == ["web-demo.apps.example.com"]
