"""From Pulumi programs to releases, without Pulumi's engine and without a cloud.

A program is run, a YAML program is read, and a preview or stack export is replayed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.sources import disk, git
from seatrial.sources.files import shown
from seatrial.sources.pulumi import node, python, yamlprogram
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.commits import Checkout, as_committed, checked_out
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.naming import NAMESPACE
from seatrial.sources.pulumi.process import NoSandbox
from seatrial.sources.pulumi.project import PulumiProject, read_project, with_configuration
from seatrial.sources.pulumi.recordings import read_recording, replay

Register = Callable[[PulumiProject, Monitor], None]
RUNTIMES: dict[str, Register] = {"nodejs": node.run, "python": python.run, "yaml": yamlprogram.read}
"""The function that registers the resources of a program, by runtime."""
INSTEAD = (
    "pass the output of Pulumi instead: pulumi preview --json --show-sames > preview.json, or for the deployed stack: "
    "pulumi stack export > stack.json"
)
NO_SANDBOX = (
    "this system has no sandbox for it (it needs Linux with user namespaces or Landlock); "
    "pass --trust if you trust the program, or check the output of pulumi preview --json"
)
EMPTY = {False: "the program registers no resources", True: "contains no resources"}


def read_program(
    path: str,
    charts: Mapping[str, str] | None = None,
    *,
    beside: str = "",
    config: Body | None = None,
    kube_version: str = "",
    api_versions: tuple[str, ...] = (),
    trust: bool = False,
) -> Release:
    """The resources that a program registers, as a release; `charts` are local copies of the charts it fetches.

    `git:REF` is the program at `beside` at that commit; `config` is added to the configuration of its stack.
    """
    disk.cannot_be_known()
    found = Charts(Path(), dict(charts or {}), kube_version, api_versions)
    if not git.is_ref(path):
        return _read(path, found, config or {}, trust=trust)
    with checked_out(path, beside) as checkout:
        release = as_committed(_read(checkout.path, found, config or {}, checkout, trust=trust), checkout)
    return replace(release, source=path)


def _read(path: str, charts: Charts, config: Body, checkout: Checkout | None = None, *, trust: bool) -> Release:
    if Path(path).is_file():
        project, recording = read_recording(path)
        register: Register = partial(replay, recording)
    else:
        project = replace(with_configuration(read_project(path), config), trusted=trust)
        register = _runs(project)
    if checkout is not None:
        project = replace(project, today=checkout.today, packages=checkout.packages)
    found = replace(charts, folder=project.working_folder, root=project.root)
    monitor = _registered(project, register, found)
    program = monitor.program()
    if not program.registrations:
        raise NothingToCheck(f"{shown(path)}: {EMPTY[program.recorded]}")
    resources, left_out = tuple(monitor.resources()), tuple(monitor.dropped)
    return Release(
        project.name,
        NAMESPACE,
        path,
        resources,
        pins=tuple(monitor.pins),
        program=program,
        left_out=left_out,
        skipped_crds=tuple(monitor.skipped_crds),
        notes=tuple(monitor.notes),
    )


def _registered(project: PulumiProject, register: Register, charts: Charts) -> Monitor:
    """Run the program; a second time if a chart looks up CRDs that the program itself creates."""
    own_crds: list[Body] = []
    while True:
        monitor = Monitor(project, charts, own_crds)
        try:
            register(project, monitor)
        except NoSandbox:
            raise CannotContinue(f"{project.path}: run the program: {NO_SANDBOX}") from None
        except CannotContinue as why:
            if monitor.refused is None:
                why.args = ("\n  ".join((str(why), *monitor.program().absent, *monitor.program().unknown)),)
                raise
        definitions = [] if own_crds else monitor.definitions()
        if monitor.refused is None and not (monitor.asks and definitions):
            return monitor
        if monitor.refused is not None and not definitions:
            raise monitor.refused
        own_crds = definitions


def interpreters(project: PulumiProject) -> Iterator[str]:
    """The folder with the interpreter that runs a program."""
    if project.runtime == "python":
        yield str(python.interpreter_of(project).parent)
    elif project.runtime == "nodejs" and (found := shutil.which("node")):
        yield str(Path(found).parent)


def _runs(project: PulumiProject) -> Register:
    if project.runtime not in RUNTIMES:
        raise CannotContinue(f"{project.file}: the runtime {project.runtime} is not supported; {INSTEAD}")
    return RUNTIMES[project.runtime]
