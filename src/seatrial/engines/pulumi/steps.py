"""The steps of one resource: create, update, replace, read, delete and await; and what is retried.

Upstream: `provider/pkg/await/await.go` and `provider/pkg/retry/retry.go` of pulumi-kubernetes 4.32. Creation is tried
six times within 63 seconds, and only where the kind or the namespace is not there; the refusal of a webhook is final.
Nothing else is tried again, neither updates nor deletions.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from seatrial.engines import script
from seatrial.engines.concurrent import Sleep, Steps
from seatrial.engines.pulumi import messages
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.diffing import path_of
from seatrial.engines.pulumi.managers import CREATES, forces, handed_over, left_to_others, manager_of
from seatrial.engines.script import NO_ERROR, Command, DescribedObject, Error, Part, Say, Verb, Wait
from seatrial.kinds.core import conditions
from seatrial.model import lazy_re
from seatrial.model.program import Registration
from seatrial.model.refusal import Failure, Fault
from seatrial.model.resource import Body, Ref, annotations_of, metadata, ref_of, with_metadata
from seatrial.readiness import pulumi as readiness

TRIES_MAX = 6
SERVER_ERROR = 500
PROPAGATIONS = {"orphan": "Orphan", "background": "Background", "foreground": "Foreground"}
CRD = "CustomResourceDefinition"
REQUIRED = lazy_re.compile(r"([\w.\[\]]+): Required value")


def create(one: Registration, checkpoint: Checkpoint, defined_by: Ref | None) -> Steps[Error]:
    """Create an object and wait for it; a Patch, or a provider with upsert, uses an existing one."""
    one = checkpoint.begin(one)
    body = made(one)
    sent = applied(one) if one.patches or one.manner.upserts else about(body, "create", body)
    words = ""
    for attempt in range(TRIES_MAX):
        answer = yield sent
        if not answer.message and answer.served:
            checkpoint.creating.pop(one.urn, None)
            if wrong := _wrongly_awaited(body):  # It is there, and Pulumi does not remember it.
                return Error(messages.not_created(one, wrong))
            checkpoint.put(one, unready=True)
            return (yield from awaited(one, answer.body, checkpoint, updated=False))
        if answer.served and answer.code != 404:
            if answer.code < SERVER_ERROR:
                checkpoint.refused(one.urn)
            exists = answer.code == 409 and answer.message.endswith("already exists")
            said = messages.in_conflict(answer, manager_of(one))
            said += messages.ALREADY_EXISTS if exists else ""
            return Error(messages.not_created(one, said), answer.failure)
        words = answer.message if answer.served else messages.no_match(body)
        assert one.ref is not None
        yield Say(one.ref, f"Retry #{attempt}; creation failed: {words}", failure=answer.failure)
        if attempt < TRIES_MAX - 1:
            yield Sleep((defined_by,) if defined_by and not answer.served else ())
    said = messages.not_created(one, words) if answer.served else messages.kind_unknown(one, body)
    return Error(said, answer.failure)


def update(one: Registration, checkpoint: Checkpoint) -> Steps[Error]:
    """Update an object in place and wait for it; CRDs are replaced by PUT, everything else is applied."""
    body = made(one)
    live = yield about(body, "get")
    if live.code != 200:
        served = live.served
        said = messages.not_updated(one, live.message) if served else messages.unknown_when_updated(one, body)
        return Error(said, live.failure)
    if body.get("kind") == CRD:
        version = metadata(live.body).get("resourceVersion")
        body = with_metadata(body, resourceVersion=version)
        answer = yield about(body, "update", body)
    else:
        owned = None if one.patches else handed_over(live.body, manager_of(one))
        if owned is not None:
            live = yield about(body, "merge", owned)
        ignored = [path_of(path) for path in one.options.ignore_changes]
        sent = left_to_others(body, live.body, ignored, manager_of(one))
        answer = yield structs.replace(applied(one), body=sent)
    if answer.message:
        said = messages.not_live(one, messages.in_conflict(answer, manager_of(one)), updated=True)
        return Error(said, answer.failure)
    checkpoint.put(one, unready=True)
    return (yield from awaited(one, answer.body, checkpoint, updated=True))


def read(one: Registration) -> Steps[Error]:
    """Read an object; resources outside Kubernetes are assumed to exist."""
    if one.object is None:
        return NO_ERROR
    answer = yield about(one.object, "get")
    return NO_ERROR if answer.code == 200 else Error(messages.missing(one.reads), answer.failure)


def delete(one: Registration) -> Steps[Error]:
    """Delete an object and wait until it is gone; a missing object or kind counts as deleted."""
    body = one.object
    if body is None or one.ref is None:
        return NO_ERROR
    if one.patches:
        return (yield from _given_up(one, body))
    policy = str(annotations_of(body).get(readiness.PROPAGATION) or "foreground")
    answer = yield about(body, "delete", propagation=PROPAGATIONS.get(policy, "Foreground"))
    if answer.served and answer.message and answer.code != 404:
        return Error(answer.message, answer.failure)
    if not readiness.skips(body) or body.get("kind") not in readiness.UNAWAITED_WHEN_DELETED:
        yield from until_gone(body, one.ref)
    return NO_ERROR


def _given_up(one: Registration, body: Body) -> Steps[Error]:
    """Release the fields of a patch: apply without them, which removes those without another owner.

    This recreates a deleted object, almost empty.
    """
    meta = {key: metadata(body)[key] for key in ("name", "namespace") if key in metadata(body)}
    bare = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": meta}
    answer = yield structs.replace(applied(one), body=bare, force=False)
    required = REQUIRED.search(answer.message) if answer.served else None
    if not answer.served or not answer.message:
        return NO_ERROR
    return Error(messages.required(required[1]) if required else answer.message, answer.failure)


def lacks(crds: Iterable[Ref]) -> Part[bool]:
    """Whether one of these CRDs is not in the cluster."""
    for ref in crds:
        if (yield Command("get", f"{ref.group}/v1", ref.kind, "", ref.name)).code != 200:
            return True
    return False


def serves(crds: Iterable[Ref]) -> Part[bool]:
    """Whether the kinds of these CRDs are served: discovery lists them once they are established."""
    for ref in crds:
        answer = yield Command("get", f"{ref.group}/v1", ref.kind, "", ref.name)
        if answer.code != 200 or not conditions.is_true(answer.body, "Established"):
            return False
    return True


def until_gone(body: Body, ref: Ref) -> Steps[None]:
    while (yield about(body, "get")).code == 200:
        yield Wait((ref,))


def awaited(one: Registration, body: Body, checkpoint: Checkpoint, *, updated: bool) -> Steps[Error]:
    """Wait until an object is as its awaiter wants it."""
    assert one.ref is not None and one.object is not None
    asked = annotations_of(one.object).get(readiness.WAIT_FOR)
    if wrong := _wrongly_awaited(one.object):
        return Error(messages.not_live(one, wrong, updated=updated))
    if asked and one.taken_ready:
        yield Say(one.ref, f"no modelled controller acts on it; assuming {asked} becomes true")
    while readiness.is_awaited(body) and not one.taken_ready:
        live = yield about(body, "get")
        if live.code == 200 and (yield from is_content(live.body)):
            break
        if words := readiness.failure(live.body):
            failed = Failure(faults=(Fault("not-ready", one.ref, status="Failed"),))
            said = messages.not_live(one, messages.uninitialized(live.body), updated=updated, sub=words)
            return Error(said, failed)
        other = readiness.related_object(live.body) if live.code == 200 else None
        yield Wait((one.ref, *((other,) if other and other.kind == "Endpoints" else ())))
    checkpoint.ready(one.urn)
    return NO_ERROR


def is_content(live: Body) -> Part[bool]:
    """Whether an object is as its awaiter wants it; some awaiters look at another object as well."""
    other = readiness.related_object(live)
    if other is None:
        return readiness.is_ready(live)
    beside = yield Command("get", _version(other), other.kind, other.namespace, other.name)
    return readiness.is_ready(live, beside.body)


def made(one: Registration) -> Body:
    assert one.object is not None
    return one.object


def applied(one: Registration) -> Command:
    body = made(one)
    return structs.replace(about(body, "apply", body), field_manager=manager_of(one), force=forces(one))


def about(body: Body, verb: Verb, sent: Body | None = None, propagation: str = "") -> Command:
    return script.about(DescribedObject(ref_of(body), body), verb, sent, manager=CREATES, propagation=propagation)


def _wrongly_awaited(body: Body) -> str:
    """What is wrong with what an object wants to be waited for."""
    asked = str(annotations_of(body).get(readiness.WAIT_FOR) or "")
    wrong = next((one for one in readiness.conditions(asked) if asked and not _is_condition(one)), "")
    return f'expected a "jsonpath=" or "condition=" prefix, got "{wrong}"' if wrong else ""


def _is_condition(asked: str) -> bool:
    return asked.startswith(("jsonpath=", "condition="))


def _version(ref: Ref) -> str:
    return f"{ref.group}/v1" if ref.group else "v1"
