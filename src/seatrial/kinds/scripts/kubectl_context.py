"""One call of kubectl in a script: what it names, what it may do, and how it sends requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import msgspec

from seatrial.kinds import Call
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import KubectlCall
from seatrial.kinds.scripts.kubectl_calls import (
    ApiRequest,
    targets_of,
)
from seatrial.kinds.scripts.kubectl_objects import has_stand_in, objects_in
from seatrial.kinds.scripts.program import ContainerProgram, NamedTarget, listed_objects, refs_of, target_of
from seatrial.kinds.scripts.resource_names import of_kind
from seatrial.kinds.scripts.run_state import CommandReply, RunState
from seatrial.model import lazy_re
from seatrial.model.refusal import Refusal
from seatrial.model.resource import (
    Body,
    Ref,
    group_of,
    metadata,
    name_of,
    with_metadata,
)
from seatrial.model.timeline import NotFollowed

INVALID = lazy_re.compile(r'^(?P<kind>\w+)[\w.-]* "(?P<name>[^"]*)" is invalid: ')


NOT_KNOWN = CommandReply(None)


class KubectlContext(msgspec.Struct, frozen=True):
    """One call."""

    call: KubectlCall
    program: ContainerProgram
    state: RunState
    asks: tuple[ApiRequest, ...]
    refusals: list[Refusal]

    @property
    def flags(self) -> dict[str, str]:
        return self.call.flags

    @property
    def is_dry(self) -> bool:
        return self.flags.get("--dry-run", "none") == "server"

    def targets(self) -> list[NamedTarget] | None:
        """What the call names; None where that is not known."""
        found = [target_of(one, self.call, self.program.definitions) for one in targets_of(self.call)]
        known = [one for one in found if one is not None and UNKNOWN not in one.ref.name]
        return known if known and len(known) == len(found) else None

    def get(self, ref: Ref) -> Body | None:
        return self.state.run.look(lambda: self.program.peek(ref))

    def send(
        self, verb: Literal["create", "update", "patch", "delete"], target: NamedTarget, **more: Any
    ) -> Refusal | None:
        """Send a request; the right to it has been checked."""
        ref, api_version = target.ref, more.pop("api_version", f"{target.ref.group}/")
        self.state.sends += 1
        refusal = self.state.run.send(
            Call(
                verb,
                api_version,
                ref.kind,
                self.program.actor,
                ref.namespace,
                ref.name,
                field_manager=more.pop("manager", f"kubectl-{self.call.verb.partition(' ')[0]}"),
                dry_run=self.is_dry,
                not_followed=self.made_up(more.get("body")),
                **more,
            )
        )
        self.refusals.extend([refusal] if refusal is not None else [])
        return refusal

    def made_up(self, body: Any) -> NotFollowed | None:
        """The line that gives a value which is not known, if the body has a made-up one."""
        given = "".join((*self.call.words, *self.call.flags.values(), self.call.stdin))
        line = self.state.scope.blamed or self.state.scope.line
        if line is None or not (UNKNOWN in given or has_stand_in(body)):
            return None
        return NotFollowed(line, self.program.owner, made_up=True)

    def refused(self, verb: str, resource: str) -> str | None:
        """The error where a request that depends on what is there may not be sent."""
        for ask in self.asks:
            if ask.access.verb == verb and ask.access.resource == resource and ask.certainty == "may":
                return self.state.run.look(partial(self.program.refuses, ask))
        return None


def complaint(refusal: Refusal, doing: str = "") -> str:
    """kubectl's words for a refusal."""
    if (found := INVALID.match(refusal.message)) and refusal.reason == "Invalid":
        return f'The {found["kind"]} "{found["name"]}" is invalid: {refusal.message[found.end() :]}'
    return f"Error from server ({refusal.reason or 'InternalError'}): {doing}{refusal.message}"


def not_found(target: NamedTarget) -> str:
    return f'Error from server (NotFound): {target.resource} "{target.ref.name}" not found'


def existing(at: KubectlContext) -> Iterator[tuple[NamedTarget, Body | None]]:
    """The objects that a call is about, each as it is; None for a missing one."""
    for target in at.targets() or ():
        if target.ref.name:
            yield target, at.get(target.ref)
            continue
        selector = at.flags.get("-l", "")
        bodies = at.state.run.look(partial(listed_objects, target, selector, at.program.world)) or []
        for ref, body in zip(refs_of(target, bodies), bodies, strict=True):
            yield NamedTarget(ref, target.plural), body


def with_objects(at: KubectlContext, act: Callable[[KubectlContext, Body, NamedTarget], CommandReply]) -> CommandReply:
    """Do something with each object of the input; what fails does not stop the rest."""
    bodies = objects_in(at.call.stdin) if at.flags.get("-f") == "-" and at.call.stdin else None
    if not bodies or any(UNKNOWN in name_of(body) for body in bodies):
        return NOT_KNOWN
    wrong: list[str] = []
    printed = ""
    for body in bodies:
        target = target_in(at, body)
        if not at.state.run.look(partial(at.program.world.served, target.ref.kind, target.ref.group)):
            kind, version = body["kind"], body["apiVersion"]
            where = f'name: "{name_of(body)}" namespace: "{metadata(body).get("namespace") or ""}" from "STDIN"'
            why = f'no matches for kind "{kind}" in version "{version}"\nensure CRDs are installed first'
            wrong.append(f"error: resource mapping not found for {where}: {why}")
            continue
        reply = act(at, body, target)
        printed += reply.out
        if reply.code:
            wrong.append(reply.says)
    return CommandReply(1 if wrong else 0, "\n".join(wrong), out=printed)


def target_in(at: KubectlContext, body: Body) -> NamedTarget:
    resource = of_kind(body["apiVersion"], body["kind"], at.program.definitions)
    namespace = str(metadata(body).get("namespace") or at.call.namespace) if resource.namespaced else ""
    ref = Ref(body["kind"], namespace, name_of(body), group_of(body["apiVersion"]))
    return NamedTarget(ref, resource.plural)


def placed(body: Body, target: NamedTarget) -> Body:
    return with_metadata(body, namespace=target.ref.namespace) if target.ref.namespace else body
