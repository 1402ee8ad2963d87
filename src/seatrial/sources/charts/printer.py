"""A template that prints what every other template renders to: how a helm binary shows each of them. Runs nothing.

`helm template` prints objects, in the order of their kinds, and nothing of a template that is blank or no YAML. But
every file is also a template that `include` calls by its name. So a chart gets one more file, which is rendered last,
includes all the others with the context that Helm gives them, and prints them as one object.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.sources.charts.dependencies import dependencies_of, described
from seatrial.sources.charts.files import ChartFiles, with_file

PRINTER = "templates/!seatrial.yaml"
"""Its name sorts before all others: Helm renders the last name first, and errors are those of the chart's own files."""
COPY = ".marked"
"""The end of the names of files that are no manifests: Helm would read what they render to as YAML."""
NO_VALUE = "<no value>"
"""Go's text for a missing value, which Helm removes from what a file renders to."""
MANIFESTS = (".yaml", ".yml", ".json")
_PRINTED = lazy_re.compile(r'^  (?P<what>texts|charts): "(?P<text>[\w+/=]*)"$', re.M)
_START = """{{- $texts := dict }}{{- $charts := list }}{{- $0 := . }}
"""
_END = """apiVersion: v1
kind: Printed
metadata:
  name: seatrial
data:
  texts: "{{ $texts | toJson | b64enc }}"
  charts: "{{ $charts | toJson | b64enc }}"
"""


class Printed(Struct, frozen=True):
    """Rendered text by the name of its template, and the files of crds/ in enabled charts."""

    texts: dict[str, str]
    crds: list[dict[str, str]]


class Named(Struct, frozen=True):
    """A chart of the tree by the name that it has in Helm."""

    path: str
    """`app/charts/db`"""
    chart: ChartFiles
    inside: tuple[Named, ...] = ()


def with_printer(chart: ChartFiles, name: str, revision: int) -> ChartFiles:
    """The chart with the template that prints the others, rendered as of a release revision."""
    lines = "".join(_lines(_named(chart, name), "$0", revision, 1))
    return with_file(_without_copies(chart), (), PRINTER, f"{_START}{lines}{_END}".encode())


def printed(chart: ChartFiles, name: str, output: str) -> Printed:
    """What the template printed."""
    found = {one["what"]: json.loads(base64.b64decode(one["text"])) for one in _PRINTED.finditer(output)}
    enabled = set(found["charts"])
    crds = [crd for one in _all(_named(chart, name)) if one.path in enabled for crd in _crds(one)]
    texts = {name: text.replace(NO_VALUE, "") for name, text in found["texts"].items()}
    return Printed(texts, crds)


def _named(chart: ChartFiles, path: str) -> Named:
    inside = (_named(chart.subcharts[entry], f"{path}/charts/{name}") for name, entry in _entries(chart))
    return Named(path, chart, tuple(inside))


def _entries(chart: ChartFiles) -> Iterator[tuple[str, str]]:
    """The names that subcharts may have, own names and aliases, with their entries in charts/."""
    about = {entry: described(subchart) for entry, subchart in chart.subcharts.items()}
    wanted = [(str(one.get("alias") or one.get("name")), one) for one in dependencies_of(chart)]
    listed = {str(one.get("name")) for _, one in wanted}
    alone = [(str(one.get("name")), one) for one in about.values() if str(one.get("name")) not in listed]
    for name, one in dict([*alone, *wanted]).items():
        same = [entry for entry in about if about[entry].get("name") == one.get("name")]
        if same:
            yield name, min(same, key=lambda entry: (about[entry].get("version") != one.get("version"), entry))


def _lines(named: Named, parent: str, revision: int, number: int) -> Iterator[str]:
    """Include every template of a chart, if it is enabled, and of the charts in it."""
    own, name = f"$c{number}", named.path.rpartition("/")[2]
    outer = parent == "$0"
    if not outer:
        yield f"{{{{- if hasKey {parent}.Subcharts {_quoted(name)} }}}}\n"
    source = parent if outer else f"(index {parent}.Subcharts {_quoted(name)})"
    yield f"{{{{- {own} := dict }}}}{{{{- range $key, $value := {source} }}}}"
    yield f"{{{{- $_ := set {own} $key $value }}}}{{{{- end }}}}\n"
    yield f'{{{{- $_ := set {own} "Release" (merge (dict "Revision" {revision}) {own}.Release) }}}}\n'
    yield f"{{{{- $charts = append $charts {_quoted(named.path)} }}}}\n"
    for path in _printable(named.chart):
        full, called = f"{named.path}/{path}", f"{named.path}/{_renamed(path)}"
        about = f'(dict "Name" {_quoted(full)} "BasePath" {_quoted(f"{named.path}/templates")})'
        yield f'{{{{- $_ := set {own} "Template" {about} }}}}'
        yield f"{{{{- $_ := set $texts {_quoted(full)} (include {_quoted(called)} {own}) }}}}\n"
    for place, inner in enumerate(named.inside):
        yield from _lines(inner, own, revision, number * 100 + place)
    if not outer:
        yield "{{- end }}\n"


def _printable(chart: ChartFiles) -> Iterator[str]:
    """Templates that are rendered by themselves; those of a library chart are not."""
    if described(chart).get("type") == "library":
        return
    for path in sorted(chart.files):
        file = path.rpartition("/")[2]
        if path.startswith("templates/") and not file.startswith("_") and file != "NOTES.txt" and path != PRINTER:
            yield path


def _without_copies(chart: ChartFiles) -> ChartFiles:
    files = {_renamed(path): content for path, content in chart.files.items()}
    return replace(chart, files=files, subcharts={k: _without_copies(v) for k, v in chart.subcharts.items()})


def _renamed(path: str) -> str:
    """Helm reads no YAML in a file whose name begins with an underscore."""
    folder, slash, file = path.rpartition("/")
    is_copy = path.startswith("templates/") and file.endswith(COPY) and not file.startswith("_")
    return f"{folder}{slash}_{file}" if is_copy else path


def _crds(named: Named) -> Iterator[dict[str, str]]:
    for path, content in named.chart.files.items():
        if path.startswith("crds/") and path.endswith(MANIFESTS):
            yield {"filename": f"{named.path}/{path}", "data": content.decode(errors="replace")}


def _all(named: Named) -> Iterator[Named]:
    yield named
    for inner in named.inside:
        yield from _all(inner)


def _quoted(text: str) -> str:
    return json.dumps(text)
