"""Pulumi programs become releases, without the engine and without a cloud: run or read, and told what is in them."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.case import Release
from seatrial.errors import CannotContinue, NothingToCheck
from seatrial.sources.pulumi import python, yamlprogram
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.monitor import NAMESPACE, Monitor
from seatrial.sources.pulumi.project import read_project

RUNTIMES = {"python": python.run, "yaml": yamlprogram.read}


def read_program(
    path: str,
    charts: Mapping[str, str] | None = None,
    *,
    kube_version: str = "",
    api_versions: tuple[str, ...] = (),
) -> Release:
    """What a program registers, as a release; `charts` says where those are that it fetches."""
    project = read_project(path)
    if project.runtime not in RUNTIMES:
        known = ", ".join(sorted(RUNTIMES))
        raise CannotContinue(f"{project.file}: programs for {project.runtime} cannot be run here; known are {known}")
    monitor = Monitor(project, Charts(project.folder, dict(charts or {}), kube_version, api_versions))
    RUNTIMES[project.runtime](project, monitor)
    program = monitor.program()
    if not program.registrations:
        raise NothingToCheck(f"{project.path}: the program registers nothing")
    return Release(project.name, NAMESPACE, path, tuple(monitor.resources()), program=program)
