"""The user's Argo CD as an engine: its controllers and repo-server, with a Redis, on the rehearsed cluster.

A sync writes the Applications and their `operation`, as `argocd app sync` does. Applications of ApplicationSets are
created first. Sources are private repositories behind a proxy. What Argo CD remembers is in its objects; its processes
are new in every step.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from seatrial.engines import ApiBesideUser, Ended
from seatrial.engines.act import ProgramFolder, RealControllers, Sync
from seatrial.engines.argocd.app import HOME as NAMESPACE
from seatrial.engines.argocd.app import App
from seatrial.engines.argocd.controlled import KINDS, is_running, named, operated, terminating
from seatrial.engines.argocd.fleet import Applications
from seatrial.engines.argocd.real_fleet import AFTER_SECONDS, LiveFleet, leaving
from seatrial.engines.argocd.reconciling import ended
from seatrial.engines.controllers import FLAG, Look, Servers, delete, found_in, keep, live, put, running, wait
from seatrial.engines.engine import SeenByCluster
from seatrial.engines.unmapped import unserved_in
from seatrial.helm.argocd_hooks import ON_DELETION, runs_on_deletion
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Failure
from seatrial.model.resource import Body, Ref, listed, ref_of
from seatrial.sandbox import repositories
from seatrial.sandbox.client import BinaryRun, answer
from seatrial.sandbox.series import HOME

NAME = "argocd"
CONTROLLER, REPO_SERVER, REDIS = "argocd-application-controller", "argocd-repo-server", "redis-server"
SET_CONTROLLER = "argocd-applicationset-controller"
PROGRAMS = (CONTROLLER, REPO_SERVER)
SHARED = (REDIS, "git", "helm", "kustomize")
"""Programs that Argo CD uses, and that may be anywhere on the PATH."""
VERSION_ARGUMENTS = ("version", "--client", "--short")
COMMAND_LINE = {"ARGOCD_BINARY_NAME": NAME}
"""All programs of Argo CD are one executable. Only as the command line does it say its version."""
VERSION = lazy_re.compile(r"v?(\d+\.\d+\.\d+)[\w.+-]*")
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
    "GIT_SSL_CAINFO": f"{HOME}/proxy/ca.pem",
    "SSL_CERT_FILE": f"{HOME}/proxy/ca.pem",
    "http_proxy": "http://127.0.0.1:{port:proxy}",
    "https_proxy": "http://127.0.0.1:{port:proxy}",
    "no_proxy": "127.0.0.1,localhost",
    **{f"GIT_{who}_{field}": value for who in ("AUTHOR", "COMMITTER") for field, value in COMMIT.items()},
}
NOT_IN_BRANCHES = lazy_re.compile(r"[\s~^:?*\[\\]")
NOT_SIGNED = {"bin/git-verify-wrapper.sh": "/bin/true"}
"""The repo-server calls this script of its image for every commit, and reads no output as: it is not signed."""


@lru_cache(maxsize=8)
def find(folder: str, *, sets: bool = False) -> ProgramFolder:
    """The Argo CD in a folder; `sets` if its ApplicationSet controller is needed."""
    found = found_in(folder, NAME, (*PROGRAMS, SET_CONTROLLER) if sets else PROGRAMS, SHARED)
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
    api.hide(_made(of.fleet), [f"{kind}.{GROUP}" for kind in KINDS])
    for body in act.settings:
        (put if body["kind"] in KINDS else keep)(api, body)
    fleet = LiveFleet(of.fleet, api)
    fleet.compare_again()
    fleet.forget_told()
    if act.action != "delete" and (of.fleet.given or of.fleet.sets):
        _generate(act, of.fleet, fleet, api)
    with running(_servers(act, of, (CONTROLLER, SET_CONTROLLER)), api, act.programs, NAMESPACE) as client:
        _terminate(act, of.fleet.roots, client, api)
        if act.action == "delete":
            return _deleted(act, of.fleet, client, api)
        return _synced(act, fleet, client, api)


def failure_of(error: str, seen: SeenByCluster) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if event.message in error}
    return Failure(tuple(sorted(last.values())), tuple(unserved_in(error)))


def _made(fleet: Applications) -> Iterator[Ref]:
    """The Applications of ApplicationSets that the user gives: the simulated controller does not write them either."""
    return (ref_of(body) for ref in fleet.given for body in fleet.sets[ref].applications)


def _servers(act: RealControllers, of: Sync, controllers: tuple[str, ...]) -> Servers:
    found = act.programs.found
    redis, repos = "127.0.0.1:{port:redis}", "127.0.0.1:{port:repo-server}"
    apps = (*of.fleet.roots, *of.fleet.others.values())
    spaces = ",".join(sorted({app.namespace for app in apps} - {NAMESPACE}))
    home_of_sets = ",".join(sorted({ref.namespace for ref in of.fleet.sets} - {NAMESPACE}))
    usual = ("--loglevel", "warn", "--namespace", NAMESPACE)
    of_controllers = {
        CONTROLLER: (
            *("--redis", redis, "--repo-server", repos, "--metrics-port", "{port:metrics}", *usual),
            *(("--application-namespaces", spaces) if spaces else ()),
        ),
        SET_CONTROLLER: (
            *("--argocd-repo-server", repos, "--metrics-addr", "127.0.0.1:{port:set-metrics}", *usual),
            *("--probe-addr", "127.0.0.1:{port:set-probe}", "--webhook-addr", "127.0.0.1:{port:set-webhook}"),
            "--enable-scm-providers=false",
            f"--enable-progressive-syncs={'true' if of.settings.progressive_syncs is not False else 'false'}",
            *(("--applicationset-namespaces", home_of_sets) if home_of_sets else ()),
        ),
    }
    return Servers(
        first=tuple(_commits(act)),
        together=(
            (found[REDIS], "--port", "{port:redis}", "--bind", "127.0.0.1", "--save", "", "--dir", HOME),
            (sys.executable, "-I", str(Path(repositories.__file__)), "{port:proxy}", f"{HOME}/proxy"),
            (
                *(found[REPO_SERVER], "--redis", redis, "--port", "{port:repo-server}", "--loglevel", "warn"),
                *("--address", "127.0.0.1", "--metrics-port", "{port:repo-metrics}"),
            ),
            *((found[name], *of_controllers[name]) for name in controllers if name in found),
        ),
        ports=(
            *("redis", "proxy", "repo-server", "repo-metrics", "metrics"),
            *("set-metrics", "set-probe", "set-webhook"),
        ),
        awaited=("redis", "proxy", "repo-server"),
        files={**act.files, **_served(act)},
        links=NOT_SIGNED,
        variables=VARIABLES,
    )


def _served(act: RealControllers) -> dict[str, bytes]:
    """The files of all repositories, and where the proxy finds them."""
    files: dict[str, bytes] = {}
    routes: dict[str, dict[str, str]] = {"git": {}, "files": {}}
    for number, one in enumerate(act.repositories):
        place = one.url.partition("://")[2].removesuffix("/").lower()
        files |= {f"repos/{number}/{path}": data for path, data in one.files.items()}
        if one.files:
            routes["git"][place.removesuffix(".git")] = f"{HOME}/repos/{number}"
        entries: dict[str, list[Body]] = {}
        for (name, version), archive in one.charts.items():
            file = f"{name}-{version}.tgz"
            entries.setdefault(name, []).append({"apiVersion": "v2", "name": name, "version": version, "urls": [file]})
            files[f"charts/{number}/{file}"] = archive
            routes["files"][f"{place}/{file}".lower()] = f"{HOME}/charts/{number}/{file}"
        if entries:
            index = {"apiVersion": "v1", "entries": entries}
            files[f"charts/{number}/index.yaml"] = msgspec.json.encode(index)
            routes["files"][f"{place}/index.yaml"] = f"{HOME}/charts/{number}/index.yaml"
    return {**files, f"proxy/{repositories.ROUTES}": msgspec.json.encode(routes)}


def _commits(act: RealControllers) -> Iterator[tuple[str, ...]]:
    """The commands that make a git repository of each folder, with all names that sources have for its commit."""
    git = act.programs.found["git"]
    for number, one in enumerate(act.repositories):
        if not one.files:
            continue
        inside = (git, "-C", f"{HOME}/repos/{number}")
        yield (git, "init", "--quiet", "--initial-branch", "main", f"{HOME}/repos/{number}")
        yield (*inside, "add", "--all", "--force")
        yield (*inside, "commit", "--quiet", "--allow-empty", "--message", "the input")
        for ref in dict.fromkeys(map(_ref_of_git, one.revisions)):
            yield (*inside, "update-ref", ref, "HEAD")


def _ref_of_git(revision: str) -> str:
    """The reference by which a revision is found: a branch, or a tag that fits a range of versions."""
    if revision.startswith("refs/"):
        return revision
    if revision == "HEAD" or not NOT_IN_BRANCHES.search(revision):
        return f"refs/heads/{'main' if revision == 'HEAD' else revision}"
    numbers = re.findall(r"\d+", revision)[:3] or ["1"]
    return f"refs/tags/{'.'.join((*numbers, '0', '0')[:3])}"


def _urls(act: RealControllers) -> dict[str, str]:
    """The URLs of the user, by those that are ours."""
    return {one.url: one.instead_of for one in act.repositories if one.instead_of}


def _generate(act: RealControllers, fleet: Applications, there: LiveFleet, api: ApiBesideUser) -> None:
    """Let ApplicationSets create their Applications, before these are synced on request."""
    of = act.instead_of
    assert isinstance(of, Sync)
    given = [body for body in act.given if body["kind"] == "ApplicationSet"]
    for body in given:
        put(api, body)
    if not any(fleet.sets[ref_of(body)].rollout is None for body in given):
        return
    with running(_servers(act, of, (SET_CONTROLLER,)), api, act.programs, NAMESPACE) as client:
        wait(client, api, there.generated, act.programs)


def _terminate(act: RealControllers, apps: tuple[App, ...], client: BinaryRun, api: ApiBesideUser) -> None:
    """End the operations that would run forever, as a user would before the next one."""
    left = [app for app in apps if app.operation is None and is_running(live(api, named(app)))]
    for app in left:
        there = live(api, named(app))
        assert there is not None
        put(api, terminating(there))

    def look() -> Look:
        busy = any(is_running(live(api, named(app))) for app in left)
        return Look(ended=not busy, waits_for=tuple(leaving(api)), calm_seconds=AFTER_SECONDS)

    if left:
        wait(client, api, look, act.programs)


def _synced(act: RealControllers, fleet: LiveFleet, client: BinaryRun, api: ApiBesideUser) -> Ended:
    given = {ref_of(body): body for body in act.given}
    for app in fleet.fleet.roots:
        there = live(api, named(app))
        if body := given.get(app.ref) or there:
            put(api, operated(body, app, act.flags, there), hidden=not _contains_itself(app))
    stuck = wait(client, api, fleet.look, act.programs)
    if stuck is not None:
        # The controller may have compared an Application before its cache had what it deployed.
        fleet.compare_again()
        stuck = wait(client, api, fleet.look, act.programs)
    return ended(list(fleet.tried(_urls(act), stuck)))


def _deleted(act: RealControllers, fleet: Applications, client: BinaryRun, api: ApiBesideUser) -> Ended:
    """Delete the ApplicationSets, then the Applications, the last one first. Their hooks come from the sources."""
    given = {ref_of(body): body for body in act.given}
    made = {ref: [ref_of(body) for body in fleet.sets[ref].applications] for ref in fleet.given}
    apps = {app.ref: app for app in (*fleet.roots, *fleet.others.values())}
    alone = [app.ref for app in reversed(fleet.roots) if app.ref not in {one for refs in made.values() for one in refs}]
    for ref in (*made, *alone):
        if live(api, given[ref]) is None:
            continue
        put(api, given[ref], hidden=not (ref in apps and _contains_itself(apps[ref])))
        delete(api, given[ref])
        gone = [ref, *made.get(ref, ())]
        if (end := _gone(act, [apps[one] for one in gone if one in apps], given[ref], client, api)).outcome != "ok":
            return end
    return Ended("ok")


def _gone(act: RealControllers, apps: list[App], body: Body, client: BinaryRun, api: ApiBesideUser) -> Ended:
    """The end of a deletion: that of an Application, or of a set and its Applications."""

    def look() -> Look:
        left = [app for app in apps if live(api, named(app)) is not None]
        hooks = (ref for app in left for ref in _hooks_of_deletion(app))
        return Look(ended=not left and live(api, body) is None, waits_for=(*hooks, *leaving(api)))

    stuck = wait(client, api, look, act.programs)
    if stuck is None:
        return Ended("ok")
    there = [live(api, named(app)) or {} for app in apps]
    errors = [
        str(one["message"]) for app in there for one in listed(app, "status", "conditions") if _is_of_deletion(one)
    ]
    if errors:
        return Ended("failed", "\n".join(errors))
    return Ended("hung", f"{stuck.sentence}. Argo CD has no timeout for this", stuck=stuck)


def _contains_itself(app: App) -> bool:
    """Whether an Application is among its own objects: then it is one of the release."""
    return any(target.ref == app.ref for target in app.targets)


def _hooks_of_deletion(app: App) -> Iterator[Ref]:
    for target in app.targets:
        if any(runs_on_deletion(target.body, kind) for kind in ON_DELETION):
            yield target.ref


def _is_of_deletion(condition: dict[str, object]) -> bool:
    return condition.get("type") == "DeletionError"
