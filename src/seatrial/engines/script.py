"""Engines as scripts: a generator says what it does and is sent answers. One driver plays them on any cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from seatrial.engines import Ended, Stuck
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Effect

Verb = Literal["get", "list", "create", "apply", "strategic", "merge", "update", "delete", "discover"]


class Command(Struct, frozen=True):
    """One request, as a client that knows kinds rather than paths would say it.

    `discover` asks whether a kind is served. Its answer holds whether it is `namespaced`, and its `versions`.
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
    """Whether no engine asks this, and it leaves no trace."""
    propagation: str = ""
    subresource: str = ""


class Survey(Struct, frozen=True):
    """Look at everything there is, as who watches all kinds does; the answer holds `items`."""


class Pause(Struct, frozen=True):
    """Leave a moment to others; the answer's code is 200 where they use it, and 204 where nobody is so fast."""


class Wait(Struct, frozen=True):
    """Wait for these objects until anything changes; the answer is `stuck` where nothing ever will."""

    refs: tuple[Ref, ...]


class Outwait(Struct, frozen=True):
    """Nothing moves: wait for these until the first of their deadlines passes; after `seconds` nobody waits any more.

    The answer holds whose it was and after how many seconds, as `late`; it is empty where there is no such deadline.
    """

    refs: tuple[Ref, ...]
    seconds: float = float("inf")


class Say(Struct, frozen=True):
    """Put something on record that no request shows."""

    object: Ref
    words: str
    effect: Effect = "said"


class Helm(Struct, frozen=True):
    """Have the real Helm do one act; `message` of the answer is its error, `stuck` where it would wait for ever."""

    action: str
    release: str
    namespace: str
    chart: Callable[[], Any] | None = None
    values: Body = {}
    flags: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """What came back; `message` is the API server's refusal, empty where it was done."""

    code: int
    body: Body = {}
    message: str = ""
    served: bool = True
    """Whether the API has such a kind at all."""
    stuck: Stuck | None = None


T = TypeVar("T")
Line = Command | Survey | Pause | Wait | Outwait | Say | Helm
Part = Generator[Line, Answer, T]
"""A piece of a script, and what it finds out."""
Script = Part[Ended]


class Client(Protocol):
    """Whoever carries commands to a cluster: the embedded one, or a live one."""

    def do(self, line: Line) -> Answer: ...


def play(script: Script, client: Client) -> Ended:
    """Carry a script's lines to a cluster until it ends."""
    answer: Answer | None = None
    try:
        while True:
            line = next(script) if answer is None else script.send(answer)
            answer = client.do(line)
    except StopIteration as ended:
        result: Ended = ended.value
        return result
