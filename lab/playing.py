"""Plays a plan on the real cluster, step by step, as `play.rehearse` does on the embedded one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lab import FASTER, TIMEOUT_SECONDS
from lab.outcomes import Ran, fates_between, outcome_of
from lab.real import RealCluster
from seatrial.engines.act import Apply, HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.helm import process, sdk
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import Process
from seatrial.model.resource import Body, Ref, metadata, name_of, ref_of, uid_of
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import BETWEEN_STEPS_SECONDS, is_written
from seatrial.text.durations import seconds_in

KUBECTL_SECONDS = TIMEOUT_SECONDS
SHORTEST_SECONDS = 3


class CannotPlay(Exception):
    """A plan that the lab cannot play, and why."""


def play(plan: Plan, cluster: RealCluster) -> Iterator[Ran]:
    """Every step of a plan, on a cluster that is empty before."""
    cluster.kubelet.operators.play(bodies_of(plan))
    before: dict[Ref, str] = {}
    for index, planned in enumerate(plan.steps):
        if not index or planned.step.fresh:
            if index and not cluster.empty():
                raise CannotPlay("the real cluster could not be emptied for a rebuild")
            _prepare(plan, cluster, with_deployed=not index)
            before = _written(cluster)
        elif plan.steps[index - 1].step.settle and cluster.pass_time(BETWEEN_STEPS_SECONDS):
            before = _written(cluster)
        with cluster.client_acts():
            error = _act(planned, cluster)
        if planned.step.settle:
            cluster.settle()
        after = _written(cluster)
        yield Ran(planned.step.action, outcome_of(error), error, fates_between(before, after))
        before = after


def bodies_of(plan: Plan) -> list[Body]:
    """All objects of a plan."""
    bodies: list[Body] = [*plan.assumed, *plan.deployed]
    for release in plan.case.releases:
        bodies += [one.body for one in (*release.resources, *release.crds)] if release else []
    return bodies


def _prepare(plan: Plan, cluster: RealCluster, *, with_deployed: bool) -> None:
    """Create the prerequisites, and what Helm has deployed already."""
    for body in plan.assumed:
        namespace = str(metadata(body).get("namespace") or "")
        if namespace in plan.created_namespaces and not cluster.has_namespace(namespace):
            cluster.provide(body)
            continue
        if error := cluster.put(body):
            raise CannotPlay(f"prerequisite {body.get('kind')}/{name_of(body)}: {error}")
    if with_deployed:
        for body in plan.deployed:
            manager = helmsdk.FIELD_MANAGER if plan.server_side else ""
            if error := cluster.put(body, manager=manager):
                raise CannotPlay(f"deployed {body.get('kind')}/{name_of(body)}: {error}")
    cluster.settle()


def _written(cluster: RealCluster) -> dict[Ref, str]:
    written = {ref: uid_of(body) for ref, body in cluster.objects().items() if is_written(ref, body)}
    return {ref: uid for ref, uid in written.items() if ref not in cluster.provided}


def _act(planned: PlannedStep[Any], cluster: RealCluster) -> str:
    """Run one step; its error, if it has one."""
    act = planned.act
    match act:
        case HelmAct(simulated=False):
            cluster.forget_discovery()
            return _helm(act, cluster)
        case Apply():
            return _kubectl(planned.step.action, act, planned, cluster)
    raise CannotPlay(f"a step of {planned.by}")


def _helm(act: HelmAct, cluster: RealCluster) -> str:
    given = next((flag for flag in act.flags if flag.startswith("--timeout")), "")
    asked = seconds_in(given.replace(" ", "=", 1).partition("=")[2]) if given else None
    seconds = max(int(asked / FASTER), SHORTEST_SECONDS) if asked else TIMEOUT_SECONDS
    if act.binary is None:
        with _timeout(seconds):
            return sdk.run(act, cluster).error
    arguments = [*process.command(act), *(["--timeout", f"{seconds}s"] if act.action != "test" else [])]
    run = Process(act.binary, arguments, cluster.kubeconfig(act.namespace), chart=act.archive, values=act.values)
    if not run.wait(seconds * 4):
        run.stop()
        run.wait(10)
        run.close()
        return "does not heed its timeout"
    run.close()
    return run.error if run.failed else ""


@contextmanager
def _timeout(seconds: int) -> Iterator[None]:
    """The library takes its timeout from a constant: on the embedded cluster no wait lasts so long."""
    before = sdk.TIMEOUT_SECONDS
    sdk.TIMEOUT_SECONDS = seconds
    try:
        yield
    finally:
        sdk.TIMEOUT_SECONDS = before


def _kubectl(action: str, act: Apply, planned: PlannedStep[Any], cluster: RealCluster) -> str:
    """What people do meanwhile, with the kubectl on the PATH."""
    binary = shutil.which("kubectl")
    if binary is None:
        raise CannotPlay("a step of kubectl, which is not on the PATH")
    with tempfile.TemporaryDirectory(prefix="seatrial-lab-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(cluster.kubeconfig(planned.namespace or "default"))
        files: dict[str, list[str]] = {}
        for manifest in act.objects:
            files.setdefault(manifest.file, []).append(msgspec.json.encode(manifest.body).decode())
        Path(folder, "files").mkdir()
        for name, texts in files.items():
            if not name:
                continue  # An object that is only named, to be deleted.
            file = Path(folder, "files", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n---\n".join(texts))
        command = [binary, f"--kubeconfig={config}", action, *(f"--filename={name}" for name in files)]
        if action == "delete":
            named = [ref_of(manifest.body) for manifest in act.objects]
            words = [f"{ref.kind}.{ref.group}/{ref.name}".replace("./", "/") for ref in named]
            command = [*command[:3], *words, f"--namespace={named[0].namespace}", f"--timeout={KUBECTL_SECONDS}s"]
        try:
            ended = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                cwd=Path(folder, "files"),
                env={"HOME": folder, "PATH": ""},
                timeout=4 * KUBECTL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "timed out"
    return ended.stderr.strip() or "failed" if ended.returncode else ""
