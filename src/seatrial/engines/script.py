"""Engines as scripts: a generator yields what it does and is sent answers. One driver plays them on any cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from seatrial.engines import Ended, Stuck
from seatrial.engines.act import HelmAct
from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.resource import Body, Ref, dig, group_of
from seatrial.model.timeline import Effect

Verb = Literal["get", "list", "create", "apply", "strategic", "merge", "update", "delete", "discover"]
WRITES: tuple[Verb, ...] = ("create", "apply", "strategic", "merge", "update", "delete")
LOOKS_MAX = 10_000


class Command(Struct, frozen=True):
    """One request, by kind rather than by path.

    `discover` asks whether a kind is served. Its answer holds whether it is `namespaced`, and its `plural`; for a kind
    that is not served in this version, the `apiVersion` in which it is, of its own group or else of another one.
    """

    verb: Verb
    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    body: Body | None = None
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    unheard: bool = False
    """Whether no engine sends this: a probe that leaves no trace in the timeline."""
    propagation: str = ""
    subresource: str = ""
    field_validation: str = ""
    """Strict, Warn or Ignore; empty is the server's default, Warn."""

    @property
    def ref(self) -> Ref:
        name = self.name or str(dig(self.body, "metadata", "name") or "")
        return Ref(self.kind, self.namespace, name, group_of(self.api_version))


class DescribedObject(Struct, frozen=True):
    """An object that a source describes: what it is named, and what it should be."""

    ref: Ref
    body: Body


class Survey(Struct, frozen=True):
    """Read all objects of all kinds, as a client with watches does; the answer holds `items`."""


class Pause(Struct, frozen=True):
    """Sleep for a moment. The answer is `quick` if the cluster's controllers use it."""


class Wait(Struct, frozen=True):
    """Wait for these objects until anything changes; the answer is `stuck` where nothing ever will."""

    refs: tuple[Ref, ...]


class Render(Struct, frozen=True):
    """Render a chart on this cluster as it is now, with what `lookup` finds there; leaves no trace in the timeline.

    The answer holds the `release` as Helm records it. It has a message if Helm cannot render it, and is not `served` if
    the API serves one of its kinds not.
    """

    act: HelmAct
    """An install or an upgrade with the values of the release, none of which are kept from earlier."""
    revision: int


class Outwait(Struct, frozen=True):
    """Advance time to the earliest deadline of these objects, if it is within `seconds`.

    The answer holds the objects whose deadline it was and after how many seconds, as `late`: empty if there is none.
    """

    refs: tuple[Ref, ...]
    seconds: float = float("inf")


class Bring(Struct, frozen=True):
    """An object has done what cannot be rehearsed: what it is known to bring is there from now on.

    `early` is what comes before its own objects: the crds/ folders of its charts.
    """

    object: Ref
    early: bool = False


class Say(Struct, frozen=True):
    """Record something that no request shows."""

    object: Ref
    words: str
    effect: Effect = "said"
    failure: Failure = NO_FAILURE
    """Why what it says has failed."""


class Answer(Struct, frozen=True):
    """What came back; `message` is the API server's refusal, empty on success."""

    code: int
    body: Body = {}
    message: str = ""
    reason: str = ""
    """That of the refusal: NotFound, Invalid; empty if the API server gives none."""
    served: bool = True
    """Whether the API serves the kind."""
    failure: Failure = NO_FAILURE
    """Why it was not done."""
    stuck: Stuck | None = None
    quick: bool = False
    """Whether controllers are done after seconds (not on a slow cluster); only in answers to `Pause`."""
    instant: bool = False
    """Whether they are done before the client's next request (fast cluster); only in answers to `Pause`."""


class Error(Struct, frozen=True):
    """What an engine reports, and why; false where nothing went wrong."""

    words: str = ""
    failure: Failure = NO_FAILURE

    def __bool__(self) -> bool:
        return bool(self.words)


NO_ERROR = Error()

T = TypeVar("T")
L = TypeVar("L")
Line = Command | Survey | Pause | Wait | Outwait | Render | Bring | Say | HelmAct
Part = Generator[Line, Answer, T]
"""A part of a script, and its result."""
Script = Part[Ended]


class Described(Protocol):
    """A target, or anything else that says which object it is and what it should be."""

    @property
    def ref(self) -> Ref: ...
    @property
    def body(self) -> Body: ...


def about(
    described: Described,
    verb: Verb,
    body: Body | None = None,
    *,
    manager: str = "",
    force: bool = False,
    dry_run: bool = False,
    unheard: bool = False,
    propagation: str = "",
) -> Command:
    """A request about an object, in the API version of its manifest."""
    ref, api_version = described.ref, str(described.body.get("apiVersion", ""))
    of = (verb, api_version, ref.kind, ref.namespace, ref.name, body, manager, force, dry_run, unheard, propagation)
    return Command(*of)


class LineSender(Protocol):
    """Sends lines to a cluster: the embedded one, or a live one."""

    def do(self, line: Line) -> Answer: ...


def play(script: Script, client: LineSender) -> Ended:
    """Send a script's lines to a cluster until it ends."""
    answer: Answer | None = None
    try:
        while True:
            answer = client.do(next_line(script, answer))
    except StopIteration as ended:
        result: Ended = ended.value
        return result


def carry(script: Part[T], on_line: Callable[[Line, Answer], Part[T | None]]) -> Part[T]:
    """Yield the lines of an inner script, and react to each one's answer. A result of `on_line` ends the script."""
    answer: Answer | None = None
    while True:
        try:
            line = next_line(script, answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = yield line
        early = yield from on_line(line, answer)
        if early is not None:
            return early


def next_line(script: Generator[L, Answer, Any], answer: Answer | None) -> L:
    """The next line of a script, or its first; raises StopIteration with its result when it has ended."""
    return next(script) if answer is None else script.send(answer)


def wait_until(
    look: Callable[[], Part[tuple[Ref, ...] | None]],
    patience_seconds: float = float("inf"),
    state: Callable[[], Part[object]] | None = None,
) -> Part[Stuck | None]:
    """Wait until `look` finds nothing to wait for (None). The wait that cannot end, if that takes too long.

    Where `look` also acts, `state` reads what its next look depends on: while that changes, the wait is not stuck.
    """
    before: object = None
    refs: tuple[Ref, ...] | None = ()
    for _ in range(LOOKS_MAX):
        refs = yield from look()
        if refs is None:
            return None
        stuck = (yield Wait(refs)).stuck
        now = (yield from state()) if state else None
        if stuck is not None and now == before:
            late: dict[Ref, float] = (yield Outwait(refs, patience_seconds)).body["late"]
            if state:
                yield from state()
            if not late:
                return stuck
            patience_seconds -= max(late.values())
        before = now
    return Stuck(f"more than {LOOKS_MAX} looks", refs or (), ())
