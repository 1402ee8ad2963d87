"""lightkube, a Python client, against the embedded API: its models, waits and errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from lightkube import ApiError, Client, KubeConfig
from lightkube.codecs import load_all_yaml
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.guard import Guard
from seatrial.cluster.server.http import ApiServer

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "app:1"}]}}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def client() -> Iterator[Client]:
    with ApiServer(Cluster(), guard=Guard("secret")) as server:
        config = KubeConfig.from_dict(yaml.safe_load(server.kubeconfig()))
        with Client(config=config, field_manager="tester") as found:
            yield found


def config(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="app", namespace="default"), data=data)


def apply_all(client: Client, text: str) -> None:
    for found in load_all_yaml(text):
        client.apply(found)


def test_create_get_list_and_replace(client: Client) -> None:
    made = client.create(config(color="red"))
    assert made.metadata is not None
    assert client.get(ConfigMap, "app").data == {"color": "red"}
    made.data = {"color": "blue"}
    client.replace(made)
    listed = {found.metadata.name: found.data for found in client.list(ConfigMap) if found.metadata}
    assert listed["app"] == {"color": "blue"}


def test_replacing_an_old_version_is_a_conflict(client: Client) -> None:
    old = client.create(config(color="red"))
    client.patch(ConfigMap, "app", {"data": {"color": "blue"}}, patch_type=PatchType.MERGE)
    with pytest.raises(ApiError, match="the object has been modified") as refused:
        client.replace(old)
    assert (refused.value.status.code, refused.value.status.reason) == (409, "Conflict")


def test_apply_conflicts_and_force(client: Client) -> None:
    client.apply(config(color="red"), field_manager="one")
    with pytest.raises(ApiError, match=r'Apply failed with 1 conflict: conflict with "one": \.data\.color'):
        client.apply(config(color="blue"), field_manager="two")
    assert client.apply(config(color="blue"), field_manager="two", force=True).data == {"color": "blue"}


def test_a_wait_for_a_condition_ends(client: Client) -> None:
    apply_all(client, WEB)
    ready = client.wait(Deployment, "web", for_conditions=["Available"])
    assert ready.status is not None
    assert ready.status.readyReplicas == 2


def test_a_watch_returns_events(client: Client) -> None:
    client.create(config(color="red"))
    for reported, (event, body) in enumerate(client.watch(ConfigMap, fields={"metadata.name": "app"})):
        if reported == 0:
            assert (event, body.data) == ("ADDED", {"color": "red"})
            client.patch(ConfigMap, "app", {"data": {"color": "blue"}})
        else:
            assert (event, body.data) == ("MODIFIED", {"color": "blue"})
            break


def test_delete_cascades_or_orphans(client: Client) -> None:
    for cascade, left in ((CascadeType.ORPHAN, 2), (CascadeType.FOREGROUND, 0), (CascadeType.BACKGROUND, 0)):
        apply_all(client, WEB)
        client.delete(Deployment, "web", cascade=cascade)
        assert len(list(client.list(Pod, labels={"app": "web"}))) == left, cascade
    with pytest.raises(ApiError, match=r'deployments\.apps "web" not found'):
        client.get(Deployment, "web")


def test_a_custom_kind_is_served(client: Client) -> None:
    apply_all(client, DEFINITION)
    client.wait(CustomResourceDefinition, "widgets.example.com", for_conditions=["Established"])
    widgets = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    client.create(widgets(metadata=ObjectMeta(name="blue", namespace="default"), spec={"size": 1}))
    assert client.get(widgets, "blue")["spec"] == {"size": 1}
