"""Properties of the store after any requests: it is consistent, its log can be replayed, nothing is left over."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from storecheck import complaints

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.cluster.watch import Watch
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Schedule

FEW = settings(max_examples=60, deadline=None, derandomize=True)
SCHEDULES: tuple[Schedule, ...] = ("eager", "lazy", "seeded")

names = st.sampled_from("abcd")
homes = st.sampled_from(("default", "one", "two"))
labels = st.dictionaries(st.sampled_from(("app", "tier")), names, max_size=2)
finalizers = st.lists(st.sampled_from(("example.com/x", "example.com/y")), unique=True, max_size=1)

Act = tuple[str, str, str, Any]
acts = st.one_of(
    st.tuples(st.just("create"), homes, names, st.tuples(labels, finalizers, st.none() | names)),
    st.tuples(st.just("relabel"), homes, names, labels),
    st.tuples(st.just("let go"), homes, names, st.none()),
    st.tuples(st.just("delete"), homes, names, st.sampled_from(("Background", "Foreground", "Orphan"))),
    st.tuples(st.just("open"), homes, st.just(""), st.none()),
    st.tuples(st.just("close"), homes, st.just(""), st.none()),
)


def configs(namespace: str, name: str = "", **more: Any) -> Request:
    return Request(more.pop("verb"), "", "v1", "configmaps", namespace, name, actor="tester", **more)


def owner_of(cluster: Cluster, namespace: str, name: str | None) -> list[Body]:
    body = cluster.store.get(Ref("ConfigMap", namespace, name or ""))
    if body is None:
        return []
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": body["metadata"]["uid"]}]


def do(cluster: Cluster, act: Act) -> None:
    """Send one request; whether it is refused does not matter here."""
    verb, namespace, name, more = act
    match verb:
        case "create":
            given_labels, held, owner = more
            meta: Body = {"name": name, "labels": given_labels, "finalizers": held}
            meta["ownerReferences"] = owner_of(cluster, namespace, owner)
            cluster.request(configs(namespace, verb="create", body={"kind": "ConfigMap", "metadata": meta}))
        case "relabel":
            body = {"metadata": {"labels": more}}
            cluster.request(configs(namespace, name, verb="patch", body=body, patch_type="merge"))
        case "let go":
            body = {"metadata": {"finalizers": None}}
            cluster.request(configs(namespace, name, verb="patch", body=body, patch_type="merge"))
        case "delete":
            cluster.request(configs(namespace, name, verb="delete", propagation=more))
        case "open":
            space = {"kind": "Namespace", "metadata": {"name": namespace}}
            cluster.request(Request("create", "", "v1", "namespaces", body=space, actor="tester"))
        case "close":
            cluster.request(Request("delete", "", "v1", "namespaces", name=namespace, actor="tester"))


@FEW
@given(st.lists(acts, max_size=25), st.sampled_from(SCHEDULES))
def test_indexes_agree_with_objects_and_versions_rise(given_acts: list[Act], schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    for act in given_acts:
        before = cluster.store.version
        do(cluster, act)
        assert cluster.store.version >= before
        assert complaints(cluster.store) == []


@FEW
@given(st.lists(acts, max_size=25), st.integers(0, 25))
def test_a_watch_from_any_version_ends_with_the_current_objects(given_acts: list[Act], moment: int) -> None:
    cluster = Cluster()
    kind = cluster.discovery.find("", "v1", "configmaps")
    assert kind is not None
    seen: dict[tuple[str, str], Body] = {}
    version = cluster.store.version
    for number, act in enumerate(given_acts):
        if number == moment:
            seen = {_key(body): body for body in cluster.store.of_kind(("", "ConfigMap"))}
            version = cluster.store.version
        do(cluster, act)
    if moment >= len(given_acts):
        return
    request = Request("watch", "", "v1", "configmaps", resource_version=str(version))
    watch: Watch = cluster.watches.open(kind, request, initial_events=None, bookmarks=False)
    for event in watch.events:
        if event["type"] == "DELETED":
            del seen[_key(event["object"])]
        else:
            seen[_key(event["object"])] = event["object"]
    assert seen == {_key(body): body for body in cluster.store.of_kind(("", "ConfigMap"))}


@FEW
@given(st.lists(acts, max_size=25), st.sampled_from(SCHEDULES))
def test_when_idle_every_object_has_its_owner_and_namespace(given_acts: list[Act], schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    for act in given_acts:
        do(cluster, act)
    cluster.settle()
    assert cluster.controllers.idle
    for ref, body in cluster.store:
        meta = body["metadata"]
        owners = meta.get("ownerReferences") or ()
        lost = bool(owners) and not any(cluster.store.by_uid(owner["uid"]) for owner in owners)
        # Only a finalizer may keep an object without owners.
        assert not lost or (meta.get("deletionTimestamp") and meta.get("finalizers")), ref
        assert not ref.namespace or cluster.store.get(Ref("Namespace", "", ref.namespace)) is not None, ref


def _key(body: Body) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
