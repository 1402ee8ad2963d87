"""The user's Argo CD as an engine: its application-controller and repo-server, with a Redis, on the rehearsed cluster.

A sync writes the Application and its `operation`, as `argocd app sync` does, and ends with that operation. Sources are
private git repositories. What Argo CD remembers is in the Application; its processes are new in every step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from seatrial.engines import ApiBesideUser, Ended
from seatrial.engines.act import ProgramFolder, RealControllers, Sync
from seatrial.engines.argocd.app import HOME as NAMESPACE
from seatrial.engines.argocd.app import App
from seatrial.engines.argocd.controlled import (
    KINDS,
    awaited,
    fetched_from,
    is_running,
    named,
    operated,
    operation_of,
    terminating,
)
from seatrial.engines.argocd.reconciling import Tried, ended
from seatrial.engines.controllers import FLAG, Look, Servers, delete, found_in, keep, live, put, running, wait
from seatrial.engines.engine import SeenByCluster
from seatrial.engines.script import Survey
from seatrial.engines.unmapped import unserved_in
from seatrial.helm.argocd_hooks import ON_DELETION, runs_on_deletion
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Failure
from seatrial.model.resource import Ref, dig, listed, ref_of
from seatrial.sandbox.client import BinaryRun, answer
from seatrial.sandbox.series import HOME

NAME = "argocd"
CONTROLLER, REPO_SERVER, REDIS = "argocd-application-controller", "argocd-repo-server", "redis-server"
PROGRAMS = (CONTROLLER, REPO_SERVER)
SHARED = (REDIS, "git", "helm", "kustomize")
"""Programs that Argo CD uses, and that may be anywhere on the PATH."""
VERSION_ARGUMENTS = ("version", "--client", "--short")
COMMAND_LINE = {"ARGOCD_BINARY_NAME": NAME}
"""All programs of Argo CD are one executable. Only as the command line does it say its version."""
VERSION = re.compile(r"v?(\d+\.\d+\.\d+)[\w.+-]*")
COMMIT = {"NAME": "seatrial", "EMAIL": "seatrial@localhost", "DATE": "2025-01-01T00:00:00Z"}
"""The same files are the same commit in every step."""
VARIABLES = {
    "ARGOCD_FAKE_IN_CLUSTER": "true",  # The destination is the cluster of the kubeconfig.
    "ARGOCD_SYNC_WAVE_DELAY": "1",
    "ARGOCD_GPG_ENABLED": "false",
    "ARGOCD_ASK_PASS_SOCK": f"{HOME}/ask-pass.sock",
    "ARGOCD_TLS_DATA_PATH": f"{HOME}/tls",
    "ARGOCD_SSH_DATA_PATH": f"{HOME}/ssh",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{field}": value for who in ("AUTHOR", "COMMITTER") for field, value in COMMIT.items()},
}


AFTER_SECONDS = 1.0
"""Finalizers of hooks are removed when the operation has ended."""
NOT_SIGNED = {"bin/git-verify-wrapper.sh": "/bin/true"}
"""The repo-server calls this script of its image for every commit, and reads no output as: it is not signed."""


@lru_cache(maxsize=8)
def find(folder: str) -> ProgramFolder:
    """The Argo CD in a folder."""
    found = found_in(folder, NAME, PROGRAMS, SHARED)
    output = answer(
        found[CONTROLLER], folder, VERSION_ARGUMENTS, flag=f"{FLAG} {NAME}", name=NAME, variables=COMMAND_LINE
    )
    version = next(filter(None, map(VERSION.fullmatch, output.split())), None)
    if version is None:
        words = f"printed {output.splitlines()[0]!r}" if output else "printed nothing"
        raise CannotContinue(f"{FLAG} {NAME}={folder}: {CONTROLLER} is not that of Argo CD: `argocd version` {words}")
    return ProgramFolder(f"{NAME}={folder}", version[1], found)


def run(act: RealControllers, api: ApiBesideUser) -> Ended:
    """Sync or delete the Applications of a step."""
    of = act.instead_of
    assert isinstance(of, Sync)
    api.believes(lambda body: True, lambda events: [])  # Time passes only where `wait` lets it.
    for body in act.settings:
        (put if body["kind"] in KINDS else keep)(api, body)
    with running(_servers(act), api, act.programs, NAMESPACE) as client:
        _terminate(act, of.fleet.roots, client, api)
        if act.action == "delete":
            return _deleted(act, of.fleet.roots, client, api)
        return _synced(act, of.fleet.roots, client, api)


def failure_of(error: str, seen: SeenByCluster) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if event.message in error}
    return Failure(tuple(sorted(last.values())), tuple(unserved_in(error)))


def _servers(act: RealControllers) -> Servers:
    redis, port = "127.0.0.1:{port:redis}", "{port:repo-server}"
    found = act.programs.found
    spaces = sorted({str(dig(body, "metadata", "namespace")) for body in act.given} - {NAMESPACE})
    others = ("--application-namespaces", ",".join(spaces)) if spaces else ()
    return Servers(
        first=tuple(_commits(act)),
        together=(
            (found[REDIS], "--port", "{port:redis}", "--bind", "127.0.0.1", "--save", "", "--dir", HOME),
            (
                *(found[REPO_SERVER], "--redis", redis, "--port", port, "--metrics-port", "{port:repo-metrics}"),
                *("--address", "127.0.0.1", "--loglevel", "warn"),
            ),
            (
                *(found[CONTROLLER], "--redis", redis, "--repo-server", f"127.0.0.1:{port}", "--loglevel", "warn"),
                *("--namespace", NAMESPACE, "--metrics-port", "{port:metrics}", *others),
            ),
        ),
        ports=("redis", "repo-server", "repo-metrics", "metrics"),
        files={f"repos/{n}/{path}": data for n, tree in enumerate(act.trees.values()) for path, data in tree.items()},
        links=NOT_SIGNED,
        variables=VARIABLES,
    )


def _commits(act: RealControllers) -> Iterator[tuple[str, ...]]:
    """The commands that make a repository of each source."""
    git = act.programs.found["git"]
    for number in range(len(act.trees)):
        inside = (git, "-C", f"{HOME}/repos/{number}")
        yield (git, "init", "--quiet", "--initial-branch", "main", f"{HOME}/repos/{number}")
        yield (*inside, "add", "--all", "--force")
        yield (*inside, "commit", "--quiet", "--allow-empty", "--message", "the input")


def _urls(act: RealControllers, client: BinaryRun) -> dict[str, str]:
    return {key: f"file://{client.home}/repos/{number}" for number, key in enumerate(act.trees)}


def _terminate(act: RealControllers, apps: tuple[App, ...], client: BinaryRun, api: ApiBesideUser) -> None:
    """End the operations that would run forever, as a user would before the next one."""
    left = [app for app in apps if app.operation is None and is_running(live(api, named(app)))]
    for app in left:
        there = live(api, named(app))
        assert there is not None
        put(api, terminating(there))
    if left:
        wait(client, api, lambda: _operations(left, api), act.programs)


def _synced(act: RealControllers, apps: tuple[App, ...], client: BinaryRun, api: ApiBesideUser) -> Ended:
    urls = _urls(act, client)
    for app, body in zip(apps, act.given, strict=True):
        put(api, operated(fetched_from(body, urls), app, act.flags, live(api, body)))
    stuck = wait(client, api, lambda: _operations(apps, api), act.programs)
    tried = []
    for app in apps:
        operation = operation_of(live(api, named(app)) or {}, app, urls)
        tried.append(Tried(operation, stuck if operation.phase == "Running" else None))
    return ended(tried)


def _operations(apps: list[App] | tuple[App, ...], api: ApiBesideUser) -> Look:
    there = [(app, live(api, named(app)) or {}) for app in apps]
    begun = all(dig(body, "status", "operationState", "phase") for _, body in there)
    if begun and not any(is_running(body) or body.get("operation") for _, body in there):
        return Look(ended=True, calm_seconds=AFTER_SECONDS)
    waits_for = [ref for app, body in there for ref in awaited(body, app)]
    return Look(waits_for=tuple(dict.fromkeys((*waits_for, *_leaving(api)))), begun=begun)


def _deleted(act: RealControllers, apps: tuple[App, ...], client: BinaryRun, api: ApiBesideUser) -> Ended:
    """Delete the Applications, the last one first. Their hooks come from the sources."""
    urls = _urls(act, client)
    for app, body in reversed([*zip(apps, act.given, strict=True)]):
        if live(api, body) is None:
            continue
        put(api, fetched_from(body, urls))
        delete(api, body)

        def look(app: App = app) -> Look:
            return Look(ended=live(api, named(app)) is None, waits_for=(*_hooks_of_deletion(app), *_leaving(api)))

        if stuck := wait(client, api, look, act.programs):
            there = live(api, named(app)) or {}
            errors = [str(one["message"]) for one in listed(there, "status", "conditions") if _is_of_deletion(one)]
            if errors:
                return Ended("failed", "\n".join(errors))
            return Ended("hung", f"{stuck.sentence}. Argo CD has no timeout for this", stuck=stuck)
    return Ended("ok")


def _hooks_of_deletion(app: App) -> Iterator[Ref]:
    for target in app.targets:
        if any(runs_on_deletion(target.body, kind) for kind in ON_DELETION):
            yield target.ref


def _is_of_deletion(condition: dict[str, object]) -> bool:
    return condition.get("type") == "DeletionError"


def _leaving(api: ApiBesideUser) -> Iterator[Ref]:
    """Objects that are being deleted."""
    for body in api.do(Survey()).body["items"]:
        if is_terminating(body) and body["kind"] not in KINDS:
            yield ref_of(body)
