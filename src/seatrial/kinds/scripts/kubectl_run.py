"""What comes of a call of kubectl or oc in a script: it reads, changes and waits as kubectl does.

From pkg/cmd of k8s.io/kubectl 1.34. Calls whose effect is not known are allowed or refused, and change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from seatrial.kinds.core import jsonpath
from seatrial.kinds.scripts import kubectl_gates
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import KubectlCall, parse_call
from seatrial.kinds.scripts.kubectl_calls import (
    OTHER_CLUSTER_FLAGS,
    requests_of,
)
from seatrial.kinds.scripts.kubectl_context import NOT_KNOWN, KubectlContext, not_found
from seatrial.kinds.scripts.kubectl_gates import TIMED_OUT
from seatrial.kinds.scripts.kubectl_objects import as_text
from seatrial.kinds.scripts.kubectl_writes import (
    apply,
    create,
    delete,
    label,
    patch,
    pause,
    replace,
    restart,
    scale,
    set_fields,
)
from seatrial.kinds.scripts.program import ContainerProgram, NamedTarget, is_known_absent, listed_objects, refs_of
from seatrial.kinds.scripts.run_state import CommandReply, OuterCommand, RunState
from seatrial.model.resource import (
    Body,
)

Handler = Callable[["KubectlContext"], CommandReply]
NOT_SENT = CommandReply(None, unfollowed="change")
LOOKS = frozenset(("get", "rollout status", "wait"))
UNHANDLED = frozenset(("autoscale", "edit", "expose", "rollout undo", "run", "taint"))
"""Verbs that change objects and are not modelled."""


def kubectl(asked: OuterCommand, program: ContainerProgram, state: RunState) -> CommandReply:
    """What comes of a call."""
    words, stdin = _with_files(asked, state)
    call = parse_call(words[1:], program.namespace, stdin, program.definitions, asked.feeder)
    if OTHER_CLUSTER_FLAGS & call.flags.keys():
        return NOT_KNOWN
    if UNKNOWN in call.verb:
        return NOT_SENT
    asks = tuple(requests_of(words, program.namespace, program.definitions, stdin, asked.feeder))
    sure = [ask for ask in asks if ask.certainty == "will"]

    def refusal(repeated: bool = False) -> str | None:
        asked_now = (ask for ask in sure if ask.is_repeated == repeated)
        return next((says for ask in asked_now if (says := program.refuses(ask)) is not None), None)

    says = state.run.look(refusal)
    if says is not None:
        return CommandReply(1, says, out="")
    if any(ask.is_repeated for ask in sure) and not _is_allowed_in_time(call, partial(refusal, True), program, state):
        return CommandReply(1, TIMED_OUT, out="")
    handler = HANDLERS.get(call.verb)
    if handler is None:
        code = 0 if sure else None
        return CommandReply(code, unfollowed="change" if call.verb in UNHANDLED else "")
    at = KubectlContext(call, program, state, asks, [])
    reply = handler(at)
    if reply.code is None and call.verb not in LOOKS:
        reply = NOT_SENT
    if at.refusals and reply.says:
        program.refused[reply.says] = at.refusals[-1]
    return reply


def _is_allowed_in_time(
    call: KubectlCall, refusal: Callable[[], str | None], program: ContainerProgram, state: RunState
) -> bool:
    """Send what is refused again until it is allowed; whether it was within the call's --timeout."""
    if (says := refusal()) is not None:
        state.says = says
        program.refused[TIMED_OUT] = program.refused[says]
    return state.run.until(lambda: refusal() is None, kubectl_gates.seconds_in(call.flags.get("--timeout", "")) or None)


def _with_files(asked: OuterCommand, state: RunState) -> tuple[tuple[str, ...], str]:
    """The call as if a file whose text is known came from its input."""
    words = list(asked.words)
    for index, word in enumerate(words[:-1]):
        if word in ("-f", "--filename") and words[index + 1] != "-":
            text = state.file(words[index + 1])
            return ((*words[: index + 1], "-", *words[index + 2 :]), text) if text else (tuple(words), "")
    for index, word in enumerate(words):
        path = word.partition("=")[2] if word.startswith(("-f=", "--filename=")) else ""
        if path and path != "-" and (text := state.file(path)):
            return (*words[:index], "-f", "-", *words[index + 1 :]), text
    return tuple(words), asked.stdin


def _get(at: KubectlContext) -> CommandReply:
    targets = at.targets()
    if targets is None or {"-f", "-w", "--field-selector"} & at.flags.keys():
        return NOT_KNOWN
    found: list[tuple[NamedTarget, Body]] = []
    for target in targets:
        if not target.ref.name:
            bodies = at.state.run.look(partial(listed_objects, target, at.flags.get("-l", ""), at.program.world))
            if bodies is None:
                return NOT_KNOWN
            named = zip(refs_of(target, bodies), bodies, strict=True)
            found += [(NamedTarget(ref, target.plural), body) for ref, body in named]
            continue
        live = at.get(target.ref)
        if live is not None:
            found.append((target, live))
        elif not is_known_absent(target.ref, at.program.world):
            return NOT_KNOWN
        elif "--ignore-not-found" not in at.flags or at.flags["--ignore-not-found"] == "false":
            return CommandReply(1, not_found(target), target.ref, out="")
    if not found:
        return CommandReply(0, out="")
    single = len(targets) == 1 and bool(targets[0].ref.name)
    return CommandReply(0, out=_shown(found, at.flags.get("-o", ""), single=single))


def _shown(found: list[tuple[NamedTarget, Body]], output: str, *, single: bool) -> str:
    """What `kubectl get` prints; tables are not known here."""
    if output == "name":
        return "".join(f"{target.printed}\n" for target, _ in found)
    body: Body = found[0][1] if single else {"apiVersion": "v1", "kind": "List", "items": [one for _, one in found]}
    if output in ("json", "yaml"):
        return as_text(body)
    form, _, template = output.partition("=")
    if form != "jsonpath" or "range" in template:
        return UNKNOWN

    def fill(path: re.Match[str]) -> str:
        return " ".join(_text(value) for value in jsonpath.find(path[1], body))

    return re.sub(r"\{([^{}]+)\}", fill, template.strip("'\""))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


HANDLERS: dict[str, Handler] = {
    "annotate": label,
    "apply": apply,
    "create": create,
    "delete": delete,
    "get": _get,
    "label": label,
    "patch": patch,
    "replace": replace,
    "rollout pause": pause,
    "rollout restart": restart,
    "rollout resume": pause,
    "rollout status": lambda at: kubectl_gates.rollout_status(at.call, at.targets(), at.program, at.state),
    "scale": scale,
    "set": set_fields,
    "wait": lambda at: kubectl_gates.wait(at.call, at.targets(), at.program, at.state),
}
