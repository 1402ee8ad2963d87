"""Releases of a Helm that keeps its records in ConfigMaps (HELM_DRIVER=configmap)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from room import Room, config, embedded, record, secret

from seatrial.cli import main
from seatrial.helm.ownership import owned_by
from seatrial.live import releases
from seatrial.live.snapshot import take
from seatrial.model.resource import Body
from seatrial.sources import snapshots


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


def in_config_map(body: Body) -> Body:
    """The same record as Helm writes it to a ConfigMap: encoded once."""
    once = base64.b64decode(body["data"]["release"]).decode()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": body["metadata"], "data": {"release": once}}


def test_a_snapshot_has_the_history_without_values_of_secrets(room: Room) -> None:
    for number, status in ((1, "superseded"), (2, "deployed")):
        room.put(in_config_map(record("shop", number, status, config("app"), secret("login", password="hunter2"))))
    found = take(room.hands)
    assert [(one["name"], one["version"], one["info"]["status"]) for one in found.releases] == [
        ("shop", 1, "superseded"),
        ("shop", 2, "deployed"),
    ]
    assert "hunter2" not in snapshots.write(found)


def test_a_config_map_that_only_has_the_label_is_no_record(room: Room) -> None:
    body = config("notes", release="text")
    body["metadata"]["labels"] = {"owner": "helm", "name": "shop", "version": "1"}
    room.put(body)
    assert list(releases.stored(room.hands)) == []


def test_it_is_waited_for_as_for_any_other(room: Room) -> None:
    room.put(owned_by(config("app"), "shop", "default"))
    found = room.wait(
        "release/shop",
        then=[
            ("no Helm release shop", lambda: room.put(in_config_map(record("shop", 1, "pending-install")))),
            ("pending-install", lambda: room.put(in_config_map(record("shop", 1, "deployed", config("app"))))),
        ],
    )
    assert found[0].verdict.usable


def test_it_is_explained(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room.put(in_config_map(record("shop", 1, "failed", config("app"))))
    flags = ["--kubeconfig", room.kubeconfig(tmp_path)]
    assert main(["explain", "--live", "release/shop", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "  ConfigMap/default/sh.helm.release.v1.shop.v1",
        "    revision 1 has status failed",
        "    ConfigMap/default/app",
    ]


def test_forbidden_secrets_do_not_hide_it(room: Room) -> None:
    room.put(in_config_map(record("shop", 1, "deployed", config("app"))))
    room.proxy.faults.append(Fault("/secrets", 403, "no", FOREVER))
    assert [(one.release, one.kind) for one in releases.stored(room.hands, "default", "shop")] == [
        ("shop", "ConfigMap")
    ]
    assert [(one.verbs, one.resource) for one in room.hands.denials] == [(("list",), "secrets")]
