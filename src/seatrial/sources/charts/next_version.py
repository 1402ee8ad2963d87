"""The next version of a chart, in memory: version and appVersion of it and its subcharts raised. Templates stay.

Dependencies still match: a constraint that names exactly the version of a subchart is raised with it, and a subchart
whose next version does not satisfy its constraint keeps its version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from seatrial.model.resource import Body, listed
from seatrial.sources.charts.chart import ChartSource, own_values, values_of_files
from seatrial.sources.charts.dependencies import CHART_FILE, dependencies_of, dependency_list, described, document_of
from seatrial.sources.charts.files import ChartFiles, archived
from seatrial.sources.charts.image_tags import next_version, tags_in, with_next_tags
from seatrial.sources.charts.values import merged
from seatrial.sources.charts.versions import satisfies
from seatrial.text.source import Edit, edited
from seatrial.text.yamlfile import Document

VERSION, APP_VERSION = "version", "appVersion"


def raised(source: ChartSource) -> ChartSource | None:
    """The next version of a chart; None if its version cannot be raised."""
    version = next_version(source.version)
    if version == source.version:
        return None
    files = _raised(source.files, raises_version=True)
    return replace(source, files=files, archive=archived(files, source.name), version=version, next_version=version)


def next_values(source: ChartSource, given: Body, kept: Collection[str] = ()) -> Body:
    """The values of the user with the image tags of the next release, whoever set them: the user or a chart."""
    return merged(given, with_next_tags(merged(_effective(source.files, own_values(source)), given), kept))


def next_tags(source: ChartSource, given: Body) -> tuple[str, ...]:
    """The image tags that the next release changes, each once."""
    every = merged(_effective(source.files, own_values(source)), given)
    return tuple(dict.fromkeys(tag for _, tag, _ in tags_in(every)))


def _effective(chart: ChartFiles, own: Body) -> Body:
    """The values of a chart with those of its subcharts below their names."""
    found = dict(own)
    for entry, subchart in chart.subcharts.items():
        below = _effective(subchart, values_of_files(subchart))
        below.pop("global", None)
        for name in _called(chart, entry):
            over = own.get(name)
            found[name] = merged(below, over) if isinstance(over, dict) else below
    return found


def _called(chart: ChartFiles, entry: str) -> list[str]:
    """The names under which a chart uses a subchart: its own, or aliases."""
    name = str(described(chart.subcharts[entry]).get("name"))
    named = [str(one.get("alias") or name) for one in dependencies_of(chart) if one.get("name") == name]
    return named or [name]


def _raised(chart: ChartFiles, *, raises_version: bool) -> ChartFiles:
    about = document_of(chart, CHART_FILE)
    listing = dependency_list(chart)
    edits: dict[str, list[Edit]] = {about.text.path: list(_edits(about, raises_version=raises_version))}
    subcharts = dict(chart.subcharts)
    for entry, subchart in chart.subcharts.items():
        if described(subchart).get("type") == "library":
            continue
        pins = _pins(listing, subchart)
        subcharts[entry] = _raised(subchart, raises_version=pins is not None)
        if pins and listing:
            edits.setdefault(listing.text.path, []).extend(pins)
    files = dict(chart.files)
    for document in filter(None, (about, listing)):
        if changes := edits.pop(document.text.path, ()):
            content = edited(document.text, dict.fromkeys(changes)).content
            files[document.text.path.removeprefix(chart.shown)] = content.encode()
    return replace(chart, files=files, subcharts=subcharts)


def _edits(about: Document, *, raises_version: bool) -> Iterator[Edit]:
    """The edits of Chart.yaml that raise its versions."""
    for key in (VERSION, APP_VERSION) if raises_version else (APP_VERSION,):
        yield from _edit(about, key)


def _edit(document: Document, *path: str | int) -> Iterator[Edit]:
    span = document.value(*path)
    text = document.text.within(span).strip("\"'") if span else ""
    if span and (new := next_version(text)) != text:
        yield Edit(span, f'"{new}"')


def _pins(listing: Document | None, subchart: ChartFiles) -> list[Edit] | None:
    """The edits of constraints that name exactly the version of a subchart; None if its version must stay."""
    about = described(subchart)
    version = str(about.get(VERSION) or "")
    edits: list[Edit] = []
    for index, entry in enumerate(listed(listing and listing.body, "dependencies")):
        if not isinstance(entry, dict) or entry.get("name") != about.get("name"):
            continue
        wanted = str(entry.get(VERSION) or "")
        if listing and wanted.lstrip("=v ") == version.lstrip("v"):
            edits += _edit(listing, "dependencies", index, VERSION)
        elif wanted and not satisfies(next_version(version), wanted):
            return None
    return edits
