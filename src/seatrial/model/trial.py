"""A trial: what is assumed to be in the cluster, and the steps to rehearse. Knows only the format of the trial file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from seatrial.model.engine import Action, EngineId, Takes, engine_id
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body

ANYONES = ("apply", "delete", "rebuild")
"""Steps that any trial may have: actions of other people, and a rebuild."""
ROLLS_BACK = ("--atomic", "--rollback-on-failure")
"""Flags of Helm 3 and 4 that undo a failed step."""
WAITS = ("--wait", *ROLLS_BACK)


FIRST_OBJECT = "*"
"""`kill: true`: the process dies before it writes the first object of the release."""


class StorageClass(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    binding: str = "Immediate"
    default: bool = False
    expansion: bool = False
    """Whether PVCs of this class can grow: `allowVolumeExpansion`."""
    reclaim: str = "Delete"
    """What happens to a volume whose PVC is deleted: Delete or Retain."""


class Operator(Struct, frozen=True, forbid_unknown_fields=True):
    """An operator that is assumed to run: by name and version, or described here."""

    name: str
    version: str = ""
    deployment: str = ""
    kinds: tuple[str, ...] = ()
    cluster_scoped: tuple[str, ...] = msgspec.field(default=(), name="clusterScoped")
    """More of its kinds, which have no namespace."""
    generates: dict[str, str] = {}
    """The kinds whose CRDs it creates, by the kind of the object from which it creates them."""
    exits: bool = False
    """Whether its process exits while none of its CRDs exists."""
    versions: tuple[str, ...] = ()
    """The versions in which its kinds are served, oldest first; by default v1alpha1, v1beta1 and v1."""
    finalizer: str = ""
    """The finalizer that it sets and removes."""
    removes: tuple[str, ...] = ()
    """Finalizers that it removes from a deleted object although it did not set them."""
    produces: dict[str, str] = {}
    owns: bool = True
    """Whether what it produces is deleted with the custom resource."""

    @property
    def all_kinds(self) -> tuple[str, ...]:
        return (*self.kinds, *self.cluster_scoped)


class Assumptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the cluster before the first step."""

    kubernetes: str = ""
    only: bool = False
    """Whether nothing else is there: no prerequisite is assumed."""
    absent: tuple[str, ...] = ()
    """Objects that are not there, `Kind/namespace/name` or `Kind/name`: they are not assumed."""
    operators: tuple[Operator, ...] = ()
    crds: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    load_balancers: str = msgspec.field(default="", name="loadBalancers")
    """Who gives LoadBalancer Services an address: `none`, or a Deployment `namespace/name`; the platform if empty."""
    ingresses: str = ""
    """The same for Ingresses."""
    storage_classes: tuple[StorageClass, ...] = msgspec.field(default=(), name="storageClasses")


class StepExpectation(Struct, frozen=True, forbid_unknown_fields=True):
    """What must be so when a step has ended and the cluster has settled."""

    outcome: Literal["ok", "failed", "hung", ""] = ""
    """How the step ends; empty is ok."""
    exists: tuple[str, ...] = ()
    """Objects that are there: `Kind/namespace/name` or `Kind/name`."""
    absent: tuple[str, ...] = ()
    """Objects that are not."""


class Expectations(Struct, frozen=True, forbid_unknown_fields=True):
    """What must be so for the whole trial."""

    never_deleted: tuple[str, ...] = msgspec.field(default=(), name="neverDeleted")
    """Objects that no step deletes, except those that remove their release."""
    no_findings: tuple[str, ...] = msgspec.field(default=(), name="noFindings")
    """Rules that must report nothing: names, codes, or beginnings of codes such as ST2."""
    allow_findings: tuple[str, ...] = msgspec.field(default=(), name="allowFindings")
    """Rules that may report something although `noFindings` covers them."""


class Expected(Struct, frozen=True):
    """Everything that a trial file says must be so, with what it says of each step."""

    steps: tuple[StepExpectation, ...] = ()
    trial: Expectations = Expectations()

    @property
    def is_empty(self) -> bool:
        return self.trial == Expectations() and all(one == StepExpectation() for one in self.steps)


class NextVersion(Struct, frozen=True):
    """A chart that is raised in memory, as its next release would be: version, appVersion and image tags."""

    version: str
    kept: tuple[str, ...] = ()
    """Image tags that stay: the chart does not render with another one."""


class Step(Struct, frozen=True):
    """One action of one engine."""

    action: str
    source: str = ""
    """A path for actions that have one; the object for `delete`."""
    revision: int = 0
    """For `rollback`; 0 is the previous one."""
    values: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    settle: bool = True
    repos: dict[str, str] = {}
    """Local checkouts of repositories for this step, by URL, as with `--repo`."""
    kill: str = ""
    """When the engine's process dies: before it writes `Kind/namespace/name` (`*` is its first object), or after so
    many writes."""
    needs: tuple[str, ...] = ()
    """In a `rebuild`: the releases that come before, `name` or `namespace/name`, as in helmfile."""
    steps: tuple[Step, ...] = ()
    """For `rebuild`: rehearsed on an empty cluster."""
    fresh: bool = False
    """Whether the cluster is empty when this step begins: the first of a rebuild."""
    expect: StepExpectation = StepExpectation()
    next: NextVersion | None = None
    """Deploys the next version of the source, which is simulated."""


class Trial(Struct, frozen=True):
    engines: tuple[EngineId, ...]
    steps: tuple[Step, ...]
    namespace: str = "default"
    release: str = ""
    assume: Assumptions = Assumptions()
    expect: Expectations = Expectations()


class StepOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The optional keys of a step."""

    values: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    settle: bool = True
    repos: dict[str, str] = {}
    kill: bool | int | str = False
    needs: tuple[str, ...] = ()
    expect: StepExpectation = StepExpectation()


class TrialFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A trial file as written."""

    steps: list[Any]
    engine: str | list[str] = "helm"
    namespace: str = "default"
    release: str = ""
    assume: Body = {}
    expect: Expectations = Expectations()


ActionsOf = Callable[[str], tuple[Action, ...]]
"""The actions of an engine by its name; raises `CannotContinue` if there is none."""


def parse(data: Any, actions_of: ActionsOf, *, place: str) -> Trial:
    """Parse the content of a trial file; `place` names it in errors."""
    written = _converted(data, TrialFile, place)
    named = (written.engine,) if isinstance(written.engine, str) else tuple(written.engine)
    engines = tuple(map(engine_id, named))
    try:
        known = {action.name: action.takes for engine in engines for action in actions_of(engine.name)}
    except CannotContinue as why:
        raise CannotContinue(f"{place}: engine: {why}") from None
    if not written.steps:
        raise CannotContinue(f"{place}: steps: a trial needs at least one step")
    for name in ANYONES:
        known.setdefault(name, "source")
    steps = tuple(_step(entry, known, f"{place}: steps[{index}]") for index, entry in enumerate(written.steps))
    assume = {**written.assume, "operators": list(_operators(written.assume.get("operators"), place))}
    known_state = _converted(assume, Assumptions, f"{place}: assume")
    return Trial(engines, steps, written.namespace, written.release, known_state, written.expect)


def _step(written: Any, known: Mapping[str, Takes], place: str) -> Step:
    """From `upgrade: chart` with its optional keys, or the action alone: `uninstall`."""
    entry: Body = written if isinstance(written, dict) else {written: None} if isinstance(written, str) else {}
    acts = [key for key in entry if key in known]
    if len(acts) != 1:
        raise CannotContinue(f"{place}: a step names one act; known are {', '.join(known)}")
    action, what = acts[0], entry[acts[0]]
    beside = _converted({k: v for k, v in entry.items() if k != action}, StepOptions, place)
    fields = {**msgspec.structs.asdict(beside), "kill": FIRST_OBJECT if beside.kill is True else str(beside.kill or "")}
    if action == "rebuild":
        if not isinstance(what, list) or not what:
            raise CannotContinue(f"{place}: rebuild takes a list of steps")
        steps = tuple(_step(e, known, f"{place}.rebuild[{i}]") for i, e in enumerate(what))
        return Step(action, steps=_as_needed(steps, place), **fields)
    match known[action]:
        case "revision":
            return Step(action, revision=_revision(what, place), **fields)
        case "nothing":
            if what not in (None, {}, ""):
                raise CannotContinue(f"{place}: {action} takes no value; release: NAME says which release it is")
            return Step(action, **fields)
        case "optional source" if what in (None, {}):
            return Step(action, **fields)
    if not isinstance(what, str) or not what:
        raise CannotContinue(f"{place}: {action} names what it is about: a path, or for delete Kind/namespace/name")
    return Step(action, what, **fields)


def _as_needed(steps: tuple[Step, ...], place: str) -> tuple[Step, ...]:
    """The steps of a rebuild in the order of their `needs`, in groups, one after the other, as helmfile runs them.

    Needs order commands. Their objects are only waited for if a step says so (`--wait`).
    """
    if not any(step.needs for step in steps):
        return steps
    names = {name for step in steps for name in _names(step)}
    for step in steps:
        for need in step.needs:
            if need not in names:
                raise CannotContinue(f'{place}: release "{_names(step)[0]}" depends on an undefined release "{need}"')
    left, ordered = list(steps), list[Step]()
    while left:
        there = {name for step in ordered for name in _names(step)}
        ready = [step for step in left if all(need in there for need in step.needs)]
        if not ready:
            going_round = ", ".join(_names(step)[0] for step in left)
            raise CannotContinue(f"{place}: these need one another: {going_round}")
        ordered += ready
        left = [step for step in left if step not in ready]
    return tuple(msgspec.structs.replace(step, settle=step is ordered[-1] or waits(step.flags)) for step in ordered)


def waits(flags: Iterable[str]) -> bool:
    """Whether Helm waits for objects to become ready, by its flags."""
    return any(flag.partition("=")[0] in WAITS for flag in flags)


def _names(step: Step) -> tuple[str, str]:
    """The names of a step: that of its release or of what it deploys, without and with its namespace."""
    name = step.release or PurePath(step.source).name
    return name, f"{step.namespace}/{name}"


def _revision(what: Any, place: str) -> int:
    if what in (None, {}):
        return 0
    if not isinstance(what, int) or isinstance(what, bool) or what < 0:
        raise CannotContinue(f"{place}: rollback takes the number of a revision, not {what!r}")
    return what


def _operators(written: Any, place: str) -> Iterator[Body]:
    """`name@version`, or the whole description."""
    if not isinstance(written or [], list):
        raise CannotContinue(f"{place}: operators: a list, not {written!r}")
    for entry in written or ():
        if isinstance(entry, str):
            name, _, version = entry.partition("@")
            yield {"name": name, "version": version}
        elif isinstance(entry, dict):
            yield entry
        else:
            raise CannotContinue(f"{place}: assume.operators: {entry!r} is neither name@version nor a description")


T = TypeVar("T")


def _converted(data: Any, shape: type[T], place: str) -> T:
    try:
        return msgspec.convert(data, shape)
    except msgspec.ValidationError as wrong:
        raise CannotContinue(f"{place}: {_plain(str(wrong), shape)}") from wrong


def _plain(text: str, shape: type) -> str:
    """msgspec's error, with the path in plain words, and the valid names if one is unknown."""
    sentence, _, path = text.partition(" - at `$")
    at = path.rstrip("`").lstrip(".")
    if at:
        return f"{at}: {sentence}"
    known = ", ".join(field.encode_name for field in msgspec.structs.fields(shape))
    return f"{sentence}; known are {known}" if "unknown field" in sentence else sentence
