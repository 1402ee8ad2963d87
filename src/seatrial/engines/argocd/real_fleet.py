"""The Applications and ApplicationSets of a real Argo CD: what the step does to them, when it has ended, and how.

The roots are synced on request. All others are synced by the controllers, as far as they are automated: the step has
ended when each has been compared since it began, runs no operation, and is healthy or has nothing that could become so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from seatrial.engines import ApiBesideUser, Stuck
from seatrial.engines.argocd import sets
from seatrial.engines.argocd.app import API_VERSION, App
from seatrial.engines.argocd.controlled import BACKOFF, KINDS, awaited, is_running, named, operation_of
from seatrial.engines.argocd.fleet import Applications
from seatrial.engines.argocd.reconciling import Tried
from seatrial.engines.argocd.rollout import Rollout, RolloutProgress, current_step
from seatrial.engines.controllers import Look, live
from seatrial.engines.script import Command, Survey
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Body, Ref, dig, group_of, listed, name_of, ref_of
from seatrial.model.timeline import Operation
from seatrial.readiness.argocd.verdict import HEALTHY

AFTER_SECONDS = 1.0
"""Finalizers of hooks are removed when the operation has ended."""
AFTER_ALL_SECONDS = 2.0
"""The same where controllers tell each other of it."""
UP_TO_DATE, FAULTY = "ResourcesUpToDate", "ErrorOccurred"
WAITING = "Waiting"
RETRIES = "Retrying attempt #"
"""In the message of an operation that failed and waits to be tried again."""


class LiveFleet:
    """The Applications of a step in the cluster. Remembers how they were when it began."""

    def __init__(self, fleet: Applications, api: ApiBesideUser) -> None:
        self.fleet, self.api = fleet, api
        self.begun = {ref_of(body): dig(body, "status", "operationState") for body in self._there("Application")}
        self.roots = {app.ref for app in fleet.roots}

    def compare_again(self) -> None:
        """Let the controllers compare all Applications again, as they do after some minutes."""
        for body in self._there("Application"):
            self._patch(body, {"status": {"reconciledAt": None}})

    def forget_told(self) -> None:
        """Let controllers that start after this reconcile the ApplicationSets again."""
        for body in self._there("ApplicationSet"):
            self._patch(body, {"status": {"conditions": None}}, subresource="status")

    def generated(self) -> Look:
        """Whether the given ApplicationSets have created their Applications, or cannot."""
        there = [body for body in self._there("ApplicationSet") if ref_of(body) in self.fleet.given]
        done = len(there) == len(self.fleet.given) and all(map(_is_told, there))
        return Look(ended=done, calm_seconds=AFTER_SECONDS)

    def look(self) -> Look:
        """Whether all operations have ended, and everything else has come to rest."""
        self._hurry()
        roots = [(app, body) for app in self.fleet.roots if (body := live(self.api, named(app)))]
        begun = all(dig(body, "status", "operationState", "phase") for _, body in roots)
        running = [*roots, *((self._app(body), body) for body in self._others())]
        busy = any(is_running(body) or body.get("operation") for _, body in running)
        restless, waits_for = self._unhealthy()
        waits_for += [ref for app, body in running for ref in awaited(body, app)]
        waits_for += leaving(self.api)
        if begun and not busy and not restless and not any(self._is_rolling()):
            alone = len(running) == len(roots) and not self.fleet.sets
            return Look(ended=True, calm_seconds=AFTER_SECONDS if alone else AFTER_ALL_SECONDS)
        return Look(waits_for=tuple(dict.fromkeys(waits_for)), begun=begun)

    def tried(self, urls: Mapping[str, str], stuck: Stuck | None) -> Iterator[Tried]:
        """The operations of the step."""
        for app in self.fleet.roots:
            there = live(self.api, named(app))
            if there is None:
                yield Tried(Operation(app.name, "Error", self._not_generated(app), namespace=app.namespace))
                continue
            operation = operation_of(there, app, urls)
            yield Tried(operation, stuck if operation.phase == "Running" else None)
        for body in self._others():
            app = self._app(body)
            state = dig(body, "status", "operationState")
            if state and state != self.begun.get(app.ref):
                operation = operation_of(body, app, urls)
                yield Tried(operation, stuck if operation.phase == "Running" else None)
            elif app.automated and (errors := [*_errors(body)]):
                yield Tried(Operation(app.name, "Failed", "\n".join(errors), automated=True, namespace=app.namespace))
        yield from self._halted(stuck)

    def _hurry(self) -> None:
        """Shorten the waits before automated syncs are retried: no time of the cluster passes in them."""
        for body in self._others():
            state = dig(body, "status", "operationState") or {}
            patient = dig(state, "operation", "retry", "backoff") != BACKOFF
            if is_running(body) and RETRIES in str(state.get("message")) and patient:
                self._patch(body, {"status": {"operationState": {"operation": {"retry": {"backoff": BACKOFF}}}}})

    def _not_generated(self, app: App) -> str:
        """Why an ApplicationSet did not create an Application."""
        makers = [made.ref for made in self.fleet.sets.values() if app.ref in map(ref_of, made.applications)]
        told = [one for ref in makers for one in listed(self._live(ref) or {}, "status", "conditions")]
        words = [str(one.get("message")) for one in told if one.get("type") == FAULTY and one.get("status") == "True"]
        return "\n".join(words) or "its ApplicationSet did not create it"

    def _unhealthy(self) -> tuple[bool, list[Ref]]:
        """Whether an Application may still change by itself, and what it waits for."""
        restless, waits_for = False, []
        for body in self._others():
            if not dig(body, "status", "reconciledAt") or is_terminating(body):
                restless = True
            elif dig(body, "status", "health", "status") != HEALTHY:
                there = [target.ref for target in self._app(body).targets if self._is_there(target.ref)]
                restless = restless or bool(there)
                waits_for += there
        told = all(map(_is_told, self._there("ApplicationSet")))
        return restless or not told, waits_for

    def _is_rolling(self) -> Iterator[bool]:
        for made in self.fleet.sets.values():
            if made.rollout is not None and (progress := self._progress(made.rollout)) is not None:
                yield current_step(made.rollout, progress) is not None

    def _halted(self, stuck: Stuck | None) -> Iterator[Tried]:
        """Rollouts that stopped."""
        for made in self.fleet.sets.values():
            progress = self._progress(made.rollout) if made.rollout is not None else None
            if made.rollout is None or progress is None or current_step(made.rollout, progress) is None:
                continue
            states = (dig(self._live(ref), "status", "operationState", "phase") for ref in made.rollout.apps)
            failed = any(state in ("Failed", "Error") for state in states)
            yield sets.halted(made.rollout, progress, None if failed else stuck)

    def _progress(self, rollout: Rollout) -> dict[Ref, RolloutProgress] | None:
        body = self._live(rollout.ref)
        if body is None:
            return None
        told = {str(one.get("application")): one for one in listed(body, "status", "applicationStatus")}
        return {
            ref: RolloutProgress(str(one.get("status") or WAITING), str(one.get("message") or ""), "")
            for ref in rollout.apps
            for one in [told.get(ref.name) or {}]
        }

    def _others(self) -> list[Body]:
        return [body for body in self._there("Application") if ref_of(body) not in self.roots]

    def _app(self, application: Body) -> App:
        ref = ref_of(application)
        known = self.fleet.others.get(ref)
        destination = str(dig(application, "spec", "destination", "namespace") or "")
        return known if known is not None else App(name_of(application), destination, namespace=ref.namespace)

    def _there(self, kind: str) -> Iterable[Body]:
        return [body for body in self.api.do(Survey()).body["items"] if is_own(body) and body["kind"] == kind]

    def _is_there(self, ref: Ref) -> bool:
        return any(ref_of(body) == ref for body in self.api.do(Survey()).body["items"])

    def _live(self, ref: Ref) -> Body | None:
        return next((body for body in self._there(ref.kind) if ref_of(body) == ref), None)

    def _patch(self, body: Body, patch: Body, subresource: str = "") -> None:
        ref = ref_of(body)
        self.api.do(Command("merge", API_VERSION, ref.kind, ref.namespace, ref.name, patch, subresource=subresource))


def leaving(api: ApiBesideUser) -> Iterator[Ref]:
    """Objects that are being deleted."""
    for body in api.do(Survey()).body["items"]:
        if is_terminating(body) and not is_own(body):
            yield ref_of(body)


def is_own(body: Body) -> bool:
    """Whether Argo CD itself acts on it."""
    return body["kind"] in KINDS and group_of(str(body["apiVersion"])) == GROUP


def _is_told(application_set: Body) -> bool:
    """Whether the controller has seen a set, and says whether it can create its Applications."""
    conditions = listed(application_set, "status", "conditions")
    return any(one.get("type") in (UP_TO_DATE, FAULTY) and one.get("status") == "True" for one in conditions)


def _errors(application: Body) -> Iterator[str]:
    """Why no automated sync starts."""
    for one in listed(application, "status", "conditions"):
        kind, message = str(one.get("type")), str(one.get("message") or "")
        if kind == "SyncError":
            yield message
        elif kind.endswith("Error"):
            yield f"{kind}: {message}"
