"""A helm binary as an engine: any Helm from 3 on, through its command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from seatrial.engines import Api, Ended, Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.helm import v3 as rules
from seatrial.engines.helm.sdk import (
    FAREWELL_SECONDS,
    PATIENCE_SECONDS,
    VERSION,
    is_final,
    options_of,
    patience_seconds,
)
from seatrial.engines.helm.waiting import waited_for
from seatrial.helm.binary import CHART, FLAG, NAME, VALUES, Process, find, is_flag_error, lacks_memory
from seatrial.helm.versions import full_version
from seatrial.model.engine import EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.model.trial import waits
from seatrial.readiness import helm3
from seatrial.readiness.kstatus import (
    is_ready_for_wait,
    is_ready_with_jobs,
    is_ready_without_wait,
)
from seatrial.sandbox.client import Binary, on_path

LEGACY = "--wait=legacy"
LONGEST_SECONDS = 900
"""More than any wait of Helm's own takes."""


def chosen(engine: EngineId, path: str) -> Binary | None:
    """The helm binary at a path, which must be of the version that is asked for; None where no path is given."""
    if not path:
        return None
    found = find(path)
    if engine.version and not f"{found.version}.".startswith(f"{engine.version.removeprefix('v')}."):
        raise CannotContinue(f"--engine {engine}: {FLAG} {path} is Helm {found.version}")
    return found


def asked_version(engine: EngineId) -> str:
    """The version that is rehearsed without a binary: that of the SDK, of the simulated Helm 3, or one near them."""
    wanted = engine.version.removeprefix("v")
    if not wanted:
        return VERSION
    version = next((own for own in (VERSION, rules.VERSION) if f"{own}.".startswith(f"{wanted}.")), "")
    if version := version or full_version(wanted):
        return rules.VERSION if version.startswith(f"{rules.VERSION}.") else version
    raise CannotContinue(f"--engine {engine}: what is built in is Helm {VERSION}; name another one with {FLAG} PATH")


def other_on_path(project: Path) -> Binary | None:
    """The helm on the PATH, if its minor version is not the built-in one. None of the project that is checked."""
    path = on_path(NAME)
    if not path or Path(path).resolve().is_relative_to(project):
        return None
    try:
        found = find(path)
    except CannotContinue:
        return None  # It is not asked for, so what it is does not matter.
    return found if found.version.split(".")[:2] != VERSION.split(".")[:2] else None


def run(act: HelmAct, api: Api, binary: Binary) -> Ended:
    """Run one act with a helm binary against `api`; a hang is ended as soon as it is certain."""
    _, timeout = options_of(act)  # refuses what leads elsewhere, such as --kubeconfig
    api.believes(_content(act, binary), partial(waited_for, act.action))
    process = Process(binary, command(act), api.kubeconfig(act.namespace), chart=act.archive, values=act.values)
    try:
        stuck = _watched(process, api, timeout)
        if is_final(stuck):
            _let_go(process, api, act)
    finally:
        process.close()
    if stuck is not None and is_final(stuck):
        words = f"{stuck.sentence}. Helm times out after {timeout} (--timeout)"
        return Ended("hung", words, process.warnings, stuck)
    if process.failed and is_flag_error(process.error):
        raise CannotContinue(f"step {act.action}: helm {binary.version} says: {process.error.splitlines()[0]}")
    if process.failed and (words := lacks_memory(process.error)):
        raise CannotContinue(f"helm {act.action} of {act.release}: render the chart: {words}")
    if process.failed:
        return Ended("failed", process.error, process.warnings, stuck)
    return Ended("ok", warnings=process.warnings)


def _watched(process: Process, api: Api, timeout: str) -> Stuck | None:
    """Wait for its end, or until it waits for something that cannot come."""
    patience: float = LONGEST_SECONDS
    stuck: Stuck | None = None
    while not is_final(stuck) and not process.wait(PATIENCE_SECONDS):
        stuck = api.stuck(patience_seconds(timeout)) or stuck
        patience -= PATIENCE_SECONDS
        if patience < 0:
            raise CannotContinue("helm neither ended nor waited for anything in the cluster")
    return stuck


def _let_go(process: Process, api: Api, act: HelmAct) -> None:
    """End a wait as its timeout would: Helm records the failure."""
    if act.action in ("install", "upgrade"):
        process.stop()
    else:
        api.hang_up()
    process.wait(FAREWELL_SECONDS)


def command(act: HelmAct) -> list[str]:
    """The arguments of helm for an act. Time is the cluster's, so the timeout is not passed on."""
    given = [CHART] if act.archive else [str(act.revision)] if act.action == "rollback" and act.revision else []
    written = ["--values", VALUES] if act.archive and act.values else []
    flags = [flag for flag in act.flags if not flag.startswith("--timeout")]
    return [act.action, act.release, *given, "--namespace", act.namespace, *written, *flags]


def _content(act: HelmAct, binary: Binary) -> Callable[[Body], bool]:
    waited = waits(act.flags)
    if binary.major < 4 or LEGACY in act.flags:
        return helm3.is_ready_for_wait if waited else helm3.is_hook_done
    if not waited:
        return is_ready_without_wait
    return is_ready_with_jobs if "--wait-for-jobs" in act.flags else is_ready_for_wait
