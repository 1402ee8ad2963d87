"""Which differences do not count for Argo CD, and what a sync leaves alone for it."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.comparing import is_modified, respecting
from seatrial.engines.argocd.ignoring import comparison_error, given_up
from seatrial.engines.argocd.settings import settings_of
from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.script import DescribedObject
from seatrial.model.resource import Body, ref_of


@pytest.mark.parametrize(
    "entry",
    [
        {"jsonPointers": ["/spec/replicas", "/spec/containers/0/image"]},
        {"jqPathExpressions": [".spec.replicas", '.spec.containers[] | select(.name == "app").image']},
        {"managedFieldsManagers": ["user"]},
    ],
)
def test_differences_are_ignored_by_pointers_expressions_and_managers(entry: Body) -> None:
    target, live = _deployment(1, "app:1"), _deployment(5, "app:2")
    owned: Body = {"f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}
    live["metadata"] |= {"managedFields": [{"manager": "user", "fieldsV1": owned}]}
    spec = {"group": "apps", "kind": "Deployment", **entry}
    assert is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))
    by_app = App("shop", "default", ignore_differences=(spec,))
    assert not is_modified(_target(target), live, by_app, Settings((3, 5)))
    assert respecting(_target(target), live, by_app, Settings((3, 5))).body["spec"] == live["spec"]
    other = App("shop", "default", ignore_differences=({**spec, "name": "other"},))
    assert is_modified(_target(target), live, other, Settings((3, 5)))


def test_expressions_are_applied_one_after_the_other() -> None:
    entry = {"group": "apps", "kind": "Deployment", "jqPathExpressions": [".spec.containers[0]", ".spec.containers[0]"]}
    target, live = _deployment(1, "app:1", "side:1", "same:1"), _deployment(1, "app:2", "side:2", "same:1")
    assert not is_modified(_target(target), live, App("shop", "default", ignore_differences=(entry,)), Settings((3, 5)))


def test_an_expression_that_closes_del_may_change_the_comparison() -> None:
    expression = ".x) | .spec.config |= (fromjson | del(.auth) | tojson"
    entry = {"group": "apps", "kind": "Deployment", "jqPathExpressions": [expression]}
    by_app = App("shop", "default", ignore_differences=(entry,))
    target, live = _deployment(1, "app:1"), _deployment(1, "app:1")
    target["spec"]["config"], live["spec"]["config"] = '{"auth":1,"b":2}', '{"auth":7,"b":2}'
    assert not is_modified(_target(target), live, by_app, Settings((3, 5)))
    assert respecting(_target(target), live, by_app, Settings((3, 5))).body["spec"]["config"] == '{"auth":7,"b":2}'
    live["spec"]["config"] = '{"auth":7,"b":3}'
    assert is_modified(_target(target), live, by_app, Settings((3, 5)))


def test_an_expression_that_does_not_compile_is_a_comparison_error_of_every_application() -> None:
    app = App("shop", "default", ignore_differences=({"jqPathExpressions": [".spec.replicas", "foo(.spec)"]},))
    words = "ComparisonError: Failed to compare desired state to live state: function not defined: foo/1"
    assert comparison_error(app, Settings((3, 5))) == words
    settings = Settings((3, 5), ignore_differences=app.ignore_differences)
    assert comparison_error(App("other", "default"), settings) == words
    assert comparison_error(App("other", "default"), Settings((3, 5))) == ""


def test_expressions_that_time_out_are_reported_and_missing_fields_are_not() -> None:
    expressions = [".nope[]", ".a) | empty | (.", ".a), (."]
    entry = {"group": "apps", "kind": "Deployment", "jqPathExpressions": expressions}
    app = App("shop", "default", (_target(_deployment(1, "app:1")),), ignore_differences=(entry,))
    assert list(given_up(app, Settings((3, 5)))) == [
        "Failed to apply normalization: '.a) | empty | (.' of Deployment/default/web: JQ patch did not return any data",
        "Failed to apply normalization: '.a), (.' of Deployment/default/web: JQ patch returned multiple objects",
    ]


def test_a_container_added_by_others_is_no_difference_and_a_dropped_one_is() -> None:
    target, live = _deployment(1, "app:1"), _deployment(1, "app:1", "side:1")
    assert not is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))
    live["metadata"] |= {"annotations": {LAST_APPLIED: msgspec.json.encode(live).decode()}}
    assert is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))


def test_list_entries_are_matched_by_name_and_status_is_never_sent() -> None:
    target, live = _deployment(1, "app:2", "side:2"), _deployment(1, "side:1", "app:1")
    live["status"] = {"replicas": 1}
    entry = {
        "group": "*",
        "kind": "*",
        "jqPathExpressions": ['.spec.containers[] | select(.name == "side").image', ".status"],
    }
    body = respecting(_target(target), live, App("shop", "default", ignore_differences=(entry,)), Settings((3, 5))).body
    assert [container["image"] for container in body["spec"]["containers"]] == ["app:2", "side:1"]
    assert "status" not in body


def test_the_settings_ignore_for_all_applications() -> None:
    data = {
        "resource.customizations.ignoreDifferences.apps_Deployment": "jqPathExpressions: [.spec.replicas]",
        "resource.customizations": "apps/StatefulSet: {ignoreDifferences: 'jsonPointers: [/spec/replicas]'}",
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    settings = settings_of("3.5", [config])
    for kind in ("Deployment", "StatefulSet"):
        target, live = {**_deployment(1, "app:1"), "kind": kind}, {**_deployment(5, "app:1"), "kind": kind}
        assert not is_modified(_target(target), live, App("shop", "default"), settings)


def _deployment(replicas: int, *images: str) -> Body:
    containers = [{"name": image.partition(":")[0], "image": image} for image in images]
    meta = {"name": "web", "namespace": "default"}
    spec = {"replicas": replicas, "containers": containers}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _target(body: Body) -> DescribedObject:
    return DescribedObject(ref_of(body), body)
