"""The dry run that calls a webhook: the object that it is made with, and what its answer shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faultproxy import FOREVER, Fault
from room import Room, crd, deployment, embedded, service, webhook

from seatrial.live.probe import call, sample
from seatrial.live.seen import ProbeResult
from seatrial.model.resource import Body

WIDGETS = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": ["example.com"],
    "apiVersions": ["*"],
    "resources": ["widgets"],
}


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


SEVENS: Body = {"type": "integer", "multipleOf": 7}
"""A schema that no small value fits by chance."""


def strict_crd(colour: Body) -> Body:
    """A CRD whose objects need a colour and a size."""
    size = {"type": "object", "required": ["width"], "properties": {"width": {"type": "integer", "minimum": 3}}}
    properties = {"colour": colour, "size": size, "note": {"type": "string"}}
    spec = {"type": "object", "required": ["colour", "size"], "properties": properties}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    body = crd()
    body["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    return body


def guard() -> Body:
    return webhook(rules=[WIDGETS])


def ready(room: Room, *bodies: Body) -> None:
    for body in (service(), deployment(), *bodies):
        room.put(body)
    room.hands.served(again=True)


def test_a_custom_resource_is_made_from_the_schema_of_its_crd(room: Room) -> None:
    ready(room, strict_crd({"type": "string", "enum": ["red"]}), guard())
    assert call(room.hands, guard(), "guard.example.com") == ProbeResult()
    assert room.proxy.count("POST", "/widgets", "dryRun=All") == 1


def test_an_object_that_is_invalid_before_the_webhook_is_called_tells_nothing(room: Room) -> None:
    ready(room, strict_crd(SEVENS), guard())
    assert call(room.hands, guard(), "guard.example.com").untold.startswith(
        "the API server refused the dry run before it called the webhook"
    )


def test_an_existing_object_is_patched_with_nothing_where_none_can_be_made(room: Room) -> None:
    spec = {"colour": 14, "size": {"width": 5}}
    meta = {"name": "a", "namespace": "default"}
    ready(room, strict_crd(SEVENS))
    room.put({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": spec})
    room.put(guard())
    version = room.cluster.store.version
    assert call(room.hands, guard(), "guard.example.com") == ProbeResult()
    assert room.proxy.count("PATCH", "/widgets/a", "dryRun=All") == 1
    assert room.cluster.store.version == version


def test_labels_and_a_namespace_that_the_selectors_ask_for_are_chosen(room: Room) -> None:
    room.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"guarded": "yes"}}})
    labelled = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}
    chosen = webhook(namespaceSelector={"matchLabels": {"guarded": "yes"}}, objectSelector=labelled)
    ready(room, chosen)
    room.proxy.faults.append(Fault("POST /api/v1/namespaces/shop/configmaps", 403, DENIED, FOREVER))
    assert call(room.hands, chosen, "guard.example.com") == ProbeResult()


DENIED = 'admission webhook "guard.example.com" denied the request: no'


def test_another_webhook_that_is_down_tells_nothing_of_this_one(room: Room) -> None:
    ready(room, webhook())
    other = 'failed calling webhook "other.example.com": connect: connection refused'
    room.proxy.faults.append(Fault("POST /api/v1/namespaces/default/configmaps", 500, other, FOREVER))
    assert call(room.hands, webhook(), "guard.example.com") == ProbeResult(untold=other)


def test_a_webhook_that_is_called_for_nothing_that_is_served_cannot_be_called(room: Room) -> None:
    ready(room)
    assert call(room.hands, guard(), "guard.example.com").untold == (
        "its rules match no kind that can be created or updated"
    )


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string", "minLength": 8}, "probeeee"),
        ({"type": "string", "format": "duration"}, "1m"),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, [False, False]),
        ({"type": "object", "required": ["a"], "properties": {"a": {"default": 5}, "b": {}}}, {"a": 5}),
        ({"x-kubernetes-int-or-string": True}, 1),
    ],
)
def test_a_sample_fits_its_schema(schema: Body, made: object) -> None:
    assert sample(schema) == made
