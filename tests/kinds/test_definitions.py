"""CRDs and APIServices: when their kinds are served, and how they are deleted."""

from __future__ import annotations

import pytest
from world import SmallWorld, conditions_of

GROUP = "apiextensions.k8s.io"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [w]}
  versions: [{name: v1, served: true, storage: true}]
"""
WIDGET = """
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, FINALIZERS}
"""


def test_names_are_accepted_before_the_crd_is_established() -> None:
    world = SmallWorld(DEFINITION)
    reported = []
    for _ in range(3):
        world.step("CustomResourceDefinition", "widgets.example.com", "", GROUP)
        reported.append(conditions_of(world.status("CustomResourceDefinition", "widgets.example.com", "", GROUP)))
    accepted = "True NoConflicts: no conflicts found"
    assert reported[0] == {
        "NamesAccepted": accepted,
        "Established": "False Installing: the initial names have been accepted",
    }
    established = "True InitialNamesAccepted: the initial names have been accepted"
    assert reported[1] == reported[2] == {"NamesAccepted": accepted, "Established": established}
    status = world.status("CustomResourceDefinition", "widgets.example.com", "", GROUP)
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["w"], "singular": "widget", "listKind": "WidgetList"}
    assert (status["acceptedNames"], status["storedVersions"]) == (names, ["v1"])


@pytest.mark.parametrize(
    ("names", "conflict"),
    [
        ("{plural: others, kind: Widget}", 'ListKindConflict: "WidgetList" is already in use'),
        ("{plural: others, kind: Other, shortNames: [w]}", 'ShortNamesConflict: "w" is already in use'),
        ("{plural: others, kind: Other, singular: widget}", 'SingularConflict: "widget" is already in use'),
    ],
)
def test_names_in_use_are_not_accepted(names: str, conflict: str) -> None:
    world = SmallWorld(DEFINITION).run()
    other = DEFINITION.replace("{plural: widgets, kind: Widget, shortNames: [w]}", names)
    world.apply(other.replace("widgets.example.com", "others.example.com")).run()
    assert conditions_of(world.status("CustomResourceDefinition", "others.example.com", "", GROUP)) == {
        "NamesAccepted": f"False {conflict}",
        "Established": "False NotAccepted: not all names are accepted",
    }


def test_deleting_a_crd_deletes_its_custom_resources() -> None:
    world = SmallWorld(DEFINITION + WIDGET.replace(", FINALIZERS", "")).run()
    world.delete("CustomResourceDefinition", "widgets.example.com", "", GROUP)
    world.run()
    assert world.deleted == ["Widget/demo/one", "CustomResourceDefinition/widgets.example.com"]


def test_a_finalizer_on_a_custom_resource_blocks_the_crd() -> None:
    world = SmallWorld(DEFINITION + WIDGET.replace("FINALIZERS", "finalizers: [example.com/drain]")).run()
    world.delete("CustomResourceDefinition", "widgets.example.com", "", GROUP)
    reported = conditions_of(world.status("CustomResourceDefinition", "widgets.example.com", "", GROUP))
    assert reported["Terminating"] == (
        "True InstanceDeletionPending: CustomResourceDefinition marked for deletion; "
        "CustomResource deletion will begin soon"
    )
    world.run()
    assert world.deleted == []
    definition = world.object("CustomResourceDefinition", "widgets.example.com", "", GROUP)
    assert definition["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions_of(definition["status"])["Terminating"] == (
        "True InstanceDeletionInProgress: CustomResource deletion is in progress"
    )


def test_every_storage_version_is_kept_in_stored_versions() -> None:
    world = SmallWorld(DEFINITION).run()
    versions = "[{name: v1, served: true, storage: false}, {name: v2, served: true, storage: true}]"
    world.apply(DEFINITION.replace("[{name: v1, served: true, storage: true}]", versions)).run()
    status = world.status("CustomResourceDefinition", "widgets.example.com", "", GROUP)
    assert status["storedVersions"] == ["v1", "v2"]


API = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.com}
spec: {group: metrics.example.com, version: v1, service: {name: metrics, namespace: demo}}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: metrics}
spec: {selector: {app: metrics}, ports: [{name: https, port: PORT}]}
---
"""
BACKEND = """
apiVersion: v1
kind: Pod
metadata: {name: metrics, labels: {app: metrics}}
spec: {containers: [{name: main, image: metrics}]}
---
"""
LISTENING = SERVICE.replace("PORT", "443")


@pytest.mark.parametrize(
    ("text", "available"),
    [
        ("", 'False ServiceNotFound: service/metrics in "demo" is not present'),
        (
            SERVICE.replace("PORT", "80"),
            'False ServicePortError: service/metrics in "demo" is not listening on port 443',
        ),
        (
            LISTENING,
            'False MissingEndpoints: endpointslices for service/metrics in "demo" '
            'have no addresses with port name "https"',
        ),
        (LISTENING + BACKEND, "True Passed: all checks passed"),
    ],
)
def test_an_api_service_is_available_when_its_service_is(text: str, available: str) -> None:
    world = SmallWorld(API + text).run()
    status = world.status("APIService", "v1.metrics.example.com", "", "apiregistration.k8s.io")
    assert conditions_of(status) == {"Available": available}
