"""`kubectl apply` and `kubectl delete`, as scripts. Models kubectl 1.34: no pruning, no waiting, one object at a time.

Upstream: `pkg/cmd/apply/apply.go` and `pkg/cmd/apply/patcher.go` of kubernetes/kubectl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seatrial.engines import Ended
from seatrial.engines.script import Answer, Command, Part, Script, Verb
from seatrial.resource import Body, annotations_of, group_of, metadata, name_of

NAME = "kubectl"
VERSION = "1.34"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl-client-side-apply"


def apply(objects: Iterable[Body], namespace: str) -> Script:
    """Apply objects in the order they were written; what fails does not stop the rest."""
    errors = []
    for body in objects:
        _, answer = yield from applied(body, namespace)
        if answer.message or not answer.served:
            errors.append(_complaint(body, namespace, answer))
    return Ended("failed", "\n".join(errors)) if errors else Ended("ok")


def applied(body: Body, namespace: str, manager: str = MANAGER) -> Part[tuple[Verb, Answer]]:
    """Apply one object: make it where it is not there, and else patch it; which of the two, and what came of it."""
    live = yield _about(body, namespace, "get")
    if live.served and live.code == 404:
        return "create", (yield _about(body, namespace, "create", _remembering(body), manager))
    if live.code != 200:
        return "get", live
    verb: Verb = "strategic" if is_builtin(body) else "merge"
    return verb, (yield _about(body, namespace, verb, _patch(live.body, _remembering(body)), manager))


def delete(objects: Iterable[Body], namespace: str) -> Script:
    """Delete objects in the order they were written."""
    errors = []
    for body in objects:
        answer = yield _about(body, namespace, "delete")
        if answer.message or not answer.served:
            errors.append(_complaint(body, namespace, answer))
    return Ended("failed", "\n".join(errors)) if errors else Ended("ok")


def is_builtin(body: Body) -> bool:
    """Whether kubectl has the Go type, and so patches strategically: the groups of Kubernetes itself."""
    group = group_of(str(body.get("apiVersion", "")))
    return "." not in group or group.endswith(".k8s.io")


def _about(body: Body, namespace: str, verb: Verb, sent: Body | None = None, manager: str = MANAGER) -> Command:
    own = str(metadata(body).get("namespace") or namespace)
    return Command(verb, str(body.get("apiVersion", "")), str(body.get("kind", "")), own, name_of(body), sent, manager)


def _remembering(body: Body) -> Body:
    """The object with the annotation by which the next apply knows what this one said."""
    annotations = {k: v for k, v in annotations_of(body).items() if k != LAST_APPLIED}
    said = {**body, "metadata": {**metadata(body), "annotations": annotations}}
    annotations = {**annotations, LAST_APPLIED: msgspec.json.encode(said).decode() + "\n"}
    return {**body, "metadata": {**metadata(body), "annotations": annotations}}


def _patch(live: Body, wanted: Body) -> Body:
    """What is wanted now, and nulls for what the last apply said and this one does not."""
    text = annotations_of(live).get(LAST_APPLIED)
    before = msgspec.json.decode(text) if text else {}
    return {**wanted, **dict(_dropped(before, wanted))}


def _dropped(before: Any, wanted: Any) -> Iterator[tuple[str, Any]]:
    for key, value in before.items():
        if key not in wanted:
            yield key, None
        elif isinstance(value, dict) and isinstance(wanted[key], dict):
            yield key, {**wanted[key], **dict(_dropped(value, wanted[key]))}


def _complaint(body: Body, namespace: str, answer: Answer) -> str:
    """kubectl's own words."""
    if answer.served:
        return f"Error from server: {answer.message}"
    own = metadata(body).get("namespace") or ""
    return (
        f'error: resource mapping not found for name: "{name_of(body)}" namespace: "{own}" from "STDIN": no matches '
        f'for kind "{body.get("kind")}" in version "{body.get("apiVersion")}"\nensure CRDs are installed first'
    )
