"""The user's kubectl as an engine, through its command line."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from seatrial.engines import Api, Ended, Stuck
from seatrial.engines.act import Invocation
from seatrial.engines.engine import SeenByCluster
from seatrial.engines.unmapped import unserved_in
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Failure, Fault
from seatrial.sandbox.client import Binary, BinaryRun, answer, located

NAME = "kubectl"
FLAG = "--kubectl-binary"
VERSION_ARGUMENTS = ("version", "--client", "--output=json")
VERSION = lazy_re.compile(r"v?(\d+\.\d+\.\d+[\w.+-]*)")
PATIENCE_SECONDS = 0.02
LONGEST_SECONDS = 900
WEEK_SECONDS = 7 * 24 * 3600.0
"""How long `kubectl delete` waits unless --timeout is given."""
FLAG_ERRORS = ("error: unknown flag: ", "error: unknown shorthand flag: ", "error: flag needs an argument: ")
WARNING = "Warning: "
PATCH = lazy_re.compile(r'error when applying patch:\n.*?\nto:\n.*?\n(for: "[^"]*": )(error when patching)?', re.S)
"""`kubectl apply` prints the whole patch before it says why that was refused (`patcher.go`)."""
ALPHA = {"KUBECTL_APPLYSET": "true"}
"""Users of --applyset have this in the environment."""


@lru_cache(maxsize=8)
def find(path: str) -> Binary:
    """The kubectl at a path, or a name looked up in PATH."""
    found = located(path, FLAG)
    output = answer(found, path, VERSION_ARGUMENTS, flag=FLAG, name=NAME)
    try:
        said = json.loads(output)["clientVersion"]["gitVersion"]
    except (ValueError, KeyError, TypeError):
        said = ""
    version = VERSION.fullmatch(str(said))
    if version is None:
        words = f"printed {output.splitlines()[0]!r}" if output else "printed nothing"
        raise CannotContinue(f"{FLAG} {path}: is not kubectl: `kubectl version --client` {words}")
    return Binary(found, version[1])


def run(act: Invocation, api: Api) -> Ended:
    """Run one command against `api`; a hang is ended as soon as it is certain."""
    kubeconfig = api.kubeconfig(act.namespace)
    client = BinaryRun(
        act.binary,
        act.arguments,
        kubeconfig=kubeconfig,
        door=api.door(),
        stdin=act.stdin,
        reads=act.reads,
        variables=ALPHA,
    )
    try:
        stuck = _watched(client, api)
    finally:
        client.close()
    lines = client.stderr.splitlines()
    warnings = tuple(dict.fromkeys(line for line in lines if line.startswith(WARNING)))
    if stuck is not None:
        return Ended("hung", f"{stuck.sentence}. kubectl times out after {act.patience}", warnings, stuck)
    if not client.failed:
        return Ended("ok", warnings=warnings)
    error = PATCH.sub(_without_patch, "\n".join(line for line in lines if not line.startswith(WARNING))).strip()
    if error.startswith(FLAG_ERRORS):
        raise CannotContinue(f"step {act.action}: kubectl {act.binary.version} says: {error.splitlines()[0]}")
    return Ended("failed", error, warnings)


def _without_patch(found: re.Match[str]) -> str:
    return found[2] or f"error when applying patch: ... {found[1]}"


def failure_of(error: str, seen: SeenByCluster) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if _said(event.message, error)}
    unread = dict.fromkeys(refusal for refusal in seen.reads if _said(refusal.message, error))
    faults = (*unserved_in(error), *(Fault("not-read", refusal=refusal) for refusal in unread))
    return Failure(tuple(sorted(last.values())), faults)


def _said(message: str, error: str) -> bool:
    """Whether an error is about a message. For an invalid object kubectl leaves out its group: `The Job "a" is`."""
    _, invalid, causes = message.partition(" is invalid: ")
    return message in error or bool(invalid and causes in error)


def _watched(client: BinaryRun, api: Api) -> Stuck | None:
    """Wait for its end, or until it waits for something that never comes."""
    patience: float = LONGEST_SECONDS
    while not client.wait(PATIENCE_SECONDS):
        stuck = api.stuck(WEEK_SECONDS)
        if stuck is not None and not stuck.passed_seconds:
            return stuck
        patience -= PATIENCE_SECONDS
        if patience < 0:
            raise CannotContinue("kubectl neither ended nor waited for anything in the cluster")
    return None
