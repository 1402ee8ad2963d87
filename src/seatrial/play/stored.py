"""Rehearsals as files: everything that rules and reports read, written as JSON and read back.

A stored rehearsal has the lines that it refers to, so reading one needs none of the user's files. The format is
described in docs/stored-rehearsals.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial import __version__
from seatrial.model.errors import CannotContinue
from seatrial.model.masking import mask_of, without_secrets
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Origin, Path, Place, Pointer, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.sources import text_of
from seatrial.sources.files import read_bytes, shown
from seatrial.sources.places import Locate, origin, place_of

FORMAT = 1
BYTES_MAX = 1 << 30
DOING = "read the stored rehearsal"
LEVELS = 3
"""Down to here every entry has a line of its own: one for each event."""


class FieldPlaces(Struct, frozen=True, omit_defaults=True):
    """Where the fields of one object are written, by JSON pointer. A field without an entry is where its parent is."""

    lines: dict[str, int] = {}
    """Lines of the object's own file."""
    elsewhere: dict[str, Place] = {}
    """Lines of other files, such as helper templates, and approximate lines."""


class StoredRehearsal(Struct, frozen=True):
    """What `seatrial run -o json` writes."""

    seatrial: str
    """The version that wrote it."""
    format: int
    rehearsal: Rehearsal
    case: Case
    places: dict[int, FieldPlaces]
    """By the number of a resource's origin."""
    excerpts: dict[str, dict[int, str]]
    """The text of these lines, by file and line."""

    def excerpt(self, place: Place) -> str | None:
        return self.excerpts.get(place.file, {}).get(place.line)


def write(rehearsal: Rehearsal, case: Case) -> str:
    """A rehearsal as JSON, without values of Secrets. Resources are renumbered: the same input gives the same text."""
    mask = mask_of([(rehearsal, case)])
    rehearsal = mask.whole(rehearsal)
    bodies: dict[Origin, list[Body]] = {}
    for resource in _resources(case):
        bodies.setdefault(resource.origin, []).append(resource.body)
    located = [one for one in bodies if one.number]
    numbered = {one: Origin(one.file, number) for number, one in enumerate(located, 1)}
    found = {numbered[one].number: _places(one, bodies[one]) for one in located}
    texts = _excerpts({*_named(case), *(place for places in found.values() for place in places.values())})
    stored = StoredRehearsal(
        seatrial=__version__,
        format=FORMAT,
        rehearsal=rehearsal,
        case=_with_origins(case, numbered),
        places={number: _written(located[number - 1].file, places) for number, places in found.items()},
        excerpts={file: {number: mask.line(text) for number, text in lines.items()} for file, lines in texts.items()},
    )
    data = msgspec.to_builtins(stored, str_keys=True)
    _drop_before(rehearsal, data["rehearsal"])
    return _laid_out(without_secrets(data), LEVELS) + "\n"


def read(path: str) -> StoredRehearsal:
    """A rehearsal that `write` wrote. What is not one is refused in a sentence."""
    doing = f"{shown(path)}: {DOING}"
    try:
        data = json.loads(read_bytes(path, DOING, BYTES_MAX))
    except (ValueError, RecursionError) as error:
        raise CannotContinue(f"{doing}: not JSON: {error}") from None
    if not isinstance(data, dict) or not {"format", "rehearsal", "case"} <= data.keys():
        raise CannotContinue(f"{doing}: not a stored rehearsal; `seatrial run -o json` writes one")
    if data["format"] != FORMAT:
        versions = f"seatrial {data.get('seatrial')} wrote it, and seatrial {__version__} reads format {FORMAT}"
        raise CannotContinue(f"{doing}: unknown format {data['format']}: {versions}")
    try:
        stored = msgspec.convert(data, StoredRehearsal, str_keys=True)
    except msgspec.ValidationError as error:
        raise CannotContinue(f"{doing}: {error}") from None
    if problem := next(_problems(stored), None):
        raise CannotContinue(f"{doing}: {problem}")
    rehearsal = _with_before(stored.rehearsal, data["rehearsal"])
    origins = (one.origin for one in _resources(stored.case) if one.origin.number in stored.places)
    located = {one: origin(one.file, _locator(one.file, stored.places[one.number])) for one in dict.fromkeys(origins)}
    return replace(stored, rehearsal=rehearsal, case=_with_origins(stored.case, located))


def _resources(case: Case) -> Iterator[Resource]:
    for release in (case.before, *case.releases):
        if release is not None:
            yield from (*release.resources, *release.crds, *release.left_out, *release.skipped_crds)


def _with_origins(case: Case, origins: dict[Origin, Origin]) -> Case:
    def moved(resources: Iterable[Resource]) -> tuple[Resource, ...]:
        return tuple(replace(one, origin=origins.get(one.origin, one.origin)) for one in resources)

    def release(one: Release | None) -> Release | None:
        if one is None:
            return None
        fields = ("resources", "crds", "left_out", "skipped_crds")
        return replace(one, **{field: moved(getattr(one, field)) for field in fields})

    return replace(case, releases=tuple(map(release, case.releases)), before=release(case.before))


def _places(origin: Origin, bodies: Iterable[Body]) -> dict[str, Place]:
    """The places of all fields, by JSON pointer; those of a parent are not repeated for its children."""
    found: dict[str, Place] = {}

    def visit(value: Any, path: Path, around: Place | None) -> None:
        place = place_of(Pointer(origin, path))
        if place != around:
            found.setdefault(_pointer(path), place)
        match value:
            case dict():
                for key, child in value.items():
                    visit(child, (*path, key), place)
            case list():
                for index, child in enumerate(value):
                    visit(child, (*path, index), place)

    for body in bodies:
        visit(body, (), None)
    return found


def _written(file: str, places: dict[str, Place]) -> FieldPlaces:
    def is_own(place: Place) -> bool:
        return place.file == file and place.sure == "exact"

    return FieldPlaces(
        lines={pointer: place.line for pointer, place in places.items() if is_own(place)},
        elsewhere={pointer: place for pointer, place in places.items() if not is_own(place)},
    )


def _locator(file: str, written: FieldPlaces) -> Locate:
    def locate(path: Path) -> Place:
        for length in range(len(path), -1, -1):
            pointer = _pointer(path[:length])
            if pointer in written.elsewhere:
                return written.elsewhere[pointer]
            if pointer in written.lines:
                return Place(file, written.lines[pointer])
        return Place(file, 1, "file")

    return locate


def _pointer(path: Path) -> str:
    """A path as RFC 6901 writes it: `/metadata/annotations/helm.sh~1hook`."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _named(case: Case) -> Iterator[Place]:
    """Places that the case itself names."""
    for release in (case.before, *case.releases):
        if release is not None:
            yield from (one.place for one in release.vanished)
            yield from (one.place for one in (release.program.registrations if release.program else ()) if one.place)


def _excerpts(places: Iterable[Place]) -> dict[str, dict[int, str]]:
    """The text of each line, as far as its file can be read."""
    found: dict[str, dict[int, str]] = {}
    for place in sorted(places):
        found.setdefault(place.file, {})[place.line] = ""
    texts = {file: text for file in found if (text := text_of(file)) is not None}
    return {file: {line: texts[file].line_at(line) for line in found[file]} for file in texts}


def _drop_before(rehearsal: Rehearsal, data: Body) -> None:
    """Leave out what an object was before an event if that is how the previous event left it: it usually is."""
    left: dict[Ref, Body | None] = {}
    for event, entry in zip(rehearsal.timeline, data.get("timeline", ()), strict=True):
        if event.before == left.get(event.object):
            entry.pop("before", None)
        else:
            entry["before"] = event.before
        _leave(left, event)
    if rehearsal.otherwise is not None:
        _drop_before(rehearsal.otherwise, data["otherwise"])


def _with_before(rehearsal: Rehearsal, data: Body) -> Rehearsal:
    """The reverse of `_drop_before`."""
    left: dict[Ref, Body | None] = {}
    timeline: list[Event] = []
    for event, entry in zip(rehearsal.timeline, data.get("timeline", ()), strict=True):
        before = event.before if "before" in entry else left.get(event.object)
        timeline.append(replace(event, before=before))
        _leave(left, event)
    other = rehearsal.otherwise
    return replace(
        rehearsal,
        timeline=tuple(timeline),
        otherwise=_with_before(other, data["otherwise"]) if other is not None else None,
    )


def _leave(left: dict[Ref, Body | None], event: Event) -> None:
    if event.after is not None or event.effect == "deleted":
        left[event.object] = event.after


def _problems(stored: StoredRehearsal) -> Iterator[str]:
    """What rules rely on and the shapes do not say."""
    steps, releases = len(stored.rehearsal.steps), len(stored.case.releases)
    if steps != releases:
        yield f"{steps} steps and releases for {releases} steps"
    for position, event in enumerate(stored.rehearsal.timeline):
        if event.index != position or not -1 <= event.step < steps:
            yield f"event {position} of the timeline has the index {event.index} and is of step {event.step}"


def _laid_out(value: Any, levels: int) -> str:
    """JSON in ASCII, since the encoding of the reader is unknown; an object's name may contain a lone surrogate."""
    if levels and isinstance(value, dict) and value:
        return (
            "{\n" + ",\n".join(f"{json.dumps(key)}: {_laid_out(one, levels - 1)}" for key, one in value.items()) + "}"
        )
    if levels and isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(_laid_out(one, levels - 1) for one in value) + "]"
    return json.dumps(value, separators=(",", ":"))
