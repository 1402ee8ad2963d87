"""`seatrial verify`: each check over what was read, and the whole over HTTP against the embedded API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from faultproxy import FOREVER, Fault
from room import Room, as_hook, config, custom, deployment, embedded, record, secret

from seatrial.cli import main
from seatrial.graph.linking import graph_of
from seatrial.helm.ownership import owned_by
from seatrial.live.seen import IsServed, Keys, RecordQuestion, Seen
from seatrial.live.verifying import VerifyView, verify
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, group_of, ref_of, version_of
from seatrial.sources.stored import stored_revision

BEFORE, AFTER = "2026-01-01T10:00:00Z", "2026-01-01T10:00:30Z"


def release(*bodies: Body, chart: str = "") -> Release:
    resources = tuple(Resource(ref_of(body), body, Origin("")) for body in bodies)
    return Release("shop", "default", "./shop", resources, chart=chart)


def seen_of(*bodies: Body, records: Iterable[Body] = ()) -> Seen:
    """What was read, with all kinds served and all records decoded."""
    found = [*bodies, *records]
    seen = Seen(found)
    for body in found:
        api_version = str(body["apiVersion"])
        seen.reply(IsServed(group_of(api_version), version_of(api_version), str(body["kind"])), "")
    for body in records:
        seen.reply(RecordQuestion(ref_of(body)), stored_revision(body))
    return seen


def problems(check: str, wanted: Release, seen: Seen, before: dict[Ref, str] | None = None) -> list[str]:
    results = verify(VerifyView((wanted,), graph_of([wanted]), seen, before, uninstalled=check == "left"))
    found = next(one for one in results if one.name == check)
    return [f"{'note: ' if problem.is_note else ''}{problem.says}" for problem in found.problems]


def created(body: Body, time: str, uid: str = "1", written: str = "") -> Body:
    owners = [{"manager": "helm", "time": written or time, "fieldsV1": {"f:spec": {}}}]
    meta = {**body["metadata"], "creationTimestamp": time, "uid": uid, "managedFields": owners}
    return {**body, "metadata": meta}


def using(name: str) -> Body:
    return deployment(volumes=[{"name": "a", "configMap": {"name": name}}])


def test_an_object_that_was_written_before_what_it_needs_is_reported() -> None:
    wanted = release(using("app"), config("app"))
    seen = seen_of(created(using("app"), BEFORE), created(config("app"), AFTER))
    assert problems("order", wanted, seen) == [
        "ConfigMap/default/app was created 30 s after Deployment/default/web, which needs it"
    ]


def test_an_object_that_was_changed_later_to_need_a_new_one_is_in_order() -> None:
    """The Deployment is older than the ConfigMap, but its spec was written after it."""
    wanted = release(using("app"), config("app"))
    seen = seen_of(created(using("app"), BEFORE, written=AFTER), created(config("app"), AFTER))
    assert problems("order", wanted, seen) == []


def test_a_second_of_clock_skew_is_no_problem() -> None:
    wanted = release(using("app"), config("app"))
    seen = seen_of(created(using("app"), BEFORE), created(config("app"), "2026-01-01T10:00:01Z"))
    assert problems("order", wanted, seen) == []


def test_an_object_with_another_uid_was_replaced() -> None:
    wanted = release(config("app"), as_hook(config("hook")))
    seen = seen_of(created(config("app"), AFTER, "2"), created(config("hook"), AFTER, "4"))
    before = {Ref("ConfigMap", "default", "app"): "1", Ref("ConfigMap", "default", "hook"): "3"}
    assert problems("uids", wanted, seen, before) == [
        "ConfigMap/default/app was deleted and created again (uid 1 before, 2 now)",
        "note: ConfigMap/default/hook was deleted and created again (uid 3 before, 4 now)",
    ]


def test_objects_of_earlier_revisions_that_are_left_are_orphans() -> None:
    kept = owned_by(config("kept"), "shop", "default")
    kept["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    left, foreign = owned_by(config("left"), "shop", "default"), config("foreign")
    old = record(
        "shop", 1, "superseded", config("app"), config("left"), config("kept"), config("foreign"), config("gone")
    )
    new = record("shop", 2, "deployed", config("app"))
    hook = as_hook(config("migrate"))
    old_hook = record("shop", 1, "superseded", hook)
    app = owned_by(config("app"), "shop", "default")
    wanted = release(config("app"), chart="shop")
    assert problems("orphans", wanted, seen_of(app, left, kept, foreign, records=[old, new])) == [
        "ConfigMap/default/left is left of revision 1: nothing deletes it",
        "note: ConfigMap/default/kept is left of revision 1: its resource-policy is keep",
    ]
    assert problems("orphans", wanted, seen_of(app, hook, records=[old_hook, new])) == [
        "ConfigMap/default/migrate is left of a hook of revision 1; Helm never deletes it"
    ]


def test_a_lost_record_and_a_failed_revision_are_reported() -> None:
    wanted = release(config("app"), chart="shop")
    assert problems("record", wanted, seen_of(config("app"))) == [
        "Helm has no record of release shop in namespace default; helm upgrade and helm uninstall will not find it"
    ]
    failed = seen_of(config("app"), records=[record("shop", 3, "failed", config("app"))])
    assert problems("record", wanted, failed) == ["release shop in namespace default: revision 3 has status failed"]


def test_what_is_missing_and_what_is_not_served_are_reported() -> None:
    widget: Body = {
        "apiVersion": "example.com/v1beta1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"},
    }
    seen = seen_of(config("app"))
    seen.reply(IsServed("example.com", "v1beta1", "Widget"), "example.com/v1beta1 does not serve Widget")
    assert problems("presence", release(config("app"), config("gone"), widget), seen) == [
        "ConfigMap/default/gone does not exist",
        "Widget/default/a: example.com/v1beta1 does not serve Widget",
    ]


def test_hooks_that_helm_deletes_are_not_expected() -> None:
    gone = as_hook(config("hook"))
    gone["metadata"]["annotations"]["helm.sh/hook-delete-policy"] = "hook-succeeded"
    assert problems("presence", release(config("app"), gone), seen_of(config("app"))) == []


def test_a_secret_of_an_external_secret_must_have_the_keys_that_are_used() -> None:
    meta = {"name": "sync", "namespace": "default"}
    external: Body = {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": meta}
    external["spec"] = {"secretStoreRef": {"name": "vault"}, "target": {"name": "db"}}
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]
    web = deployment()
    web["spec"]["template"]["spec"]["containers"][0]["env"] = env
    wanted = release(external, web)
    assert problems("secrets", wanted, seen_of(external, web)) == ["Secret/default/db does not exist"]
    seen = seen_of(external, web, secret("db"))
    seen.reply(Keys(Ref("Secret", "default", "db")), ("user",))
    assert problems("secrets", wanted, seen) == ["Secret/default/db has no key password"]


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


def written(folder: Path, *bodies: Body) -> str:
    file = folder / "input.yaml"
    file.write_bytes(b"---\n".join(msgspec.yaml.encode(body) for body in bodies))
    return str(file)


def test_the_command_verifies_manifests(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room.put(config("app"))
    room.put(using("app"))
    file = written(tmp_path, config("app"), using("app"))
    assert main(["verify", file, "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "skipped  record     the input is no chart",
        "ok       presence   every object exists, in a version that is served",
        "ok       readiness  every object is usable",
    ]


def test_the_command_exits_1_for_what_is_not_as_it_should_be(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(using("app"))
    room.put(custom("example.com", "Widget"))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    file = written(tmp_path, config("app"), using("app"), widget)
    assert main(["verify", file, "-q", "--kubeconfig", room.kubeconfig(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "problem  presence   every object exists, in a version that is served",
        "    ConfigMap/default/app does not exist",
        "    Widget/default/a does not exist",
    ]
    assert lines[4].startswith("    Deployment/default/web: 0 of 1 replicas are available")


def test_the_command_verifies_a_chart_and_its_uids(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "shop"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (chart / "templates" / "app.yaml").write_bytes(msgspec.yaml.encode(config("app")))
    room.put(owned_by(config("app"), "shop", "default"))
    room.put(record("shop", 1, "deployed", config("app")))
    kinds = room.hands.served().find("", "ConfigMap")
    assert kinds is not None
    live = room.hands.get(kinds, "default", "app")
    assert live is not None
    live["metadata"]["uid"] = "another"
    before = tmp_path / "before.yaml"
    before.write_bytes(msgspec.yaml.encode({"apiVersion": "v1", "kind": "List", "items": [live]}))
    flags = ["--before", str(before), "-o", "json", "--kubeconfig", room.kubeconfig(tmp_path)]
    assert main(["verify", str(chart), *flags]) == 1
    found = {one["name"]: one["problems"] for one in json.loads(capsys.readouterr().out)["checks"]}
    assert found.pop("uids")[0]["says"].startswith("ConfigMap/default/app was deleted and created again (uid another")
    assert all(not listed for listed in found.values()), found


def test_forbidden_kinds_are_named_and_the_rest_is_verified(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(config("app"))
    room.put(using("app"))
    room.proxy.faults.append(Fault("/configmaps", 403, "no", FOREVER))
    file = written(tmp_path, config("app"), using("app"))
    assert main(["verify", file, "--kubeconfig", room.kubeconfig(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "unknown  presence   every object exists, in a version that is served" in lines
    assert "    ConfigMap/default/app was not looked at: reading it is forbidden" in lines
    assert "ok       readiness  every object is usable" in lines
    assert "  list configmaps in namespace default" in lines


def test_records_that_may_not_be_read_are_not_missing(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.put(record("shop", 1, "deployed", config("app")))
    room.proxy.faults.append(Fault("/secrets", 403, "no", FOREVER))
    flags = ["--kubeconfig", room.kubeconfig(tmp_path)]
    hidden = "Helm release shop in namespace default was not looked at: listing Secrets is forbidden"
    assert main(["wait", "release/shop", "--timeout", "1s", "-q", *flags]) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"missing  release/shop after 1s: {hidden}"
    assert main(["explain", "--live", "release/shop", *flags]) == 0
    assert f"    {hidden}" in capsys.readouterr().out.splitlines()
    (tmp_path / "shop" / "templates").mkdir(parents=True)
    (tmp_path / "shop" / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (tmp_path / "shop" / "templates" / "app.yaml").write_bytes(msgspec.yaml.encode(config("app")))
    main(["verify", str(tmp_path / "shop"), *flags])
    assert capsys.readouterr().out.splitlines()[:2] == [
        "unknown  record     Helm's record of the release, and its hooks",
        f"    {hidden}",
    ]
