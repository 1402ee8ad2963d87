"""`--matrix`: the combinations of values, the transitions between them, and the objects that differ.

Pure; renders nothing and rehearses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from seatrial.helm import hooks
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.result import RenderedDifference
from seatrial.sources.places import place_of

CELLS_MAX = 32
TRANSITIONS_MAX = 24
"""The most that are rehearsed; the report notes how many are not."""

ABSENT, REGULAR, HOOK = "absent", "regular", "a hook"


class Cell(Struct, frozen=True):
    """One value for every key: `("feature.hooks=true", "replicas=2")`."""

    settings: tuple[str, ...]

    @property
    def name(self) -> str:
        return ", ".join(self.settings)


class Transition(Struct, frozen=True):
    """From the values of one cell to those of another, or of the same."""

    old: Cell
    new: Cell

    @property
    def name(self) -> str:
        """`feature.hooks: false -> true`; where nothing changes, the cell's own name."""
        changes = []
        for old, new in zip(self.old.settings, self.new.settings, strict=True):
            if old != new:
                key, _, was = old.partition("=")
                changes.append(f"{key}: {was} -> {new.partition('=')[2]}")
        return ", ".join(changes) or self.new.name


def cells(given: Sequence[str]) -> tuple[Cell, ...]:
    """All combinations of `--matrix key=v1,v2`, in the given order."""
    axes = [list(_axis(text)) for text in given]
    found = tuple(Cell(settings) for settings in product(*axes))
    if len(found) > CELLS_MAX:
        raise CannotContinue(
            f"--matrix: {len(found)} combinations, more than the maximum of {CELLS_MAX}; give fewer keys or values"
        )
    return found


def transitions(old: Mapping[Cell, Release], new: Mapping[Cell, Release]) -> tuple[list[Transition], int]:
    """The transitions between cells that add, remove or flip an object, and how many exceed the maximum.

    A cell is also upgraded to itself. Flips between regular and hook come first, then transitions that change few keys.
    """
    found = []
    for index, (before, after) in enumerate(product(old, new)):
        flips, changes = _distance(old[before], new[after])
        if before == after or changes:
            keys = sum(a != b for a, b in zip(before.settings, after.settings, strict=True))
            found.append((before != after, -flips, keys, index, Transition(before, after)))
    chosen = [transition for *_, transition in sorted(found, key=lambda entry: entry[:-1])]
    return chosen[:TRANSITIONS_MAX], len(chosen[TRANSITIONS_MAX:])


def differences(releases: Mapping[str, Release], case: str = "") -> Iterator[RenderedDifference]:
    """The objects that differ: regular in one release, a hook in another, or absent."""
    known = {where: _objects(release) for where, release in releases.items()}
    for ref in sorted({ref for objects in known.values() for ref in objects}):
        states = tuple((where, _state(objects.get(ref))) for where, objects in known.items())
        if len({state for _, state in states}) > 1:
            found = next(objects[ref] for objects in reversed(known.values()) if ref in objects)
            yield RenderedDifference(str(ref), states, place_of(found.place("metadata", "name")), case=case)


def _axis(text: str) -> Iterator[str]:
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise CannotContinue(f"--matrix {text}: needs a key and its values, such as --matrix feature.hooks=false,true")
    return (f"{key}={value}" for value in dict.fromkeys(values.split(",")))


def _distance(old: Release, new: Release) -> tuple[int, int]:
    """How many objects flip between regular and hook, and how many differ at all."""
    before, after = _objects(old), _objects(new)
    states = [(_state(before.get(ref)), _state(after.get(ref))) for ref in {*before, *after}]
    flips = sum(ABSENT not in pair and pair[0] != pair[1] for pair in states)
    return flips, sum(was != now for was, now in states)


def _objects(release: Release) -> dict[Ref, Resource]:
    """The objects that an install or an upgrade deploys; `helm test` alone creates its own."""
    return {one.ref: one for one in release.resources if not _is_test(one)}


def _is_test(resource: Resource) -> bool:
    return hooks.is_hook(resource.body) and all(event.startswith("test") for event in hooks.events_of(resource.body))


def _state(resource: Resource | None) -> str:
    if resource is None:
        return ABSENT
    return HOOK if hooks.is_hook(resource.body) else REGULAR
