"""Refusals of the API server, in its words. The texts follow apimachinery's `api/errors/errors.go`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from seatrial.model.refusal import UNKNOWN_FIELD, Denial, FailedCall, FieldCause, Refusal, RefusedBy
from seatrial.model.resource import Body, Ref

UNKNOWN_RESOURCE = "the server could not find the requested resource"


class Refused(Exception):
    """A request that the API server refuses with a Status. The keyword arguments hold what the Status does not."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Body | None = None,
        *,
        by: RefusedBy = "",
        call: FailedCall | None = None,
        missing: tuple[Ref, ...] = (),
        terminating: Ref | None = None,
        denied: Denial | None = None,
        unlisted: tuple[FieldCause, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self._known = (call, missing, terminating, denied)
        self._by: RefusedBy = by
        self._unlisted = unlisted

    @property
    def refusal(self) -> Refusal:
        """The refusal as the timeline records it."""
        listed = (_field_cause(cause) for cause in self.details.get("causes") or () if "field" in cause)
        resource = str(self.details.get("kind") or "")
        causes = (*listed, *self._unlisted)
        return Refusal(self.code, self.reason, self.message, resource, self._by, causes, *self._known)

    def status(self) -> Body:
        body: Body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if not self.reason:
            # An error that Kubernetes does not wrap in a status: 500 and only the message.
            del body["reason"]
        if self.details:
            body["details"] = self.details
        return body


def qualified(plural: str, group: str) -> str:
    """`deployments.apps`, or `pods` in the core group."""
    return f"{plural}.{group}" if group else plural


def _details(plural: str, group: str, name: str, **more: Any) -> Body:
    named = {"name": name, "group": group, "kind": plural}
    return {**{key: value for key, value in named.items() if value}, **more}


def not_found(plural: str, group: str, name: str) -> Refused:
    message = f'{qualified(plural, group)} "{name}" not found'
    return Refused(404, "NotFound", message, _details(plural, group, name))


def missing_namespace(name: str) -> Refused:
    message = f'namespaces "{name}" not found'
    namespace = Ref("Namespace", "", name)
    return Refused(404, "NotFound", message, _details("namespaces", "", name), missing=(namespace,))


def already_exists(plural: str, group: str, name: str) -> Refused:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(plural, group, name))


def being_deleted(plural: str, group: str, name: str, ref: Ref) -> Refused:
    """Creation over an object that is still Terminating."""
    message = f'object is being deleted: {qualified(plural, group)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(plural, group, name), terminating=ref)


def conflict(plural: str, group: str, name: str, why: str) -> Refused:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return Refused(409, "Conflict", message, _details(plural, group, name))


def modified(plural: str, group: str, name: str) -> Refused:
    return conflict(
        plural,
        group,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def invalid(kind: str, group: str, name: str, causes: Iterable[str], by: RefusedBy = "") -> Refused:
    """`causes` are whole sentences such as `spec.selector: Invalid value: ...: field is immutable`."""
    sentences = list(causes)
    unique = list(dict.fromkeys(sentences))
    joined = unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
    listed = [_cause(sentence) for sentence in sentences]
    message = f'{qualified(kind, group)} "{name}" is invalid: {joined}'
    return Refused(422, "Invalid", message, _details(kind, group, name, causes=listed), by=by)


REASONS = (
    ("Invalid value", "FieldValueInvalid"),
    ("Required value", "FieldValueRequired"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Forbidden", "FieldValueForbidden"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Not found", "FieldValueNotFound"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
)


def _cause(sentence: str) -> Body:
    field, _, detail = sentence.partition(": ")
    reason = next((reason for start, reason in REASONS if detail.startswith(start)), "FieldValueInvalid")
    return {"reason": reason, "message": detail, "field": field}


def _field_cause(cause: Body) -> FieldCause:
    message = str(cause["message"])
    words, _, quoted = message.partition(" value: ")
    value, detail = _value(quoted) if words in QUOTES else ("", "")
    return FieldCause(str(cause["field"]), str(cause["reason"]), message, value, detail)


QUOTES = ("Invalid", "Duplicate", "Unsupported")
"""How a sentence begins that quotes the value it is about: `Invalid value: "x": ...`."""


def _value(quoted: str) -> tuple[str, str]:
    """The value that a sentence begins with, as text, and the rest. No value for a list, an object and Go source."""
    try:
        value, end = json.JSONDecoder().raw_decode(quoted)
    except json.JSONDecodeError:
        return "", ""
    detail = quoted[end:].removeprefix(": ")
    if isinstance(value, dict | list):
        return "", detail
    return value if isinstance(value, str) else quoted[:end], detail


def forbidden(
    plural: str,
    group: str,
    name: str,
    why: str,
    *,
    by: RefusedBy = "",
    missing: tuple[Ref, ...] = (),
    terminating: Ref | None = None,
) -> Refused:
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    details = _details(plural, group, name)
    return Refused(403, "Forbidden", message, details, by=by, missing=missing, terminating=terminating)


def terminating(plural: str, group: str, name: str, namespace: str) -> Refused:
    """Creation in a terminating namespace."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = forbidden(plural, group, name, why, terminating=Ref("Namespace", "", namespace))
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.details["causes"] = [cause]
    return refused


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def unknown_fields(message: str, paths: Iterable[str]) -> Refused:
    """Strict decoding found unknown fields."""
    unlisted = _unknown(paths)
    return Refused(400, "BadRequest", message, by="unknown-field" if unlisted else "", unlisted=unlisted)


def unknown_fields_of_patch(cause: str, paths: Iterable[str]) -> Refused:
    """Strict decoding of a patched object found unknown fields: the Status only has the whole patch as its field."""
    unlisted = _unknown(paths)
    details = _details("", "", "", causes=[_cause(cause)])
    message = f' "" is invalid: {cause}'
    return Refused(422, "Invalid", message, details, by="unknown-field" if unlisted else "", unlisted=unlisted)


def _unknown(paths: Iterable[str]) -> tuple[FieldCause, ...]:
    return tuple(FieldCause(path, UNKNOWN_FIELD, "unknown field") for path in paths)


def internal(message: str, call: FailedCall | None = None) -> Refused:
    details = {"causes": [{"message": message}]}
    return Refused(500, "InternalError", f"Internal error occurred: {message}", details, call=call)


def gone(message: str) -> Refused:
    return Refused(410, "Expired", message)


def unknown_resource() -> Refused:
    """The error for a path at which no kind is served."""
    return Refused(404, "NotFound", UNKNOWN_RESOURCE)


def unavailable() -> Refused:
    """An aggregated API whose backend is not available."""
    return Refused(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def method_not_allowed() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media(accepted: Iterable[str]) -> Refused:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return Refused(415, "UnsupportedMediaType", message)


def too_large(message: str) -> Refused:
    return Refused(413, "RequestEntityTooLarge", message)
