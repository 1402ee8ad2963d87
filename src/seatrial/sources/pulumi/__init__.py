"""Pulumi programs become releases, without the engine and without a cloud: run, read, or taken from its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.sources import git
from seatrial.sources.files import shown
from seatrial.sources.pulumi import node, python, yamlprogram
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.committed import Checkout, as_committed, checked_out
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.naming import NAMESPACE
from seatrial.sources.pulumi.project import Project, read_project, with_configuration
from seatrial.sources.pulumi.recorded import read_recording, replay

Register = Callable[[Project, Monitor], None]
RUNTIMES: dict[str, Register] = {"nodejs": node.run, "python": python.run, "yaml": yamlprogram.read}
"""How the programs of each runtime are made to register."""
INSTEAD = (
    "give what Pulumi makes of it in the place of the folder: pulumi preview --json --show-sames > preview.json, or of "
    "what is deployed: pulumi stack export > stack.json"
)
EMPTY = {False: "the program registers nothing", True: "there is no resource in it"}


def read_program(
    path: str,
    charts: Mapping[str, str] | None = None,
    *,
    beside: str = "",
    config: Body | None = None,
    kube_version: str = "",
    api_versions: tuple[str, ...] = (),
) -> Release:
    """What a program registers, or has registered, as a release; `charts` says where those are that it fetches.

    `git:REF` is the program at `beside` as it was; `config` is what the user gives beside that of its stack.
    """
    found = Charts(Path(), dict(charts or {}), kube_version, api_versions)
    if not git.is_ref(path):
        return _read(path, found, config or {})
    with checked_out(path, beside) as checkout:
        release = as_committed(_read(checkout.path, found, config or {}, checkout), checkout)
    return replace(release, source=path)


def _read(path: str, charts: Charts, config: Body, checkout: Checkout | None = None) -> Release:
    if Path(path).is_file():
        project, recording = read_recording(path)
        register: Register = partial(replay, recording)
    else:
        project = with_configuration(read_project(path), config)
        register = _runs(project)
    if checkout is not None:
        project = replace(project, today=checkout.today, packages=checkout.packages)
    found = replace(charts, folder=project.working_folder, root=project.root)
    monitor = _registered(project, register, found)
    program = monitor.program()
    if not program.registrations:
        raise NothingToCheck(f"{shown(path)}: {EMPTY[program.recorded]}")
    resources, left_out = tuple(monitor.resources()), tuple(monitor.dropped)
    return Release(project.name, NAMESPACE, path, resources, program=program, left_out=left_out)


def _registered(project: Project, register: Register, charts: Charts) -> Monitor:
    """A whole run; once more where a chart asks the cluster for what other parts of the program bring."""
    brought: list[Body] = []
    while True:
        monitor = Monitor(project, charts, brought)
        try:
            register(project, monitor)
        except CannotContinue as why:
            if monitor.refused is None:
                why.args = ("\n  ".join((str(why), *monitor.program().unknown)),)
                raise
        if monitor.refused is None:
            return monitor
        if brought or not monitor.definitions():
            raise monitor.refused
        brought = monitor.definitions()


def _runs(project: Project) -> Register:
    if project.runtime not in RUNTIMES:
        raise CannotContinue(f"{project.file}: programs for {project.runtime} are not run here; {INSTEAD}")
    return RUNTIMES[project.runtime]
