"""How the API server says no, in its own words. The wording follows apimachinery's `api/errors/errors.go`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatrial.model.resource import Body


class Refused(Exception):
    """A request that the API server answers with a Status of failure."""

    def __init__(self, code: int, reason: str, message: str, details: Body | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

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
            # An error that Kubernetes wraps in no status of its own: 500 and nothing but the message.
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


def already_exists(plural: str, group: str, name: str) -> Refused:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(plural, group, name))


def being_deleted(plural: str, group: str, name: str) -> Refused:
    """Creation over an object that is still Terminating."""
    message = f'object is being deleted: {qualified(plural, group)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(plural, group, name))


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


def invalid(kind: str, group: str, name: str, causes: Iterable[str]) -> Refused:
    """`causes` are whole sentences such as `spec.selector: Invalid value: ...: field is immutable`."""
    sentences = list(causes)
    told = list(dict.fromkeys(sentences))
    joined = told[0] if len(told) == 1 else "[" + ", ".join(told) + "]"
    listed = [_cause(sentence) for sentence in sentences]
    message = f'{qualified(kind, group)} "{name}" is invalid: {joined}'
    return Refused(422, "Invalid", message, _details(kind, group, name, causes=listed))


REASON_OF_WORDS = (
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
    field, _, words = sentence.partition(": ")
    reason = next((reason for start, reason in REASON_OF_WORDS if words.startswith(start)), "FieldValueInvalid")
    return {"reason": reason, "message": words, "field": field}


def forbidden(plural: str, group: str, name: str, why: str) -> Refused:
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    return Refused(403, "Forbidden", message, _details(plural, group, name))


def terminating(plural: str, group: str, name: str, namespace: str) -> Refused:
    """Creation in a namespace that is going away."""
    refused = forbidden(
        plural, group, name, f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.details["causes"] = [cause]
    return refused


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def internal(message: str) -> Refused:
    details = {"causes": [{"message": message}]}
    return Refused(500, "InternalError", f"Internal error occurred: {message}", details)


def gone(message: str) -> Refused:
    return Refused(410, "Expired", message)


def unknown_resource() -> Refused:
    """What clients get for a path that no kind is served under."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def unavailable() -> Refused:
    """An API that a Service of the cluster answers for, and that nobody answers for now."""
    return Refused(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def method_not_allowed() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media(accepted: Iterable[str]) -> Refused:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return Refused(415, "UnsupportedMediaType", message)


def too_large(message: str) -> Refused:
    return Refused(413, "RequestEntityTooLarge", message)
