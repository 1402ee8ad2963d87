"""`wait` and `apply` against both arms: what they need of an API server and of no controller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from apiclient import Api
from arms import Here, config
from test_custom_kinds import definition

from seatrial.graph.linking import graph_of
from seatrial.live.applying import ApplyResult, ApplySettings, parent_of, plan, run
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.order import ApplyOrder, ordered
from seatrial.live.seen import Seen
from seatrial.live.waiting import Progress, wait_for
from seatrial.live.wanted import parse
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig, ref_of, with_metadata

SECONDS_MAX = 60.0
CRD = "CustomResourceDefinition"


def target_of(api: Api, namespace: str) -> ClusterAccess:
    token = api._headers.get("Authorization", "").removeprefix("Bearer ")
    return ClusterAccess(api.url, namespace=namespace, token=token, insecure=api.tls is not None)


@pytest.fixture
def client(here: Here) -> Iterator[Client]:
    with Client(target_of(here.api, here.name)) as client:
        yield client


def order_of(here: Here, *bodies: Body) -> ApplyOrder:
    placed = [body if body["kind"] == CRD else with_metadata(body, namespace=here.name) for body in bodies]
    resources = tuple(Resource(ref_of(body, namespaced=body["kind"] != CRD), body, Origin("")) for body in placed)
    return ordered(graph_of([Release("", here.name, "", resources)]))


def applied(here: Here, order: ApplyOrder, options: ApplySettings) -> ApplyResult:
    with (
        Client(target_of(here.api, here.name)) as client,
        Fetching(client, Seen(), SECONDS_MAX, by_name=False) as fetching,
    ):
        return run(order, fetching, options)


def widget(here: Here) -> tuple[Body, Body]:
    """A CRD that no other test has, and an object of it."""
    crd = definition(f"{here.name}.example.com")
    group, kind = str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))
    version = str(dig(crd, "spec", "versions", 0, "name"))
    return crd, {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "a"}}


def test_a_wait_ends_when_the_object_is_created(here: Here, client: Client) -> None:
    left = [lambda: here.create(config("late"))]

    def report(_: Sequence[Progress]) -> None:
        if left:
            left.pop()()

    with Fetching(client, Seen(), SECONDS_MAX) as fetching:
        wanted = parse("configmap/late", here.name, lambda kind: client.served().named(kind))
        assert wait_for([wanted], fetching, report)[0].verdict.usable


def test_keys_of_a_secret_are_seen(here: Here, client: Client) -> None:
    meta = {"name": "db"}
    here.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"user": "a"}})
    with Fetching(client, Seen(), SECONDS_MAX) as fetching:
        wanted = parse("secret/db:user", here.name, lambda kind: client.served().named(kind))
        assert wait_for([wanted], fetching)[0].verdict.usable


def test_a_custom_resource_is_applied_after_its_crd_is_served(here: Here) -> None:
    crd, body = widget(here)
    result = applied(here, order_of(here, body, crd), ApplySettings(SECONDS_MAX))
    assert result.says == ""
    assert [ref.kind for ref in result.applied] == [CRD, str(body["kind"])]
    here.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}")


def test_the_plan_tells_new_changed_and_unchanged_objects(here: Here, client: Client) -> None:
    applied(here, order_of(here, config("same", {"a": "1"}), config("changed", {"a": "1"})), ApplySettings(SECONDS_MAX))
    order = order_of(here, config("same", {"a": "1"}), config("changed", {"a": "2"}), config("new", {"a": "1"}))
    states = {one.step.ref.name: one.state for one in plan(order, client, ApplySettings())}
    assert states == {"same": "unchanged", "changed": "update", "new": "create"}


def test_members_that_left_the_input_are_pruned(here: Here) -> None:
    options = ApplySettings(SECONDS_MAX, parent=parent_of("set", here.name), prune=True)
    applied(here, order_of(here, config("a", {"a": "1"}), config("b", {"a": "1"})), options)
    result = applied(here, order_of(here, config("a", {"a": "1"})), options)
    assert result.pruned == (Ref("ConfigMap", here.name, "b"),)
    assert here.names("ConfigMap") == ["a"]
