"""Objects as kustomize-controller sends them: after a round trip through Kubernetes' Go types.

Upstream: normalize/normalize.go of fluxcd/pkg/ssa 0.76 (`UnstructuredList`). It also writes `creationTimestamp: null`,
which the API server ignores.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from seatrial.kinds.tables.go_types import Unconvertible, rewritten
from seatrial.model.resource import Body

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
        typed = rewritten(body)
    except Unconvertible:  # Sent as it is, so that the API server says what is wrong.
        typed = None
    is_crd = what[0].startswith("apiextensions.k8s.io/") and what[1] == "CustomResourceDefinition"
    if not is_crd:
        body, typed = _without_status(body), typed and _without_status(typed)
    if typed is None:
        return body
    if what in TEMPLATES:
        return _at(TEMPLATES[what], typed, _pod)
    if what == ("v1", "Service"):
        return _at(("spec",), typed, _with_protocols)
    return _secret(typed) if what == ("v1", "Secret") else typed


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
