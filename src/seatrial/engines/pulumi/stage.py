"""A step of Pulumi, prepared: its program run or read. A chart or manifests become a program of one component."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.engines.act import Up
from seatrial.engines.engine import PlannedStep
from seatrial.engines.setting import Setting, release_of, served, values_of
from seatrial.model.engine import EngineId
from seatrial.model.program import HELM_RELEASE, Program
from seatrial.model.release import Release
from seatrial.model.trial import Step
from seatrial.sources import PROGRAM, git, kind_at, kind_of
from seatrial.sources.pulumi import read_program
from seatrial.sources.pulumi.assumed_program import as_program
from seatrial.sources.pulumi.locks import upserts

NAME = "pulumi"
NEWEST = "4.32"
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


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Up]:
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
    if program is None or not upserts(f"{engine.version}.0"):
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
