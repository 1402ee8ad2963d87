"""Virtual resources that are answered and never stored: access reviews, token reviews, self subject reviews, tokens.

From pkg/registry/authorization, pkg/registry/authentication and core/serviceaccount/storage of Kubernetes 1.34.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from seatrial.cluster.refusal import bad_request, invalid, not_found
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.validation import pipeline
from seatrial.kinds.access.authorizer import ACCOUNT, Access, User, decide, grants, service_account
from seatrial.model.resource import Body, Ref, dig, listed, metadata, uid_of

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
TOKEN_SECONDS = 3600
TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX = 600, 2**32
SIGNATURE = "c2VhdHJpYWw"
"""Not verified: a token is valid if it names an existing ServiceAccount."""


def answer(cluster: Cluster, request: Request) -> Reply | None:
    """The reply to a review; None if the request is not one."""
    if request.verb != "create":
        return None
    if (request.group, request.plural, request.subresource) == ("", "serviceaccounts", "token"):
        return Reply(201, _token_request(cluster, request))
    review = REVIEWS.get((request.group, request.plural))
    return None if review is None else Reply(201, review(cluster, request, _body(cluster, request)))


def user_of(cluster: Cluster, token: str) -> User | None:
    """The ServiceAccount that one of our tokens was issued for, while it exists."""
    claims = _claims(token)
    account = dig(claims, "kubernetes.io", "serviceaccount") or {}
    namespace, name = str(dig(claims, "kubernetes.io", "namespace") or ""), str(account.get("name") or "")
    found = cluster.store.get(Ref("ServiceAccount", namespace, name))
    if found is None or uid_of(found) != account.get("uid"):
        return None
    return service_account(namespace, name, uid_of(found))


def _self_subject_access(cluster: Cluster, request: Request, review: Body) -> Body:
    spec = review.get("spec") or {}
    _refuse_ambiguous(spec)
    return {**review, "status": _verdict(cluster, request.user, spec)}


def _subject_access(cluster: Cluster, request: Request, review: Body) -> Body:
    spec = review.get("spec") or {}
    user = User(str(spec.get("user") or ""), tuple(listed(spec, "groups")), str(spec.get("uid") or ""))
    unnamed = (
        [] if user.name or user.groups else [_invalid("user", '""', "at least one of user or group must be specified")]
    )
    _refuse_ambiguous(spec, *unnamed)
    return {**review, "status": _verdict(cluster, user, spec)}


def _local_subject_access(cluster: Cluster, request: Request, review: Body) -> Body:
    """A LocalSubjectAccessReview: only about one namespace."""
    where = str(dig(review, "spec", "resourceAttributes", "namespace") or "")
    if where != request.namespace:
        detail = "must match metadata.namespace"
        causes = [_invalid("resourceAttributes.namespace", f'"{where}"', detail)]
        raise invalid("", request.group, "", causes)
    review = {**review, "metadata": {**(review.get("metadata") or {}), "namespace": request.namespace}}
    return _subject_access(cluster, request, review)


def _self_subject_rules(cluster: Cluster, request: Request, review: Body) -> Body:
    namespace = str(dig(review, "spec", "namespace") or "")
    if not namespace:
        raise bad_request("no namespace on request")
    found = [grant.rule for grant in grants(request.user, namespace, cluster.view()) if not grant.error]
    status = {
        "resourceRules": [rule for rule in found if rule.get("resources")],
        "nonResourceRules": [rule for rule in found if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    return {**review, "metadata": {}, "spec": {}, "status": status}


def _self_subject(cluster: Cluster, request: Request, review: Body) -> Body:
    meta = {"creationTimestamp": cluster.store.now()}
    return {**review, "metadata": meta, "status": {"userInfo": _user_info(request.user)}}


def _token_review(cluster: Cluster, request: Request, review: Body) -> Body:
    token = str(dig(review, "spec", "token") or "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = user_of(cluster, token)
    if user is None:
        return {**review, "status": {"user": {}, "error": "invalid bearer token"}}
    audiences = listed(review, "spec", "audiences") or [AUDIENCE]
    return {**review, "status": {"authenticated": True, "user": _user_info(user), "audiences": audiences}}


REVIEWS: dict[tuple[str, str], Callable[[Cluster, Request, Body], Body]] = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): _self_subject_access,
    ("authorization.k8s.io", "subjectaccessreviews"): _subject_access,
    ("authorization.k8s.io", "localsubjectaccessreviews"): _local_subject_access,
    ("authorization.k8s.io", "selfsubjectrulesreviews"): _self_subject_rules,
    ("authentication.k8s.io", "selfsubjectreviews"): _self_subject,
    ("authentication.k8s.io", "tokenreviews"): _token_review,
}


def _body(cluster: Cluster, request: Request) -> Body:
    body = request.body
    if not isinstance(body, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: the body is no object: {type(body).__name__}")
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    assert kind is not None  # The request was routed by this kind.
    if request.subresource:
        kind = structs.replace(kind, group="authentication.k8s.io", version="v1", kind="TokenRequest")
    read = pipeline.decoded(kind, {**body, "kind": kind.kind, "apiVersion": kind.api_version}, cluster.kube_version)
    return {**read.body, "metadata": metadata(read.body)}


def _refuse_ambiguous(spec: Body, *more: str) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes = list(more)
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        causes.insert(0, _invalid("nonResourceAttributes", msgspec.json.encode(path).decode(), detail))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.insert(0, _invalid("resourceAttributes", "null", detail))
    if causes:
        # The API server does not know the kind of these reviews any more when it validates them.
        raise invalid("", "authorization.k8s.io", "", causes)


def _invalid(field: str, value: str, detail: str) -> str:
    return f"spec.{field}: Invalid value: {value}: {detail}"


def _verdict(cluster: Cluster, user: User, spec: Body) -> Body:
    decision = decide(user, _access(spec), cluster.view())
    return (
        {"allowed": decision.allowed, "reason": decision.reason} if decision.reason else {"allowed": decision.allowed}
    )


def _access(spec: Body) -> Access:
    if path := spec.get("nonResourceAttributes"):
        return Access(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    attributes = spec.get("resourceAttributes") or {}
    named = ("verb", "group", "resource", "namespace", "name", "subresource")
    return Access(**{key: str(attributes.get(key) or "") for key in named})


def _user_info(user: User) -> Body:
    info: Body = {"username": user.name, "groups": list(user.groups)}
    return {**info, "uid": user.uid} if user.uid else info


def _token_request(cluster: Cluster, request: Request) -> Body:
    """A token for a ServiceAccount, valid for the requested time."""
    body = _body(cluster, request)
    ref = Ref("ServiceAccount", request.namespace, request.name)
    account = cluster.store.get(ref)
    if account is None:
        raise not_found("serviceaccounts", "", request.name)
    spec: Body = {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_SECONDS, "boundObjectRef": None}
    spec.update((key, value) for key, value in (body.get("spec") or {}).items() if value)
    _refuse_lifetime(spec["expirationSeconds"])
    now = cluster.store.now()
    until = datetime.fromisoformat(now) + timedelta(seconds=int(spec["expirationSeconds"]))
    meta = {"name": ref.name, "namespace": ref.namespace, "uid": uid_of(account), "creationTimestamp": now}
    token = _token(account, ref, spec["audiences"], int(until.timestamp()))
    status = {"token": token, "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def _refuse_lifetime(seconds: int) -> None:
    for is_invalid, detail in (
        (seconds < TOKEN_SECONDS_MIN, "may not specify a duration less than 10 minutes"),
        (seconds > TOKEN_SECONDS_MAX, "may not specify a duration larger than 2^32 seconds"),
    ):
        if is_invalid:
            cause = f"spec.expirationSeconds: Invalid value: {seconds}: {detail}"
            raise invalid("TokenRequest", "authentication.k8s.io", "", [cause])


def _token(account: Body, ref: Ref, audiences: Any, until: int) -> str:
    claims = {
        "aud": audiences,
        "exp": until,
        "iss": AUDIENCE,
        "kubernetes.io": {
            "namespace": ref.namespace,
            "serviceaccount": {"name": ref.name, "uid": uid_of(account)},
        },
        "sub": f"{ACCOUNT}{ref.namespace}:{ref.name}",
    }
    header = {"alg": "RS256", "kid": "seatrial"}
    parts = (base64.urlsafe_b64encode(msgspec.json.encode(part)).decode().rstrip("=") for part in (header, claims))
    return ".".join((*parts, SIGNATURE))


def _claims(token: str) -> Body:
    """The claims of a token, if it is one of ours."""
    match token.split("."):
        case [_, claims, signature] if signature == SIGNATURE:
            try:
                found = msgspec.json.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
            except (binascii.Error, msgspec.DecodeError):
                return {}
            return found if isinstance(found, dict) else {}
    return {}
