"""Defaults of the API server, compared with a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.kinds import known
from seatrial.model.resource import Body, group_of

CASES = yaml.safe_load(Path(__file__).with_name("stored.yaml").read_text())

# Addresses and ports are arbitrary; empty template metadata is not significant.
ARBITRARY = ("clusterIP", "clusterIPs", "nodePort", "metadata: {}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['given']['kind']}-{case['given']['metadata']['name']}")
def test_objects_are_stored_as_by_a_real_api_server(case: Body) -> None:
    given = case["given"]
    kind = known()[group_of(given["apiVersion"]), given["kind"]]
    body = {**given, "metadata": {**given["metadata"], "namespace": "t", "uid": "UID"}}
    body = kind.default(body) if kind.default else body
    body = kind.prepare(body, None) if kind.prepare else body
    wanted = {"metadata": {}, **case["stored"]}
    shown = {key: value for key, value in body.items() if key in wanted}
    shown["metadata"] = {key: value for key, value in body["metadata"].items() if key in wanted["metadata"]}
    assert list(differences(shown, wanted)) == []


def differences(ours: Any, real: Any, path: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(real, dict):
        for key in sorted(ours.keys() | real.keys()):
            if key in ARBITRARY:
                continue
            if key not in ours and real[key] != {}:
                yield f"{path}.{key} is not filled in: {real[key]}"
            elif key not in real:
                yield f"{path}.{key} should not be there: {ours[key]}"
            elif key in ours:
                yield from differences(ours[key], real[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for index, (one, other) in enumerate(zip(ours, real, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif ours != real:
        yield f"{path} is {ours}, not {real}"


def test_defaulting_is_idempotent() -> None:
    for case in CASES:
        default = known()[group_of(case["given"]["apiVersion"]), case["given"]["kind"]].default
        if default is not None:
            once = default(case["given"])
            assert default(once) == once
