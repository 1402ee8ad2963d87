"""The stacks of one cluster: what Pulumi remembers of each from one step to the next."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.engines.engine import Before
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.helm.ownership import RELEASE_NAME
from seatrial.model.program import Program
from seatrial.model.resource import Body, annotations_of, name_of


class Stacks:
    """The checkpoint of each release, from before it is first brought up."""

    def __init__(self, before: Before) -> None:
        self._assumed = before.assumed
        self._stacks: dict[str, Checkpoint] = {}

    def of(self, release: str, program: Program) -> Checkpoint:
        if release not in self._stacks:
            self._stacks[release] = stack_before(program, self._assumed)
        return self._stacks[release]


def stack_before(program: Program, assumed: Iterable[Body]) -> Checkpoint:
    """The stack of a program before it is first brought up: it has the namespaces that were created ahead for others.

    What is assumed to be in a namespace of the program needs it; that it is the program's, Pulumi would not know.
    """
    ahead = {name_of(body): body for body in assumed if body.get("kind") == "Namespace" and _is_taken_over(body)}
    stack = Checkpoint()
    for one in program.registrations:
        if one.ref is not None and one.ref.kind == "Namespace" and one.ref.name in ahead:
            stack.put(replace(one, object=ahead[one.ref.name]))
    return stack


def _is_taken_over(namespace: Body) -> bool:
    return RELEASE_NAME in annotations_of(namespace)
