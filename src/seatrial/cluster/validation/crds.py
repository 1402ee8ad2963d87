"""Validation of CRDs. The order follows apiextensions/validation."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Raw

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import each, forbidden, internal, invalid, required
from seatrial.cluster.validation.scalars import one_of
from seatrial.model.resource import Body, annotations_of, name_of

_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = (".k8s.io", ".kubernetes.io")
_COLUMN_TYPES = "boolean,date,integer,number,string"
_VERSION_FIELDS = (
    *("Name", "Served", "Storage", "Deprecated", "DeprecationWarning", "Schema", "Subresources"),
    *("AdditionalPrinterColumns", "SelectableFields"),
)
_META_FIELDS = {"name", "generateName"}
_META_WORDS = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_PRESERVES_WORDS = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)
_KIND_WORDS = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
    "characters or '-', start with an alphabetic character, and end with an alphanumeric character "
    "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)

_PROBLEMS_MAX = 4096
_problems: dict[tuple[str, bytes], tuple[str, ...]] = {}
_digests: dict[int, tuple[Body, bytes]] = {}
"""By identity, of schemas that are kept for that: a replayed request has the same body again."""


def _crd(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    group, named = spec.get("group") or "", spec.get("names") or {}
    if name_of(body) != f"{named.get('plural') or ''}.{group}":
        yield invalid("metadata.name", name_of(body), 'must be spec.names.plural+"."+spec.group')
    yield from _group(group)
    if not spec.get("scope"):
        yield required("spec.scope")
    yield from one_of("spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        yield invalid("spec.preserveUnknownFields", True, _PRESERVES_WORDS)
    yield from _versions(spec.get("versions") or [])
    yield from _names(named)
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") == "Webhook" and not (conversion.get("webhook") or {}).get("clientConfig"):
        yield required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
        yield required("spec.conversion.conversionReviewVersions")
    if f".{group}".endswith(_PROTECTED) and not annotations_of(body).get(_APPROVAL):
        detail = f'protected groups must have approval annotation "{_APPROVAL}", see '
        yield required(
            f"metadata.annotations[{_APPROVAL}]", f"{detail}https://github.com/kubernetes/enhancements/pull/1111"
        )


def _group(group: str) -> Iterator[str]:
    if not group:
        yield required("spec.group")
    elif problems := names.subdomain(group):
        yield from each("spec.group", group, problems)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(versions: list[Body]) -> Iterator[str]:
    stored = [version for version in versions if version.get("storage")]
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        name = version.get("name") or ""
        yield from each(f"{at}.name", name, names.label_1035(name))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        # The server moves the settings of a single version to the top level, and uses that path in errors.
        alone = len(versions) == 1
        if schema is None:
            yield required(f"{at}.schema.openAPIV3Schema")
        else:
            yield from _once("spec.validation.openAPIV3Schema" if alone else f"{at}.schema.openAPIV3Schema", schema)
        columns = "spec.additionalPrinterColumns" if alone else f"{at}.additionalPrinterColumns"
        for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column(f"{columns}[{place}]", column)
    if len(stored) != 1:
        shown = [_printed(version) for version in versions]
        yield invalid("spec.versions", shown, "must have exactly one version marked as storage version")
        if not stored:
            yield invalid("status.storedVersions", None, "must have at least one stored version")


def _printed(version: Body) -> Raw:
    plain = {"name": "", "served": False, "storage": False, "deprecated": False, **version}
    return internal({**plain, "schema": None, "subresources": None}, _VERSION_FIELDS)


def _column(at: str, column: Body) -> Iterator[str]:
    if not column.get("name"):
        yield required(f"{at}.name")
    if not column.get("type"):
        yield required(f"{at}.type", f"must be one of {_COLUMN_TYPES}")
    if not column.get("jsonPath"):
        yield required(f"{at}.JSONPath")


def _names(named: Body) -> Iterator[str]:
    kind = named.get("kind") or ""
    values = {
        "plural": named.get("plural") or "",
        "singular": named.get("singular") or kind.lower(),
    }
    for key, value in values.items():
        yield from _name(f"spec.names.{key}", value, names.label_1035(value))
    listed = named.get("listKind") or (f"{kind}List" if kind else "")
    for key, value in (("kind", kind), ("listKind", listed)):
        problems = names.label_1035(value.lower())
        yield from _name(f"spec.names.{key}", value, (_KIND_WORDS,) if problems else ())


def _name(at: str, value: str, problems: names.Problems) -> Iterator[str]:
    if not value:
        yield required(at)
    else:
        yield from each(at, value, problems)


def _once(at: str, schema: Body) -> tuple[str, ...]:
    """The problems of a schema, by its digest: every rehearsal of a check applies the same CRDs."""
    same = _digests.get(id(schema))
    if same is None or same[0] is not schema:
        if len(_digests) >= _PROBLEMS_MAX:
            _digests.clear()
        same = _digests[id(schema)] = schema, sha256(msgspec.json.encode(schema)).digest()
    key = (at, same[1])
    known = _problems.get(key)
    if known is None:
        if len(_problems) >= _PROBLEMS_MAX:
            _problems.clear()
        known = _problems[key] = tuple(_root(at, schema))
    return known


def _root(at: str, schema: Body) -> Iterator[str]:
    """The rules for structural schemas that hand-written schemas often break."""
    kind = schema.get("type")
    if not kind and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield required(f"{at}.type", "must not be empty at the root")
    meta = (schema.get("properties") or {}).get("metadata") or {}
    if not set(meta) <= {"type", "properties", "description"} or not set(meta.get("properties") or ()) <= _META_FIELDS:
        yield forbidden(f"{at}.properties[metadata]", _META_WORDS)
    yield from _schema(at, schema)
    if kind and kind != "object":
        yield invalid(f"{at}.type", kind, "must be object at the root")


def _schema(at: str, schema: Body) -> Iterator[str]:
    if "$ref" in schema:
        yield forbidden(f"{at}.$ref", "$ref is not supported")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{at}.uniqueItems", detail)
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{at}.items", "must be specified")
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        yield forbidden(f"{at}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for key, child in (schema.get("properties") or {}).items():
        here = f"{at}.properties[{key}]"
        open_to_all = child.get("x-kubernetes-preserve-unknown-fields") or child.get("x-kubernetes-int-or-string")
        if not child.get("type") and not open_to_all and "$ref" not in child:
            yield required(f"{here}.type", "must not be empty for specified object fields")
        yield from _schema(here, child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _schema(f"{at}.{key}", schema[key])


RULES: Rules = {("apiextensions.k8s.io", "CustomResourceDefinition"): _crd}
