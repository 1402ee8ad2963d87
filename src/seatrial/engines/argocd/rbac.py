"""`kubectl auth reconcile`, which Argo CD runs before it applies a role or binding on the client's side.

It adds rules and subjects and removes none, and recreates a binding to another role, which apply cannot do. Upstream:
pkg/cmd/auth/reconcile.go of kubectl, component-helpers/auth/rbac/{reconciliation,validation}, `rbacReconcile` in
gitops-engine/pkg/utils/kube/resource_ops.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from msgspec import Struct

from seatrial.engines.argocd.app import PROGRAM
from seatrial.engines.argocd.tasks import ArgocdTask
from seatrial.engines.script import Answer, Command, Part, Verb, about
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, metadata, with_metadata

API_VERSION = "rbac.authorization.k8s.io/v1"
ROLES = ("Role", "ClusterRole")
CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding")
RULE_FIELDS = ("Verbs", "APIGroups", "Resources", "ResourceNames", "NonResourceURLs")
SUBJECT_FIELDS = ("Kind", "APIGroup", "Name", "Namespace")
FAILED = "error running kubectl auth reconcile"


class ReconciledRole(Struct, frozen=True):
    """What kubectl prints, or its error."""

    message: str
    refused: bool = False
    failure: Failure = NO_FAILURE


def reconcile(task: ArgocdTask, target: Body) -> Part[ReconciledRole]:
    """Bring a live role or binding up to its target, or create it."""
    if task.ref.namespace and task.ref.kind not in CLUSTER_SCOPED:
        home = yield Command("get", "v1", "Namespace", name=task.ref.namespace)
        if home.message:
            words = f"{FAILED}: error getting namespace {task.ref.namespace}: {home.message}"
            missing = Fault("not-found", Ref("Namespace", "", task.ref.namespace))
            return ReconciledRole(words, refused=True, failure=Failure(faults=(missing,)))
    answer = yield about(task, "get")
    live = answer.body if answer.code == 200 else None
    if task.ref.kind in ROLES:
        return (yield from _written(task, *_role(live, target)))
    return (yield from _written(task, *_binding(live, target)))


Plan = tuple[tuple[Verb, ...], Body, str, list[str]]
"""The requests, the object that is written, what kubectl calls it, and what it prints about it."""


def _role(live: Body | None, target: Body) -> Plan:
    wanted = target.get("rules") or []
    if live is None:
        return ("create",), target, "create", _listed("missing rules added", wanted, _rule)
    missing = list(_uncovered(live.get("rules") or [], wanted))
    merged = _with_metadata_of(live, target)
    written = {**merged, "rules": [*(live.get("rules") or ()), *missing]} if missing else merged
    verbs: tuple[Verb, ...] = ("update",) if written != live else ()
    return verbs, written, "update", _listed("missing rules added", missing, _rule)


def _binding(live: Body | None, target: Body) -> Plan:
    wanted = target.get("subjects") or []
    if live is None:
        return ("create",), target, "create", _listed("missing subjects added", wanted, _subject)
    if live.get("roleRef") != target.get("roleRef"):
        return ("delete", "create"), target, "recreate", []
    missing = _missing(live.get("subjects") or [], wanted)
    merged = _with_metadata_of(live, target)
    written = {**merged, "subjects": [*(live.get("subjects") or ()), *missing]} if missing else merged
    verbs: tuple[Verb, ...] = ("update",) if written != live else ()
    return verbs, written, "update", _listed("missing subjects added", missing, _subject)


def _written(
    task: ArgocdTask, verbs: tuple[Verb, ...], body: Body, doing: str, printed: list[str]
) -> Part[ReconciledRole]:
    named = f"{task.ref.kind.lower()}.{task.ref.group}/{task.ref.name} reconciled"
    for verb in verbs:
        answer: Answer = yield about(task, verb, None if verb == "delete" else body, manager=PROGRAM)
        if answer.message and answer.code != 404:
            return ReconciledRole(f"{FAILED}: {answer.message}", refused=True, failure=answer.failure)
    return ReconciledRole("\n".join((f"{named}. reconciliation required {doing}", *printed)) if verbs else named)


def _with_metadata_of(body: Body, other: Body) -> Body:
    """The body with the labels and annotations of another one added."""
    fields = {
        "labels": {**labels_of(body), **labels_of(other)},
        "annotations": {**annotations_of(body), **annotations_of(other)},
    }
    return with_metadata(body, **{name: value for name, value in fields.items() if value or name in metadata(body)})


def _missing(live: list[Body], wanted: list[Body]) -> list[Body]:
    known = [_identity(subject) for subject in live]
    return [subject for subject in wanted if _identity(subject) not in known]


def _identity(subject: Body) -> tuple[Any, ...]:
    return tuple(subject.get(field) or "" for field in ("kind", "apiGroup", "name", "namespace"))


def _uncovered(live: list[Body], wanted: list[Body]) -> Iterator[Body]:
    """The single permissions of the wanted rules that no live rule grants."""
    owned = [single for rule in live for single in _broken_down(rule)]
    for rule in wanted:
        for single in _broken_down(rule):
            if not any(_covers(one, single) for one in owned):
                yield single


def _broken_down(rule: Body) -> Iterator[Body]:
    for group, resource, verb in product(*(rule.get(field) or () for field in ("apiGroups", "resources", "verbs"))):
        single: Body = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
        names = rule.get("resourceNames") or ()
        yield from ({**single, "resourceNames": [name]} for name in names) if names else (single,)
    for url, verb in product(rule.get("nonResourceURLs") or (), rule.get("verbs") or ()):
        yield {"verbs": [verb], "nonResourceURLs": [url]}


def _covers(owner: Body, single: Body) -> bool:
    if bool(owner.get("nonResourceURLs")) != bool(single.get("nonResourceURLs")):
        return False
    fields = ("verbs", "apiGroups", "resources", "nonResourceURLs")
    if not all(_has(owner.get(field) or (), value) for field in fields for value in single.get(field) or ()):
        return False
    names = owner.get("resourceNames") or ()
    return not names or (bool(single.get("resourceNames")) and set(single["resourceNames"]) <= set(names))


def _has(values: Iterable[str], value: str) -> bool:
    for one in values:
        if one in ("*", value) or (one.endswith("*") and one.startswith("/") and value.startswith(one[:-1])):
            return True
        if one.startswith("*/") and value.partition("/")[2] == one[2:]:
            return True
    return False


def _listed(title: str, entries: list[Body], shown: Callable[[Body], str]) -> list[str]:
    return [f"\t{title}:", *(f"\t\t{shown(entry)}" for entry in entries)] if entries else []


def _rule(rule: Body) -> str:
    return _go(rule, RULE_FIELDS, lambda value: f"[{' '.join(map(str, value or ()))}]")


def _subject(subject: Body) -> str:
    return _go(subject, SUBJECT_FIELDS, lambda value: str(value or ""))


def _go(entry: Body, fields: Iterable[str], shown: Callable[[Any], str]) -> str:
    """A struct as Go prints it with its field names."""
    values = {name.lower(): value for name, value in entry.items()}
    return f"{{{' '.join(f'{field}:{shown(values.get(field.lower()))}' for field in fields)}}}"
