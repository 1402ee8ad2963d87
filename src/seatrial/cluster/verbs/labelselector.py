"""Label selectors in a query. Knows nothing of kinds.

The grammar and error texts follow `Parser` in apimachinery's `labels/selector.go`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache

from seatrial.cluster.refusal import Refused, bad_request
from seatrial.cluster.validation import names
from seatrial.model import lazy_re
from seatrial.model.resource import Body
from seatrial.text.gotext import quoted

Test = Callable[[Body], bool]
Labels = dict[str, str]
Term = Callable[[Labels], bool]
Tokens = deque[str]
"""The remaining tokens. The empty string marks the end."""

_TOKENS = lazy_re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_ONE_VALUE = ("=", "==", "!=", ">", "<")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_INTEGER = lazy_re.compile(r"[+-]?[0-9]+")


def everything(body: Body) -> bool:
    return True


@lru_cache(maxsize=4096)
def label_test(selector: str) -> Test:
    """Whether an object's labels match `app=web,tier in (a,b),!canary`."""
    terms = _terms(deque((*_TOKENS.findall(selector), "")))
    if not terms:
        return everything
    return lambda body: all(term((body.get("metadata") or {}).get("labels") or {}) for term in terms)


def _terms(tokens: Tokens) -> list[Term]:
    terms: list[Term] = []
    if not tokens[0]:
        return terms
    if not _begins_a_term(tokens[0]):
        raise bad_request(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    while True:
        terms.append(_term(tokens))
        separator = tokens.popleft()
        if not separator:
            return terms
        if separator != ",":
            raise bad_request(f"found '{separator}', expected: ',' or 'end of string'")
        if not _begins_a_term(tokens[0]):
            raise bad_request(f"found '{tokens[0]}', expected: identifier after ','")


def _begins_a_term(token: str) -> bool:
    return token == "!" or token not in _SYMBOLS


def _term(tokens: Tokens) -> Term:
    absent = tokens[0] == "!"
    if absent:
        tokens.popleft()
    key = _word(tokens, "found '{}', expected: identifier")
    if problems := names.qualified_name(key):
        raise _unparsed(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
    if absent:
        return lambda labels: key not in labels
    if tokens[0] in ("", ","):
        return lambda labels: key in labels
    operator = tokens.popleft()
    if operator in ("in", "notin"):
        values = _listed(tokens)
    elif operator in _ONE_VALUE:
        values = [_value(tokens)]
    else:
        raise _unparsed(f"found '{operator}', expected: {_OPERATORS}")
    return _compared(key, operator, sorted(set(values)))


def _word(tokens: Tokens, complaint: str) -> str:
    token = tokens.popleft()
    if token in _SYMBOLS:
        raise _unparsed(complaint.format(token))
    return token


def _value(tokens: Tokens) -> str:
    return "" if tokens[0] in ("", ",") else _word(tokens, "found '{}', expected: identifier")


def _listed(tokens: Tokens) -> list[str]:
    """The values of `(a,b)`. A missing value before, between or after commas is the empty string."""
    opening = tokens.popleft()
    if opening != "(":
        raise _unparsed(f"found '{opening}' expected: '('")
    if tokens[0] in _SYMBOLS - {",", ")"}:
        raise _unparsed(f"found '{tokens[0]}', expected: ',', ')' or identifier")
    values = []
    while True:
        values.append("" if tokens[0] in (",", ")") else _word(tokens, "found '{}', expected: ',', or identifier"))
        separator = tokens.popleft()
        if separator == ")":
            return values
        if separator != ",":
            raise _unparsed(f"found '{separator}', expected: ',' or ')'")


def _compared(key: str, operator: str, values: list[str]) -> Term:
    _refuse_bad_values(key, operator, values)
    match operator:
        case "in" | "=" | "==":
            return lambda labels: labels.get(key) in values
        case "notin" | "!=":
            return lambda labels: labels.get(key) not in values
    bound, above = int(values[0]), operator == ">"

    def beyond(labels: Labels) -> bool:
        found = labels.get(key, "")
        return bool(_INTEGER.fullmatch(found)) and (int(found) > bound if above else int(found) < bound)

    return beyond


def _refuse_bad_values(key: str, operator: str, values: list[str]) -> None:
    causes = []
    for index, value in enumerate(values):
        if operator in ("<", ">") and not _INTEGER.fullmatch(value):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            causes.append(f"values[{index}]: Invalid value: {quoted(value)}: {detail}")
        if problems := names.label_value(value):
            causes.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(problems)}")
    if causes:
        raise _unparsed(causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]")


def _unparsed(detail: str) -> Refused:
    return bad_request(f"unable to parse requirement: {detail}")
