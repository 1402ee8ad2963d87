"""Watches: events, their order, start versions, and expired versions. On both arms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from apiclient import Api
from arms import Here, config
from msgspec import Struct
from test_custom_kinds import Widgets, definition

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.cluster.store import LOG_MAX
from seatrial.model.resource import Body, Ref

RUNS_ON: Body = {"containers": [{"name": "main", "image": "app:1"}]}
POD: Body = {**RUNS_ON, "restartPolicy": "Never"}
LISTS_FIRST: dict[str, str | int] = {
    "sendInitialEvents": "true",
    "allowWatchBookmarks": "true",
    "resourceVersionMatch": "NotOlderThan",
}


def lines(events: Iterator[Body], count: int) -> list[str]:
    return [f"{event['type']} {event['object']['metadata'].get('name', '')}".strip() for event in islice(events, count)]


@pytest.fixture
def life(here: Here) -> tuple[Here, str]:
    """A ConfigMap that was created, updated, relabelled and deleted, and the version before that."""
    version = here.version()
    here.create(config(labels={"stage": "one"}))
    here.patch("ConfigMap", "app", {"data": {"color": "red"}})
    here.patch("ConfigMap", "app", {"metadata": {"labels": {"stage": "two"}}})
    here.delete("ConfigMap", "app")
    return here, version


def test_a_watch_from_a_version_returns_all_later_events(life: tuple[Here, str]) -> None:
    here, version = life
    with here.api.watch(here.at("ConfigMap"), resourceVersion=version) as events:
        assert lines(events, 4) == ["ADDED app", "MODIFIED app", "MODIFIED app", "DELETED app"]


def test_leaving_a_selection_is_a_deletion_and_entering_an_addition(life: tuple[Here, str]) -> None:
    here, version = life
    path = here.at("ConfigMap")
    with here.api.watch(path, resourceVersion=version, labelSelector="stage=one") as events:
        assert lines(events, 3) == ["ADDED app", "MODIFIED app", "DELETED app"]
    with here.api.watch(path, resourceVersion=version, labelSelector="stage=two") as events:
        assert lines(events, 2) == ["ADDED app", "DELETED app"]


def test_a_deletion_has_the_last_state_and_a_new_version(life: tuple[Here, str]) -> None:
    here, version = life
    with here.api.watch(here.at("ConfigMap"), resourceVersion=version) as events:
        changed, gone = list(islice(events, 4))[2:]
    assert gone["object"]["data"] == {"color": "red"}
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(changed["object"]["metadata"]["resourceVersion"])


def test_a_watch_of_one_name(here: Here) -> None:
    version = here.version()
    with here.api.watch(here.at("ConfigMap"), resourceVersion=version, fieldSelector="metadata.name=app") as events:
        here.create(config("other"))
        here.create(config())
        assert lines(events, 1) == ["ADDED app"]


def test_a_watch_without_a_version_begins_with_existing_objects(here: Here) -> None:
    here.version()
    here.create(config("a"))
    with here.api.watch(here.at("ConfigMap")) as events:
        assert sorted(lines(events, 2)) == ["ADDED a", "ADDED kube-root-ca.crt"]
        here.create(config("b"))
        assert lines(events, 1) == ["ADDED b"]


def test_initial_events_end_with_a_bookmark(here: Here) -> None:
    here.version()
    here.create(config("a"))
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    with here.api.watch(here.at("ConfigMap"), **query) as events:
        assert sorted(lines(events, 2)) == ["ADDED a", "ADDED kube-root-ca.crt"]
        bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0


def test_without_initial_events_only_changes_are_sent(here: Here) -> None:
    here.version()
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    with here.api.watch(here.at("ConfigMap"), **query) as events:
        here.create(config())
        assert lines(events, 1) == ["ADDED app"]


def test_a_watch_ends_after_its_timeout(here: Here) -> None:
    with here.api.watch(here.at("ConfigMap"), resourceVersion=here.version(), timeoutSeconds=1) as events:
        assert list(events) == []


def test_a_watch_of_a_single_object_path_is_a_get(here: Here) -> None:
    made = here.create(config()).body
    assert here.api.get(here.at("ConfigMap", "app"), watch="true").body == made
    assert here.api.get(here.at("ConfigMap", "none"), watch="true").refusal == (
        '404 NotFound: configmaps "none" not found'
    )


BAD_WATCHES: dict[str, tuple[dict[str, str | int], str]] = {
    "a version that is none": (
        {"resourceVersion": "new"},
        '500 : resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": invalid syntax',
    ),
    "a time that is none": ({"timeoutSeconds": "x"}, '400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax'),
    "initial events of any version": (
        {"sendInitialEvents": "true"},
        '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents '
        "requires setting resourceVersionMatch to NotOlderThan",
    ),
    "a selector that is none": (
        {"labelSelector": "a b"},
        "400 BadRequest: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    ),
}


@pytest.mark.parametrize("given", BAD_WATCHES)
def test_an_invalid_watch_is_refused(here: Here, given: str) -> None:
    query, words = BAD_WATCHES[given]
    assert here.api.get(here.at("ConfigMap"), watch="true", **query).refusal == words


def test_initial_events_show_the_objects_after_controllers_ran() -> None:
    """Clients examine unfinished objects five times a second, so they only get the finished one."""
    cluster = Cluster(schedule="lazy")
    with ApiServer(cluster) as server, Api(server.url) as api:
        api.post("/apis/batch/v1/namespaces/default/jobs", job("stays"))
        with api.watch("/apis/batch/v1/namespaces/default/jobs", **LISTS_FIRST) as events:
            first, end = islice(events, 2)
            assert (first["type"], first["object"]["status"]["succeeded"]) == ("ADDED", 1)
            assert (end["type"], end["object"]["metadata"]["resourceVersion"]) == (
                "BOOKMARK",
                str(cluster.store.version),
            )


def test_a_deletion_during_the_initial_run_is_sent() -> None:
    pods = "/api/v1/namespaces/default/pods"
    cluster = Cluster(schedule="lazy")
    with ApiServer(cluster) as server, Api(server.url) as api:
        api.post(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "goes"}, "spec": RUNS_ON})
        cluster.settle()
        api.delete(f"{pods}/goes")
        with api.watch(pods, **LISTS_FIRST) as events:
            assert lines(events, 3) == ["ADDED goes", "BOOKMARK", "DELETED goes"]


def job(name: str) -> Body:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": POD}}}


class Expired(Struct, frozen=True):
    """An API server, and a path whose first version has expired."""

    api: Api
    path: str


@pytest.fixture
def expired(here: Here) -> Iterator[Expired]:
    """A real server has no history of a kind before its creation; the embedded one drops old changes."""
    if here.is_real:
        kind = Widgets(here)
        assert here.create(definition(kind.group)).code == 201
        assert here.soon(lambda: here.api.get(kind.at()).code == 200)
        yield Expired(here.api, kind.at())
        here.delete("CustomResourceDefinition", kind.definition)
        return
    cluster = Cluster()
    with ApiServer(cluster) as server, Api(server.url) as api:
        age(cluster)
        yield Expired(api, "/api/v1/namespaces/default/configmaps")


def age(cluster: Cluster) -> None:
    ref = Ref("ConfigMap", "default", "kube-root-ca.crt")
    body = cluster.store.get(ref)
    assert body is not None
    for _ in range(LOG_MAX + 1):
        cluster.store.put(ref, body)


def test_an_expired_version_is_gone(expired: Expired) -> None:
    with expired.api.watch(expired.path, resourceVersion="1") as events:
        last = next(events)
        assert list(events) == []
    status = last["object"]
    assert (last["type"], status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


def test_a_page_of_an_expired_version_is_gone() -> None:
    cluster = Cluster()
    with ApiServer(cluster) as server, Api(server.url) as api:
        page = api.get("/api/v1/namespaces", limit=1).body["metadata"]["continue"]
        age(cluster)
        refused = api.get("/api/v1/namespaces", **{"continue": page})
    assert refused.code == 410
    assert refused.body["reason"] == "Expired"
    assert refused.body["message"].startswith("The provided continue parameter is too old to display a consistent list")
