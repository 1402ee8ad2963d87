"""Engines as scripts: a generator says commands and is sent answers. One driver plays them on any cluster."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, Protocol

from msgspec import Struct

from seatrial.engines import Ended
from seatrial.resource import Body

Verb = Literal["get", "list", "create", "apply", "strategic", "merge", "update", "delete"]


class Command(Struct, frozen=True):
    """One request, as a client that knows kinds rather than paths would say it."""

    verb: Verb
    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    body: Body | None = None
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    propagation: str = ""


class Answer(Struct, frozen=True):
    """What came back; `message` is the API server's refusal, empty where it was done."""

    code: int
    body: Body = {}
    message: str = ""
    served: bool = True
    """Whether the API has such a kind at all."""


Script = Generator[Command, Answer, Ended]


class Client(Protocol):
    """Whoever carries commands to a cluster: the embedded one, or a live one."""

    def do(self, command: Command) -> Answer: ...


def play(script: Script, client: Client) -> Ended:
    """Carry a script's commands to a cluster until it ends."""
    answer: Answer | None = None
    try:
        while True:
            command = next(script) if answer is None else script.send(answer)
            answer = client.do(command)
    except StopIteration as ended:
        result: Ended = ended.value
        return result
