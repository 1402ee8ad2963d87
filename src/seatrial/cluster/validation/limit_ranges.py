"""Validation of LimitRanges: the minimum, the defaults and the maximum of a resource must be in order.

Upstream: `ValidateLimitRange` in pkg/apis/core/validation/validation.go of Kubernetes 1.34. Ratios and the names of
resources are not validated here.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import Rules
from seatrial.cluster.validation.causes import duplicate, forbidden, invalid, required
from seatrial.kinds.core.quantities import amount, canonical
from seatrial.model.resource import Body, dig, listed

NAMES = {
    "min": "min value",
    "defaultRequest": "default request value",
    "default": "default value",
    "max": "max value",
}
# (smaller, greater, the field that is named, the value that is quoted)
ORDER = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
NOT_FOR_PODS = "may not be specified when `type` is 'Pod'"
NO_BOUND = "either minimum or maximum storage value is required, but neither was provided"


def _limit_range(body: Body) -> Iterator[str]:
    seen = set()
    for index, limit in enumerate(listed(body, "spec", "limits")):
        at, kind = f"spec.limits[{index}]", limit.get("type")
        if kind in seen:
            yield duplicate(f"{at}.type", str(kind))
        seen.add(kind)
        if kind == "Pod":
            yield from (
                forbidden(f"{at}.{key}", NOT_FOR_PODS) for key in ("default", "defaultRequest") if limit.get(key)
            )
        if kind == "PersistentVolumeClaim" and not any(dig(limit, key, "storage") for key in ("min", "max")):
            yield required(f"{at}.limits", NO_BOUND)
        resources = {name: None for key in NAMES for name in limit.get(key) or {}}
        for name in resources:
            yield from _out_of_order(at, limit, name)


def _out_of_order(at: str, limit: Body, resource: str) -> Iterator[str]:
    for smaller, greater, named, quoted in ORDER:
        few, many = (dig(limit, key, resource) for key in (smaller, greater))
        if few is None or many is None or amount(few) <= amount(many):
            continue
        most = "default limit value" if (smaller, greater) == ("defaultRequest", "default") else NAMES[greater]
        why = f"{NAMES[smaller]} {canonical(few)} is greater than {most} {canonical(many)}"
        yield invalid(f"{at}.{named}[{resource}]", canonical(few if quoted == smaller else many), why)


RULES: Rules = {("", "LimitRange"): _limit_range}
