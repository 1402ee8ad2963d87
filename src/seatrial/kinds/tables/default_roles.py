"""The roles and bindings that every API server creates. They need not be in the store.

Read from an API server of 1.34. Of the roles for its own components only those that charts bind are listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.resource import Body

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
ALL = (*READ, *WRITE)

# role -> verbs -> a group and its resources, one per line; `-` is the core group.
_TABLE: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "cluster-admin": ((("*",), "* *"),),
    "system:aggregate-to-admin": (
        (("create",), "authorization.k8s.io localsubjectaccessreviews"),
        (ALL, "rbac.authorization.k8s.io rolebindings roles"),
    ),
    "system:aggregate-to-edit": (
        (READ, "- pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        (("impersonate",), "- serviceaccounts"),
        (("create",), "- pods/eviction serviceaccounts/token"),
        (
            WRITE,
            """
            - pods pods/attach pods/exec pods/portforward pods/proxy
            - configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale
            - secrets serviceaccounts services services/proxy
            apps daemonsets deployments deployments/rollback deployments/scale
            apps replicasets replicasets/scale statefulsets statefulsets/scale
            autoscaling horizontalpodautoscalers
            batch cronjobs jobs
            policy poddisruptionbudgets
            networking.k8s.io ingresses networkpolicies
            resource.k8s.io resourceclaims resourceclaimtemplates
            """,
        ),
        (ALL, "coordination.k8s.io leases"),
    ),
    "system:aggregate-to-view": (
        (
            READ,
            """
            - configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods
            - replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status
            - bindings events limitranges namespaces namespaces/status pods/log pods/status
            - replicationcontrollers/status resourcequotas resourcequotas/status
            discovery.k8s.io endpointslices
            apps controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status
            apps replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
            autoscaling horizontalpodautoscalers horizontalpodautoscalers/status
            batch cronjobs cronjobs/status jobs jobs/status
            policy poddisruptionbudgets poddisruptionbudgets/status
            networking.k8s.io ingresses ingresses/status networkpolicies
            resource.k8s.io resourceclaims resourceclaims/status resourceclaimtemplates
            """,
        ),
    ),
    "system:auth-delegator": (
        (("create",), "authentication.k8s.io tokenreviews"),
        (("create",), "authorization.k8s.io subjectaccessreviews"),
    ),
    "system:basic-user": (
        (("create",), "authorization.k8s.io selfsubjectaccessreviews selfsubjectrulesreviews"),
        (("create",), "authentication.k8s.io selfsubjectreviews"),
    ),
}

# role -> paths that it may read
_PATHS: dict[str, tuple[tuple[str, ...], str]] = {
    "cluster-admin": (("*",), "*"),
    "system:discovery": (
        ("get",),
        "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
    ),
    "system:monitoring": (("get",), "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
    "system:public-info-viewer": (("get",), "/healthz /livez /readyz /version /version/"),
    "system:service-account-issuer-discovery": (
        ("get",),
        "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
    ),
}

AGGREGATED = {
    "admin": ("system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"),
    "edit": ("system:aggregate-to-edit", "system:aggregate-to-view"),
    "view": ("system:aggregate-to-view",),
}
"""Aggregated roles. A labelled ClusterRole adds to them."""

AUTHENTICATION_READER = "extension-apiserver-authentication-reader"
"""A Role in kube-system that the servers of APIServices are bound to."""

# (group, role) of the default bindings, by name.
BINDINGS = (
    ("system:masters", "cluster-admin"),
    ("system:authenticated", "system:basic-user"),
    ("system:authenticated", "system:discovery"),
    ("system:monitoring", "system:monitoring"),
    ("system:authenticated", "system:public-info-viewer"),
    ("system:unauthenticated", "system:public-info-viewer"),
    ("system:serviceaccounts", "system:service-account-issuer-discovery"),
)


def rules_of(name: str) -> tuple[Body, ...] | None:
    """The rules of a default ClusterRole. Component roles that are not listed here grant nothing."""
    if name in AGGREGATED:
        return tuple(rule for part in AGGREGATED[name] for rule in _rules(part))
    if name in _TABLE or name in _PATHS:
        return tuple(_rules(name))
    return () if name.startswith("system:") else None


def role_rules_of(namespace: str, name: str) -> tuple[Body, ...] | None:
    """The same for a Role."""
    if (namespace, name) != ("kube-system", AUTHENTICATION_READER):
        return None
    names = ["extension-apiserver-authentication"]
    return ({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": list(READ)},)


def _rules(name: str) -> Iterator[Body]:
    for verbs, text in _TABLE.get(name, ()):
        for line in text.strip().splitlines():
            group, *resources = line.split()
            yield {"apiGroups": ["" if group == "-" else group], "resources": resources, "verbs": list(verbs)}
    if name in _PATHS:
        verbs, text = _PATHS[name]
        yield {"nonResourceURLs": text.split(), "verbs": list(verbs)}
