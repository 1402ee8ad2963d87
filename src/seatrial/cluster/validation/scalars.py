"""Checks of single values that many kinds share: numbers in range, choices, ports, percentages, selectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.cluster.validation import names
from seatrial.cluster.validation.causes import each, forbidden, invalid, required, unsupported
from seatrial.cluster.validation.objectmeta import label_problems
from seatrial.model.resource import Body

NOT_NEGATIVE = "must be greater than or equal to 0"
PORTS = "must be between 1 and 65535, inclusive"
IDS = "must be between 0 and 2147483647, inclusive"

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def not_negative(field: str, spec: Body, *keys: str) -> Iterator[str]:
    """Each of these fields of `spec` must be at least 0."""
    for key in keys:
        if (value := spec.get(key)) is not None and value < 0:
            yield invalid(f"{field}.{key}" if field else key, value, NOT_NEGATIVE)


def one_of(field: str, value: Any, choices: tuple[str, ...]) -> Iterator[str]:
    """A value must be one of the choices. An unset value gets its default."""
    if value and value not in choices:
        yield unsupported(field, value, choices)


def port(field: str, value: str | int) -> Iterator[str]:
    """A value must be the number or the name of a port."""
    problems = names.port_name(value) if isinstance(value, str) else names.port_number(value)
    yield from each(field, value, problems)


def number_or_percent(field: str, value: str | int) -> Iterator[str]:
    if isinstance(value, str):
        yield from each(field, value, names.percent(value))
    elif value < 0:
        yield invalid(field, value, NOT_NEGATIVE)


def no_more_than_all(field: str, value: str | int) -> Iterator[str]:
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > 100:
        yield invalid(field, value, "must not be greater than 100%")


def is_zero(value: str | int | None) -> bool:
    return value == 0 or (isinstance(value, str) and value.strip("0") == "%")


def selector(field: str, value: Body) -> Iterator[str]:
    """The problems of a label selector."""
    yield from label_problems(f"{field}.matchLabels", value.get("matchLabels") or {})
    for index, expression in enumerate(value.get("matchExpressions") or ()):
        yield from _expression(f"{field}.matchExpressions[{index}]", expression)


def _expression(field: str, expression: Body) -> Iterator[str]:
    operator, values = expression.get("operator") or "", expression.get("values")
    if operator in _WITH_VALUES and not values:
        yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES and values:
        yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")
    key = expression.get("key") or ""
    yield from each(f"{field}.key", key, names.qualified_name(key))
    for index, text in enumerate(values or ()):
        yield from each(f"{field}.values[{index}]", text, names.label_value(text))
