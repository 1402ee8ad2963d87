"""The user's binaries of engines, and the engines of seatrial that they are compared with. Runs none of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from seatrial.engines.controllers import FLAG
from seatrial.engines.engine import load, names
from seatrial.helm import sdk as helmsdk
from seatrial.helm.versions import full_version
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.sandbox.client import on_path
from seatrial.sources import CHART, MANIFESTS, PROGRAM

BINARIES = (CHART.engine, MANIFESTS.engine, PROGRAM.engine)
"""The engines that a binary of the user can replace."""


def renders(name: str) -> bool:
    """Whether the binary of an engine takes the place of Helm's library, whatever the engine of a trial is."""
    return name == CHART.engine and bool(helmsdk.missing)


def given_binaries(options: CheckOptions) -> dict[str, str]:
    """The binaries and folders of controllers that are given, by engine."""
    given = {name: getattr(options, f"{name}_binary") for name in BINARIES}
    found = {name: path for name, path in given.items() if path}
    for text in options.engine_binaries:
        name, _, folder = text.partition("=")
        if not name or not folder:
            raise CannotContinue(f"{FLAG} {text}: needs ENGINE=DIR, a folder with the controllers of an engine")
        if name not in names() or not load(name).controllers:
            known = ", ".join(one for one in names() if load(one).controllers)
            raise CannotContinue(f"{FLAG} {text}: is for engines that are controllers: {known}")
        found[name] = folder
    return found


def without_binaries(options: CheckOptions) -> CheckOptions:
    """The same check with what is built in or simulated."""
    return replace(options, engine_binaries=(), **{f"{name}_binary": "" for name in BINARIES})


def flag_of(name: str) -> str:
    """The flag that gives a real engine."""
    return f"{FLAG} {name}=DIR" if load(name).controllers else f"--{name}-binary"


def with_binary(engine: EngineId, given: Mapping[str, str]) -> dict[str, str]:
    """The binaries that are given, with that of an engine, which is looked up in PATH if it is not among them."""
    name = engine.name
    if name in given:
        return dict(given)
    if programs := load(name).controllers:
        raise CannotContinue(f"--compare-engines: pass {flag_of(name)}, a folder with {' and '.join(programs)}")
    if load(name).run is None:
        raise CannotContinue(f"--compare-engines: {load(name).label} is only simulated, no binary of it can be run")
    if found := on_path(name):
        return {**given, name: found}
    raise CannotContinue(f"--compare-engines: no {name} is on the PATH; pass --{name}-binary PATH")


def simulated_engine(real: EngineId) -> str:
    """The engine to compare a real one with: the same version, if that can be asked for, else the same major one."""
    if real.name == CHART.engine and full_version(real.version):
        return f"{real.name}@{real.version}"
    versions = load(real.name).versions
    alike = [version for version in versions if f"{real.version}.".startswith(f"{version}.")]
    major = [version for version in versions if version.partition(".")[0] == real.major]
    return str(EngineId(real.name, (alike or major or versions)[-1]))
