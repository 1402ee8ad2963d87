"""How the API server rejects a change of an immutable field, and how each minor quotes the value.

Values are quoted as JSON since Kubernetes 1.34, and as Go source before (`ErrorBody` of apimachinery's
pkg/util/validation/field/errors.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from difflib import unified_diff
from typing import Any

from seatrial.kinds.tables.internal_types import internal, label_selector, shown, shown_indented
from seatrial.model.resource import Body, dig

NEWEST = 34
"""The default minor for error texts: the newest that was read."""
JSON_SINCE = 34

IMMUTABLE = "field is immutable"

Quote = Callable[[Any, int], str]


def invalid(field: str, quoted: str, why: str = IMMUTABLE) -> str:
    return f"{field}: Invalid value: {quoted}: {why}"


def forbidden(field: str, why: str) -> str:
    return f"{field}: Forbidden: {why}"


def scalar(value: Any, minor: int) -> str:
    """A string, number, boolean or null. Other values are shown as JSON."""
    if value is None:
        return "null" if minor >= JSON_SINCE else '"null"'
    return shown(value) if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)


def texts(value: list[str], minor: int) -> str:
    if minor >= JSON_SINCE:
        return shown(value)
    return "[]string{" + ", ".join(json.dumps(text) for text in value) + "}"


def selector(value: Body | None, minor: int) -> str:
    """A LabelSelector."""
    if value is None:
        return scalar(value, minor)
    if minor >= JSON_SINCE:
        return shown(label_selector(value))
    labels = "map[string]string(nil)"
    if value.get("matchLabels"):
        pairs = ", ".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in sorted(value["matchLabels"].items()))
        labels = f"map[string]string{{{pairs}}}"
    terms = "[]v1.LabelSelectorRequirement(nil)"
    if value.get("matchExpressions"):
        listed = ", ".join(_go_term(term) for term in value["matchExpressions"])
        terms = f"[]v1.LabelSelectorRequirement{{{listed}}}"
    return f"v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{terms}}}"


def pod_template(value: Body, minor: int) -> str:
    """Before 1.34 the template was pages of Go source with memory addresses. Those are omitted."""
    if minor >= JSON_SINCE:
        return shown(internal(value, "PodTemplateSpec"))
    return 'core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"", ...}, Spec:core.PodSpec{...}}'


def role_ref(value: Body, minor: int) -> str:
    fields = internal(value, "RoleRef")
    if minor >= JSON_SINCE:
        return shown(fields)
    return "rbac.RoleRef{" + ", ".join(f"{name}:{json.dumps(text)}" for name, text in fields.items()) + "}"


def immutable_field(old: Body, new: Body, path: str, minor: int, quote: Quote = scalar) -> Iterator[str]:
    """The error for a change at `path` (`spec.selector`), if there is one."""
    was, wanted = (dig(body, *path.split(".")) for body in (old, new))
    if was != wanted:
        yield invalid(path, quote(wanted, minor))


def difference(old: Any, new: Any, type_: str, minor: int) -> str:
    """The unified diff that follows some errors. Before 1.34 it was Go source and is omitted."""
    if minor < JSON_SINCE:
        return ""
    before, after = ([*_lines(internal(value, type_))] for value in (old, new))
    return "".join(list(unified_diff(before, after))[2:])


def _lines(value: Any) -> Iterator[str]:
    for line in shown_indented(value):
        yield line if line.endswith("\n") else line + "\n"


def _go_term(term: Body) -> str:
    values = ", ".join(json.dumps(value) for value in term.get("values") or ())
    held = f"[]string{{{values}}}" if values else "[]string(nil)"
    key, operator = json.dumps(term.get("key")), json.dumps(term.get("operator"))
    return f"v1.LabelSelectorRequirement{{Key:{key}, Operator:{operator}, Values:{held}}}"
