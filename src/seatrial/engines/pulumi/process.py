"""The user's Pulumi as an engine: its command line and its Kubernetes provider, offline, with an empty home.

Goes by the version of the provider, as the simulated one does. Pulumi keeps what it has deployed in files, which are
carried from step to step. It sleeps and settles in real time.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.engines import Api, Ended, Stuck
from seatrial.engines.act import Invocation
from seatrial.engines.engine import SeenByCluster
from seatrial.engines.unmapped import unserved_in
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.program import STACK
from seatrial.model.refusal import Failure, Fault
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event
from seatrial.readiness import pulumi as readiness
from seatrial.sandbox import series
from seatrial.sandbox.client import Binary, BinaryRun, answer, located, on_path, versioned
from seatrial.sandbox.series import HOME

NAME = "pulumi"
FLAG = "--pulumi-binary"
VERSION = lazy_re.compile(r"v(\d+\.\d+\.\d+[\w.+-]*)")
PROVIDER = "resource-kubernetes-"
AMBIENT = "pulumi-resource-kubernetes"
"""A provider on the PATH, which comes before those that are installed; it does not tell its version."""
CONFIG, STATE, LOG = "config.yaml", "state", "log"
EVENTS = f"{LOG}/events"
LEFT_OUT = tuple(f"{STATE}/.pulumi/{folder}/" for folder in ("history", "backups", "locks"))
"""Of the state: what the next step does not need."""
PATIENCE_SECONDS = 0.05
LONGEST_SECONDS = 900
FAREWELL_SECONDS = 60
SERVICE_SECONDS = 10
"""How long it sleeps for every Service (`await/service.go`)."""
TAG = lazy_re.compile(r"<\{%[^%]*%\}>")
"""Colours in messages."""
ESCAPE = lazy_re.compile(r"\x1b\[[\d;]*m")
PRINTED_ERROR = "Error: "
VARIABLES = {
    "PULUMI_HOME": f"{HOME}/pulumi",
    "PULUMI_BACKEND_URL": f"file://{HOME}/{STATE}",
    "PULUMI_CONFIG_PASSPHRASE": "",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
    "PULUMI_DEBUG_COMMANDS": "true",  # For --event-log.
}


@lru_cache(maxsize=8)
def find(path: str) -> Binary:
    """The Pulumi at a path, or a name looked up in PATH, in the version of the provider that it runs."""
    found = located(path, FLAG)
    output = answer(found, path, ("version",), flag=FLAG, name=NAME)
    if VERSION.fullmatch(output) is None:
        words = f"printed {output.splitlines()[0]!r}" if output else "printed nothing"
        raise CannotContinue(f"{FLAG} {path}: is not Pulumi: `pulumi version` {words}")
    if on_path(AMBIENT):
        return Binary(found, "")
    installed = versioned(plugins(), PROVIDER)
    if not installed:
        command = "pulumi plugin install resource kubernetes"
        raise CannotContinue(f"{FLAG} {path}: no Kubernetes provider is in {plugins()}; run {command}")
    return Binary(found, installed[-1])


def plugins() -> Path:
    """Where Pulumi installs its plugins."""
    home = os.environ.get("PULUMI_HOME") or str(Path.home() / ".pulumi")
    return Path(home, "plugins").absolute()


def packed(files: Mapping[str, str]) -> str:
    """Files for its home, by name."""
    return json.dumps({name: base64.b64encode(text.encode()).decode() for name, text in files.items()})


def empty_state(project: str, stack: str) -> bytes:
    """The state of a stack that nothing was deployed to, as a backend of files has it."""
    checkpoint = {"version": 3, "checkpoint": {"stack": f"organization/{project}/{stack}", "latest": None}}
    written = {
        f"{STATE}/.pulumi/meta.yaml": "version: 1\n",
        f"{STATE}/.pulumi/stacks/{project}/{stack}.json": json.dumps(checkpoint),
    }
    return packed(written).encode()


def run(act: Invocation, api: Api) -> Ended:
    """Run one command against `api`; a wait that cannot end is cancelled, and Pulumi writes down what there is."""
    deletes = act.action == "destroy"
    api.believes(_is_done, lambda events: list(_waited_for(events, deletes=deletes)), sleeps_seconds=SERVICE_SECONDS)
    folder, paths = plugins(), [*_programs(act), os.defpath]
    asked = {
        "files": {**json.loads(act.kept), **json.loads(act.stdin), f"{LOG}/begun": ""},
        "links": {"pulumi/plugins": str(folder)},
        "commands": [[act.binary.path, *act.arguments, "--event-log", f"{HOME}/{EVENTS}"]],
        "keep": [STATE, LOG],
        "variables": {**VARIABLES, "PATH": os.pathsep.join(paths)},
    }
    client = BinaryRun(
        Binary(sys.executable, ""),
        ("-I", str(Path(series.__file__))),
        kubeconfig=api.kubeconfig(act.namespace),
        door=replace(api.door(), shared=True),
        stdin=json.dumps(asked),
        reads=(*act.reads, *_programs(act), str(folder), sys.prefix, sys.base_prefix),
    )
    try:
        stuck = _watched(client, api)
    finally:
        client.close()
    return _ended(act, client, stuck)


def failure_of(error: str, seen: SeenByCluster) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if event.message in error}
    return Failure(tuple(sorted(last.values())), tuple(unserved_in(error)))


def _ended(act: Invocation, client: BinaryRun, stuck: Stuck | None) -> Ended:
    files = _files(client.stdout)
    kept = {name: text for name, text in files.items() if name.startswith(STATE) and not name.startswith(LEFT_OUT)}
    remembered = json.dumps(kept).encode() if kept else act.kept
    said = list(_said(base64.b64decode(files.get(EVENTS, ""))))
    warnings = tuple(dict.fromkeys(_shown(urn, text, "warning") for urn, level, text in said if level == "warning"))
    if stuck is not None:
        return Ended("hung", f"{stuck.sentence}. {act.patience}", warnings, stuck, kept=remembered)
    if not client.failed:
        return Ended("ok", warnings=warnings, kept=remembered)
    errors = [(urn, text) for urn, level, text in said if level == "error" and not _is_summary(urn, text)]
    if not errors:
        words = "; ".join(_of_language(said)) or " ".join(client.stderr.split()) or "nothing"
        raise CannotContinue(f"step {act.action}: pulumi says: {words}")
    faults = (Fault("not-deployed", act.refs.get(urn), urn=urn) for urn, _ in errors if urn in act.refs)
    words = "\n".join(dict.fromkeys(_shown(urn, text, "error") for urn, text in errors))
    return Ended("failed", words, warnings, failure=Failure(faults=tuple(dict.fromkeys(faults))), kept=remembered)


def _said(events: bytes) -> Iterator[tuple[str, str, str]]:
    """The URN, the severity and the text of each diagnostic that stays on the screen."""
    for line in events.splitlines():
        diagnostic: dict[str, Any] = json.loads(line).get("diagnosticEvent") or {}
        if diagnostic and not diagnostic.get("ephemeral"):
            text = TAG.sub("", diagnostic.get("prefix", "") + diagnostic["message"])
            level = str(diagnostic["severity"])
            yield str(diagnostic.get("urn") or ""), level, text.strip().removeprefix(f"{level}: ")


def _of_language(said: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Errors of a program that is refused before it runs: its language only prints them."""
    for line in "\n".join(ESCAPE.sub("", text) for _, level, text in said if level == "info#err").splitlines():
        if line.startswith(PRINTED_ERROR):
            yield line.removeprefix(PRINTED_ERROR)


def _is_summary(urn: str, text: str) -> bool:
    """What Pulumi says of the stack because a resource in it failed."""
    return (not urn or f"::{STACK}::" in urn) and text in ("update failed", "preview failed")


def _shown(urn: str, text: str, level: str) -> str:
    """As `pulumi up` shows it, under the resource that it is about."""
    parts = urn.split("::")
    return f"{parts[2].rpartition('$')[2]} ({parts[3]}): {level}: {text}" if len(parts) == 4 else f"{level}: {text}"


def _is_done(body: Body) -> bool | None:
    """Whether it goes on after an object, if that alone tells. What it deletes has to be gone."""
    if is_terminating(body):
        return False
    return None if readiness.related_object(body) is not None else readiness.is_ready(body)


def _waited_for(events: Iterable[Event], *, deletes: bool) -> Iterator[Ref]:
    """The objects that it has written and waits for, or that it deletes."""
    last = {event.object: event for event in events}
    for ref, event in last.items():
        if event.verb == "delete":
            if event.effect != "deleted":
                yield ref
        elif not deletes and readiness.is_awaited(event.after or {}):
            yield ref


def _watched(client: BinaryRun, api: Api) -> Stuck | None:
    """Wait for its end, or until it waits for something that never comes."""
    patience: float = LONGEST_SECONDS
    while not client.wait(PATIENCE_SECONDS):
        stuck = api.stuck(readiness.TIMEOUT_SECONDS - 1)  # A deadline at the same time comes too late.
        if stuck is not None and not stuck.passed_seconds:
            client.stop()
            client.wait(FAREWELL_SECONDS)
            return stuck
        patience -= PATIENCE_SECONDS
        if patience < 0:
            raise CannotContinue("pulumi neither ended nor waited for anything in the cluster")
    return None


def _programs(act: Invocation) -> Iterator[str]:
    """The folders of Pulumi, beside which are its plugins for languages, of a provider and of interpreters."""
    own = act.binary.path, os.path.realpath(act.binary.path), on_path(AMBIENT)
    return iter(dict.fromkeys((*(str(Path(one).parent) for one in own if one), *act.folders)))


def _files(output: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(output)["files"]
    except ValueError:  # It was killed.
        return {}
    return found
