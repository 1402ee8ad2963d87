"""How a live object is compared with the source: only what is written, as the API server reads it."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.evidence.as_written import differences


def _spec(**fields: Any) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "shop"}, "spec": fields}


@pytest.mark.parametrize(
    ("written", "live"),
    [
        (_spec(cpu="1000m"), _spec(cpu="1")),
        (_spec(memory="1024Mi"), _spec(memory="1Gi")),
        (_spec(interval="60s"), _spec(interval="1m0s")),
        (_spec(port=80), _spec(port="80")),
        (_spec(empty="", none=None, no=False, nothing={"a": None}), _spec()),
        (_spec(), _spec(added="by the API server")),
        (_spec(replicas=1), _spec(replicas=5)),
        (_spec(args=["-v"]), _spec(args=["-v", "--injected"])),
        (_spec(env=[{"name": "A", "value": "1"}]), _spec(env=[{"name": "B"}, {"name": "A", "value": "1"}])),
        (
            _spec(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            _spec(env=[{"name": "A", "value": "2"}]),
        ),
        ({"kind": "Secret", "stringData": {"a": "b"}}, {"kind": "Secret", "data": {"a": "Yg=="}}),
        ({"kind": "Secret", "data": {"a": None}}, {"kind": "Secret", "data": {"a": ""}}),
        ({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}}, {"metadata": {"labels": {}}}),
    ],
)
def test_the_same_in_another_form_is_no_difference(written: dict[str, Any], live: dict[str, Any]) -> None:
    assert list(differences(written, live)) == []


@pytest.mark.parametrize(
    ("written", "live", "path"),
    [
        (_spec(address="0.0.0.0"), _spec(address="127.0.0.1"), ("spec", "address")),
        (_spec(cpu="2"), _spec(cpu="1"), ("spec", "cpu")),
        (_spec(probe={"port": 80}), _spec(), ("spec", "probe")),
        (_spec(args=["-v"]), _spec(args=["-q"]), ("spec", "args", 0)),
        (
            _spec(containers=[{"name": "shop", "image": "shop:2"}]),
            _spec(containers=[{"name": "shop", "image": "shop:1"}]),
            ("spec", "containers", "shop", "image"),
        ),
        ({"kind": "Secret", "stringData": {"a": "b"}}, {"kind": "Secret", "data": {}}, ("data", "a")),
        ({"metadata": {"labels": {"app": "a"}}}, {"metadata": {"labels": {"app": "b"}}}, ("metadata", "labels", "app")),
    ],
)
def test_a_field_that_is_not_as_written_is_named(
    written: dict[str, Any], live: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    assert list(differences(written, live)) == [path]
