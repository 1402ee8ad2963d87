"""How a live object differs from the source. Compares only what is written, and in the way the API server reads it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from seatrial.evidence.crds import is_alike
from seatrial.evidence.secret_data import secret_data
from seatrial.kinds.core.quantities import amount
from seatrial.model import lazy_re
from seatrial.model.resource import WRITTEN, Body, Path, annotations_of, dig, labels_of

NOT_COMPARED = ("apiVersion", "kind", "metadata", "status", "stringData")
SET_BY_ENGINES = ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance")
"""Labels with which engines mark their objects, whatever is written."""
NOT_SENT = (*SET_BY_ENGINES, WRITTEN)
SET_BY_OTHERS = frozenset(("caBundle", "replicas", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"))
"""Fields that controllers, autoscalers and people set."""
QUANTITY = lazy_re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|[numkKMGTPE]i?)?")
DURATION = lazy_re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|ms|h|m|s))+")
PART = lazy_re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|h|m|s)")
SECONDS = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
DEFINITION = "CustomResourceDefinition"


def differences(written: Body, live: Body) -> Iterator[Path]:
    """The fields of an object that are written in the source and are something else in the cluster."""
    if written.get("kind") == DEFINITION:
        if not is_alike(written, live):
            yield ("spec", "versions")
        return
    if written.get("kind") == "Secret" and (written.get("stringData") or written.get("data")):
        data, there = secret_data(written), secret_data(live)
        # A key without a value is stored as an empty one.
        yield from (("data", key) for key, value in data.items() if value and not _is_same(value, there.get(key)))
        written = {key: value for key, value in written.items() if key != "data"}
    for name, read in (("labels", labels_of), ("annotations", annotations_of)):
        here, there = read(written), read(live)
        marks = (key for key in here if key not in NOT_SENT)
        yield from (("metadata", name, key) for key in marks if not _is_same(here[key], there.get(key, "")))
    for key, value in written.items():
        if key not in NOT_COMPARED:
            yield from _differences(value, live.get(key), (key,))


def value_at(body: Body, path: Path) -> object:
    """The value at a path of `differences`, which has the names of list items."""
    found: object = body
    for part in path:
        if isinstance(found, list) and isinstance(part, str):
            found = next((item for item in found if dig(item, "name") == part), None)
        else:
            found = dig(found, part)
    return found


def _differences(written: Any, live: Any, at: Path) -> Iterator[Path]:
    if _is_nothing(written) or at[-1] in SET_BY_OTHERS:
        return
    match written:
        case dict() if isinstance(live, dict):
            for key, value in written.items():
                yield from _differences(value, live.get(key), (*at, key))
        case list() if isinstance(live, list):
            yield from _in_lists(written, live, at)
        case _ if not _is_same(written, live):
            yield at


def _in_lists(written: list[Any], live: list[Any], at: Path) -> Iterator[Path]:
    """Each written item must be somewhere in the live list: others may have added items."""
    last = {_name(item): index for index, item in enumerate(written)}
    for index, item in enumerate(written):
        if any(next(_differences(item, other, at), None) is None for other in live):
            continue
        name = _name(item)
        if name and last[name] != index:
            continue  # Of two items with one name the last one counts.
        named = next((other for other in live if name and _name(other) == name), None)
        if named is None:
            yield (*at, name or index)
        else:
            yield from _differences(item, named, (*at, name))


def _name(item: Any) -> str:
    return str(item.get("name") or "") if isinstance(item, dict) else ""


def _is_nothing(value: Any) -> bool:
    """Whether the API server may leave a field out."""
    if isinstance(value, dict):
        return all(map(_is_nothing, value.values()))
    return value in (None, "", 0, False) or value == []


def _is_same(written: Any, live: Any) -> bool:
    if written == live:
        return True
    if isinstance(written, bool) or isinstance(live, bool):
        return str(written).lower() == str(live).lower()
    if not isinstance(written, (str, int, float)) or not isinstance(live, (str, int, float)):
        return False
    one, other = str(written).strip(), str(live).strip()
    if one == other:
        return True
    if QUANTITY.fullmatch(one) and QUANTITY.fullmatch(other):
        return amount(one) == amount(other)
    return bool(DURATION.fullmatch(one) and DURATION.fullmatch(other)) and _seconds(one) == _seconds(other)


def _seconds(duration: str) -> Fraction:
    return sum((Fraction(number) * SECONDS[unit] for number, unit in PART.findall(duration)), Fraction(0))
