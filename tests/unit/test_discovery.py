"""Discovery of the API."""

import json
from typing import Any

import pytest

from seatrial.cluster.discovery.schema import published_versions
from seatrial.cluster.discovery.served import Discovery, builtin_kinds, version_order
from seatrial.cluster.refusal import Refused
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind, cluster_scoped, plural_of
from seatrial.kinds.tables.removed import REMOVED, Removal


def document(discovery: Discovery, path: str, *, aggregated: bool = False) -> Any:
    found = discovery.document(path, aggregated=aggregated)
    return None if found is None else json.loads(found)


def widget(version: str) -> ServedKind:
    return ServedKind("example.com", version, "Widget", "widgets", "widget", True, list_kind="WidgetList")


def test_versions_are_ordered_as_in_kubernetes() -> None:
    names = ["v1alpha1", "foo1", "v1beta2", "v10", "v2", "v1beta10", "v11alpha2"]
    assert sorted(names, key=version_order) == ["v10", "v2", "v1beta10", "v1beta2", "v11alpha2", "v1alpha1", "foo1"]


def test_the_catalogue_knows_scopes_and_plurals() -> None:
    assert cluster_scoped("", "Namespace") is True
    assert cluster_scoped("apps", "Deployment") is False
    assert cluster_scoped("example.com", "Widget") is None
    assert plural_of("networking.k8s.io", "NetworkPolicy") == "networkpolicies"
    assert plural_of("example.com", "Widget") is None


def test_default_betas_are_served_until_removed() -> None:
    served = {v: {(k.group, k.version, k.kind) for k in builtin_kinds(v)} for v in published_versions()}
    for last, first_without, kind in (
        ("1.25", "1.26", ("autoscaling", "v2beta2", "HorizontalPodAutoscaler")),
        ("1.26", "1.27", ("storage.k8s.io", "v1beta1", "CSIStorageCapacity")),
        ("1.28", "1.29", ("flowcontrol.apiserver.k8s.io", "v1beta2", "FlowSchema")),
        ("1.31", "1.32", ("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema")),
    ):
        assert kind in served[last]
        assert kind not in served[first_without]
        assert REMOVED[kind].minor == first_without


def test_other_betas_are_not_served() -> None:
    assert not [k for k in builtin_kinds("1.34") if "beta" in k.version or "alpha" in k.version]


def test_every_kind_of_the_catalogue_is_served_by_the_newest_minor() -> None:
    assert {(k.group, k.kind) for k in builtin_kinds("1.37")} == set(CATALOGUE)


def test_removed_versions_are_not_served() -> None:
    assert REMOVED["batch", "v1beta1", "CronJob"] == Removal("1.25", "batch/v1")
    assert REMOVED["policy", "v1beta1", "PodSecurityPolicy"] == Removal("1.25", "")
    newest = {(k.group, k.version, k.kind) for k in builtin_kinds("1.37")}
    assert not newest & set(REMOVED)


def test_a_resource_is_found_by_its_path_and_by_its_kind() -> None:
    discovery = Discovery("1.34")
    hpa = discovery.of_kind("autoscaling", "HorizontalPodAutoscaler")
    assert hpa is not None
    assert (hpa.api_version, hpa.short_names) == ("autoscaling/v2", ("hpa",))
    assert discovery.versions("autoscaling", "horizontalpodautoscalers") == ("v2", "v1")
    assert discovery.find("autoscaling", "v1", "horizontalpodautoscalers") is not None
    assert discovery.find("autoscaling", "v2beta2", "horizontalpodautoscalers") is None


def test_the_resource_list_of_a_group_version() -> None:
    assert document(Discovery("1.34"), "/apis/policy/v1") == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "policy/v1",
        "resources": [
            {
                "name": "poddisruptionbudgets",
                "singularName": "poddisruptionbudget",
                "namespaced": True,
                "kind": "PodDisruptionBudget",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["pdb"],
            },
            {
                "name": "poddisruptionbudgets/status",
                "singularName": "",
                "namespaced": True,
                "kind": "PodDisruptionBudget",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_a_subresource_of_another_group_has_its_group() -> None:
    listed = document(Discovery("1.34"), "/api/v1")["resources"]
    assert next(r for r in listed if r["name"] == "pods/eviction") == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


def test_pods_have_resize_since_1_33() -> None:
    old, new = (Discovery(minor).of_kind("", "Pod") for minor in ("1.32", "1.33"))
    assert old is not None
    assert new is not None
    assert set(new.subresources) - set(old.subresources) == {"resize"}


def test_a_custom_group_is_listed_last_and_can_be_removed() -> None:
    discovery = Discovery("1.34")
    before = document(discovery, "/apis")
    discovery.add([widget("v1beta1"), widget("v1")])
    assert document(discovery, "/apis")["groups"][-1] == {
        "name": "example.com",
        "versions": [
            {"groupVersion": "example.com/v1", "version": "v1"},
            {"groupVersion": "example.com/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"},
    }
    assert discovery.of_kind("example.com", "Widget") == widget("v1")
    discovery.remove("example.com", "widgets")
    assert document(discovery, "/apis") == before
    assert document(discovery, "/apis/example.com") is None
    assert discovery.of_kind("example.com", "Widget") is None


def test_aggregated_discovery_lists_resources_and_subresources() -> None:
    discovery = Discovery("1.34")
    discovery.add([widget("v1")])
    listed = document(discovery, "/apis", aggregated=True)
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert listed["items"][-1] == {
        "metadata": {"name": "example.com"},
        "versions": [
            {
                "version": "v1",
                "freshness": "Current",
                "resources": [
                    {
                        "resource": "widgets",
                        "responseKind": {"group": "", "version": "", "kind": "Widget"},
                        "scope": "Namespaced",
                        "singularResource": "widget",
                        "verbs": list(widget("v1").verbs),
                    }
                ],
            }
        ],
    }
    apps = next(item for item in listed["items"] if item["metadata"]["name"] == "apps")
    deployments = next(r for r in apps["versions"][0]["resources"] if r["resource"] == "deployments")
    assert deployments["subresources"][0] == {
        "subresource": "scale",
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "verbs": ["get", "patch", "update"],
    }


def test_a_group_with_an_unavailable_backend_is_stale() -> None:
    discovery = Discovery("1.34")
    discovery.set_down("metrics.k8s.io", "v1beta1")
    assert document(discovery, "/apis", aggregated=True)["items"][-1] == {
        "metadata": {"name": "metrics.k8s.io"},
        "versions": [{"version": "v1beta1", "freshness": "Stale"}],
    }
    with pytest.raises(Refused, match="the server is currently unable to handle the request"):
        discovery.document("/apis/metrics.k8s.io/v1beta1")
    discovery.set_up("metrics.k8s.io", "v1beta1")
    assert document(discovery, "/apis/metrics.k8s.io") is None


def test_unlisted_kinds_are_served() -> None:
    discovery = Discovery("1.34")
    before = [group["name"] for group in document(discovery, "/apis")["groups"]]
    kinds = (("policy", "PodDisruptionBudget"), ("node.k8s.io", "RuntimeClass"), ("apps", "DaemonSet"))
    discovery.unlist(frozenset(kinds))
    after = [group["name"] for group in document(discovery, "/apis")["groups"]]
    assert [name for name in before if name not in after] == ["policy", "node.k8s.io"]
    groups = {group["metadata"]["name"]: group for group in document(discovery, "/apis", aggregated=True)["items"]}
    assert list(groups) == after
    apps = [resource["resource"] for resource in groups["apps"]["versions"][0]["resources"]]
    assert apps == ["controllerrevisions", "deployments", "replicasets", "statefulsets"]
    assert discovery.of_kind("policy", "PodDisruptionBudget") is not None
    assert "policy/v1" in discovery.api_versions()


def test_capabilities_are_as_helm_reads_them() -> None:
    discovery = Discovery("1.34")
    discovery.add([widget("v1")])
    found = discovery.api_versions()
    assert {"v1", "v1/Pod", "v1/PodExecOptions", "apps/v1", "apps/v1/Scale", "example.com/v1/Widget"} <= set(found)
    assert "policy/v1beta1" not in found
    assert "batch/v1beta1/CronJob" not in found


def test_the_version_is_that_of_the_chosen_minor() -> None:
    found = document(Discovery("1.29"), "/version")
    assert (found["major"], found["minor"], found["gitVersion"]) == ("1", "29", "v1.29.0")
