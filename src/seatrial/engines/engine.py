"""An engine is one folder that exports one object, `ENGINE`. Here is its shape, and how it is found and loaded."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial import engines
from seatrial.engines import ApiBesideUser, Ended
from seatrial.engines.act import Act
from seatrial.engines.script import Script
from seatrial.engines.setting import Setting
from seatrial.helm import hooks
from seatrial.model.engine import Action, EngineId
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Failure, Refusal
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.model.trial import Step, Trial
from seatrial.sandbox.client import Binary

A = TypeVar("A", bound=Act)
DefaultTrial = Callable[[str, str, int], tuple[Step, ...]]
"""The steps for a source, an old one (or none), and the revision that is deployed already (or 0)."""


class PlannedStep(Struct, Generic[A], frozen=True):
    """One step with everything that is needed to run it."""

    step: Step
    by: str
    """The name of the engine that runs it: the one that is rehearsed, or kubectl for what people do meanwhile."""
    name: str
    """Of the release; empty where there is none, as with kubectl."""
    namespace: str
    act: A
    release: Release | None = None
    """What it deploys. For a rollback that is the release of the revision it goes back to."""
    notes: tuple[str, ...] = ()
    """What is assumed about this step."""
    namespaces: tuple[str, ...] = ()
    """Those that the engine itself creates."""
    not_rehearsed: tuple[str, ...] = ()
    """Parts of the source that are not on disk, each a sentence with the way to get it."""
    hollow: bool = False
    """Whether it deploys only objects of the engine itself, and nothing that they stand for."""


class WayOut(Struct, frozen=True):
    """What a user does after a step that died: the commands as typed, and as steps. The last one repeats the step."""

    commands: tuple[str, ...]
    steps: tuple[PlannedStep[Any], ...]


Other = tuple[EngineId, tuple[PlannedStep[Any], ...]]


class Before(Struct, frozen=True):
    """What is in the cluster before the first step."""

    assumed: tuple[Body, ...] = ()
    release: Release | None = None
    """The release that is deployed already."""
    revisions: tuple[tuple[int, Release], ...] = ()
    """All that is recorded of it."""


class Scene(Struct, frozen=True):
    """Where a script runs."""

    index: int
    """Of the step in its trial."""
    memory: Any
    """What the engine remembers of this cluster from one step to the next, outside of it."""
    acts_on: Callable[[str, str], bool]
    """Whether anything in the cluster acts on a kind of a group."""


class SeenByCluster(Struct, frozen=True):
    """What the cluster saw of an act of a real client."""

    refused: tuple[Event, ...] = ()
    """Its requests that were refused."""
    reads: tuple[Refusal, ...] = ()
    """Its reads that were refused, which are not in the timeline."""
    live: tuple[Ref, ...] = ()
    """The objects that are there when it has ended."""


def regular_resources(planned: PlannedStep[Any], ended: Ended) -> Iterable[Ref]:
    """What should be there when a step has succeeded: all that is no hook of Helm's."""
    resources = planned.release.resources if planned.release else ()
    return (resource.ref for resource in resources if not hooks.is_hook(resource.body))


class Engine(Struct, Generic[A], frozen=True):
    """What is known of one engine outside of its folder."""

    name: str
    """That of its folder."""
    label: str
    """As people call it: `Argo CD`."""
    versions: tuple[str, ...]
    """Those that can be asked for, oldest first. The last one is rehearsed unless another one is asked for."""
    actions: tuple[Action, ...]
    default_trial: DefaultTrial
    stage: Callable[[Step, Setting, Sequence[PlannedStep[Any]]], PlannedStep[A]]
    """Prepares a step, given the steps before it: opens, renders, builds."""
    script: Callable[[PlannedStep[A], Scene], Script]
    """What it does in a step, as a script."""
    run: Callable[[A, ApiBesideUser], Ended] | None = None
    """Runs the real client over HTTP, for acts that are no script."""
    controllers: tuple[str, ...] = ()
    """The programs that a folder of the user must have, where the real one is no single binary."""
    read_error: Callable[[str, SeenByCluster], Failure] | None = None
    """Why the real client failed, by its error. A script knows that by itself."""
    configure: Callable[[Setting, Trial], Setting] | None = None
    """Settles the version and how the engine is set up; by `versions` alone where there is none."""
    expected: Callable[[PlannedStep[A], Ended], Iterable[Ref]] = regular_resources
    """What should be in the cluster when a step has succeeded."""
    memory: Callable[[Before], Any] = lambda before: None
    """What it remembers of a cluster."""
    keeps_state: bool = False
    """Whether it still has to write down, in a place that is no object of a release, what its last request did."""
    inside: tuple[str, ...] = ()
    """Engines that it has in it: their requests are its own."""
    other_version: Callable[[Sequence[PlannedStep[Any]], Rehearsal, Sequence[Body]], Other | None] | None = None
    """The same steps for its other major version, to compare; given how they were rehearsed, and what was there."""
    explicit: bool = False
    """Whether its input lists every object, as files and programs do, and charts do not."""
    has_cases: bool = False
    """Whether each ci/*-values.yaml of a chart is a case of its own."""
    wait_flag: str = ""
    """The flag that makes it wait for what it deploys, where it does not by itself: a case of its own."""
    namespace_flag: str = ""
    """The flag with which it creates the namespace of a release."""
    names_manifests: bool = False
    """Whether it keeps what it deploys under a name, which manifests do not have."""
    ways_out: Callable[[Sequence[PlannedStep[Any]], int, Ref], Iterable[WayOut]] = lambda steps, index, wrote: ()
    """What may help after a step, by its index, died when it had written an object, and cannot be repeated."""
    repeats: Callable[[PlannedStep[A]], str] | None = None
    """The command that runs a step once more, where what sentences call it is none."""
    usual_for: tuple[tuple[str, str], ...] = ()
    """Groups and kinds: manifests that hold one are this engine's, where the user names none."""
    follows_charts: bool = False
    """Whether it rehearses what such objects of a chart deploy; else they have to be rendered first."""
    example: str = "./chart"
    """An input as it would be typed after `seatrial check`, and below its old version."""
    old_example: str = "./old-chart"

    def action(self, name: str) -> Action | None:
        return next((action for action in self.actions if action.name == name), None)

    @property
    def actors(self) -> tuple[str, ...]:
        """Whose events are this engine's."""
        return self.name, *self.inside


def names() -> tuple[str, ...]:
    """The engines that there are: one folder each."""
    return _names(tuple(engines.__path__))


@cache
def _names(folders: tuple[str, ...]) -> tuple[str, ...]:
    """An engine is loaded a hundred times in a rehearsal."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(folders) if found.ispkg))


def load(name: str) -> Engine[Any]:
    """The engine of a name. Its folder is imported now, and those of others are not."""
    if name not in names():
        raise CannotContinue(f"unknown engine {name!r}; known engines: {', '.join(names())}")
    engine: Engine[Any] = import_module(f"{engines.__name__}.{name}").ENGINE
    return engine


def configured(engine: Engine[Any], setting: Setting, trial: Trial) -> Setting:
    """The setting for an engine in the version that is asked for. Refuses versions that it does not have."""
    if engine.configure is not None:
        return engine.configure(setting, trial)
    return replace(setting, engine=known_version(setting.engine, engine.versions))


def known_version(asked: EngineId, versions: tuple[str, ...]) -> EngineId:
    """The newest version that is asked for: `3` and `3.5.1` are 3.5."""
    wanted = f"{asked.version.removeprefix('v')}."
    alike = [known for known in versions if f"{known}.".startswith(wanted) or wanted.startswith(f"{known}.")]
    if asked.version and not alike:
        span = f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else versions[0]
        raise CannotContinue(f"--engine {asked}: this version is not modelled; use {span}")
    return EngineId(asked.name, (alike or versions)[-1])


def binary_or_version(
    setting: Setting, versions: tuple[str, ...], find: Callable[[str], Binary], flag: str, *, words: str
) -> Setting:
    """The binary of the user, or the version that is simulated. `words` precede the version of another one."""
    name, asked = setting.engine.name, setting.engine.version.removeprefix("v")
    path = setting.binaries.get(name, "")
    if not path:
        return replace(setting, engine=known_version(setting.engine, versions))
    binary = find(path)
    if asked and binary.version and not f"{binary.version}.".startswith(f"{asked}."):
        raise CannotContinue(f"--engine {setting.engine}: {flag} {path} {words} {binary.version}")
    return replace(setting, engine=EngineId(name, binary.version, real=True), config=binary)


def round_trip(deploy: str, remove: str, *, removes_at_once: bool = True) -> DefaultTrial:
    """A default trial for one action that deploys, whatever is there: deploy, the same again, remove.

    With an old source: deploy it, then the new one twice, then the old one again, remove, and deploy the new one.
    """

    def steps(source: str, old: str, revision: int) -> tuple[Step, ...]:
        again, last = Step(deploy, source), Step(remove, source)
        if not old:
            return (again, again, last) if removes_at_once else (again, again)
        return (Step(deploy, old), again, again, Step(deploy, old), last, again)

    return steps
