"""Which differences do not count for Argo CD, and what a sync leaves alone for it."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.comparing import is_modified, respecting
from seatrial.engines.argocd.ignoring import not_understood
from seatrial.engines.argocd.jqpaths import paths
from seatrial.engines.argocd.settings import settings_of
from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.script import Target
from seatrial.model.resource import Body, ref_of

BODY: Body = {
    "metadata": {"annotations": {"a/b": "1"}},
    "spec": {"replicas": 3, "containers": [{"name": "app", "image": "x"}, {"name": "side", "image": "y", "on": True}]},
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (".spec.replicas", [("spec", "replicas")]),
        ('.metadata.annotations["a/b"]', [("metadata", "annotations", "a/b")]),
        ('.metadata.annotations."a/b"', [("metadata", "annotations", "a/b")]),
        (".spec.containers[].image", [("spec", "containers", 0, "image"), ("spec", "containers", 1, "image")]),
        (".spec.containers[1]", [("spec", "containers", 1)]),
        ('.spec.containers[] | select(.name == "side")', [("spec", "containers", 1)]),
        ('.spec.containers[] | select(.name != "side").image', [("spec", "containers", 0, "image")]),
        ('.spec.containers[] | select(.name | startswith("si"))', [("spec", "containers", 1)]),
        (
            '.spec.containers[] | select((.name | test("^a")) and (.on | not)) | .image',
            [("spec", "containers", 0, "image")],
        ),
        (".spec.replicas, .spec.paused", [("spec", "replicas"), ("spec", "paused")]),
        (".webhooks[]?.clientConfig", []),
        (".webhooks[].clientConfig", []),
    ],
)
def test_an_expression_names_places(expression: str, expected: list[tuple[str | int, ...]]) -> None:
    assert paths(expression, BODY) == expected


def test_what_is_not_understood_is_named() -> None:
    entries = ({"jqPathExpressions": ['.a[] | select(any(.b[]; . == "x"))', ".spec.replicas", ".a |= 3", "{"]},)
    assert list(not_understood(entries)) == ['.a[] | select(any(.b[]; . == "x"))', ".a |= 3", "{"]


@pytest.mark.parametrize(
    "entry",
    [
        {"jsonPointers": ["/spec/replicas", "/spec/containers/0/image"]},
        {"jqPathExpressions": [".spec.replicas", '.spec.containers[] | select(.name == "app").image']},
        {"managedFieldsManagers": ["someone"]},
    ],
)
def test_differences_are_ignored_by_pointers_expressions_and_managers(entry: Body) -> None:
    target, live = _deployment(1, "app:1"), _deployment(5, "app:2")
    owned: Body = {"f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}
    live["metadata"] |= {"managedFields": [{"manager": "someone", "fieldsV1": owned}]}
    spec = {"group": "apps", "kind": "Deployment", **entry}
    assert is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))
    by_app = App("shop", "default", ignore_differences=(spec,))
    assert not is_modified(_target(target), live, by_app, Settings((3, 5)))
    assert respecting(_target(target), live, by_app, Settings((3, 5))).body["spec"] == live["spec"]
    other = App("shop", "default", ignore_differences=({**spec, "name": "other"},))
    assert is_modified(_target(target), live, other, Settings((3, 5)))


def test_a_container_that_others_add_is_no_difference_and_one_that_was_dropped_is() -> None:
    target, live = _deployment(1, "app:1"), _deployment(1, "app:1", "side:1")
    assert not is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))
    live["metadata"] |= {"annotations": {LAST_APPLIED: msgspec.json.encode(live).decode()}}
    assert is_modified(_target(target), live, App("shop", "default"), Settings((3, 5)))


def test_entries_of_lists_are_kept_by_their_names_and_status_is_never_sent() -> None:
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


def _target(body: Body) -> Target:
    return Target(ref_of(body), body)
