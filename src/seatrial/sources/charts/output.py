"""What Helm says of a chart: by its library in this process, or by the user's binary where there is no library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from seatrial.helm import binary
from seatrial.helm.binary import CHART, VALUES, HelmError
from seatrial.model.resource import Body
from seatrial.sandbox.client import Binary
from seatrial.sources.charts.files import ChartFiles, archived
from seatrial.sources.charts.printer import PRINTER, Printed, printed, with_printer

T = TypeVar("T")
NAMED = {"": "set", "string": "set-string", "json": "set-json", "literal": "set-literal"}
ECHO = {
    "Chart.yaml": b"apiVersion: v2\nname: echo\nversion: 0.0.1\n",
    "templates/values.txt": b"{{ .Values | toJson }}",
}
"""A chart that shows its values."""

__all__ = ["HelmError", "loaded", "output", "parse_set", "refused"]


def refused(archive: bytes) -> str:
    """Why Helm cannot open a chart; empty if it can."""
    try:
        if found := _in_place():
            binary.output(found, ("show", "chart", CHART), chart=archive)
        else:
            _by_library(lambda sdk: sdk.Chart.load_archive(archive).close())
    except HelmError as error:
        return str(error)
    return ""


def loaded(archive: bytes) -> Any:
    """The chart as Helm's library holds it, for a step that the library deploys."""
    return _by_library(lambda sdk: sdk.Chart.load_archive(archive))


def output(chart: ChartFiles, archive: bytes, name: str, values: Body, options: dict[str, Any]) -> Printed:
    """The rendered files of a chart, blank ones included, and its CRDs. `archive` is the chart as Helm reads it.

    Options: name, namespace, revision, is_upgrade, kube_version, api_versions.
    """
    if found := _in_place():
        given = archived(with_printer(chart, name, options.get("revision") or 1), name)
        return printed(chart, name, binary.output(found, _arguments(options, values), chart=given, values=values))

    def rendered(sdk: Any) -> Printed:
        with sdk.Chart.load_archive(archive) as handle:
            return Printed(sdk.render(handle, values, **options), handle.crds)

    return _by_library(rendered)


def parse_set(flavour: str, expression: str) -> Body:
    """Helm's parser for `--set` (flavour ""), `--set-string`, `--set-json` and `--set-literal`."""
    if found := _in_place():
        return _echoed(found, f"--{NAMED[flavour]}", expression)
    parsed: Body = _by_library(lambda sdk: sdk.parse_set(flavour, expression))
    return parsed


@lru_cache(maxsize=256)
def _echoed(found: Binary, flag: str, expression: str) -> Body:
    files = ChartFiles("", ECHO)
    chart = archived(with_printer(files, "echo", 1), "echo")
    arguments = (*_arguments({"name": "echo", "namespace": "default"}, {}), flag, expression)
    texts = printed(files, "echo", binary.output(found, arguments, chart=chart)).texts
    values: Body = json.loads(texts["echo/templates/values.txt"])
    return values


def _arguments(options: dict[str, Any], values: Body) -> tuple[str, ...]:
    return ("template", options["name"], CHART, *_flags(options), *(("--values", VALUES) if values else ()))


def _flags(options: dict[str, Any]) -> Iterator[str]:
    yield from ("--namespace", options["namespace"], "--show-only", PRINTER)
    if options.get("is_upgrade"):
        yield "--is-upgrade"
    if version := options.get("kube_version"):
        yield from ("--kube-version", version)
    for version in options.get("api_versions") or ():
        yield from ("--api-versions", version)


def _in_place() -> Binary | None:
    """The binary that takes the place of the library; None if there is a library."""
    from seatrial.helm import sdk  # Loading the library takes longer than reading values.

    if not sdk.missing:
        return None
    found = binary.stand_in()
    if found is None:
        sdk.require()
    return found


def _by_library(call: Callable[[Any], T]) -> T:
    from seatrial.helm import sdk

    try:
        return call(sdk)
    except sdk.HelmError as error:
        raise HelmError(str(error)) from None
