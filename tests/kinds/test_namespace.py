"""Namespaces: their initial content, and their deletion."""

from __future__ import annotations

from world import SmallWorld, conditions_of

HELD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/hold]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, finalizers: [a.example/drain]}
"""


def test_a_namespace_gets_a_service_account_and_the_root_ca() -> None:
    world = SmallWorld()
    assert world.names("ServiceAccount") == ["default"]
    assert world.names("ConfigMap") == ["kube-root-ca.crt"]
    assert world.object("Namespace", "demo", "")["metadata"]["labels"] == {"kubernetes.io/metadata.name": "demo"}
    world.delete("ConfigMap", "kube-root-ca.crt").run()
    assert world.names("ConfigMap") == ["kube-root-ca.crt"]


def test_deleting_a_namespace_deletes_its_content_pods_first() -> None:
    world = SmallWorld(
        """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: web}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
"""
    ).run()
    world.delete("Namespace", "demo", "").run()
    assert world.content("demo") == []
    assert world.names("Namespace") == []
    assert world.deleted[0].startswith("Pod/demo/web-")
    assert world.deleted[-1] == "Namespace/demo"


def test_finalizers_block_a_namespace_and_its_conditions_name_them() -> None:
    world = SmallWorld(HELD).run()
    world.delete("Namespace", "demo", "").run()
    assert world.status("Namespace", "demo", "")["phase"] == "Terminating"
    assert conditions_of(world.status("Namespace", "demo", "")) == {
        "NamespaceDeletionDiscoveryFailure": "False ResourcesDiscovered: All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False ParsedGroupVersions: All legacy kube types successfully parsed"
        ),
        "NamespaceDeletionContentFailure": (
            "False ContentDeleted: All content successfully deleted, may be waiting on finalization"
        ),
        "NamespaceContentRemaining": (
            "True SomeResourcesRemain: Some resources are remaining: "
            "configmaps. has 1 resource instances, widgets.example.com has 1 resource instances"
        ),
        "NamespaceFinalizersRemaining": (
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "a.example/drain in 1 resource instances, example.com/hold in 1 resource instances"
        ),
    }
    for ref, body in list(world.objects.items()):
        if body["metadata"].get("finalizers"):
            world.objects[ref] = {**body, "metadata": {**body["metadata"], "finalizers": []}}
            world._put(ref, world.objects[ref])
    assert world.run().names("Namespace") == []


def test_an_unavailable_api_service_blocks_every_namespace() -> None:
    world = SmallWorld(
        """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.com}
spec: {group: metrics.example.com, version: v1, service: {name: metrics, namespace: demo}}
"""
    ).run()
    world.delete("Namespace", "demo", "").run()
    assert conditions_of(world.status("Namespace", "demo", ""))["NamespaceDeletionDiscoveryFailure"] == (
        "True DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete list of "
        "server APIs: metrics.example.com/v1: stale GroupVersion discovery: metrics.example.com/v1"
    )
    world.delete("APIService", "v1.metrics.example.com", "", "apiregistration.k8s.io").run()
    assert world.names("Namespace") == []
