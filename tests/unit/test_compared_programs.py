"""Two rehearsals of one program compared: only the order of resources that depend on each other counts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from seatrial.check import One, run
from seatrial.evidence.compare.real_engine import agreement
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import Rehearsal

HEAD = "name: shop\nruntime: yaml\nresources:\n"
RED = "  red: {type: kubernetes:core/v1:ConfigMap, properties: {metadata: {name: red}}, options: {OPTIONS}}\n"
BLUE = RED.replace("red", "blue")


def rehearsed(folder: Path, *resources: str) -> One:
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop/Pulumi.yaml").write_text(HEAD + "".join(one.replace("OPTIONS", "") for one in resources))
    return run(CheckOptions((str(folder / "shop"),)), "ordinary")


def differences(model: One, real: One) -> list[tuple[int, str, str, str]]:
    found = agreement(model.rehearsal, real.rehearsal, model.case).differences
    return [(one.step, one.what, one.model, one.real) for one in found]


def test_independent_resources_may_come_in_any_order(tmp_path: Path) -> None:
    model, real = rehearsed(tmp_path, RED, BLUE), rehearsed(tmp_path, BLUE, RED)
    created = [[event.object.name for event in one.rehearsal.of_step(0) if event.actor] for one in (model, real)]
    assert created[0] == created[1][::-1] != created[1]
    assert differences(model, real) == []


def test_dependent_resources_may_not(tmp_path: Path) -> None:
    model = rehearsed(tmp_path, RED, BLUE.replace("OPTIONS", 'dependsOn: ["${red}"]'))
    real = rehearsed(tmp_path, RED.replace("OPTIONS", 'dependsOn: ["${blue}"]'), BLUE)
    red, blue = "ConfigMap/default/red", "ConfigMap/default/blue"
    up, destroy = (f"{red} before {blue}", f"{blue} before {red}"), (f"{blue} before {red}", f"{red} before {blue}")
    assert differences(model, real) == [(0, "event", *up), (2, "event", *destroy)]


def test_another_request_is_a_difference(tmp_path: Path) -> None:
    model, real = rehearsed(tmp_path, RED, BLUE), rehearsed(tmp_path, RED)
    created = "pulumi create ConfigMap/default/blue created"
    assert differences(model, real)[0] == (0, "event", created, "")


def test_generated_names_are_the_same(tmp_path: Path) -> None:
    unnamed = RED.replace("properties: {metadata: {name: red}}", "properties: {}")
    model = rehearsed(tmp_path, unnamed)
    (name,) = {event.object.name for event in model.rehearsal.timeline if event.actor == "pulumi"}
    other = msgspec.json.encode(model.rehearsal).replace(name.encode(), b"red-0123abcd")
    real = One(msgspec.json.decode(other, type=Rehearsal), model.case)
    assert differences(model, real) == []
    assert differences(model, rehearsed(tmp_path, RED)) != []
