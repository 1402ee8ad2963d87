"""TRUTH: what is so in Kubernetes about each kind, whoever deploys it. Knows no engine and no cluster implementation.

One file per kind (or per family that is one idea, such as RBAC) exports `KINDS`. It says what an object needs and when
the lack bites (`needs`), what it makes and does (`behave`), and which fields may not change (`frozen`). `world` is all
of the cluster that a kind may see.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Literal, Protocol

from msgspec import Struct

from seatrial.model.resource import Body, Ref

Stage = Literal["admit", "schedule", "start", "ready", "serve", "delete"]


class Need(Struct, frozen=True):
    """This field names that object; `stage` says when its lack bites."""

    object: Ref
    stage: Stage
    field: tuple[str | int, ...]
    optional: bool = False
    key: str = ""
    """A key that must be in the object's data, where one is named."""
    guess: bool = False
    """Read from text (a Service's DNS name in an env value), not from a field that Kubernetes resolves."""


class World(Protocol):
    """The cluster as a controller sees it. Every look is remembered: what was seen wakes the looker when it changes."""

    def get(self, ref: Ref) -> Body | None: ...

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        """Objects whose controller is `owner`, by name."""
        ...

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        """Objects that carry all of `labels` (which are not empty), by name."""
        ...

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        """Every object of a kind, in one namespace or in all of them, by namespace and name."""
        ...

    def content(self, namespace: str) -> list[Body]:
        """Every object in a namespace."""
        ...

    def running(self, image: str) -> list[Body]:
        """Deployments, StatefulSets and DaemonSets that run an image of this name, from whichever registry."""
        ...

    def using(self, claim: Ref) -> list[Body]:
        """Pods that use a PersistentVolumeClaim, by name."""
        ...

    def volumes_for(self, claim: Ref) -> list[Body]:
        """PersistentVolumes that name this claim or none, by name."""
        ...

    def served(self, kind: str, group: str) -> bool: ...

    @property
    def unlucky(self) -> bool:
        """Whether what Kubernetes leaves open (which node, which of two first) falls badly: so in the lazy schedule."""
        ...

    @property
    def at_rest(self) -> bool:
        """Whether nobody is at work any more: what waits for nothing but time happens then."""
        ...


class Create(Struct, frozen=True):
    """Make an object. With `owner`, it is made on that object's behalf and garbage-collected with it.

    The API server may refuse: its words are sent back into the generator (None where it was done), and whatever it
    looked at to decide (a ServiceAccount, a quota, a webhook's backend) wakes the controller when it changes.
    """

    body: Body
    owner: Body | None = None


class Status(Struct, frozen=True):
    """Set the whole status of an object; nothing happens where it is already so."""

    body: Body
    status: Body


class Change(Struct, frozen=True):
    """Put this body in place of the object of the same name; nothing happens where it is already so."""

    body: Body
    by: str = ""
    """Who does it, and owns the fields, where that is not the controller: what runs in a pod."""


class Delete(Struct, frozen=True):
    """Ask for deletion as a client would; `now` removes an object whose grace is over (the kubelet's last word)."""

    body: Body
    why: str = ""
    now: bool = False
    unasked: bool = False
    """Whether the API server does it itself, which then asks no webhook."""


PRINTED = "Printed"
"""The reason of what a container printed: it stands in its log, and is no event of the API."""


class Say(Struct, frozen=True):
    """What a kubelet, a scheduler or a controller would say of an object, in its own words; once until it changes."""

    body: Body
    reason: str
    message: str
    warning: bool = True


Act = Create | Status | Change | Delete | Say
Acts = Generator[Act, str | None, None]
"""What a controller does in one go: acts out, the API server's refusal (or None) in. Called again after any change."""


class Deadline(Struct, frozen=True):
    """What a controller does of its own accord when nothing has moved for so long."""

    seconds: int
    acts: Acts


def _needs_nothing(body: Body) -> Iterator[Need]:
    return iter(())


def _produces_nothing(body: Body) -> Iterator[Ref]:
    return iter(())


def stays(body: Body, world: World) -> Acts:
    """Does nothing: being there is all there is to it."""
    yield from ()


class Frozen(Protocol):
    """The words of Kubernetes 1.`minor` for each field that may not change, as `field: Invalid value: ...`."""

    def __call__(self, old: Body, new: Body, minor: int = ..., /) -> Iterator[str]: ...


class Kind(Struct, frozen=True):
    """What is true of one kind."""

    kind: str
    group: str = ""
    actor: str = ""
    """The controller that behaves for it, as the timeline names it: `deployment-controller`."""
    needs: Callable[[Body], Iterator[Need]] = _needs_nothing
    behave: Callable[[Body, World], Acts] = stays
    produces: Callable[[Body], Iterator[Ref]] = _produces_nothing
    """The objects that it leads to by name, while whoever acts on it runs: an ExternalSecret a Secret."""
    frozen: Frozen | None = None
    default: Callable[[Body], Body] | None = None
    """The body with what the API server fills in, where that decides an outcome. Must not change its argument."""
    prepare: Callable[[Body, Body | None], Body] | None = None
    """(new, old) -> what is stored, after defaults: what is made up at creation (old is None, the uid is there already:
    a clusterIP, a Job's selector, protection finalizers) or kept over an update. Upstream: PrepareForCreate/Update."""
    deleting: Callable[[Body], Body] | None = None
    """The body once its deletion was asked for, with what the API server itself adds: a CRD's cleanup finalizer."""
    deadline: Callable[[Body, World], Deadline | None] | None = None
    """What waits for nothing but the clock; None while no deadline runs. Kinds themselves know no time."""
    ready: Callable[[Body], bool] | None = None
    """Truly ready, not what an engine believes; absent where being there is enough."""


@cache
def known() -> dict[tuple[str, str], Kind]:
    """Every kind of this folder, by (group, kind)."""
    found = {}
    for module in sorted(walk_packages(__path__, f"{__name__}."), key=lambda m: m.name.rpartition(".")[2]):
        for kind in getattr(import_module(module.name), "KINDS", ()):
            found[kind.group, kind.kind] = kind
    return found
