"""Health checks for Argo CD, as `argocd-cm`, as the operator's `ArgoCD` resource, or as an Ansible task that merges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from seatrial.generate.health.script import HealthCheck
from seatrial.generate.yamltext import comment, document

Form = Literal["argocd-cm", "operator", "ansible"]

MERGED = """\
{%- set merged = health_checks | list -%}
{%- for one in (found.resources | first).spec.resourceHealthChecks | default([]) -%}
{%- if not (health_checks | selectattr('kind', 'equalto', one.kind)
| selectattr('group', 'equalto', one.group | default('')) | list) -%}
{%- set _ = merged.append(one) -%}
{%- endif -%}
{%- endfor -%}
{{ merged }}"""
"""The checks of others stay, and ours are replaced: a list is never merged by Kubernetes itself."""


def written(checks: Sequence[HealthCheck], form: Form, name: str, namespace: str) -> str:
    """The manifest or the tasks; `name` is that of the ArgoCD resource."""
    head = [f"{check.kind}.{check.group}: reads {check.reads}; run on eight example states." for check in checks]
    lines = "".join(f"{line}\n" for text in head for line in comment(text))
    match form:
        case "argocd-cm":
            keys = {f"resource.customizations.health.{_key(check)}": check.script for check in checks}
            meta = {"name": "argocd-cm", "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "argocd"}}
            body: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": keys}
            how = "Use server-side apply, which keeps other keys: kubectl apply --server-side -f ..."
            return lines + "".join(f"{line}\n" for line in comment(how)) + document(body)
        case "operator":
            how = "The list replaces the one in the cluster: add the checks that are there, or use --as ansible."
            return lines + "".join(f"{line}\n" for line in comment(how)) + document(_operator(checks, name, namespace))
        case "ansible":
            return lines + document(_tasks(checks, name, namespace))


def _key(check: HealthCheck) -> str:
    return f"{check.group}_{check.kind}" if check.group else check.kind


def _entries(checks: Sequence[HealthCheck]) -> list[dict[str, str]]:
    return [{"group": check.group, "kind": check.kind, "check": check.script} for check in checks]


def _operator(checks: Sequence[HealthCheck], name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"resourceHealthChecks": _entries(checks)},
    }


def _tasks(checks: Sequence[HealthCheck], name: str, namespace: str) -> list[dict[str, Any]]:
    resource = {"api_version": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": name, "namespace": namespace}
    patched = {**_operator((), name, namespace), "spec": {"resourceHealthChecks": MERGED}}
    return [
        {"name": "Read the ArgoCD resource", "kubernetes.core.k8s_info": resource, "register": "found"},
        {
            "name": "Add the health checks, and keep those of others",
            "vars": {"health_checks": _entries(checks)},
            "kubernetes.core.k8s": {"state": "patched", "merge_type": ["merge"], "definition": patched},
        },
    ]
