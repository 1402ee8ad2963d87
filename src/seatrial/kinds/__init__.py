"""TRUTH: how each kind behaves in Kubernetes, whichever engine deploys it. Knows no engine and no cluster.

One file per kind (or per family, such as RBAC) exports `KINDS`. It lists what an object needs and at which stage a
missing object is noticed (`needs`), what its controller does (`behave`), and which fields are immutable (`immutable`).
`World` is the part of the cluster that a kind may see.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Literal, Protocol

from msgspec import Struct

from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import NotFollowed

Stage = Literal["admit", "schedule", "start", "ready", "serve", "delete"]


class Need(Struct, frozen=True):
    """A field of an object that names another object. `stage` is when its absence is noticed."""

    object: Ref
    stage: Stage
    field: tuple[str | int, ...]
    optional: bool = False
    key: str = ""
    """A key that must be in the object's data, if the field names one."""
    guess: bool = False
    """Read from text (a Service's DNS name in an env value), not from a field that Kubernetes resolves."""
    program: bool = False
    """Asked for by the script of a container."""


class World(Protocol):
    """The cluster as a controller sees it. Reads are recorded: the controller runs again when one of them changes."""

    def get(self, ref: Ref) -> Body | None: ...

    def peek(self, ref: Ref) -> Body | None:
        """Like `get`, but a wait for the reader does not include this object."""
        ...

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        """Objects whose controller is `owner`, by name."""
        ...

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        """Objects that have all of `labels` (not empty), by name."""
        ...

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        """Every object of a kind, in one namespace or in all of them, by namespace and name."""
        ...

    def content(self, namespace: str) -> list[Body]:
        """Every object in a namespace."""
        ...

    def running(self, image: str) -> list[Body]:
        """Deployments, StatefulSets and DaemonSets that run an image of this name, from any registry."""
        ...

    def using(self, claim: Ref) -> list[Body]:
        """Pods that use a PVC, by name."""
        ...

    def volumes_for(self, claim: Ref) -> list[Body]:
        """PersistentVolumes that name this PVC or no PVC, by name."""
        ...

    def served(self, kind: str, group: str) -> bool: ...

    @property
    def worst_case(self) -> bool:
        """Whether choices that Kubernetes leaves open (a node, an order) turn out badly: in the lazy schedule."""
        ...

    @property
    def idle(self) -> bool:
        """Whether all controllers are idle. Things that wait only for time happen then."""
        ...

    @property
    def now_seconds(self) -> float:
        """The cluster's clock. It advances only when everything waits for time."""
        ...

    def age_seconds(self, body: Body) -> float:
        """How long ago an object was created, on that clock."""
        ...

    def memory(self, uid: str) -> dict[str, Any]:
        """What a program remembers of an object, such as that of a pod: not part of it, and gone with it."""
        ...


class Create(Struct, frozen=True):
    """Create an object. With `owner`, the object is owned by that object and garbage-collected with it.

    The API server may refuse: that is sent back into the generator (None on success). Objects that it read for the
    decision (a ServiceAccount, a quota, a webhook's backend) make the controller run again when they change.
    """

    body: Body
    owner: Body | None = None
    by: str = ""
    """The actor, if it is not the controller: the program in a pod."""


class Status(Struct, frozen=True):
    """Set the whole status of an object. A no-op if it is the same."""

    body: Body
    status: Body


class Update(Struct, frozen=True):
    """Replace the object of the same name by this body. A no-op if it is the same."""

    body: Body
    by: str = ""
    """The actor and field manager, if it is not the controller: the program in a pod."""


class Delete(Struct, frozen=True):
    """Request deletion as a client does. `now` removes an object whose grace period is over, as the kubelet does."""

    body: Body
    why: str = ""
    now: bool = False
    skip_webhooks: bool = False
    """Whether the API server itself deletes it, which calls no webhooks."""


class Call(Struct, frozen=True):
    """A request of the program in a pod, which the API server treats like that of any client."""

    verb: Literal["create", "update", "patch", "delete"]
    api_version: str
    kind: str
    by: str
    """The actor: the program's Job or pod."""
    namespace: str = ""
    name: str = ""
    body: Any = None
    patch_type: Literal["json", "merge", "strategic", "apply"] | None = None
    subresource: str = ""
    field_manager: str = ""
    propagation: str = ""
    force: bool = False
    dry_run: bool = False
    not_followed: NotFollowed | None = None
    """The line of the script that gives a value which is not known: the body has a made-up one."""


PRINTED = "Printed"
"""The reason of a line that a container printed. It is in the container's log and not an Event of the API."""


NOT_FOLLOWED = "NotFollowed"
"""The reason of a note that a line of a script is not evaluated. No cluster reports it."""


class Emit(Struct, frozen=True):
    """An Event that a kubelet, scheduler or controller reports about an object, once until it changes."""

    body: Body
    reason: str
    message: str
    warning: bool = True
    refusal: Refusal | None = None
    """The refusal that the message quotes."""
    missing: tuple[Ref, ...] = ()
    """The objects that the message reports as missing."""
    key: str = ""
    """The missing key, if the object in `missing` exists."""
    held_by: tuple[Ref, ...] = ()
    """The pods that hold the volume that a pod waits for."""
    not_followed: NotFollowed | None = None
    """What the rehearsal does not know of a script."""


Act = Create | Status | Update | Delete | Emit | Call
Acts = Generator[Act, Refusal | None, None]
"""What a controller does in one run: acts out, the API server's refusal (or None) in. Runs again after any change."""


class Deadline(Struct, frozen=True):
    """What a controller does if nothing has changed for this long."""

    seconds: float
    acts: Acts
    since: Literal["change", "creation", "now"] = "change"
    """From when it counts: the last change of the object, its creation, or now."""
    says: str = ""
    """What the clock says of it."""


def _needs_nothing(body: Body) -> Iterator[Need]:
    return iter(())


def _produces_nothing(body: Body) -> Iterator[Ref]:
    return iter(())


def inert(body: Body, world: World) -> Acts:
    """Does nothing: the kind has no controller."""
    yield from ()


def always(body: Body) -> bool:
    return True


def never(body: Body) -> bool:
    return False


class ImmutableFields(Protocol):
    """The errors of Kubernetes 1.`minor` for each changed immutable field, as `field: Invalid value: ...`."""

    def __call__(self, old: Body, new: Body, minor: int = ..., /) -> Iterator[str]: ...


class Kind(Struct, frozen=True):
    """The behaviour of one kind."""

    kind: str
    group: str = ""
    actor: str = ""
    """Its controller, as the timeline names it: `deployment-controller`."""
    needs: Callable[[Body], Iterator[Need]] = _needs_nothing
    behave: Callable[[Body, World], Acts] = inert
    quick: Callable[[Body], bool] = never
    """Whether its controller needs milliseconds for this object as it is now: what the control plane does by itself.
    Others need a node, an image, an operator, a volume or a certificate, and so seconds."""
    late: Callable[[Body], bool] = never
    """Whether its controller lets seconds pass before it acts, on every cluster: not before a client waits."""
    produces: Callable[[Body], Iterator[Ref]] = _produces_nothing
    """The objects it leads to by name, while its controller runs: an ExternalSecret leads to a Secret."""
    immutable: ImmutableFields | None = None
    default: Callable[[Body], Body] | None = None
    """The body with the API server's defaults, if they affect an outcome. Must not change its argument."""
    prepare: Callable[[Body, Body | None], Body] | None = None
    """(new, old) -> the stored body, after defaults. Sets values generated at creation (old is None, the uid is set: a
    clusterIP, a Job's selector, protection finalizers) and keeps values over an update. Upstream:
    PrepareForCreate/Update."""
    deleting: Callable[[Body], Body] | None = None
    """The body after a deletion request, with what the API server adds: a CRD's cleanup finalizer."""
    deadline: Callable[[Body, World], Deadline | None] | None = None
    """What only waits for time; None while no deadline runs. Kinds have no clock."""
    ready: Callable[[Body], bool] | None = None
    """Whether it is really ready, not what an engine believes. None if existing is enough."""


@cache
def known() -> dict[tuple[str, str], Kind]:
    """Every kind in this package, by (group, kind)."""
    found = {}
    for module in sorted(walk_packages(__path__, f"{__name__}."), key=lambda m: m.name.rpartition(".")[2]):
        for kind in getattr(import_module(module.name), "KINDS", ()):
            found[kind.group, kind.kind] = kind
    return found
