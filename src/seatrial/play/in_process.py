"""The embedded cluster for engine scripts: in process, without sockets or real time."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.cluster import stuck
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.death import Killed
from seatrial.cluster.refusal import UNKNOWN_RESOURCE
from seatrial.cluster.request import PatchType, Request, Verb
from seatrial.engines import Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.script import Answer, Bring, Command, Line, Outwait, Pause, Render, Say, Survey, Wait
from seatrial.model.refusal import Failure, Fault, GroupVersionKind
from seatrial.model.resource import Ref, group_of, version_of

REQUESTS: dict[str, tuple[Verb, PatchType | None]] = {
    "get": ("get", None),
    "list": ("list", None),
    "create": ("create", None),
    "update": ("update", None),
    "delete": ("delete", None),
    "apply": ("patch", "apply"),
    "strategic": ("patch", "strategic"),
    "merge": ("patch", "merge"),
}
"""The API request of each script command."""
TOO_MANY_REQUESTS = 429
QUICK = ("eager", "ordinary")
"""Schedules under which everything is done when a client has waited or slept for seconds."""
UNAVAILABLE = "the server is currently unable to handle the request"


class InProcess:
    """The embedded cluster as `engines.script.Client`."""

    def __init__(self, cluster: Cluster, actor: str, helm: Callable[[HelmAct | Render], Answer] | None = None) -> None:
        """`helm` runs the acts of engines that have a Helm in them, and renders what a simulated one deploys."""
        self._cluster = cluster
        self._actor = actor
        self._helm = helm

    def do(self, line: Line) -> Answer:
        """Raises `Killed` if the engine died meanwhile: it does not get the answer."""
        answer = self._do(line)
        if self._cluster.death.at is not None:
            raise Killed
        return answer

    def _do(self, line: Line) -> Answer:
        match line:
            case Command(verb="discover"):
                return self._discover(line)
            case Command():
                return self._request(line)
            case Survey():
                with self._cluster.lock:
                    return Answer(200, {"items": [body for _, body in self._cluster.store]})
            case Pause():
                base = self._cluster.pace.base
                return Answer(200, quick=base in QUICK, instant=base == "eager")
            case Wait(refs):
                return self._wait(refs)
            case Outwait(refs, seconds):
                return Answer(200, {"late": self._cluster.outwait(refs, seconds)})
            case HelmAct() | Render():
                assert self._helm is not None
                return self._helm(line)
            case Bring(ref, early):
                return self._bring(ref, early=early)
            case Say(ref, words, effect, failure):
                self._cluster.recorder.engine_said(self._actor, ref, words, effect, failure)
                return Answer(200)

    def _request(self, command: Command) -> Answer:
        kind = self._cluster.discovery.of_kind(
            group_of(command.api_version), command.kind, version_of(command.api_version)
        )
        if kind is None:
            return Answer(404, served=False, failure=_unserved(command))
        verb, patch_type = REQUESTS[command.verb]
        request = Request(
            verb=verb,
            group=kind.group,
            version=kind.version,
            plural=kind.plural,
            namespace=command.namespace if kind.namespaced else "",
            name="" if verb == "create" else command.name,
            subresource=command.subresource,
            body=command.body,
            patch_type=patch_type,
            field_manager=command.field_manager,
            force=command.force,
            dry_run=command.dry_run,
            unheard=command.unheard,
            propagation=command.propagation,
            field_validation=command.field_validation,
            actor=self._actor,
        )
        with self._cluster.lock:
            before = self._cluster.recorder.count
            reply = self._cluster.request(request)
            if reply.code == TOO_MANY_REQUESTS:
                reply = self._cluster.request(request)  # As client-go does, before the engine hears of it.
            noted = self._cluster.recorder.count - before
        if reply.refusal is None:
            return Answer(reply.code, reply.body)
        fault = Fault("not-read", command.ref, refusal=reply.refusal)
        # Nothing else happens where a request is refused; a read that is refused is not in the timeline.
        failure = Failure((before,)) if noted else Failure(faults=(fault,))
        refusal = reply.refusal
        return Answer(reply.code, message=refusal.message, reason=refusal.reason, failure=failure)

    def _discover(self, command: Command) -> Answer:
        """As discovery would tell: the message is empty where only the kind is unknown, and not its group's version."""
        group, version = group_of(command.api_version), version_of(command.api_version)
        discovery = self._cluster.discovery
        if discovery.is_down(group, version):
            return Answer(503, message=UNAVAILABLE, reason="ServiceUnavailable")
        kind = discovery.of_kind(group, command.kind, version)
        if kind is not None:
            return Answer(200, {"namespaced": kind.namespaced, "plural": kind.plural})
        known = discovery.in_version(group, version)
        message = "" if known else UNKNOWN_RESOURCE
        same = discovery.of_kind(group, command.kind) or next(
            (other for other in discovery.kinds() if other.kind == command.kind), None
        )
        elsewhere = {"apiVersion": same.api_version} if same else {}
        return Answer(404, elsewhere, message, served=False, failure=_unserved(command))

    def _bring(self, ref: Ref, *, early: bool) -> Answer:
        """What is brought works at once: the object that brings it is Ready, or so assumed."""
        brought = self._cluster.provision.bring(ref, early=early)
        self._cluster.awaits(brought, rarely=True)
        return Answer(200, {"brought": len(brought)})

    def _wait(self, refs: tuple[Ref, ...]) -> Answer:
        """Move for these objects; what did not move before and does not now never will.

        A script waits only for what is not as it should be after milliseconds, so seconds pass.
        """
        cluster = self._cluster
        before = cluster.store.version
        if cluster.schedule in QUICK:
            cluster.settle()
        else:
            cluster.awaits(refs, rarely=True)
        if cluster.store.version != before:
            return Answer(200)
        why = stuck.why(cluster, refs)
        return Answer(200, stuck=Stuck(why, refs, stuck.lacking(cluster, refs)))


def _unserved(command: Command) -> Failure:
    kind = GroupVersionKind(group_of(command.api_version), version_of(command.api_version), command.kind)
    return Failure(faults=(Fault("unserved", command.ref, kind),))
