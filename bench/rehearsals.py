"""How long `seatrial check` takes on the examples beside rendering them, and the real Helm on the embedded API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import Figure, best, processor_seconds, seconds
from seatrial.check import check
from seatrial.cli.flags import OutputFlags
from seatrial.cli.terminal import progress_line
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.helm import sdk as helmsdk
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import SCHEDULES, Schedule
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse

EXAMPLES = Path(__file__).parent.parent / "examples"
TIMES = 5

EXAMPLE_OPTIONS = {
    "basic-app": CheckOptions(inputs=(str(EXAMPLES / "basic-app/v2"),), old=str(EXAMPLES / "basic-app/v1")),
    "tenants": CheckOptions(inputs=(str(EXAMPLES / "tenants"),)),
}


def figures() -> Iterator[Figure]:
    with progress_line(OutputFlags(quiet=True)):
        for name, options in EXAMPLE_OPTIONS.items():
            yield from _check(name, options)
        yield from _helm()


def _check(name: str, options: CheckOptions) -> Iterator[Figure]:
    charts = [path for path in (options.old, *options.inputs) if path]
    rendering = best(lambda: _render(charts), TIMES)
    checking = best(lambda: check(options), TIMES)
    started = best(lambda: _command(options), TIMES)
    yield Figure(f"{name}: render its charts", f"{rendering * 1000:.1f} ms")
    yield Figure(f"{name}: check", f"{checking:.2f} s", f"{checking / rendering:.0f} x rendering")
    yield Figure(f"{name}: seatrial check, with start-up", f"{started:.2f} s", f"{started / rendering:.0f} x rendering")
    yield _third_schedule(name, options)


def _third_schedule(name: str, options: CheckOptions) -> Figure:
    """What the ordinary cluster adds to a slow and a fast one, by processor time."""
    planned = list(plans(options))

    def played(*schedules: Schedule) -> float:
        return min(processor_seconds(lambda: _rehearse(planned, schedules)) for _ in range(TIMES))

    two, three = played("lazy", "eager"), played(*SCHEDULES)
    check_of_two = min(processor_seconds(lambda: check(options)) for _ in range(TIMES)) - (three - two)
    return Figure(f"{name}: the third schedule adds", f"{three - two:.2f} s", f"+{(three - two) / check_of_two:.0%}")


def _rehearse(planned: list[Plan], schedules: tuple[Schedule, ...]) -> None:
    for plan in planned:
        heard = Heard()
        for schedule in schedules:
            rehearse(plan, schedule, heard=heard)


def _render(charts: list[str]) -> None:
    for path in charts:
        helmsdk.render(helmsdk.Chart.load(path), {}, name="demo", namespace="default", is_install=True)


def _command(options: CheckOptions) -> None:
    old = ["--from", options.old] if options.old else []
    command = [str(Path(sys.executable).with_name("seatrial")), "check", *options.inputs, *old, "--no-cache"]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


def _helm() -> Iterator[Figure]:
    rounds = [_install_and_upgrade() for _ in range(TIMES)]
    yield Figure("one real Helm install", f"{min(install for install, _ in rounds):.3f} s")
    yield Figure("one real Helm upgrade", f"{min(upgrade for _, upgrade in rounds):.3f} s")


def _install_and_upgrade() -> tuple[float, float]:
    old = helmsdk.Chart.load(str(EXAMPLES / "basic-app/v1"))
    new = helmsdk.Chart.load(str(EXAMPLES / "basic-app/v2"))
    with ApiServer(Cluster(), actor="helm") as server, helmsdk.connection(server.json_kubeconfig, "default") as config:
        context = helmsdk.HelmContext()
        install = seconds(lambda: helmsdk.install(config, context, old, "demo", {}, namespace="default"))
        upgrade = seconds(lambda: helmsdk.upgrade(config, context, new, "demo", {}, namespace="default"))
        config.close()
        context.close()
    return install, upgrade
