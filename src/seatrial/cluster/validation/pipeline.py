"""Steps before a body is stored: decoding, field validation, and the validation of its kind.

Raises `Refused` in the API server's words. Reads no cluster: checks that depend on other objects are admission.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.refusal import Refused, bad_request, invalid, unknown_fields, unknown_fields_of_patch
from seatrial.cluster.request import PatchType
from seatrial.cluster.validation import (
    Rules,
    access,
    autoscaling,
    crds,
    limit_ranges,
    network,
    pods,
    policies,
    storage,
    workloads,
)
from seatrial.cluster.validation.causes import in_words_of, is_refused
from seatrial.cluster.validation.custom import custom_problems
from seatrial.cluster.validation.decode import Reading, go_type, read
from seatrial.cluster.validation.objectmeta import metadata_problems
from seatrial.cluster.validation.structural import read_custom
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, metadata, name_of
from seatrial.text.gotext import plain, quoted

NEWEST = 34
"""The default minor of error texts: the one they were recorded from."""

RULES: Rules = {
    **access.RULES,
    **autoscaling.RULES,
    **crds.RULES,
    **limit_ranges.RULES,
    **network.RULES,
    **pods.RULES,
    **policies.RULES,
    **storage.RULES,
    **workloads.RULES,
}


class Decoded(Struct, frozen=True):
    """A decoded body without unknown fields, and its warnings."""

    body: Body
    warnings: tuple[str, ...] = ()


def decoded(
    kind: ServedKind,
    body: Body,
    kube_version: str,
    custom: Schema | None = None,
    validation: str = "",
    duplicates: tuple[str, ...] = (),
) -> Decoded:
    """The object of a POST or PUT; `custom` is its schema if a CRD defines the kind."""
    reading = _read(kind, body, kube_version, custom)
    if reading.wrong:
        raise bad_request(_unhandled(kind, reading.wrong))
    strict, warnings = _noticed(reading, duplicates, validation)
    if strict:
        raise unknown_fields(_unhandled(kind, strict), reading.unknown)
    return Decoded(reading.body, warnings)


def patched(
    kind: ServedKind,
    result: Body,
    patch: Any,
    patch_type: PatchType,
    kube_version: str,
    custom: Schema | None = None,
    validation: str = "",
    duplicates: tuple[str, ...] = (),
) -> Decoded:
    """The result of a JSON, merge or strategic patch."""
    reading = _read(kind, result, kube_version, custom)
    strict, warnings = _noticed(reading, duplicates, validation)
    # A strategic patch is merged before it is decoded, and the converter quotes only the patch.
    by_converter = patch_type == "strategic"
    error = (reading.unconvertible if by_converter else reading.wrong) or strict
    if error:
        shown = plain(patch) if by_converter else msgspec.json.encode(result).decode()
        cause = f"patch: Invalid value: {quoted(shown)}: {error}"
        if error == strict:
            raise unknown_fields_of_patch(cause, reading.unknown)
        raise invalid("", "", "", [cause])
    return Decoded(reading.body, warnings)


def applied(
    kind: ServedKind, body: Body, kube_version: str, custom: Schema | None = None, known: Body | None = None
) -> Decoded:
    """The object of a server-side apply, which was checked against the schema before; `known` is the live one."""
    reading = _read(kind, body, kube_version, custom, known, is_applied=True)
    if reading.unconvertible:
        version = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        name = f"{metadata(body).get('namespace') or ''}/{name_of(body)}"
        raise Refused(
            500,
            "",
            f"failed to convert new object ({name}; {version}) to proper version: "
            f"unable to convert unstructured object to {version}: {reading.unconvertible}",
        )
    return Decoded(reading.body)


def refuse_invalid(kind: ServedKind, body: Body, custom: Schema | None = None, minor: int = NEWEST) -> None:
    """Refuse a named and defaulted object that violates a rule of its kind."""
    causes = list(problems_in_words_of(minor, kind, body, custom))
    if causes:
        raise invalid(kind.kind, kind.group, name_of(body), causes)


def problems_in_words_of(minor: int, kind: ServedKind, body: Body, custom: Schema | None = None) -> Iterator[str]:
    return (in_words_of(minor, sentence) for sentence in problems(kind, body, custom) if is_refused(minor, sentence))


def problems(kind: ServedKind, body: Body, custom: Schema | None = None) -> Iterator[str]:
    """All problems of an object, as sentences for the causes of a Status."""
    yield from metadata_problems(kind, metadata(body))
    if custom is not None:
        yield from custom_problems(body, custom.node)
        return
    rule = RULES.get((kind.group, kind.kind))
    if rule is not None:
        yield from rule(body)


def duplicate_fields(text: bytes, body: Any) -> tuple[str, ...]:
    """Paths of duplicate keys in a JSON text, given its decoded body."""
    # Quotes inside strings are escaped, so this counts keys, as long as no client writes a space before the colon.
    if text.count(b'":') - text.count(b'\\":') == _keys(body):
        return ()
    found: list[str] = []
    _walk_pairs(json.loads(text, object_pairs_hook=_Pairs), "", found)
    return tuple(found)


def _read(
    kind: ServedKind,
    body: Body,
    kube_version: str,
    custom: Schema | None,
    known: Body | None = None,
    *,
    is_applied: bool = False,
) -> Reading:
    if custom is not None:
        return read_custom(body, custom, kube_version, is_applied=is_applied)
    type_ = go_type(kube_version, kind)
    return Reading(body) if type_ is None else read(body, type_, known)


def _noticed(reading: Reading, duplicates: tuple[str, ...], validation: str) -> tuple[str, tuple[str, ...]]:
    """The error of strict validation, and the warnings of Warn."""
    if validation == "Ignore":
        return "", ()
    notices = (
        *(f'duplicate field "{path}"' for path in duplicates),
        *(f'unknown field "{path}"' for path in reading.unknown),
    )
    if not notices or validation != "Strict":
        return "", notices
    return f"strict decoding error: {', '.join(notices)}", ()


def _unhandled(kind: ServedKind, error: str) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'


def _keys(body: Any) -> int:
    match body:
        case dict():
            return len(body) + sum(_keys(value) for value in body.values())
        case list():
            return sum(_keys(item) for item in body)
    return 0


class _Pairs(list[tuple[str, Any]]):
    """An object as its text has it, with duplicate keys."""


def _walk_pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen = set()
        for key, child in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                found.append(here)
            seen.add(key)
            _walk_pairs(child, here, found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _walk_pairs(child, f"{path}[{index}]", found)
