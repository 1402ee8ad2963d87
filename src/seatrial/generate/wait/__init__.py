"""A Job that waits until something is so, with the rights that it needs and no more, placed for an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct

from seatrial.generate.wait.conditions import Right, WaitCondition, condition
from seatrial.generate.yamltext import comment, document
from seatrial.graph.linking import Graph
from seatrial.helm import argocd_hooks, hooks

Phase = Literal["pre", "post"]
IMAGE = "docker.io/alpine/k8s:1.34.1"
"""Has sh, kubectl, nc and curl. registry.k8s.io/kubectl has no shell."""
NOBODY = 65534
RBAC = "rbac.authorization.k8s.io"
RELEASE_NAMESPACE = "{{ .Release.Namespace }}"
STANDS_FOR_IT = "seatrial-release-namespace"
"""The namespace with which a chart is rendered, where the text must say that of the release."""


class WaitJob(Struct, frozen=True):
    """What to write."""

    target: str
    """The engine that runs it."""
    namespace: str = ""
    """Of the Job; for Helm that of the release if it is empty."""
    name: str = ""
    image: str = IMAGE
    weight: int = 0
    """The hook weight or wave of the Job."""
    phase: Phase = "post"
    deadline_seconds: int = 600


def wait(targets: Sequence[str], gate: WaitJob, graph: Graph | None = None) -> str:
    """The manifests of one Job that waits for all of these, one after the other."""
    found = [condition(target, graph) for target in targets]
    name = gate.name or re.sub(r"[^-a-z0-9]", "-", f"wait-for-{found[0].name}")[:52].rstrip("-")
    bodies = [*_rights(name, gate, found), _job(name, gate, found)]
    head = "".join(f"{line}\n" for text in _head(found, gate) for line in comment(text))
    text = head + "---\n".join(document(body, _comments(body)) for body in bodies)
    return _as_template(text) if gate.target == "helm" else text


def _head(found: Sequence[WaitCondition], gate: WaitJob) -> Iterator[str]:
    yield f"Waits until {'; '.join(one.words for one in found)}."
    yield from (note for one in found for note in one.notes)
    match gate.target:
        case "helm":
            when = f"is a {gate.phase}-install hook of a weight above {gate.weight}"
            yield f"Put it into templates/. What must wait {when}."
        case "argocd":
            yield f"What must wait is in a wave above {gate.weight}."
        case "flux":
            yield "Put it into a Kustomization with wait: true. What must wait is in another one that dependsOn it."
        case "kubectl":
            yield "Apply it, then: kubectl wait --for=condition=complete job/... before you apply what must wait."
        case "pulumi":
            yield "Pulumi waits for the Job. What must wait names it under dependsOn."


def _rights(name: str, gate: WaitJob, found: Sequence[WaitCondition]) -> Iterator[dict[str, Any]]:
    rights = sorted({right for one in found for right in one.rights}, key=_sort)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(name, gate, gate.namespace, job=False)}
    if not rights:
        return
    yield account
    for namespace, group in groupby(rights, key=lambda right: right.namespace):
        scope = "Role" if namespace else "ClusterRole"
        # Others may have a gate of this name in another namespace.
        named = name if namespace == _own(gate) else f"{name}-{namespace}" if namespace else f"{_own(gate)}-{name}"
        meta = _meta(named, gate, "" if namespace == STANDS_FOR_IT else namespace, job=False)
        yield {"apiVersion": f"{RBAC}/v1", "kind": scope, "metadata": meta, "rules": [_rule(right) for right in group]}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": f"{scope}Binding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": scope, "name": named},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _own(gate)}],
        }


def _sort(right: Right) -> tuple[str, ...]:
    return right.namespace, right.group, right.resource, *right.verbs


def _rule(right: Right) -> dict[str, Any]:
    named = {"resourceNames": list(right.names)} if right.names else {}
    return {"apiGroups": [right.group], "resources": [right.resource], **named, "verbs": list(right.verbs)}


def _own(gate: WaitJob) -> str:
    return gate.namespace or rendered_with(gate.target)


def _meta(name: str, gate: WaitJob, namespace: str, *, job: bool) -> dict[str, Any]:
    placed = {"namespace": namespace} if namespace else {}
    annotations = dict(_annotations(gate, job=job))
    return {"name": name, **placed, **({"annotations": annotations} if annotations else {})}


def _annotations(gate: WaitJob, *, job: bool) -> Iterator[tuple[str, str]]:
    """Where the engine places the Job, or its rights, which come before."""
    match gate.target:
        case "helm" if job or gate.phase == "pre":
            # Rights of a post-install Job are regular resources. Those of a pre-install Job are never deleted after
            # success: each hook succeeds on its own, and the Job would lose its ServiceAccount.
            yield hooks.HOOK, f"{gate.phase}-install,{gate.phase}-upgrade"
            yield hooks.WEIGHT, str(gate.weight if job else gate.weight - 5)
            yield hooks.DELETE_POLICY, f"{hooks.BEFORE_CREATION},{hooks.SUCCEEDED}" if job else hooks.BEFORE_CREATION
        case "argocd":
            if job or gate.phase == "pre":
                yield argocd_hooks.HOOK, "PreSync" if gate.phase == "pre" else "Sync"
                yield argocd_hooks.DELETE_POLICY, argocd_hooks.BEFORE_CREATION
            yield argocd_hooks.WAVE, str(gate.weight if job else gate.weight - 1)
        case "flux" if job:
            yield "kustomize.toolkit.fluxcd.io/force", "enabled"
        case "pulumi" if job:
            yield "pulumi.com/replaceUnready", "true"
        case _:
            return


def _job(name: str, gate: WaitJob, found: Sequence[WaitCondition]) -> dict[str, Any]:
    has_rights = any(one.rights for one in found)
    variables = [{"name": key, "value": value} for one in found for key, value in one.variables]
    container = {
        "name": "wait",
        "image": gate.image,
        "command": ["sh", "-c"],
        "args": ["set -eu\n" + "".join(one.script for one in found)],
        **({"env": variables} if variables else {}),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        **({"serviceAccountName": name} if has_rights else {"automountServiceAccountToken": False}),
        "restartPolicy": "OnFailure",
        "securityContext": {"runAsNonRoot": True, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    spec = {"activeDeadlineSeconds": gate.deadline_seconds, "backoffLimit": 3, "template": {"spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _meta(name, gate, gate.namespace, job=True),
        "spec": spec,
    }


def _comments(body: dict[str, Any]) -> dict[tuple[str | int, ...], tuple[str, ...]]:
    if body["kind"] != "Job":
        return {}
    return {("spec", "activeDeadlineSeconds"): ("The Job fails if it has waited this long.",)}


def rendered_with(target: str) -> str:
    """The namespace to read an input with, if none is given."""
    return STANDS_FOR_IT if target == "helm" else "default"


def _as_template(text: str) -> str:
    """Text as Helm prints it: braces in it are no template actions."""
    return text.replace("{{", '{{ "{{" }}').replace(STANDS_FOR_IT, RELEASE_NAMESPACE)
