"""RBAC: what roles and bindings allow, the error of a refusal, and access reviews."""

from __future__ import annotations

from typing import Any

import pytest
from asking import OK, Api

from seatrial.cluster.request import Request
from seatrial.kinds.access.authorizer import ADMIN, Access, User, decide, service_account

SA = service_account("default", "app")
WHO = 'User "system:serviceaccount:default:app"'
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: app, namespace: default}]
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app, namespace: default}\n---\n"
PODS = '[{apiGroups: [""], resources: [pods], verbs: [get, list]}]'


def bound(role: str, kind: str = "ClusterRoleBinding", subject: str = "") -> str:
    where = ", namespace: default" if kind == "RoleBinding" else ""
    subject = subject or "{kind: ServiceAccount, name: app, namespace: default}"
    return f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata: {{name: bound{where}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
subjects: [{subject}]
"""


def allowed(text: str, access: Access, user: User = SA) -> bool:
    return decide(user, access, Api(text).cluster.view()).allowed


RULES = [
    (PODS, Access("get", "", "pods", "default", "x"), True),
    (PODS, Access("delete", "", "pods", "default", "x"), False),
    (PODS, Access("get", "", "pods", "other", "x"), False),
    (PODS, Access("get", "", "pods"), False),
    (PODS, Access("get", "", "pods", "default", "x", "log"), False),
    ('[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]', Access("get", "", "pods", "default", "x", "log"), True),
    (
        '[{apiGroups: [""], resources: [pods/log], verbs: [get]}]',
        Access("get", "", "pods", "default", "x", "log"),
        True,
    ),
    (
        '[{apiGroups: [apps], resources: ["*/scale"], verbs: [patch]}]',
        Access("patch", "apps", "deployments", "default", "x", "scale"),
        True,
    ),
    (
        '[{apiGroups: [apps], resources: ["*/scale"], verbs: [patch]}]',
        Access("patch", "apps", "deployments", "default", "x"),
        False,
    ),
    (
        '[{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [get]}]',
        Access("get", "", "pods", "default", "x"),
        True,
    ),
    (
        '[{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [get]}]',
        Access("get", "", "pods", "default", "y"),
        False,
    ),
    (
        '[{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [list]}]',
        Access("list", "", "pods", "default"),
        False,
    ),
]


@pytest.mark.parametrize(("rules", "access", "may"), RULES)
def test_a_rule_allows_what_it_names(rules: str, access: Access, may: bool) -> None:
    assert allowed(ROLE.replace("RULES", rules), access) is may


DEFAULTS = [
    ("view", Access("list", "apps", "deployments", "default"), True),
    ("view", Access("get", "", "secrets", "default", "s"), False),
    ("edit", Access("get", "", "secrets", "default", "s"), True),
    ("edit", Access("create", "rbac.authorization.k8s.io", "roles", "default"), False),
    ("admin", Access("create", "rbac.authorization.k8s.io", "roles", "default"), True),
    ("admin", Access("create", "", "namespaces"), False),
    ("cluster-admin", Access("delete", "example.com", "widgets", "default", "w"), True),
    ("system:auth-delegator", Access("create", "authentication.k8s.io", "tokenreviews"), True),
]


@pytest.mark.parametrize(("role", "access", "may"), DEFAULTS)
def test_default_roles_exist(role: str, access: Access, may: bool) -> None:
    assert allowed(bound(role), access) is may


def test_a_cluster_role_bound_in_a_namespace_applies_only_there() -> None:
    text = bound("view", "RoleBinding")
    assert allowed(text, Access("list", "", "pods", "default"))
    assert not allowed(text, Access("list", "", "pods", "kube-system"))
    assert not allowed(text, Access("list", "", "pods"))


LABELLED = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widgets, labels: {LABEL: "true"}}
rules: [{apiGroups: [example.com], resources: [widgets], verbs: [get]}]
---
"""
WIDGET = Access("get", "example.com", "widgets", "default", "w")


def test_a_labelled_role_adds_to_the_aggregated_ones() -> None:
    labelled = LABELLED.replace("LABEL", "rbac.authorization.k8s.io/aggregate-to-view")
    assert allowed(labelled + bound("view"), WIDGET)
    assert allowed(labelled + bound("admin"), WIDGET)
    assert not allowed(LABELLED.replace("LABEL", "other") + bound("view"), WIDGET)


def test_an_aggregated_role_has_the_rules_of_the_roles_it_selects() -> None:
    own = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all-of-mine}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {mine: "true"}}]}
rules: []
---
"""
    assert allowed(LABELLED.replace("LABEL", "mine") + own + bound("all-of-mine"), WIDGET)


@pytest.mark.parametrize(
    ("subject", "may"),
    [
        ("{kind: Group, name: 'system:serviceaccounts:default', apiGroup: rbac.authorization.k8s.io}", True),
        ("{kind: Group, name: 'system:authenticated', apiGroup: rbac.authorization.k8s.io}", True),
        ("{kind: User, name: 'system:serviceaccount:default:app', apiGroup: rbac.authorization.k8s.io}", True),
        ("{kind: ServiceAccount, name: app, namespace: other}", False),
        ("{kind: ServiceAccount, name: default, namespace: default}", False),
    ],
)
def test_subjects_are_accounts_groups_and_users(subject: str, may: bool) -> None:
    assert allowed(bound("view", subject=subject), Access("list", "", "pods", "default")) is may


REFUSALS = [
    (
        Request("list", "", "v1", "pods", "default", user=SA),
        f'pods is forbidden: {WHO} cannot list resource "pods" in API group "" in the namespace "default"',
    ),
    (
        Request("get", "", "v1", "pods", "default", "x", user=SA),
        f'pods "x" is forbidden: {WHO} cannot get resource "pods" in API group "" in the namespace "default"',
    ),
    (
        Request("list", "", "v1", "nodes", user=SA),
        f'nodes is forbidden: {WHO} cannot list resource "nodes" in API group "" at the cluster scope',
    ),
    (
        Request("create", "apps", "v1", "deployments", "default", body={}, user=SA),
        f'deployments.apps is forbidden: {WHO} cannot create resource "deployments" in API group "apps" in the '
        'namespace "default"',
    ),
    (
        Request("patch", "apps", "v1", "deployments", "default", "d", "scale", body={}, user=SA),
        f'deployments.apps "d" is forbidden: {WHO} cannot patch resource "deployments/scale" in API group "apps" in '
        'the namespace "default"',
    ),
    (
        Request("get", "", "v1", "namespaces", "", "x", user=SA),
        f'namespaces "x" is forbidden: {WHO} cannot get resource "namespaces" in API group "" in the namespace "x"',
    ),
]


@pytest.mark.parametrize(("request_", "words"), REFUSALS)
def test_the_error_names_user_verb_resource_and_scope(request_: Request, words: str) -> None:
    reply = Api().cluster.request(request_)
    assert (reply.code, reply.body["reason"], reply.body["message"]) == (403, "Forbidden", words)


def test_a_binding_to_a_missing_role_is_in_the_error() -> None:
    api = Api(bound("missing") + "---" + ROLE.replace("RULES", PODS))
    api.delete("Role", "reader", group="rbac.authorization.k8s.io")
    reply = api.cluster.request(Request("list", "", "v1", "pods", "default", user=SA))
    assert reply.body["message"].endswith(
        'in the namespace "default": RBAC: [clusterrole.rbac.authorization.k8s.io "missing" not found, '
        'role.rbac.authorization.k8s.io "reader" not found]'
    )


def test_a_forbidden_write_is_in_the_timeline() -> None:
    api = Api()
    words = (
        f'configmaps is forbidden: {WHO} cannot create resource "configmaps" in API group "" in the namespace "default"'
    )
    assert api.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", user=SA) == words
    assert [event.message for event in api.events("ConfigMap", "refused")] == [words]


def test_an_allowed_request_succeeds() -> None:
    api = Api(bound("edit"))
    assert api.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", user=SA) == OK


def review(api: Api, kind: str, spec: Any, user: User = ADMIN, namespace: str = "") -> Any:
    group = "authentication.k8s.io" if kind in ("SelfSubjectReview", "TokenReview") else "authorization.k8s.io"
    served = api.cluster.discovery.of_kind(group, kind)
    assert served is not None
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
    reply = api.cluster.request(Request("create", group, "v1", served.plural, namespace, body=body, user=user))
    return reply.body["status"] if reply.code == 201 else reply.body["message"]


LIST_PODS = {"namespace": "default", "verb": "list", "resource": "pods"}
REASON = 'RBAC: allowed by RoleBinding "reader/default" of Role "reader" to ServiceAccount "app/default"'


def test_access_reviews_have_a_result_and_a_reason() -> None:
    api = Api(ROLE.replace("RULES", PODS))
    spec = {"resourceAttributes": LIST_PODS}
    theirs = {**spec, "user": SA.name}
    assert review(api, "SelfSubjectAccessReview", spec) == {"allowed": True}
    assert review(api, "SelfSubjectAccessReview", spec, SA) == {"allowed": True, "reason": REASON}
    assert review(api, "SubjectAccessReview", theirs) == {"allowed": True, "reason": REASON}
    assert review(api, "LocalSubjectAccessReview", theirs, namespace="default") == {"allowed": True, "reason": REASON}
    delete = {"resourceAttributes": {**LIST_PODS, "verb": "delete"}, "user": SA.name}
    assert review(api, "SubjectAccessReview", delete) == {"allowed": False}
    assert review(api, "SubjectAccessReview", {}) == (
        '.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of '
        'nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of '
        "user or group must be specified]"
    )


def test_self_subject_rules_reviews() -> None:
    found = review(Api(ROLE.replace("RULES", PODS)), "SelfSubjectRulesReview", {"namespace": "default"}, SA)
    assert found["resourceRules"][-1] == {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    assert found["incomplete"] is False


def test_self_subject_reviews() -> None:
    assert review(Api(), "SelfSubjectReview", {}, SA) == {
        "userInfo": {
            "username": "system:serviceaccount:default:app",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        }
    }


def test_a_token_is_valid_while_its_account_exists() -> None:
    api = Api(ACCOUNT)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    reply = api.cluster.request(Request("create", "", "v1", "serviceaccounts", "default", "app", "token", body=body))
    assert (reply.code, reply.body["status"]["expirationTimestamp"]) == (201, "2026-01-01T00:10:00Z")
    token = reply.body["status"]["token"]
    assert review(api, "TokenReview", {"token": token})["user"]["username"] == "system:serviceaccount:default:app"
    api.delete("ServiceAccount", "app")
    wrong = {"user": {}, "error": "invalid bearer token"}
    assert review(api, "TokenReview", {"token": token}) == wrong
    assert review(api, "TokenReview", {"token": "abc"}) == wrong
    assert review(api, "TokenReview", {}) == "token is required for TokenReview in authentication"


def test_no_token_for_a_missing_account() -> None:
    request = Request("create", "", "v1", "serviceaccounts", "default", "app", "token", body={})
    assert Api().cluster.request(request).body["message"] == 'serviceaccounts "app" not found'
