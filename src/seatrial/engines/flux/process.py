"""The user's Flux as an engine: its kustomize-controller and helm-controller on the rehearsed cluster.

A sync applies what the cluster begins with, and ends when every Kustomization and HelmRelease is Ready, or has failed
and nothing changes any more. The source-controller is not run: its objects get the status that they would have, and the
files come from a server in the sandbox.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache

from seatrial.engines import ApiBesideUser, Ended
from seatrial.engines.act import ProgramFolder, RealControllers, Reconcile
from seatrial.engines.controllers import Look, Servers, found_in, keep, live, put, ref_in, running, wait
from seatrial.engines.engine import SeenByCluster
from seatrial.engines.flux.applying import about
from seatrial.engines.flux.controlled import (
    GROUPS,
    HOME,
    Artifact,
    asked_again,
    fetched,
    has_fetched,
    impatient,
    is_acted_on,
    is_source,
    reconciled,
    state_of,
    uninstalled,
    unobserved,
)
from seatrial.engines.flux.objects import FluxObjects
from seatrial.engines.script import Command, Survey, Wait
from seatrial.engines.unmapped import unserved_in
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.refusal import Failure
from seatrial.model.resource import Body, Ref
from seatrial.sandbox.client import BinaryRun
from seatrial.sandbox.series import HOME as SANDBOX_HOME

NAME = "flux"
KUSTOMIZE, HELM = "kustomize-controller", "helm-controller"
PROGRAMS = (KUSTOMIZE, HELM)
RETRIES_MAX = 2
"""How often what has failed is asked to try again, when all else is done."""
REST_SECONDS = 4.0
ARTIFACTS = "artifacts"


@lru_cache(maxsize=8)
def find(folder: str) -> ProgramFolder:
    """The Flux in a folder. Its controllers do not say which version they are."""
    return ProgramFolder(f"{NAME}={folder}", "", found_in(folder, NAME, PROGRAMS, ()))


def run(act: RealControllers, api: ApiBesideUser) -> Ended:
    """Apply or delete what Flux begins with, and wait for it."""
    of = act.instead_of
    assert isinstance(of, Reconcile)
    api.believes(lambda body: True, lambda events: [])  # Time passes only where `wait` lets it.
    api.hide((), GROUPS)
    for body in act.settings:
        keep(api, body)
        if body["kind"] == "CustomResourceDefinition":
            put(api, unobserved(live(api, body) or body))
    with running(_servers(act), api, act.programs, HOME) as client:
        if act.action == "delete":
            return _deleted(act, of.fleet, client, api)
        return _synced(act, of.fleet, client, api)


def failure_of(error: str, seen: SeenByCluster) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if event.message in error}
    return Failure(tuple(sorted(last.values())), tuple(unserved_in(error)))


def _servers(act: RealControllers) -> Servers:
    artifacts = [Artifact(data, revision) for data, revision in act.artifacts.values()]
    port = "{port:artifacts}"
    usual = ("--log-level=error", "--watch-all-namespaces", "--requeue-dependency=1s", "--events-addr=")
    return Servers(
        together=(
            (sys.executable, "-I", "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", _folder()),
            *(
                (
                    act.programs.found[name],
                    *usual,
                    f"--metrics-addr=127.0.0.1:{{port:{name}}}",
                    f"--health-addr=127.0.0.1:{{port:{name} health}}",
                )
                for name in PROGRAMS
            ),
        ),
        ports=("artifacts", *(one for name in PROGRAMS for one in (name, f"{name} health"))),
        files={f"{ARTIFACTS}/{one.path}": one.data for one in artifacts} or {f"{ARTIFACTS}/none": b""},
        variables={"RUNTIME_NAMESPACE": HOME, "SOURCE_CONTROLLER_LOCALHOST": f"127.0.0.1:{port}"},
    )


def _folder() -> str:
    return f"{SANDBOX_HOME}/{ARTIFACTS}"


def _synced(act: RealControllers, fleet: FluxObjects, client: BinaryRun, api: ApiBesideUser) -> Ended:
    errors = []
    for body in _own(api):
        _write(api, asked_again(body))
    for target in fleet.roots:
        answer = api.do(about(target, "apply", impatient(target.body)))
        if answer.message or not answer.served:
            errors.append(f"{target.ref}: {answer.message or 'its kind is not served'}")
    for _ in range(RETRIES_MAX + 1):
        stuck = wait(client, api, lambda: _look(act, fleet, api), act.programs, polls=True)
        failed = [body for body in _own(api) if state_of(body) == "failed"]
        if not failed or stuck is not None:
            break
        _rest(api, fleet)
        for body in failed:
            _write(api, asked_again(body))
    found = tuple(reconciled(_own(api), fleet))
    errors += [f"{one.object}: {one.message}" for one in found if one.message]
    if errors:
        return Ended("failed", "\n".join(errors), stuck=stuck, reconciled=found)
    return Ended("ok", reconciled=found)


def _rest(api: ApiBesideUser, fleet: FluxObjects) -> None:
    """Let time pass until nothing moves any more, as it does before an interval is over."""
    targets = (target.ref for own in fleet.kustomizations.values() for target in own.targets)
    everything = tuple(dict.fromkeys((*targets, *(ref for one in fleet.releases.values() for ref in one.refs))))
    while everything and api.do(Wait(everything)).stuck is None:
        pass


def _look(act: RealControllers, fleet: FluxObjects, api: ApiBesideUser) -> Look:
    _supply(act, api)
    states = {ref_in(body): state_of(body) for body in _own(api) if not _is_suspended(body)}
    busy = {ref for ref, state in states.items() if state != "ready"}
    waits_for = tuple(dict.fromkeys((*_awaited(busy, fleet), *_leaving(api))))
    failed = any(state == "failed" for state in states.values())
    done = all(state != "busy" for state in states.values()) and bool(states)
    return Look(ended=done, waits_for=waits_for, calm_seconds=REST_SECONDS if failed else 1.0)


def _deleted(act: RealControllers, fleet: FluxObjects, client: BinaryRun, api: ApiBesideUser) -> Ended:
    there = {ref_in(body) for body in _own(api)}
    gone = tuple(uninstalled(release) for ref, release in fleet.releases.items() if ref in there)
    for target in fleet.roots:
        ref, version = target.ref, str(target.body["apiVersion"])
        api.do(Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background"))

    def look() -> Look:
        return Look(ended=not list(_own(api)), waits_for=tuple(_leaving(api)), calm_seconds=1.0)

    stuck = wait(client, api, look, act.programs, polls=True)
    if stuck is None:
        return Ended("ok", reconciled=gone)
    left = tuple(reconciled(_own(api), fleet))
    return Ended("failed", "\n".join(f"{one.object}: {one.message}" for one in left), stuck=stuck, reconciled=left)


def _supply(act: RealControllers, api: ApiBesideUser) -> None:
    """Give sources what they would have fetched. HelmCharts are made by the helm-controller: users do not see them."""
    for body in api.do(Survey()).body["items"]:
        if not is_source(body):
            continue
        ref = ref_in(body)
        if ref.kind == "HelmChart":
            api.hide((ref,))
        if (given := act.artifacts.get(str(ref))) and not has_fetched(body, artifact := Artifact(*given)):
            named = (str(body["apiVersion"]), ref.kind, ref.namespace, ref.name, fetched(body, artifact))
            api.do(Command("merge", *named, subresource="status"))


def _own(api: ApiBesideUser) -> Iterator[Body]:
    return (body for body in api.do(Survey()).body["items"] if is_acted_on(body))


def _write(api: ApiBesideUser, body: Body) -> None:
    ref = ref_in(body)
    patch = {"metadata": {"annotations": body["metadata"]["annotations"]}}
    api.do(Command("merge", str(body["apiVersion"]), ref.kind, ref.namespace, ref.name, patch))


def _awaited(refs: set[Ref], fleet: FluxObjects) -> Iterator[Ref]:
    for ref in sorted(refs):
        if (own := fleet.kustomizations.get(ref)) is not None:
            yield from (target.ref for target in own.targets) if own.wait else own.health_checks
        elif (release := fleet.releases.get(ref)) is not None:
            yield from (*release.refs, *(hook.ref for hook in release.hooks))


def _leaving(api: ApiBesideUser) -> Iterator[Ref]:
    for body in api.do(Survey()).body["items"]:
        if is_terminating(body) and not is_acted_on(body):
            yield ref_in(body)


def _is_suspended(body: Body) -> bool:
    return bool((body.get("spec") or {}).get("suspend"))
