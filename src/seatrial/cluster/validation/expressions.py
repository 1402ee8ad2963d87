"""Validation of custom resources by rules in CEL (`x-kubernetes-validations`).

Upstream: `validateExpressions` in pkg/apiserver/schema/cel/validation.go of apiextensions-apiserver. A rule that uses
functions of Kubernetes (`quantity`, `url`, `ip`), or values with special types, is not evaluated here and assumed to
pass; `is_evaluated` tells which. Costs are not counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from seatrial import cel
from seatrial.cluster.validation.causes import duplicate, invalid, required
from seatrial.cluster.validation.custom import CEL
from seatrial.kinds.core.immutable import forbidden
from seatrial.model import lazy_re
from seatrial.model.resource import Body

CALLS = frozenset(
    (
        *("has", "all", "exists", "exists_one", "filter", "map", "size", "in", "orValue", "hasValue"),
        *("matches", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "substring", "charAt"),
        *("split", "join", "replace", "trim"),
        *("int", "uint", "double", "string", "bool", "dyn", "type", "duration"),
    )
)
"""Functions that are the same here and in Kubernetes."""
TYPED = ("date-time", "date", "duration", "byte")
"""Formats whose values are not strings in CEL."""
RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_TEXT = lazy_re.compile(r"""r?('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""")
_CALL = lazy_re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_OLD = lazy_re.compile(r"\boldSelf\b")


def rule_problems(new: Any, old: Any, node: Body, path: str = "", *, ratchets: bool = False) -> Iterator[str]:
    """The errors for a new or changed object. Unchanged values are not validated again (`ratchets`)."""
    if new is None:
        return
    same = new == old if old is not None else ratchets
    for rule in node.get(CEL) or ():
        yield from _refusals(rule, new, old, node, path, ratchets=same)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) and node.get("x-kubernetes-map-type") != "atomic" else {}
        for key, value in new.items():
            child, inner = _child(node, key, path)
            if child:
                yield from rule_problems(value, before.get(key), child, inner, ratchets=same)
    elif isinstance(new, list) and isinstance(node.get("items"), dict):
        for index, item in enumerate(new):
            yield from rule_problems(item, _paired(item, old, node), node["items"], f"{path}[{index}]", ratchets=same)


def is_evaluated(rule: Body, node: Body) -> bool:
    """Whether a rule on a value of this schema is evaluated here."""
    text = str(rule.get("rule") or "")
    if rule.get("optionalOldSelf") or node.get("format") in TYPED or not is_evaluated_text(text):
        return False
    return not any(re.search(rf"\b{re.escape(name)}\b", text) for name in _typed(node))


def is_evaluated_text(text: str) -> bool:
    """Whether an expression uses only functions that are the same here and in Kubernetes."""
    return set(_CALL.findall(_TEXT.sub("''", text))) <= CALLS and cel.fault_of(text) is None


def _refusals(rule: Body, new: Any, old: Any, node: Body, path: str, *, ratchets: bool) -> Iterator[str]:
    text = str(rule.get("rule") or "")
    looks_back = _OLD.search(text) is not None
    if (looks_back and old is None) or (ratchets and not looks_back) or not is_evaluated(rule, node):
        return
    data = {"self": _value(new, node, sorts=looks_back)}
    if looks_back:
        data["oldSelf"] = _value(old, node, sorts=True)
    answer = cel.is_true(text, data)
    kind = str(node.get("type") or "")
    default_message = str(rule.get("message") or text).strip()
    if isinstance(answer, cel.CelError):
        if not answer.is_ours and answer.why and answer.why != "no such overload":
            yield invalid(path or "<nil>", kind, f"{answer.why} evaluating rule: {default_message}")
    elif not answer:
        yield _refusal(rule, kind, f"{path}{rule.get('fieldPath') or ''}".lstrip(".") or "<nil>", data)


def _refusal(rule: Body, kind: str, path: str, data: Body) -> str:
    computed = cel.text_of(str(rule["messageExpression"]), data) if rule.get("messageExpression") else None
    default_message = str(rule.get("message") or "").strip() or f"failed rule: {str(rule['rule']).strip()}"
    message = computed.strip() if computed and computed.strip() and "\n" not in computed.strip() else default_message
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return duplicate(path, kind)
    return invalid(path, kind, message)


def _child(node: Body, key: str, path: str) -> tuple[Body, str]:
    """The schema of a field, and its path."""
    fields = node.get("properties") or {}
    if key in fields:
        return fields[key], f"{path}.{key}" if path else key
    others = node.get("additionalProperties")
    return (others, f"{path}[{key}]") if isinstance(others, dict) else ({}, "")


def _paired(item: Any, old: Any, node: Body) -> Any:
    """The earlier state of an item in a list with keys."""
    keys = node.get("x-kubernetes-list-map-keys") or ()
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    own = [item.get(key) for key in keys]
    return next((one for one in old if isinstance(one, dict) and [one.get(key) for key in keys] == own), None)


def _value(value: Any, node: Body, *, sorts: bool) -> Any:
    """A value as CEL sees it: escaped names, numbers as floats, sets without an order."""
    if isinstance(value, dict):
        fields, others = node.get("properties") or {}, node.get("additionalProperties")
        rest = others if isinstance(others, dict) else {}
        return {
            _escaped(key) if key in fields else key: _value(one, fields.get(key, rest), sorts=sorts)
            for key, one in value.items()
        }
    if isinstance(value, list):
        items = node["items"] if isinstance(node.get("items"), dict) else {}
        found = [_value(one, items, sorts=sorts) for one in value]
        unordered = sorts and node.get("x-kubernetes-list-type") in ("set", "map")
        return sorted(found, key=lambda one: json.dumps(one, sort_keys=True)) if unordered else found
    is_fraction = node.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_fraction else value


def _escaped(name: str) -> str:
    if name in RESERVED:
        return f"__{name}__"
    for part, instead in _ESCAPES:
        name = name.replace(part, instead)
    return name


def _typed(node: Body) -> Iterator[str]:
    """The names of fields on any level whose values have special types."""
    for name, child in (node.get("properties") or {}).items():
        if child.get("format") in TYPED:
            yield name
        yield from _typed(child)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _typed(node[key])
