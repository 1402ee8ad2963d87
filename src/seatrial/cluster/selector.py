"""Label and field selectors as clients write them in a query. Knows nothing of kinds."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from seatrial.cluster.refusal import bad_request
from seatrial.resource import Body, dig

Test = Callable[[Body], bool]

_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")
_COMMA_OUTSIDE = re.compile(r",(?![^(]*\))")


def everything(body: Body) -> bool:
    return True


@lru_cache(maxsize=4096)
def label_test(selector: str) -> Test:
    """Whether an object's labels fit `app=web,tier in (a,b),!canary`."""
    if not selector.strip():
        return everything
    terms = [_label_term(term) for term in _COMMA_OUTSIDE.split(selector)]
    return lambda body: all(term((body.get("metadata") or {}).get("labels") or {}) for term in terms)


def _label_term(term: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(term):
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(term):
        key, operator, value = found.groups()
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(term):
        absent, key = found.groups()
        if absent:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise bad_request(f"unable to parse requirement: found '{term.strip()}', expected: identifier")


@lru_cache(maxsize=4096)
def field_test(selector: str) -> Test:
    """Whether an object's fields fit `metadata.name=web,status.phase!=Running`."""
    if not selector.strip():
        return everything
    terms = []
    for term in selector.split(","):
        found = _EQUAL.match(term)
        if not found:
            raise bad_request(f"invalid field selector: invalid selector: '{selector}'; can't understand '{term}'")
        field, operator, value = found.groups()
        terms.append((tuple(field.split(".")), value, operator != "!="))
    return lambda body: all((str(dig(body, *path) or "") == value) is wanted for path, value, wanted in terms)


def named(selector: str) -> str:
    """The name that a field selector pins, where it does."""
    for term in selector.split(","):
        found = _EQUAL.match(term)
        if found and found.group(1) == "metadata.name" and found.group(2) != "!=":
            return found.group(3)
    return ""
