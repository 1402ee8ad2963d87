"""The user's own controllers of an engine: how they are found, started in one sandbox, and waited for.

Knows no engine. Controllers do not end: a step has ended when their objects say so, and it hangs when nothing that it
waits for can change any more and the controllers have long been silent.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import ApiBesideUser, Stuck
from seatrial.engines.act import ProgramFolder
from seatrial.engines.script import Answer, Command, Outwait, Verb, Wait
from seatrial.kinds.core.objectmeta import finalizers_of
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, group_of, metadata, name_of
from seatrial.sandbox import series
from seatrial.sandbox.client import Binary, BinaryRun, on_path

FLAG = "--engine-binaries"
LOOK_SECONDS = 0.05
CALM_SECONDS = 0.5
"""How long controllers are silent before time passes in the cluster."""
SILENCE_SECONDS = 12.0
"""How long, before what they wait for is known never to come. Longer than they sleep between two attempts."""
POLLED_SECONDS = 40.0
"""The same where controllers poll, and give up by themselves."""
START_SECONDS = 60.0
"""How long they may request nothing at all."""
LONGEST_SECONDS = 900.0
WORDS_MAX = 300
IN_EVERY_NAMESPACE = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))


NOTHING = Stuck("nothing happens any more", (), ())


class Look(Struct, frozen=True):
    """What the objects of an engine say now."""

    ended: bool = False
    waits_for: tuple[Ref, ...] = ()
    begun: bool = True
    """Whether the engine has taken notice of the step at all."""
    calm_seconds: float = 0.0
    """How long nothing may happen before the end counts; at most three times as long."""


class Servers(Struct, frozen=True):
    """Programs that run side by side until the step has ended."""

    together: tuple[tuple[str, ...], ...]
    """Their command lines. `{home}` is the home of the sandbox, `{port:NAME}` a free port."""
    ports: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    """Ports of servers that the next ones need from the beginning."""
    first: tuple[tuple[str, ...], ...] = ()
    """Commands that end before they start."""
    files: Mapping[str, bytes] = {}
    """Files in the home."""
    links: Mapping[str, str] = {}
    """Links in the home. Those in `bin` are found by name, unless a program of the user has the same one."""
    variables: Mapping[str, str] = {}


def found_in(folder: str, name: str, own: Iterable[str], shared: Iterable[str]) -> dict[str, str]:
    """The programs of an engine in a folder of the user; `shared` ones may also be on the PATH."""
    if not Path(folder).is_dir():
        error = "is not a folder" if Path(folder).exists() else "does not exist"
        raise CannotContinue(f"{FLAG} {name}={folder}: {error}")
    here = Path(folder).absolute()
    usual = tuple(shared)
    found = {one: str(here / one) for one in (*own, *usual) if os.access(here / one, os.X_OK)}
    found |= {one: path for one in usual if one not in found and (path := on_path(one))}
    for one in own:
        if one not in found:
            raise CannotContinue(f"{FLAG} {name}={folder}: there is no {one} in it")
    for one in usual:
        if one not in found:
            raise CannotContinue(f"{FLAG} {name}={folder}: {one} is neither in it nor on the PATH")
    return found


@contextmanager
def running(servers: Servers, api: ApiBesideUser, programs: ProgramFolder, namespace: str) -> Iterator[BinaryRun]:
    """The programs in one sandbox. They are killed at the end, and their home is removed."""
    files = {name: base64.b64encode(data).decode() for name, data in servers.files.items()}
    folders = dict.fromkeys(str(Path(path).parent) for path in programs.found.values())
    real = dict.fromkeys(str(Path(path).resolve().parent) for path in programs.found.values())
    asked = {
        "files": files,
        "links": dict(servers.links),
        "commands": servers.first,
        "together": servers.together,
        "ports": servers.ports,
        "first": servers.awaited,
        "keep": [],
        "variables": {"PATH": os.pathsep.join((*folders, os.defpath, f"{series.HOME}/bin")), **servers.variables},
    }
    client = BinaryRun(
        Binary(sys.executable, ""),
        ("-I", str(Path(series.__file__))),
        kubeconfig=api.kubeconfig(namespace),
        door=replace(api.door(), shared=True),
        stdin=json.dumps(asked),
        reads=(*folders, *real, sys.prefix, sys.base_prefix),
    )
    has_ended = False
    try:
        yield client
    except _Ended:
        has_ended = True
    finally:
        client.close()
    if has_ended:
        raise CannotContinue(_gone(client, programs))


class _Ended(Exception):
    """A program that should run until the step has ended did not."""


def wait(
    client: BinaryRun, api: ApiBesideUser, look: Callable[[], Look], programs: ProgramFolder, *, polls: bool = False
) -> Stuck | None:
    """Wait until the step has ended. Why it never will, if it does not.

    Controllers that poll are never silent: what counts is how long nothing changes.
    """
    patience, changes = LONGEST_SECONDS, api.changes()
    waited = still = over = 0.0
    while patience > 0:
        if client.wait(LOOK_SECONDS):
            raise _Ended
        patience -= LOOK_SECONDS
        waited += LOOK_SECONDS
        still = still + LOOK_SECONDS if api.changes() == changes else 0.0
        changes = api.changes()
        seen, silent = look(), still if polls else api.silent_seconds()
        over = over + LOOK_SECONDS if seen.ended else 0.0
        if seen.ended and (silent >= seen.calm_seconds or over > 3 * seen.calm_seconds):
            return None
        if not api.requests() and waited > START_SECONDS:
            raise CannotContinue(f"{FLAG} {programs.given}: nothing was requested from the cluster within a minute")
        if silent < CALM_SECONDS or not api.requests():
            continue
        stuck = api.do(Wait(seen.waits_for)).stuck if seen.waits_for else NOTHING
        if stuck is None or silent < (POLLED_SECONDS if polls else SILENCE_SECONDS):
            continue
        if seen.begun and not (seen.waits_for and api.do(Outwait(seen.waits_for)).body["late"]):
            return stuck
        if silent > START_SECONDS:
            break
    raise CannotContinue(f"{FLAG} {programs.given}: the controllers neither ended the step nor waited for anything")


def keep(api: ApiBesideUser, body: Body) -> None:
    """Write an object of the engine itself, unless it is there. What happens to it is no part of the rehearsal."""
    if live(api, body) is not None:
        return
    ref = ref_in(body)
    api.hide((ref, *(Ref(kind, ref.name, name) for kind, name in IN_EVERY_NAMESPACE if ref.kind == "Namespace")))
    write(api, "create", body)
    if ref.kind == "CustomResourceDefinition":
        api.do(Wait((ref,)))


def live(api: ApiBesideUser, body: Body) -> Body | None:
    """An object as it is in the cluster."""
    answer = api.do(_about("get", body))
    return answer.body if answer.code == 200 else None


def put(api: ApiBesideUser, body: Body, *, hidden: bool = True) -> None:
    """Write an object of the user that the engine acts on, over what is there: its status stays, unless `body` has one.

    What the engine itself has noted in its metadata stays as well. What happens to it is `hidden`, or recorded.
    """
    there = live(api, body)
    if hidden:
        api.hide((ref_in(body),))
    if there is None:
        write(api, "create", body)
        return
    finalizers = dict.fromkeys((*finalizers_of(there), *finalizers_of(body)))
    meta = {**metadata(there), **metadata(body), "finalizers": list(finalizers)}
    status = {"status": there["status"]} if "status" in there else {}
    write(api, "update", {**status, **body, "metadata": meta})


def write(api: ApiBesideUser, verb: Verb, body: Body) -> Answer:
    answer = api.do(_about(verb, body))
    if answer.message or not answer.served:
        words = answer.message or f"its kind {body['apiVersion']} is not served"
        raise CannotContinue(f"{verb} {ref_in(body)} in the rehearsed cluster: {words}")
    return answer


def delete(api: ApiBesideUser, body: Body) -> None:
    api.do(_about("delete", body))


def ref_in(body: Body) -> Ref:
    return Ref(
        str(body["kind"]), str(metadata(body).get("namespace") or ""), name_of(body), group_of(str(body["apiVersion"]))
    )


def _about(verb: Verb, body: Body) -> Command:
    ref = ref_in(body)
    sent = body if verb in ("create", "update", "merge") else None
    return Command(verb, str(body["apiVersion"]), ref.kind, ref.namespace, ref.name, sent)


def _gone(client: BinaryRun, programs: ProgramFolder) -> str:
    """A sentence about a program that should not have ended."""
    try:
        said = json.loads(client.stdout)
    except ValueError:
        said = {}
    name = said.get("ended", "a program")
    lines = [line for line in (said.get("said") or client.stderr).splitlines() if line.strip()]
    words = lines[-1].strip()[:WORDS_MAX] if lines else "it printed nothing"
    return f"{FLAG} {programs.given}: {name} ended by itself: {words}"
