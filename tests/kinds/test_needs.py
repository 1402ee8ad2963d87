"""What objects need, at which stage, and by which field."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from seatrial.kinds import Kind, Need, known
from seatrial.kinds.network.mentions import services_in
from seatrial.model.resource import Body, group_of

CASES = yaml.safe_load(Path(__file__).with_name("needs.yaml").read_text())


def shown(need: Need) -> str:
    key = f"[{need.key}]" if need.key else ""
    marks = ("?" if need.optional else "") + ("~" if need.guess else "")
    return f"{need.stage} {need.object}{key}{marks} at {'.'.join(map(str, need.field))}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["object"]["kind"])
def test_needs_of_an_object(case: Body) -> None:
    body = case["object"]
    kind = known()[group_of(body["apiVersion"]), body["kind"]]
    assert [shown(need) for need in kind.needs(body)] == case["needs"]


HOLES: Body = {"containers": [None], "initContainers": None, "volumes": [None, {}], "imagePullSecrets": [{}]}
UNFINISHED: tuple[Body, ...] = (
    {},
    {"spec": None, "metadata": None, "webhooks": None, "subjects": None},
    {"spec": {"template": None, "rules": None}},
    {"spec": {**HOLES, "template": {"spec": HOLES}, "rules": [None, {"http": {"paths": [None]}}], "tls": [None]}},
    {"subjects": [None, {}], "webhooks": [None, {}], "secrets": [None], "data": {"a": None}, "roleRef": {}},
)


@pytest.mark.parametrize("kind", known().values(), ids=lambda kind: kind.kind)
def test_an_incomplete_object_needs_nothing(kind: Kind) -> None:
    assert [list(kind.needs(body)) for body in UNFINISHED] == [[]] * len(UNFINISHED)


@pytest.mark.parametrize(
    ("text", "services"),
    [
        ("http://api:8080/health", [("demo", "api")]),
        ("https://api.ops.svc", [("ops", "api")]),
        ("redis-master.cache.svc.cluster.local:6379", [("cache", "redis-master")]),
        ("kafka-0.kafka.queue.svc:9092", [("queue", "kafka")]),
        ("amqp://user:word@mq:5672/", [("demo", "mq")]),
        ("jdbc:postgresql://db.data:5432/app?ssl=true", [("data", "db")]),
        ("db:5432", [("demo", "db")]),
        ("one:9092,two:9092", [("demo", "one"), ("demo", "two")]),
        ("PGHOST=postgres", [("demo", "postgres")]),
        ("--redis-host=cache", [("demo", "cache")]),
        ("[database]\nhost = db\nport = 5432\n", [("demo", "db")]),
        ("http://localhost:80", []),
        ("https://example.com/path", []),
        ("nginx:1.25", []),
        ("LOG_LEVEL=debug", []),
        ("10.0.0.1:80", []),
    ],
)
def test_services_are_guessed_from_text(text: str, services: list[tuple[str, str]]) -> None:
    assert list(services_in(text, "demo")) == services


def test_a_long_value_is_searched_quickly() -> None:
    assert list(services_in("x" * 300_000, "demo")) == []


def test_a_guess_has_the_path_of_its_value() -> None:
    pod: Body = {
        "metadata": {"namespace": "demo"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "env": [{"name": "DB_HOST", "value": "db"}, {"name": "MODE", "value": "fast"}],
                    "args": ["--upstream", "http://api:80"],
                }
            ]
        },
    }
    assert [shown(need) for need in known()["", "Pod"].needs(pod)] == [
        "serve Service/demo/db~ at spec.containers.0.env.0.value",
        "serve Service/demo/api~ at spec.containers.0.args.1",
    ]
