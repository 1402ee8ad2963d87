"""The steps of a trial, each prepared by the engine that runs it. Knows nothing of prerequisites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from seatrial.engines.engine import Engine, PlannedStep, load, names
from seatrial.engines.setting import Setting
from seatrial.kinds.tables.catalogue import GROUPS, named_kind
from seatrial.model.trial import Step
from seatrial.sources import MANIFESTS, InputKind
from seatrial.sources.files import STDIN
from seatrial.sources.manifests.reading import kinds_in

BY_HAND = "kubectl"
"""The engine of manual steps in trials of other engines."""


def planned_steps(steps: Iterable[Step], setting: Setting) -> list[PlannedStep[Any]]:
    """Every step, including those of a rebuild, prepared to run."""
    engine = load(setting.engine.name)
    planned: list[PlannedStep[Any]] = []
    for step in _flat(steps):
        by = engine if _is_own(step, engine) else load(BY_HAND)
        planned.append(by.stage(step, setting, planned))
    return planned


def created_by_engine(steps: Iterable[PlannedStep[Any]]) -> Iterator[str]:
    """The namespaces that engines create, unless an earlier step deploys into one that it does not create."""
    used: set[str] = set()
    for step in steps:
        yield from (name for name in step.namespaces if name not in used)
        used |= {step.namespace} - set(step.namespaces)


def usual_engine(path: str, kind: InputKind) -> str:
    """The default engine for an input, such as Flux for manifests with Kustomizations."""
    if kind == MANIFESTS and path != STDIN:
        custom = {found for found in kinds_in(path) if found[0] not in GROUPS}
        engines = (load(name) for name in names()) if custom else ()
        return next((engine.name for engine in engines if not custom.isdisjoint(engine.usual_for)), kind.engine)
    return kind.engine


def _is_own(step: Step, engine: Engine[Any]) -> bool:
    """Whether the engine runs a step; deleting an object by name is a manual step."""
    return engine.action(step.action) is not None and not (step.action == "delete" and named_kind(step.source))


def _flat(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, including those of a rebuild; the first of these starts on an empty cluster."""
    for step in steps:
        if step.action != "rebuild":
            yield step
            continue
        first, *rest = _flat(step.steps)
        yield replace(first, fresh=True)
        yield from rest
