"""From an HTTP request to a `Request`: paths, queries and bodies as Kubernetes clients send them. No sockets here."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec

from seatrial.cluster.refusal import (
    Refused,
    bad_request,
    method_not_allowed,
    unknown_resource,
    unsupported_media,
)
from seatrial.cluster.request import PatchType, Request, Verb
from seatrial.cluster.server import options, protobuf
from seatrial.cluster.server.nesting import NESTING_MAX, refuse_deep, too_deep
from seatrial.cluster.server.options import Query
from seatrial.cluster.validation import names
from seatrial.cluster.validation.pipeline import duplicate_fields
from seatrial.kinds.core.patches import undecodable
from seatrial.kinds.tables.catalogue import SUBRESOURCES, ServedKind
from seatrial.model.resource import Body
from seatrial.text import yamlnode
from seatrial.text.gojson import syntax_error
from seatrial.text.gotext import quoted

BODY_MAX = 3 * 1024 * 1024
"""The API server's limit on a request body."""

PATCHES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+cbor": "apply",
}
VERBS: dict[tuple[str, bool], Verb] = {
    ("GET", True): "get",
    ("HEAD", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("POST", True): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
NAMESPACE_SUBRESOURCES = ("status", "finalize")
PROTOBUF = "application/vnd.kubernetes.protobuf"
UNIMPLEMENTED = frozenset(("attach", "binding", "eviction", "exec", "portforward", "proxy"))
"""Subresources that are not implemented."""


def to_request(method: str, path: str, query: Query, content_type: str, data: bytes, actor: str) -> Request:
    """The request for one resource. Raises `Refused` if the path cannot name a resource."""
    group, version, namespace, plural, name, subresource = _resource(path)
    verb = VERBS.get((method, bool(name)))
    if verb is None:
        raise method_not_allowed()
    if verb == "list" and query.flag("watch"):
        verb = "watch"
    patch_type = _patch_type(verb, content_type)
    body = _body(verb, content_type, data)
    deletion = options.delete_options(body) if verb in ("delete", "deletecollection") else {}
    options.refuse_bad_options(verb, query, deletion, patch_type)
    return Request(
        verb=verb,
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        body=body,
        duplicates=_duplicates(verb, content_type, data, body),
        patch_type=patch_type,
        field_manager=query.get("fieldManager"),
        force=query.flag("force"),
        dry_run="All" in (query.get("dryRun"), *(deletion.get("dryRun") or ())),
        field_validation=query.get("fieldValidation"),
        label_selector=query.get("labelSelector"),
        field_selector=query.get("fieldSelector"),
        limit=max(0, query.number("limit") or 0),
        continue_token=query.get("continue"),
        resource_version=query.get("resourceVersion"),
        resource_version_match=query.get("resourceVersionMatch"),
        timeout_seconds=query.number("timeoutSeconds") or 0,
        propagation=_propagation(query, deletion),
        preconditions=deletion.get("preconditions") or {},
        grace_seconds=deletion.get("gracePeriodSeconds", query.number("gracePeriodSeconds")),
        actor=actor,
    )


def refuse_misplaced(kind: ServedKind, request: Request) -> None:
    """Refuse a path that this kind does not have: a wrong scope, or a missing subresource."""
    if request.namespace and not kind.namespaced:
        raise unknown_resource()
    if request.subresource:
        _refuse_subresource(kind, request)
        return
    if request.verb not in kind.verbs or (request.name and request.verb == "create"):
        raise method_not_allowed()
    if kind.namespaced and not request.namespace:
        if request.name:
            raise unknown_resource()
        if request.verb in ("create", "deletecollection"):
            raise method_not_allowed()


def _refuse_subresource(kind: ServedKind, request: Request) -> None:
    if request.subresource not in kind.subresources or (kind.namespaced and not request.namespace):
        raise unknown_resource()
    if request.verb not in SUBRESOURCES[request.subresource].verbs or request.subresource in UNIMPLEMENTED:
        raise method_not_allowed()


def _resource(path: str) -> tuple[str, str, str, str, str, str]:
    """(group, version, namespace, plural, name, subresource)"""
    match unquote(path).split("/")[1:]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            raise unknown_resource()
    match rest:
        case ["namespaces", name, subresource] if subresource in NAMESPACE_SUBRESOURCES and not group:
            return group, version, "", "namespaces", *_names([name, subresource])
        case ["namespaces", namespace, plural, *parts] if len(parts) <= 2:
            return group, version, namespace, plural, *_names(parts)
        case [plural, *parts] if len(parts) <= 2:
            return group, version, "", plural, *_names(parts)
    raise unknown_resource()


def _names(parts: list[str]) -> tuple[str, str]:
    name, subresource = (*parts, "", "")[:2]
    if problems := names.path_segment(name):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {'; '.join(problems)}")
    return name, subresource


def _patch_type(verb: Verb, content_type: str) -> PatchType | None:
    if verb != "patch":
        return None
    patch_type = PATCHES.get(content_type)
    if patch_type is None:
        raise Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    return patch_type


def _propagation(query: Query, deletion: Body) -> str:
    orphan = deletion.get("orphanDependents")
    if orphan is not None:
        return "Orphan" if orphan else "Background"
    return str(deletion.get("propagationPolicy") or query.get("propagationPolicy"))


def _body(verb: Verb, content_type: str, data: bytes) -> Any:
    patch_type = PATCHES.get(content_type, "") if verb == "patch" else ""
    if verb in ("get", "list", "watch") or (not data and patch_type in ("", "apply")):
        return None
    if data.startswith(protobuf.MAGIC) or content_type == PROTOBUF:
        return protobuf.decode(data)
    if content_type in ("application/yaml", "application/apply-patch+yaml"):
        return _yaml(data)
    if content_type in ("", "application/json") or patch_type:
        return _json(data, patch_type)
    raise unsupported_media(("application/json", "application/yaml", PROTOBUF))


def _duplicates(verb: Verb, content_type: str, data: bytes, body: Any) -> tuple[str, ...]:
    if verb not in ("create", "update") or content_type not in ("", "application/json") or not isinstance(body, dict):
        return ()
    return () if data.startswith(protobuf.MAGIC) else duplicate_fields(data, body)


def _json(data: bytes, patch_type: str = "") -> Any:
    try:
        body = msgspec.json.decode(data)
    except RecursionError as error:
        raise too_deep() from error
    except msgspec.DecodeError as error:
        text = data.decode(errors="replace")
        why = f"couldn't get version/kind; json parse error: {syntax_error(text) or error}"
        raise bad_request(undecodable(text, patch_type) or why) from error
    except UnicodeDecodeError:
        # Go replaces invalid UTF-8 by U+FFFD.
        return _json(data.decode(errors="replace").encode(), patch_type)
    if data.count(b"[") + data.count(b"{") > NESTING_MAX:
        refuse_deep(body)
    return body


def _yaml(data: bytes) -> Any:
    """Helm and kubectl send JSON with the YAML content type. Parsing it as JSON is faster."""
    if data.lstrip()[:1] == b"{":
        try:
            return _json(data)
        except Refused:
            pass
    try:
        body = yamlnode.value_of(data.decode())
    except (yamlnode.InvalidYaml, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {error}") from error
    refuse_deep(body)
    return body


def too_large_body() -> Refused:
    return Refused(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_MAX}")
