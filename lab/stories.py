"""The Helm plans of the scenarios: what their commands would rehearse. Runs nothing."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from story import scenes, write

from lab import ROOT
from lab.webhooks import IN_STORIES
from seatrial.cli import main
from seatrial.engines.act import HelmAct
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans

FOLDER = ROOT / "tests" / "scenarios"
OTHER_ENGINES = ("argocd-", "flux-", "kubectl-", "pulumi-")
COMMANDS = ("check", "run")
CAPTURED = "the lab has what it wanted"


class Told(Struct, frozen=True):
    """One plan of a story."""

    story: str
    number: int
    plan: Plan


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.md") if not path.stem.startswith(OTHER_ENGINES))


def told(story: str, bundle: str, helm_binary: str = "") -> Iterator[Told]:
    """The plans of a story for Helm, each once, with a caBundle that is valid.

    The working directory is that of its files meanwhile.
    """
    seen: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="seatrial-lab-") as folder, contextlib.chdir(folder):
        for scene in scenes((FOLDER / f"{story}.md").read_text()):
            for block in scene.files:
                write(replace(block, body=block.body.replace(IN_STORIES, bundle)))
            options = _options(scene.arguments)
            if options is None or options.helm_binary:
                continue
            try:
                found = list(plans(replace(options, helm_binary=helm_binary, compare="")))
            except (CannotContinue, NothingToCheck):
                continue
            for plan in found:
                acts = [step.act for step in plan.steps]
                if plan.engine.name != "helm" or any(isinstance(act, HelmAct) and act.simulated for act in acts):
                    continue
                if (mark := _mark(plan)) not in seen:
                    seen.add(mark)
                    yield Told(story, len(seen), plan)


def _options(arguments: tuple[str, ...]) -> CheckOptions | None:
    """The options of a command; None where it rehearses nothing."""
    caught: list[CheckOptions] = []
    modules: list[Any] = [import_module(f"seatrial.cli.{name}") for name in COMMANDS]
    read = modules[0].options

    def catch(*given: Any) -> Any:
        caught.append(read(*given))
        raise CannotContinue(CAPTURED)

    try:
        for module in modules:
            module.options = catch
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(arguments)
    finally:
        for module in modules:
            module.options = read
    return caught[0] if caught else None


def _mark(plan: Plan) -> str:
    """The same for plans that do the same."""
    parts: list[Any] = [sorted(msgspec.json.encode(body, order="sorted") for body in plan.assumed)]
    for planned in plan.steps:
        bodies = [one.body for one in planned.release.resources] if planned.release else []
        step = replace(planned.step, source="")
        parts.append([msgspec.json.encode(step), planned.name, planned.namespace, msgspec.json.encode(bodies)])
    return hashlib.sha256(repr(parts).encode()).hexdigest()
