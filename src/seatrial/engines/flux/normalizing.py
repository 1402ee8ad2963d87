"""Objects as kustomize-controller sends them: after a round trip through Kubernetes' Go types.

Upstream: normalize/normalize.go of fluxcd/pkg/ssa 0.76 (`UnstructuredList`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from seatrial.kinds.tables.go_types import Unconvertible, rewritten
from seatrial.model.resource import Body, with_metadata

ROLES = (("rbac.authorization.k8s.io/v1", "Role"), ("rbac.authorization.k8s.io/v1", "ClusterRole"))
"""Left as they are, because Go would write `rules: null`, which takes away the rules of an aggregated role."""
TEMPLATES = {
    ("v1", "Pod"): ("spec",),
    ("apps/v1", "Deployment"): ("spec", "template", "spec"),
    ("apps/v1", "StatefulSet"): ("spec", "template", "spec"),
    ("apps/v1", "DaemonSet"): ("spec", "template", "spec"),
    ("apps/v1", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Where the ports of containers, but not those of init containers, get their protocol."""


def normalized(body: Body) -> Body:
    """An object with empty fields written or left out, without unknown fields, and with the protocol of ports."""
    what = str(body.get("apiVersion")), str(body.get("kind"))
    if what in ROLES:
        return body
    try:
        typed = _with_defaults(rewritten(body) or body, what)
    except Unconvertible:  # Sent as it is, so that the API server says what is wrong.
        typed = body
    is_crd = what[0].startswith("apiextensions.k8s.io/") and what[1] == "CustomResourceDefinition"
    return with_metadata(typed if is_crd else _without_status(typed), creationTimestamp=None)


def _with_defaults(body: Body, what: tuple[str, str]) -> Body:
    if what in TEMPLATES:
        return _at(TEMPLATES[what], body, _pod)
    if what == ("v1", "Service"):
        return _at(("spec",), body, _with_protocols)
    return _secret(body) if what == ("v1", "Secret") else body


def _without_status(body: Body) -> Body:
    return {key: value for key, value in body.items() if key != "status"}


def _at(path: tuple[str, ...], body: Body, change: Callable[[Body], Body]) -> Body:
    if not path:
        return change(body)
    return {**body, path[0]: _at(path[1:], body[path[0]], change)}


def _pod(spec: Body) -> Body:
    return {**spec, "containers": [_with_protocols(one) for one in spec["containers"]]} if spec["containers"] else spec


def _with_protocols(spec: Body) -> Body:
    """The spec of a Service, or a container."""
    if not spec.get("ports"):
        return spec
    return {**spec, "ports": [{**port, "protocol": port.get("protocol") or "TCP"} for port in spec["ports"]]}


def _secret(body: Body) -> Body:
    given = body.get("stringData")
    if not given:
        return body
    encoded = {key: b64encode(value.encode()).decode() for key, value in given.items()}
    others = {key: value for key, value in body.items() if key != "stringData"}
    return {**others, "data": {**(body.get("data") or {}), **encoded}}
