"""A helm binary as an engine: the acts of `helm.py` with any Helm from 3 on. Knows its command line, not its deeds."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.engines import Api, Ended, Stuck
from seatrial.engines.helm import v3 as rules
from seatrial.engines.helm.sdk import (
    FAREWELL_SECONDS,
    NAME,
    PATIENCE_SECONDS,
    VERSION,
    is_final,
    options_of,
    patience_seconds,
)
from seatrial.helm.binary import CHART, FLAG, VALUES, Binary, Process, find, is_flag_error
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.model.trial import Step, waits
from seatrial.readiness import helm3
from seatrial.readiness.kstatus import (
    is_ready_for_wait,
    is_ready_with_jobs,
    is_ready_without_wait,
)

LEGACY = "--wait=legacy"
LONGEST_SECONDS = 900
"""More than any wait of Helm's own takes."""


def chosen(engine: str, path: str) -> Binary | None:
    """The helm binary that plays for an engine `helm@3`; None where the SDK does, or where it is another engine."""
    name, _, version = engine.partition("@")
    if name != NAME:
        return None
    found = find(path) if path else None
    has = found.version if found else VERSION
    if version and f"{has}.".startswith(f"{version.removeprefix('v')}."):
        return found
    if version and found:
        raise CannotContinue(f"--engine {engine}: {FLAG} {path} is Helm {has}")
    if version and not by_rules(engine, path):
        raise CannotContinue(f"--engine {engine}: what is built in is Helm {has}; name another one with {FLAG} PATH")
    return found


def by_rules(engine: str, path: str) -> bool:
    """Whether `helm@3` is asked for and no binary of it is given: then its rules are played."""
    name, _, version = engine.partition("@")
    return name == NAME and not path and bool(version) and f"{rules.VERSION}.".startswith(f"{version.lstrip('v')}.")


def act(step: Step, api: Api, binary: Binary, *, release: str, namespace: str, chart: bytes, values: Body) -> Ended:
    """Play one step with a helm binary against `api`; a hang is ended as soon as it is certain."""
    _, timeout = options_of(step)  # refuses what leads elsewhere, such as --kubeconfig
    api.believes(_content(step, binary))
    command = _command(step, release, namespace, chart, values)
    process = Process(binary, command, api.kubeconfig(namespace), chart=chart, values=values)
    try:
        stuck = _watched(process, api, timeout)
        if is_final(stuck):
            _let_go(process, api, step)
    finally:
        process.close()
    if stuck is not None and is_final(stuck):
        words = f"{stuck.sentence}. Helm would fail when --timeout ({timeout}) is over"
        return Ended("hung", words, process.warnings, stuck)
    if process.failed and is_flag_error(process.error):
        raise CannotContinue(f"step {step.action}: helm {binary.version} says: {process.error.splitlines()[0]}")
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


def _let_go(process: Process, api: Api, step: Step) -> None:
    """End a wait as its timeout would: Helm records that the act has failed."""
    if step.action in ("install", "upgrade"):
        process.stop()
    else:
        api.hang_up()
    process.wait(FAREWELL_SECONDS)


def _command(step: Step, release: str, namespace: str, chart: bytes, values: Body) -> list[str]:
    given = [CHART] if chart else [str(step.revision)] if step.action == "rollback" and step.revision else []
    written = ["--values", VALUES] if chart and values else []
    flags = [flag for flag in step.flags if not flag.startswith("--timeout")]
    return [step.action, release, *given, "--namespace", namespace, *written, *flags]


def _content(step: Step, binary: Binary) -> Callable[[Body], bool]:
    waited = waits(step.flags)
    if binary.major < 4 or LEGACY in step.flags:
        return helm3.is_ready_for_wait if waited else helm3.is_hook_done
    if not waited:
        return is_ready_without_wait
    return is_ready_with_jobs if "--wait-for-jobs" in step.flags else is_ready_for_wait
