"""The steps of one resource: made, changed, replaced, read, deleted, and awaited; what is tried again, and what not.

Upstream: `provider/pkg/await/await.go` and `provider/pkg/retry/retry.go` of pulumi-kubernetes 4.32. Creation is tried
six times within 63 seconds, and only where the kind or the namespace is not there; the refusal of a webhook is final.
Nothing else is tried again, neither updates nor deletions.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from msgspec import Struct

from seatrial.engines.pulumi import messages
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.script import Answer, Command, Line, Part, Say, Verb, Wait
from seatrial.readiness import pulumi as readiness
from seatrial.registration import Registration
from seatrial.resource import Body, Ref, annotations_of, metadata, name_of

MANAGER = "pulumi-kubernetes"
TRIES_MAX = 6
PROPAGATIONS = {"orphan": "Orphan", "background": "Background", "foreground": "Foreground"}
CRD = "CustomResourceDefinition"


class Again(Struct, frozen=True):
    """Sleep, and try again; `refs` is what has to move meanwhile for that to help."""

    refs: tuple[Ref, ...] = ()


T = TypeVar("T")
Move = Generator[Line | Again, Answer, T]
"""A piece of the steps of one resource. Its own words where it fails; empty where it went well."""


def create(one: Registration, checkpoint: Checkpoint, defined_by: Ref | None) -> Move[str]:
    """Make an object, and wait for it."""
    body = made(one)
    words = ""
    for attempt in range(TRIES_MAX):
        answer = yield about(body, "create", body)
        if not answer.message and answer.served:
            checkpoint.put(one, unready=True)
            return (yield from awaited(one, answer.body, checkpoint))
        if answer.served and answer.code != 404:
            exists = answer.code == 409 and answer.message.endswith("already exists")
            return messages.not_created(one, answer.message + (messages.ALREADY_EXISTS if exists else ""))
        words = answer.message if answer.served else messages.no_match(body)
        if attempt < TRIES_MAX - 1:
            assert one.ref is not None
            yield Say(one.ref, f"Retry #{attempt + 1}; creation failed: {words}")
            yield Again((defined_by,) if defined_by and not answer.served else ())
    return messages.kind_unknown(one, body) if words == messages.no_match(body) else messages.not_created(one, words)


def update(one: Registration, checkpoint: Checkpoint) -> Move[str]:
    """Change an object in place, and wait for it; definitions are put, all else is applied."""
    body = made(one)
    live = yield about(body, "get")
    if live.code != 200:
        return messages.not_updated(one, live.message or messages.no_match(body))
    if body.get("kind") == CRD:
        version = metadata(live.body).get("resourceVersion")
        body = {**body, "metadata": {**metadata(body), "resourceVersion": version}}
        answer = yield about(body, "update", body)
    else:
        if (owned := _owned_by_apply(live.body)) is not None:
            yield about(body, "merge", owned)
        answer = yield about(body, "apply", body)
    if answer.message or not answer.served:
        return messages.not_updated(one, answer.message or messages.no_match(body))
    checkpoint.put(one, unready=True)
    return (yield from awaited(one, answer.body, checkpoint))


def read(one: Registration) -> Move[str]:
    """Look an object up that the program only reads; what is not in Kubernetes is taken to be where it is read."""
    if one.object is None:
        return ""
    answer = yield about(one.object, "get")
    return "" if answer.code == 200 else f"resource '{one.reads}' does not exist"


def delete(one: Registration) -> Move[str]:
    """Delete an object and wait until it is gone; one that is not there, or whose kind is not, is deleted."""
    body = one.object
    if body is None or one.ref is None:
        return ""
    policy = str(annotations_of(body).get(readiness.PROPAGATION) or "foreground")
    answer = yield about(body, "delete", propagation=PROPAGATIONS.get(policy, "Foreground"))
    if answer.served and answer.message and answer.code != 404:
        return answer.message
    if not readiness.skips(body) or body.get("kind") not in readiness.UNAWAITED_WHEN_DELETED:
        yield from until_gone(body, one.ref)
    return ""


def lacks(one: Registration) -> Part[bool]:
    """Whether its chart cannot be rendered yet, for want of a definition that the same program makes."""
    for ref in one.after:
        if (yield Command("get", f"{ref.group}/v1", ref.kind, "", ref.name)).code != 200:
            return True
    return False


def until_gone(body: Body, ref: Ref) -> Move[None]:
    while (yield about(body, "get")).code == 200:
        yield Wait((ref,))


def awaited(one: Registration, body: Body, checkpoint: Checkpoint) -> Move[str]:
    """Wait until an object is as its awaiter wants it."""
    assert one.ref is not None and one.object is not None
    asked = annotations_of(one.object).get(readiness.WAIT_FOR)
    wrong = next((c for c in readiness.conditions(str(asked or "")) if asked and not _is_condition(c)), "")
    if wrong:
        return messages.not_live(one, f'expected a "jsonpath=" or "condition=" prefix, got "{wrong}"')
    if asked and one.taken_ready:
        yield Say(one.ref, f"nothing here acts on it: {asked} is taken to come true")
    while readiness.is_awaited(body) and not one.taken_ready:
        live = yield about(body, "get")
        other = readiness.beside(live.body) if live.code == 200 else None
        found: Body | None = None
        if other is not None:
            found = (yield Command("get", _version(other), other.kind, other.namespace, other.name)).body
        if live.code == 200 and readiness.content(live.body, found):
            break
        if words := readiness.failure(live.body):
            return messages.not_live(one, words)
        yield Wait((one.ref, *((other,) if other and other.kind == "Endpoints" else ())))
    checkpoint.ready(one.urn)
    return ""


def made(one: Registration) -> Body:
    assert one.object is not None
    return one.object


def about(body: Body, verb: Verb, sent: Body | None = None, propagation: str = "") -> Command:
    return Command(
        verb,
        str(body.get("apiVersion", "")),
        str(body.get("kind", "")),
        str(metadata(body).get("namespace") or ""),
        name_of(body),
        sent,
        MANAGER,
        annotations_of(body).get("pulumi.com/patchForce") == "true",
        propagation=propagation,
    )


def _owned_by_apply(live: Body) -> Body | None:
    """What hands the fields of a creation over to apply, which else would be in conflict with it and drop none.

    As `fixCSAFieldManagers` does before the first update.
    """
    entries = metadata(live).get("managedFields") or []
    if not any(_is_creation(entry) for entry in entries):
        return None
    fields = [{**entry, "operation": "Apply"} if _is_creation(entry) else entry for entry in entries]
    return {"metadata": {"managedFields": fields, "resourceVersion": metadata(live).get("resourceVersion")}}


def _is_creation(entry: Body) -> bool:
    return entry.get("manager") == MANAGER and entry.get("operation") == "Update" and not entry.get("subresource")


def _is_condition(asked: str) -> bool:
    return asked.startswith(("jsonpath=", "condition="))


def _version(ref: Ref) -> str:
    return f"{ref.group}/v1" if ref.group else "v1"
