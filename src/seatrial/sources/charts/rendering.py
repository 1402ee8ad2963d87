"""From a chart and values to a release, rendered by Helm itself. Installs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.masking import hidden
from seatrial.model.release import Pin, Release, Resource
from seatrial.model.resource import Body, Place
from seatrial.sandbox.watchdog import limited
from seatrial.sources.charts.chart import ChartSource, find_file, own_values, schema_notes, template_texts
from seatrial.sources.charts.conditions import asks_for_the_act, looks_up, with_answered_lookups
from seatrial.sources.charts.files import archived, with_file
from seatrial.sources.charts.lacking import absent_chart
from seatrial.sources.charts.output import HelmError, output
from seatrial.sources.charts.printer import COPY, Printed
from seatrial.sources.charts.provenance import Provenance, copies, provenance
from seatrial.sources.charts.values import merged
from seatrial.sources.charts.vanished import vanished
from seatrial.sources.files import shown
from seatrial.sources.manifests.objects import Found, Where, defined_scopes, objects_in, resources
from seatrial.text.source import Span, Text
from seatrial.text.yamlfile import BrokenYaml, Document, documents, parse

# As `SplitManifests` in pkg/release/v1/util/manifest.go of Helm 4.2, which leaves out what is blank.
_SECRET = lazy_re.compile(r"""^["']?kind["']?:\s*["']?Secret\b""", re.M)
_SEPARATOR = lazy_re.compile(r"^---[ \t]*", re.MULTILINE)
_PLACE = lazy_re.compile(r"([^\s:()\"]+/[^\s:()\"]+):(\d+)(?::(\d+))?")


Texts = dict[str, str]
"""Rendered text by the name of its template."""


class Rendering(Struct, frozen=True):
    """One way to render a chart."""

    chart: ChartSource
    values: Body
    options: dict[str, Any]


class Shadow(Struct, frozen=True):
    """The output of the marked copies of templates, and the files that the marks refer to."""

    texts: Texts
    files: tuple[str, ...]


_NIL = lazy_re.compile(r"at <(?P<path>(?:\$?\.Values)(?:\.\w+)+)>:\s+nil pointer evaluating")


class NotRendered(CannotContinue):
    """A chart that Helm cannot render, with the error of Helm."""

    def __init__(self, complaint: str, words: str, source: str = "") -> None:
        super().__init__(complaint)
        self.words = words
        self.source = source
        """The path of the chart."""


def hooks_of_upgrades(chart: ChartSource, values: Body, installed: Release, **options: Any) -> tuple[Resource, ...]:
    """Hooks that the chart renders for an upgrade and not for this install: an engine that only installs has none."""
    if not asks_for_the_act(chart.files):
        return ()
    try:
        upgraded = render(
            chart, values, release=installed.name, namespace=installed.namespace, is_upgrade=True, **options
        )
    except NotRendered:
        return ()
    known = {resource.ref for resource in installed.resources}
    return tuple(one for one in upgraded.resources if hooks.is_hook(one.body) and one.ref not in known)


def objects_behind_lookup(chart: ChartSource, values: Body, rendered: Release, **options: Any) -> tuple[Resource, ...]:
    """Objects that the chart renders only if `lookup` finds something: an engine without a cluster has none."""
    if not looks_up(chart.files):
        return ()
    files = with_answered_lookups(chart.files)
    answered = replace(chart, files=files, archive=archived(files, chart.name))
    try:
        found = render(answered, values, release=rendered.name, namespace=rendered.namespace, **options)
    except NotRendered:
        return ()
    known = {resource.ref for resource in rendered.resources}
    return tuple(one for one in found.resources if one.ref not in known)


def render(
    chart: ChartSource,
    values: Body,
    *,
    release: str,
    namespace: str,
    is_upgrade: bool = False,
    revision: int = 1,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
) -> Release:
    """The objects of the chart with these values."""
    options = {
        "name": release,
        "namespace": namespace,
        "revision": revision,
        "is_install": not is_upgrade,
        "is_upgrade": is_upgrade,
        "kube_version": kube_version or None,
        "api_versions": list(api_versions) or None,
    }
    rendering = Rendering(chart, values, options)
    rendered = _rendered(rendering)
    names = _manifests(rendered.texts)
    shadow = cache(lambda: _shadow(rendering, names))
    found = [one for name in names for one in _objects(rendering, name, rendered.texts[name], shadow)]
    crds = [one for crd in sorted(rendered.crds, key=_chart_path) for one in _crd_objects(chart, crd)]
    scopes = defined_scopes((*found, *crds))
    enabled = merged(own_values(chart), values)
    lacking = [(one, absent_chart(one, enabled)) for one in chart.lacking]
    return Release(
        name=release,
        namespace=namespace,
        source=chart.path,
        resources=tuple(resources(found, namespace, scopes)),
        crds=tuple(resources(crds, namespace, scopes)),
        missing_dependencies=tuple(one.called for one, on in lacking if on),
        absent_charts=tuple(on for _, on in lacking if on),
        pins=tuple(
            Pin(one.name, one.version, f"the lock file of {shown(chart.path)}", installed=on is not None)
            for one, on in lacking
            if one.version
        ),
        values=values,
        vanished=tuple(vanished(chart, rendered.texts, values)),
        chart=chart.name,
        notes=tuple(schema_notes(chart.files)),
        next_version=chart.next_version,
    )


def _rendered(rendering: Rendering) -> Printed:
    chart = rendering.chart
    with limited(f"{shown(chart.path)}: render the chart"):
        try:
            return output(chart.files, chart.archive, chart.name, rendering.values, rendering.options)
        except HelmError as error:
            raise NotRendered(_complaint(chart, str(error)), " ".join(str(error).split()), chart.path) from None


def _complaint(chart: ChartSource, words: str) -> str:
    """Helm's error on one line, after the first place in it that is a file of the chart."""
    place, rest = f"{shown(chart.path)}: render the chart", words
    for named in _PLACE.finditer(words):
        if file := find_file(chart.files, named[1]):
            place = ":".join((file.text.path, *(part for part in named.groups()[1:] if part)))
            rest = words[named.end() :] if named.start() == 0 else words
            break
    absent = ", ".join(chart.missing_dependencies)
    fetch = "`helm dependency build` fetches them"
    hint = f" (the chart was rendered without its missing dependencies: {absent}; {fetch})" if absent else ""
    return f"{place}: {' '.join(rest.split())}{_nil_safe(words)}{hint}"


def _nil_safe(words: str) -> str:
    """How to read a value whose map may be missing, if that is the error."""
    found = _NIL.search(words)
    if found is None:
        return ""
    first, *maps, last = found["path"].removeprefix("$").removeprefix(".").split(".")
    safe = reduce(lambda inside, name: f"({inside}.{name})", maps, f".{first}")
    return f"; a map is missing: set it, or write {safe}.{last}, which is empty then"


def _manifests(texts: Texts) -> list[str]:
    """The rendered files that contain objects, in Helm's order."""
    names = (name for name, text in texts.items() if text.strip())
    wanted = (n for n in names if not n.rpartition("/")[2].startswith("_") and not n.endswith("NOTES.txt"))
    return sorted(wanted, key=str.encode)


def _objects(rendering: Rendering, name: str, content: str, shadow: Callable[[], Shadow]) -> Iterator[Found]:
    file = find_file(rendering.chart.files, name)
    text = Text(file.text.path if file else name, content)

    @cache
    def origins() -> Provenance:
        return provenance(text, shadow().texts.get(name + COPY, ""), shadow().files)

    def where(_: Document, offset: int) -> Place:
        return origins().at(offset)

    for span in _split(content):
        yield from objects_in(_parsed(rendering.chart, text, span, name, where), text.path, where)


def _shadow(rendering: Rendering, names: Iterable[str]) -> Shadow:
    """The output of marked copies of these templates; empty if they fail.

    Copies, since templates look at each other: for a checksum, say, which must be of the text without marks.
    """
    files = rendering.chart.files
    templates = {name: file for name in names if (file := find_file(files, name))}
    made = copies({name: file.text for name, file in templates.items()}, template_texts(files))
    files = with_file(files, (), f"templates/_seatrial{COPY}", made.named.encode())
    for name, content in made.templates.items():
        files = with_file(files, templates[name].inner, templates[name].path + COPY, content.encode())
    chart = replace(rendering.chart, files=files, archive=archived(files, rendering.chart.name))
    try:
        return Shadow(_rendered(replace(rendering, chart=chart)).texts, made.files)
    except CannotContinue:
        return Shadow({}, ())


def _split(content: str) -> Iterator[Span]:
    start = 0
    for separator in (*_SEPARATOR.finditer(content), None):
        end = separator.start() if separator else len(content)
        blank = len(content[start:end]) - len(content[start:end].lstrip())
        if start + blank < end:
            yield Span(start + blank, end)
        start = separator.end() if separator else end


def _parsed(chart: ChartSource, text: Text, span: Span, name: str, where: Where) -> Document:
    try:
        return parse(text, span)
    except BrokenYaml as broken:
        line = text.line(broken.offset)
        blank = len(text.line_at(line)) - len(text.line_at(line).lstrip())
        place = where(Document(text, span, None), text.start_of(line) + blank)
        said = f"YAML parse error on {name}: {broken.problem}"
        shown_line = text.line_at(line).strip()
        if _SECRET.search(text.content[span.start : span.end]):
            shown_line = f"{hidden(shown_line)} of a Secret"
        raise NotRendered(f"{place}: {said} (line {line} as rendered: {shown_line})", said, chart.path) from None


def _chart_path(crd: dict[str, str]) -> tuple[str, ...]:
    """A chart comes before its subcharts, as in Helm; subcharts by name, since Helm loads them in random order."""
    return tuple(crd["filename"].rpartition("/crds/")[0].split("/charts/")[1:])


def _crd_objects(chart: ChartSource, crd: dict[str, str]) -> Iterator[Found]:
    file = find_file(chart.files, crd["filename"])
    text = Text(file.text.path if file else crd["filename"], crd["data"])
    for document in documents(text):
        yield from objects_in(document, text.path, lambda d, offset: Place(d.text.path, d.text.line(offset)))
