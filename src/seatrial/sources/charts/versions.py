"""Whether a version satisfies a constraint, as Helm's own library decides."""

from __future__ import annotations

from functools import lru_cache

from seatrial.sources.charts.files import ChartFiles, archived

COMPARE = {
    "Chart.yaml": b"apiVersion: v2\nname: versions\nversion: 0.0.1\n",
    "templates/answer.txt": b"{{ semverCompare .Values.wanted .Values.version }}",
}
"""A chart that only compares."""


@lru_cache(maxsize=256)
def satisfies(version: str, wanted: str) -> bool:
    """`1.2.3` satisfies `^1.0.0`. Anything that is not a version satisfies nothing."""
    from seatrial.sources.charts.output import HelmError, output

    values, chart = {"wanted": wanted, "version": version}, ChartFiles("", COMPARE)
    try:
        options = {"name": "v", "namespace": "default"}
        rendered = output(chart, archived(chart, "versions"), "versions", values, options)
    except HelmError:
        return False
    return rendered.texts["versions/templates/answer.txt"] == "true"
