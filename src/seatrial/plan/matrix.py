"""`--matrix`: the combinations of values, the transitions between them, and the objects that differ.

Pure; renders nothing and rehearses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from msgspec import Struct

from seatrial.helm import hooks
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.result import NotRehearsed, RenderedDifference
from seatrial.sources.places import place_of

CELLS_MAX = 32
NAMES_MAX = 3
TRANSITIONS_MAX = 24
"""The most that are rehearsed; the report names the others."""
SELF_FIRST_MAX = 12
"""How many upgrades of a cell to itself come before those that change something."""

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


def transitions(old: Mapping[Cell, Release], new: Mapping[Cell, Release]) -> tuple[list[Transition], list[Transition]]:
    """The transitions between cells that change an object, and those of them that exceed the maximum.

    A cell is also upgraded to itself. Flips between regular and hook come first, then objects that are added or
    removed, then changes of content, such as an image; of alike ones, those that change few keys.
    """
    found = []
    selves = 0
    for index, (before, after) in enumerate(product(old, new)):
        flips, moves, edits = _distance(old[before], new[after])
        if before == after or flips or moves or edits:
            selves += before == after
            rank = 1 if before != after else 0 if selves <= SELF_FIRST_MAX else 2
            keys = sum(a != b for a, b in zip(before.settings, after.settings, strict=True))
            found.append((rank, -flips, not (flips or moves), keys, index, Transition(before, after)))
    ordered = [transition for *_, transition in sorted(found, key=lambda entry: entry[:-1])]
    return ordered[:TRANSITIONS_MAX], ordered[TRANSITIONS_MAX:]


def not_chosen(left: Sequence[Transition], chosen: Sequence[Transition]) -> Iterator[NotRehearsed]:
    """The sentence on transitions that exceed the maximum."""
    if left:
        named = "; ".join(transition.name for transition in left[:NAMES_MAX])
        more = f"; and {len(left) - NAMES_MAX} more" if left[NAMES_MAX:] else ""
        yield NotRehearsed(f"{len(left)} of {len(left) + len(chosen)} upgrades: {named}{more}", "--matrix")


def without_difference(releases: Mapping[Cell, Release]) -> Iterator[str]:
    """The note on cells between which no upgrade is rehearsed, because the chart renders the same objects."""
    alike = [(a, b) for a, b in combinations(releases, 2) if not any(_distance(releases[a], releases[b]))]
    if alike:
        first, second = alike[0]
        more = f" (and {len(alike) - 1} more like it)" if alike[1:] else ""
        yield f"--matrix: no upgrade between {first.name} and {second.name}{more} is rehearsed: no object differs"


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


def _distance(old: Release, new: Release) -> tuple[int, int, int]:
    """How many objects flip between regular and hook, are added or removed, and change in content."""
    before, after = _objects(old), _objects(new)
    both = before.keys() & after.keys()
    flips = sum(_state(before[ref]) != _state(after[ref]) for ref in both)
    return flips, len(before.keys() ^ after.keys()), sum(before[ref].body != after[ref].body for ref in both)


def _objects(release: Release) -> dict[Ref, Resource]:
    """The objects that an install or an upgrade deploys; `helm test` alone creates its own."""
    return {one.ref: one for one in release.resources if not _is_test(one)}


def _is_test(resource: Resource) -> bool:
    return hooks.is_hook(resource.body) and all(event.startswith("test") for event in hooks.events_of(resource.body))


def _state(resource: Resource | None) -> str:
    if resource is None:
        return ABSENT
    return HOOK if hooks.is_hook(resource.body) else REGULAR
