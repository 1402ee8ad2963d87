"""Fields that Flux leaves to others: `ignore` of a Kustomization, and of the driftDetection of a HelmRelease.

Upstream: `ssa/jsondiff` of fluxcd/pkg, and the drift rules of `ApplyAll` in `ssa/manager_apply.go`.
"""

from __future__ import annotations

from typing import Any

from seatrial.engines.flux.objects import IgnoredDifference
from seatrial.engines.script import DescribedObject
from seatrial.model.resource import Body, annotations_of, labels_of
from seatrial.text import regex


def paths(target: DescribedObject, ignored: tuple[IgnoredDifference, ...]) -> tuple[str, ...]:
    """The paths of an object that the rules ignore; an empty path is all of it."""
    rules = (rule for rule in ignored if _is_selected(target.body, rule))
    own = (rule for rule in rules if all(_is_like(said, real) for said, real in rule.matches(target.ref)))
    return tuple(path for rule in own for path in rule.paths)


def as_live(sent: Body, live: Body, pointers: tuple[str, ...]) -> Body:
    """Desired body with ignored fields taken from the live object; unchanged if there is no live object."""
    for pointer in pointers if live else ():
        parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/")]
        sent = _taken_over(sent, live, parts)
    return sent


def _is_like(pattern: str, real: str) -> bool:
    return bool(regex.is_whole(pattern or ".*", real))


def _is_selected(body: Body, rule: IgnoredDifference) -> bool:
    """Matches by equal labels and annotations; other selectors match nothing."""
    wanted = ((rule.labels, labels_of(body)), (rule.annotations, annotations_of(body)))
    pairs = ((one.partition("="), has) for selector, has in wanted if selector for one in selector.split(","))
    return all(has.get(key.strip()) == value.lstrip("=").strip() for (key, _, value), has in pairs)


def _taken_over(sent: Any, live: Any, path: list[str]) -> Any:
    """The desired body with the live value at a path."""
    first, rest = path[0], path[1:]
    if isinstance(sent, list) and first.isdigit() and int(first) < len(sent):
        index = int(first)
        there = live[index] if isinstance(live, list) and index < len(live) else None
        inner = _taken_over(sent[index], there, rest) if rest else there
        return [*sent[:index], *([inner] if inner is not None else []), *sent[index + 1 :]]
    if not isinstance(sent, dict) or (rest and first not in sent):
        return sent
    there = live.get(first) if isinstance(live, dict) else None
    inner = _taken_over(sent[first], there, rest) if rest else there
    others = {key: value for key, value in sent.items() if key != first}
    return others if inner is None else {**others, first: inner}
