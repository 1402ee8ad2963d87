"""From an HTTP request to a `Request`: paths, queries and bodies as Kubernetes clients write them. No sockets here."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec
import yaml

from seatrial.cluster import protobuf
from seatrial.cluster.refusal import Refused, bad_request, method_not_allowed, unknown_resource, unsupported_media
from seatrial.cluster.request import PatchType, Request, Verb
from seatrial.resource import Body

BODY_MAX = 3 * 1024 * 1024
"""The API server's own limit on a request's body."""
NESTING_MAX = 200

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
OF_A_NAMESPACE = ("status", "finalize")
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Query:
    """The part of a URL behind `?`."""

    def __init__(self, text: str) -> None:
        self._values = parse_qs(text, keep_blank_values=True) if text else {}

    def get(self, name: str, default: str = "") -> str:
        found = self._values.get(name)
        return found[-1] if found else default

    def flag(self, name: str) -> bool:
        return self.get(name) in ("true", "1")

    def number(self, name: str) -> int:
        text = self.get(name)
        if text and not text.isdigit():
            raise bad_request(f'invalid query parameter {name}: strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text or 0)


def to_request(method: str, path: str, query: Query, content_type: str, data: bytes, actor: str) -> Request:
    """What a client asks of one resource; raises `Refused` where no resource can be under this path."""
    group, version, namespace, plural, name, subresource = _resource(path)
    verb = VERBS.get((method, bool(name)))
    if verb is None:
        raise method_not_allowed()
    if query.flag("watch") and method == "GET":
        verb = "watch"
    body = _body(verb, content_type, data)
    options = body if verb in ("delete", "deletecollection") and isinstance(body, dict) else {}
    return Request(
        verb=verb,
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        body=body,
        patch_type=_patch_type(verb, content_type),
        field_manager=query.get("fieldManager"),
        force=query.flag("force"),
        dry_run="All" in (query.get("dryRun"), *(options.get("dryRun") or ())),
        field_validation=query.get("fieldValidation"),
        label_selector=query.get("labelSelector"),
        field_selector=query.get("fieldSelector"),
        limit=query.number("limit"),
        continue_token=query.get("continue"),
        resource_version=query.get("resourceVersion"),
        resource_version_match=query.get("resourceVersionMatch"),
        propagation=_propagation(query, options),
        preconditions=options.get("preconditions") or {},
        grace_seconds=_grace(query, options),
        actor=actor,
    )


def _resource(path: str) -> tuple[str, str, str, str, str, str]:
    """(group, version, namespace, plural, name, subresource)"""
    match [unquote(part) for part in path.split("/")[1:]]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            raise unknown_resource()
    match rest:
        case ["namespaces", name, subresource] if subresource in OF_A_NAMESPACE and not group:
            return group, version, name, "namespaces", name, subresource
        case ["namespaces", namespace, plural, *names] if len(names) <= 3:
            return group, version, namespace, plural, *_names(names)
        case [plural, *names] if len(names) <= 3:
            return group, version, "", plural, *_names(names)
    raise unknown_resource()


def _names(parts: list[str]) -> tuple[str, str]:
    return (parts[0] if parts else ""), "/".join(parts[1:])


def _patch_type(verb: Verb, content_type: str) -> PatchType | None:
    if verb != "patch":
        return None
    patch_type = PATCHES.get(content_type)
    if patch_type is None:
        raise unsupported_media(list(PATCHES)[:4])
    return patch_type


def _propagation(query: Query, options: Body) -> str:
    asked = options.get("propagationPolicy") or query.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    if orphan is not None and not asked:
        return "Orphan" if orphan else "Background"
    return str(asked)


def _grace(query: Query, options: Body) -> int | None:
    asked = options.get("gracePeriodSeconds")
    if isinstance(asked, int):
        return asked
    return query.number("gracePeriodSeconds") if query.get("gracePeriodSeconds") else None


def _body(verb: Verb, content_type: str, data: bytes) -> Any:
    if not data or verb in ("get", "list", "watch"):
        return None
    if data.startswith(protobuf.MAGIC) or content_type == PROTOBUF:
        return protobuf.decode(data)
    if content_type in ("application/yaml", "application/apply-patch+yaml"):
        return _yaml(data)
    if content_type in ("", "application/json") or content_type.endswith("+json"):
        return _json(data)
    raise unsupported_media(("application/json", "application/yaml", PROTOBUF))


def _json(data: bytes) -> Any:
    _refuse_deep(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise bad_request(f"couldn't get version/kind; json parse error: {wrong}") from wrong


def _yaml(data: bytes) -> Any:
    """Helm and kubectl send JSON under the YAML type, which is quicker to read as what it is."""
    if data.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            pass
    _refuse_deep(data)
    try:
        return yaml.load(data, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise bad_request(f"error decoding YAML: {' '.join(str(wrong).split())}") from wrong


def _refuse_deep(data: bytes) -> None:
    """A body of brackets alone would exhaust the stack of any parser."""
    if data.count(b"[") + data.count(b"{") < NESTING_MAX:
        return
    depth = deepest = 0
    for byte in data:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    if deepest > NESTING_MAX:
        raise bad_request("couldn't get version/kind; json parse error: exceeded max depth")


def too_large_body() -> Refused:
    return Refused(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_MAX}")
