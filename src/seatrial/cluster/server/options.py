"""The options of a request, parsed as Go parses a query and validated as apimachinery's `meta/v1/validation`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

from seatrial.cluster.refusal import Refused, bad_request, invalid
from seatrial.cluster.request import PatchType, Verb
from seatrial.cluster.validation.decode import named_type, read
from seatrial.model.resource import Body
from seatrial.text.gotext import cannot_decode, quoted

OPTIONS: dict[Verb, str] = {
    "list": "ListOptions",
    "watch": "ListOptions",
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
PROPAGATIONS = ("Foreground", "Background", "Orphan")
VALIDATIONS = ("", "Ignore", "Strict", "Warn")
MANAGER_BYTES_MAX = 128
PARAMETERS_MAX = 1000
NO_OBJECT = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
"""The Go type that holds only the kind of a body, as its decoder names it."""

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


class Query:
    """The part of a URL after `?`."""

    def __init__(self, text: str) -> None:
        try:
            found = parse_qs(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX) if text else {}
        except ValueError as error:
            raise bad_request(f"the query of the request cannot be read: {error}") from error
        self._values = found

    def get(self, name: str) -> str:
        """The first value, as Go's `Values.Get`."""
        found = self._values.get(name)
        return found[0] if found else ""

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        """True if present, unless it is `0` or `false`."""
        return self.has(name) and self.get(name).lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        text = self.get(name)
        if not text:
            return None
        digits = text[1:] if text[0] in "+-" else text
        if not (digits.isascii() and digits.isdigit()):
            raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
        if not -(2**63) <= int(text[:20]) < 2**63 or len(digits) > len("9223372036854775807"):
            raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
        return int(text)


def refuse_bad_options(verb: Verb, query: Query, body: Body, patch_type: PatchType | None) -> None:
    """Refuse options that the API server rejects. `body` has the options in the body of a DELETE."""
    causes = list(_problems(verb, query, body, patch_type))
    if causes:
        raise invalid(OPTIONS[verb], "meta.k8s.io", "", causes)


def delete_options(body: Any) -> Body:
    """The options in the body of a DELETE, with correct types."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise Refused(500, "", f"couldn't get version/kind; json parse error: {cannot_decode(body, NO_OBJECT)}")
    reading = read(body, named_type(_DELETE_OPTIONS, "1.34"))
    if reading.wrong:
        raise Refused(500, "", reading.wrong)
    found: Body = reading.body
    return found


def _problems(verb: Verb, query: Query, body: Body, patch_type: PatchType | None) -> Iterator[str]:
    match verb:
        case "list":
            yield from _of_a_list(query)
        case "watch":
            yield from _of_a_watch(query)
        case "create" | "update" | "patch":
            if patch_type != "apply" and query.has("force") and verb == "patch":
                yield "force: Forbidden: may not be specified for non-apply patch"
            yield from _of_a_manager(query.get("fieldManager"))
            yield from _of_a_dry_run(query.all("dryRun"))
            if (validation := query.get("fieldValidation")) not in VALIDATIONS:
                yield f"fieldValidation: {_unsupported(validation, VALIDATIONS)}"
        case "delete" | "deletecollection":
            yield from _of_a_deletion(query, body)


def _of_a_list(query: Query) -> Iterator[str]:
    match, version = query.get("resourceVersionMatch"), query.get("resourceVersion")
    if match and not version:
        yield _match("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and query.get("continue"):
        yield _match("resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", "Exact", "NotOlderThan"):
        yield f"resourceVersionMatch: {_unsupported(match, ('Exact', 'NotOlderThan', ''))}"
    if match == "Exact" and version == "0":
        yield _match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if query.has("sendInitialEvents"):
        yield "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"


def _of_a_watch(query: Query) -> Iterator[str]:
    match, initial = query.get("resourceVersionMatch"), query.has("sendInitialEvents")
    if initial and match != "NotOlderThan":
        yield _match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if match and not initial:
        yield _match("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match not in ("", "NotOlderThan"):
        yield f"resourceVersionMatch: {_unsupported(match, ('NotOlderThan',))}"
    if query.get("continue"):
        yield _match("resourceVersionMatch is forbidden when continue is provided")


def _of_a_manager(manager: str) -> Iterator[str]:
    if len(manager.encode()) > MANAGER_BYTES_MAX:
        yield f"fieldManager: Too long: may not be more than {MANAGER_BYTES_MAX} bytes"
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            detail = f"invalid character U+{ord(letter):04X} (at position {position})"
            yield f"fieldManager: Invalid value: {quoted(manager)}: {detail}"


def _of_a_deletion(query: Query, body: Body) -> Iterator[str]:
    policy = body.get("propagationPolicy") or query.get("propagationPolicy")
    if policy and body.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        yield f"propagationPolicy: Invalid value: {quoted(policy)}: {detail}"
    if policy and policy not in PROPAGATIONS:
        yield f"propagationPolicy: {_unsupported(policy, (*PROPAGATIONS, 'nil'))}"
    yield from _of_a_dry_run(body.get("dryRun") or query.all("dryRun"))


def _of_a_dry_run(values: list[str]) -> Iterator[str]:
    if set(values) - {"All"}:
        yield f'dryRun: Unsupported value: {json.dumps(values)}: supported values: "All"'


def _match(detail: str) -> str:
    return f"resourceVersionMatch: Forbidden: {detail}"


def _unsupported(value: str, supported: tuple[str, ...]) -> str:
    return f"Unsupported value: {quoted(value)}: supported values: {', '.join(map(quoted, supported))}"
