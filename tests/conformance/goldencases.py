"""Recorded cases of a real engine, and what of a rehearsal is compared with them. Knows what is left to chance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from seatrial.helm.argocd_hooks import wave_of
from seatrial.model.options import CheckOptions
from seatrial.model.resource import Ref
from seatrial.model.timeline import Operation, Rehearsal, StepResult
from seatrial.plan.plans import plans
from seatrial.play.rehearse import rehearse

CASES = Path(__file__).parent / "golden"
ASPECTS = ("phase", "message", "results", "writes", "objects")
WRITES = ("create", "update", "patch", "apply", "delete", "dry run")
LEFT_OUT = ("unchanged", "read", "waiting", "said")
"""Effects that the recordings do not list: they change nothing."""
MADE_BY_THE_CLUSTER = ("Endpoints", "EndpointSlice", "Event", "Lease", "Node", "PersistentVolume", "StorageClass")
OF_EVERY_CLUSTER = (
    *("Namespace/default", "Namespace/kube-system", "Namespace/kube-public", "Namespace/kube-node-lease"),
    *("Namespace/argocd", "CustomResourceDefinition/applications.argoproj.io"),
)
STATUS_OF_APPLICATIONS = ("patch", "delete")
"""Writes to Applications that were not recorded for each: their status, and that they are deleted."""
RANDOM = re.compile(r"<(\d+) x>")
FILE = re.compile(r"/dev/shm/\d+")
CONFLICT = "the object has been modified; please apply your changes to the latest version and try again"


class Case(msgspec.Struct, frozen=True):
    """The input of a case, and what the real engine did in each step."""

    repos: dict[str, str]
    files: dict[str, str]
    steps: list[dict[str, Any]]
    beside: tuple[str, ...] = ()
    """What the cluster of the recording had from other cases, and matters here."""


class Seen(msgspec.Struct, frozen=True):
    """One step, as far as it is compared: the five aspects, each in a form without chance."""

    phase: dict[str, tuple[str, int]]
    """By Application: the phase of its operation, and how often it was retried; without one, the outcome."""
    message: dict[str, list[str]]
    results: dict[str, list[tuple[str, ...]]]
    writes: list[tuple[str, ...]]
    objects: list[str]


def names(engine: str) -> list[str]:
    return sorted(file.stem for file in (CASES / engine).glob("*.yaml"))


def read(engine: str, name: str) -> Case:
    text = (CASES / engine / f"{name}.yaml").read_text()
    return msgspec.convert(yaml.load(text, yaml.CSafeLoader), Case)


def played(case: Case, folder: Path) -> Rehearsal:
    """The case with the model, on the fast cluster that it was recorded on."""
    (plan,) = plans(CheckOptions((str(folder / "trial.yaml"),), repos=written(case, folder)))
    return rehearse(plan, "eager")


def written(case: Case, folder: Path) -> tuple[str, ...]:
    """Write the input of a case; returns where its repositories are."""
    for path, text in case.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(RANDOM.sub(lambda found: "x" * int(found[1]), text))
    return tuple(f"{url}={folder / path}" for url, path in case.repos.items())


def recorded(case: Case, rehearsal: Rehearsal) -> list[Seen]:
    """What the real engine did."""
    waves = _waves(rehearsal)[-len(case.steps) :]
    return [
        Seen(
            {app: (o["phase"], o["retries"]) for app, o in step.get("operations", {}).items()}
            or {"": (step["outcome"], 0)},
            {app: _reasons(o["message"]) for app, o in step.get("operations", {}).items()},
            {app: sorted(_result(*r) for r in o["resources"]) for app, o in step.get("operations", {}).items()},
            ordered([(*write, "")[:4] for write in step["writes"]], waves[index]),
            sorted(filter(None, map(_object, step["objects"]))),
        )
        for index, step in enumerate(case.steps)
    ]


def modelled(case: Case, rehearsal: Rehearsal) -> list[Seen]:
    """What the model does. Where a trial deletes something first, that step was not recorded."""
    waves = _waves(rehearsal)
    every = [
        Seen(
            {o.app: (o.phase, o.attempts - 1) for o in step.operations} or {"": (_outcome(step), 0)},
            {o.app: _reasons(o.message) for o in step.operations},
            {o.app: sorted(_results(o)) for o in step.operations},
            ordered(list(_writes(rehearsal, index)), waves[index]),
            sorted(filter(None, (_object(name) for name in _objects(rehearsal, index) if name not in case.beside))),
        )
        for index, step in enumerate(rehearsal.steps)
    ]
    return every[-len(case.steps) :]


def _outcome(step: StepResult) -> str:
    """Of a deletion; what another client does between two syncs was not recorded."""
    return "deleted" if (step.action, step.by, step.outcome) == ("delete", "Argo CD", "ok") else ""


def _results(operation: Operation) -> Iterator[tuple[str, ...]]:
    for task in operation.tasks:
        if task.status:
            hook = "hook" if task.hook else ""
            yield _result(str(task.object), task.phase, hook, task.status, task.state, task.message)


def _result(object_: str, phase: str, hook: str, status: str, state: str, message: str) -> tuple[str, ...]:
    """Argo CD lists cluster-scoped objects under the namespace of the destination: it is left out."""
    kind, _, name = object_.partition("/")
    return f"{kind}/{name.rpartition('/')[2]}", phase, hook, status, state, FILE.sub("FILE", message)


def _reasons(message: str) -> list[str]:
    """A message, and its reasons, whose order is random."""
    words, _, retried = FILE.sub("FILE", message).partition(" (retried ")
    before, _, reasons = words.partition(", reason: ")
    return [before, retried, *sorted(reasons.split(","))]


def _writes(rehearsal: Rehearsal, step: int) -> Iterator[tuple[str, ...]]:
    for event in rehearsal.of_step(step):
        if event.actor in rehearsal.actors and event.verb in WRITES and event.effect not in LEFT_OUT:
            yield event.verb, str(event.object), event.effect, event.message


def _objects(rehearsal: Rehearsal, step: int) -> Iterable[str]:
    there: dict[Ref, None] = {}
    for event in rehearsal.timeline:
        if event.step <= step and event.effect == "created":
            there[event.object] = None
        elif event.step <= step and event.effect == "deleted":
            there.pop(event.object, None)
    return map(str, there)


def _object(name: str) -> str:
    """An object without the random part of its name; empty for what every cluster has, and for Applications."""
    kind, _, rest = name.partition("/")
    made = name.startswith("ConfigMap/") and name.endswith("/kube-root-ca.crt")
    usual = name.startswith("ServiceAccount/") and name.endswith("/default")
    if usual or made or name in OF_EVERY_CLUSTER or kind in (*MADE_BY_THE_CLUSTER, "Application"):
        return ""
    return f"{kind}/{re.sub(r'-[a-z0-9]{5}$', '-*', rest)}" if kind == "Pod" else name


Place = tuple[str, str, int]
Places = dict[str, set[Place]]
"""By object: the Applications, phases and waves that it is in."""


def _waves(rehearsal: Rehearsal) -> list[Places]:
    """By step and object: the phases and waves that it is in; in a deletion, its wave."""
    found: list[Places] = []
    for index, step in enumerate(rehearsal.steps):
        places: Places = {}
        for operation in step.operations:
            for task in operation.tasks:
                places.setdefault(str(task.object), set()).add((operation.app, *task.place))
        for event in rehearsal.of_step(index) if not step.operations else ():
            if event.verb == "delete" and event.before is not None:
                places[str(event.object)] = {("", "", wave_of(event.before))}
        found.append(places)
    return found


def ordered(writes: list[tuple[str, ...]], places: Places) -> list[tuple[str, ...]]:
    """Writes in an order that does not depend on chance.

    Argo CD applies the objects of one kind in one wave concurrently, and so it deletes those of one wave. It deletes
    again what is being deleted, and repeats a write that met a newer version. Applications are synced side by side.
    """
    runs: list[list[tuple[str, ...]]] = []
    doing: tuple[str, str] = "", ""
    shared: set[Place] = set()
    for write in sorted(_once(writes), key=lambda write: sorted({app for app, _, _ in places.get(write[1], ())})):
        verb, name = write[0], write[1]
        now = (verb, "") if verb == "delete" else ("update" if verb == "update" else "apply", name.partition("/")[0])
        where = places.get(name, set())
        if now != doing or not shared & where:
            runs.append([])
            shared = where
        doing, shared = now, shared & where
        runs[-1].append(write)
    return [write for run in runs for write in sorted(run, key=lambda write: write[1])]


def _once(writes: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    going: set[str] = set()
    created: set[str] = set()
    for verb, name, effect, message in writes:
        if name.startswith("Application/") and verb in STATUS_OF_APPLICATIONS:
            continue
        if effect == "refused" and (CONFLICT in message or (name in created and message.endswith("already exists"))):
            continue
        if verb == "delete" and name in going:
            continue
        if verb == "delete":
            going.add(name)
        if effect == "created":
            going.discard(name)
            created.add(name)
        yield verb, name, effect, FILE.sub("FILE", message)
