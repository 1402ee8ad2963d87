"""Amounts of resources as quotas and limits compare, add and print them. Knows nothing of what is limited."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from seatrial.kinds.core.quantities import amount
from seatrial.model.resource import Body, dig, listed

Amounts = dict[str, Fraction]

BINARY = tuple((f"{suffix}i", 1024**power) for power, suffix in sorted(enumerate("KMGTPE", 1), reverse=True))
DECIMAL = tuple(
    (suffix, Fraction(1000) ** power)
    for suffix, power in (("E", 6), ("P", 5), ("T", 4), ("G", 3), ("M", 2), ("k", 1), ("", 0), ("m", -1), ("u", -2))
)


def amounts(quantities: Body | None) -> Amounts:
    return {name: amount(text) for name, text in (quantities or {}).items()}


def shown(name: str, much: Fraction) -> str:
    """An amount as the API server prints it for this resource: bytes in powers of 1024 if possible."""
    binary = BINARY if name.endswith(("memory", "storage")) or "hugepages-" in name else ()
    for suffix, unit in (*binary, *DECIMAL) if much else ():
        if (much / unit).denominator == 1:
            return f"{much / unit}{suffix}"
    return "0" if not much else f"{-(-much * 10**9 // 1)}n"


def total(many: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for each in many:
        for name, much in each.items():
            found[name] = found.get(name, Fraction(0)) + much
    return found


def of_pod(spec: Body, field: str) -> Amounts:
    """The `requests` or `limits` of a whole pod.

    The sum of its containers and sidecars, or its largest init container with the sidecars started before it.
    """
    running = [amounts(dig(container, "resources", field)) for container in listed(spec, "containers")]
    sidecars: list[Amounts] = []
    peaks: list[Amounts] = []
    for container in listed(spec, "initContainers"):
        own = amounts(dig(container, "resources", field))
        if container.get("restartPolicy") == "Always":
            sidecars.append(own)
            own = {}
        peaks.append(total((*sidecars, own)))
    found = total((*running, *sidecars))
    for peak in peaks:
        found.update((name, max(much, found.get(name, much))) for name, much in peak.items())
    return {**found, **_of_whole_pod(spec, field)}


def _of_whole_pod(spec: Body, field: str) -> Amounts:
    """Resources of the pod itself replace those of its containers."""
    own = amounts(dig(spec, "resources", field))
    return {name: own[name] for name in ("cpu", "memory") if name in own}
