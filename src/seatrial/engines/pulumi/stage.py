"""A step of Pulumi, prepared: its program run or read. A chart or manifests become a program of one component."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.act import Invocation, Up
from seatrial.engines.engine import PlannedStep, binary_or_version
from seatrial.engines.pulumi.process import CONFIG, FLAG, NAME, empty_state, find, packed
from seatrial.engines.setting import Setting, is_chart, release_of, served, values_of
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.program import HELM_RELEASE, Program
from seatrial.model.release import Release
from seatrial.model.resource import Body
from seatrial.model.trial import Step, Trial
from seatrial.sandbox.client import Binary
from seatrial.sandbox.series import HOME
from seatrial.sources import PROGRAM, git, kind_at, kind_of
from seatrial.sources.files import STDIN
from seatrial.sources.pulumi import interpreters, read_program
from seatrial.sources.pulumi.assumed_program import as_program
from seatrial.sources.pulumi.locks import upserts
from seatrial.sources.pulumi.naming import NAMESPACE
from seatrial.sources.pulumi.project import read_project, with_configuration

NEWEST = "4.32"
MANIFEST_FILE = "manifests.yaml"
VERSIONS = tuple(f"4.{minor}" for minor in range(33))
"""Releases of pulumi-kubernetes. Of older ones only how they create objects is rehearsed."""


class Programs:
    """The programs of a trial, each run once however many steps bring it up."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, bytes], Release] = {}

    def get(self, key: tuple[str, bytes] | None, read: Callable[[], Release], *, again: bool) -> Release:
        """The program of a path and its configuration; the first one where there is no path.

        `again` reruns a program whose charts generate values.
        """
        key = key or next(iter(self._read), ("", b""))
        known = self._read.get(key)
        if known is None or (again and known.program is not None and known.program.varies):
            known = self._read[key] = read()
        return known


def configure(setting: Setting, trial: Trial) -> Setting:
    """The version that is simulated, or the Pulumi of the user."""
    return binary_or_version(setting, VERSIONS, find, FLAG, words="runs the provider")


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Any]:
    """A program and what it registers, for the simulated engine or for the Pulumi of the user."""
    planned: PlannedStep[Any] = _stage(step, setting)
    if not isinstance(setting.config, Binary):
        return planned
    source = step.source or next((one.step.source for one in reversed(earlier) if one.by == NAME), "")
    return replace(planned, act=_invocation(planned, source, setting, setting.config))


def _invocation(planned: PlannedStep[Up], source: str, setting: Setting, binary: Binary) -> Invocation:
    """The command that a user would type, for the stack of the program."""
    step, program = planned.step, planned.act.program
    project = _project(step, source, setting, program)
    given = ("--yes", "--skip-preview", "--non-interactive", "--color", "never")
    where = ("--stack", project.stack, "--cwd", project.folder, "--config-file", f"{HOME}/{CONFIG}")
    return Invocation(
        binary,
        step.action,
        (step.action, *given, *where, *step.flags),
        planned.namespace,
        stdin=packed(project.files),
        reads=project.reads,
        patience="Pulumi times out on it",
        folders=project.runs_with,
        refs={one.urn: one.ref for one in program.registrations if one.ref is not None},
        kept=empty_state(project.name, project.stack),
    )


class _Project(Struct, frozen=True):
    """A program as the Pulumi of the user finds it."""

    name: str
    stack: str
    folder: str
    files: dict[str, str]
    """Those in its home."""
    reads: tuple[str, ...]
    runs_with: tuple[str, ...] = ()
    """Folders of interpreters."""


def _project(step: Step, source: str, setting: Setting, program: Program) -> _Project:
    """The program of the user, or one that deploys only a chart or manifests."""
    path = setting.opened.path(source)
    if git.is_ref(path) or (kind_of(path) == PROGRAM and Path(path).is_file()):
        raise CannotContinue(f"{FLAG} runs a program in a folder, and {source} is none; pass a folder")
    if kind_of(path) != PROGRAM:
        read = () if path == STDIN else (str(Path(path).absolute()),)
        files = {f"program/{name}": text for name, text in _written(replace(step, source=source), setting, program)}
        return _Project(program.project, program.stack, f"{HOME}/program", {CONFIG: "{}", **files}, read)
    found = with_configuration(read_project(path), values_of(step, setting))
    settings = {CONFIG: json.dumps({"config": found.config})}
    runs_with = tuple(interpreters(found))
    return _Project(found.name, found.stack, str(found.folder), settings, (str(found.root),), runs_with)


def _written(step: Step, setting: Setting, program: Program) -> Iterator[tuple[str, str]]:
    """A program in YAML with the component that is assumed for a chart or for manifests."""
    component = program.registrations[0]
    if is_chart(step, setting):
        inputs: Body = {
            "chart": str(Path(setting.opened.path(step.source)).absolute()),
            "name": component.name,
            "namespace": step.namespace or setting.namespace or NAMESPACE,
            "values": values_of(step, setting),
        }
    else:
        inputs = {"files": [MANIFEST_FILE]}
        bodies = (resource.body for resource in release_of(step, setting).resources)
        yield MANIFEST_FILE, "---\n".join(msgspec.yaml.encode(body).decode() for body in bodies)
    resources = {component.name: {"type": component.type, "properties": inputs}}
    text = json.dumps({"name": program.project, "runtime": "yaml", "resources": resources})
    yield "Pulumi.yaml", text.replace("${", "$${")  # Pulumi would look these up.


def _stage(step: Step, setting: Setting) -> PlannedStep[Up]:
    """A program, and what it registers; `destroy` destroys what was last brought up."""
    opened, given = setting.opened, values_of(step, setting)
    path = opened.path(step.source)

    def read() -> Release:
        kind = kind_at(path, opened.beside) if git.is_ref(path) else kind_of(path)
        if kind == PROGRAM:
            options = {"beside": opened.beside, "config": given, "trust": setting.trust, **served(setting)}
            return read_program(path, setting.charts, **options)
        return as_program(release_of(step, setting), kind.name)

    key = (path, msgspec.json.encode(given, order="sorted")) if step.source else None
    release = opened.kept(Programs).get(key, read, again=step.action == "up")
    name, namespace = step.release or setting.release or release.name, step.namespace or setting.namespace
    assert release.program is not None
    release, older = _by_version(release, setting.engine)
    assert release.program is not None
    return PlannedStep(
        step,
        NAME,
        name,
        namespace,
        Up(release.program),
        replace(release, name=name, namespace=namespace) if step.action == "up" else None,
        (*release.program.unknown, *release.program.warnings, *older),
        not_rehearsed=release.program.absent,
        namespaces=tuple(_created(release.program)),
    )


def _by_version(release: Release, engine: EngineId) -> tuple[Release, tuple[str, ...]]:
    """A program as an older provider creates it, if one is asked for."""
    program = release.program
    if program is None or not engine.version or not upserts(f"{engine.version}.0"):
        return release, ()
    taken = (replace(one, manner=replace(one.manner, upserts=True)) for one in program.registrations)
    note = f"{engine}: before 4.29 a creation takes over an existing object; everything else is as in {NEWEST}"
    return replace(release, program=replace(program, registrations=tuple(taken))), (note,)


def _created(program: Program) -> Iterator[str]:
    """The namespaces that Releases create and that nothing else of the program is in."""
    releases = [one for one in program.registrations if one.type == HELM_RELEASE]
    made = {str(one.inputs.get("namespace") or "") for one in releases if one.inputs.get("createNamespace") is True}
    others = {one.ref.namespace for one in program.registrations if one.ref is not None and one.type != HELM_RELEASE}
    others |= {str(one.inputs.get("namespace") or "") for one in releases if not one.inputs.get("createNamespace")}
    return (name for name in sorted(made) if name and name not in others)
