"""`helm.v3.Release`: Helm 3 inside one step of Pulumi, as a model. Hooks run, kinds have their order, and it waits.

Upstream: `provider/pkg/provider/helm_release.go` of pulumi-kubernetes 4.32, which calls Helm 3.19: `pkg/action` and
`pkg/releaseutil/kind_sorter.go`. The real Helm 4 plays wherever a chart is deployed by Helm itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from seatrial import hooks
from seatrial.engines.helm3objects import marked, not_owned
from seatrial.engines.pulumi import messages
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.steps import CRD, Move, about, lacks, until_gone
from seatrial.engines.script import Wait
from seatrial.readiness import helm3
from seatrial.registration import Registration
from seatrial.resource import Body, Ref, listed, metadata, name_of, ref_of

INSTALL_ORDER = (
    *("Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget"),
    *("ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", CRD, "ClusterRole", "ClusterRoleList", "ClusterRoleBinding", "ClusterRoleBindingList"),
    *("Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod", "ReplicationController"),
    *("ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "IngressClass"),
    *("Ingress", "APIService"),
)
"""Helm 3.19; kinds that are not in it come last, by their names."""


def install(one: Registration, checkpoint: Checkpoint) -> Move[str]:
    """Definitions of crds/, then hooks before, objects, waiting, hooks after."""
    if (yield from lacks(one)):
        return one.unrendered
    for body in one.definitions:
        answer = yield about(body, "create", body)
        if answer.message and answer.code != 409:
            return _failed(one, f"failed to install CRD {name_of(body)}: {answer.message}")
    for body in one.definitions:
        yield from _until_ready(body)
    words = (yield from _built(one)) or (yield from _owned(one))
    if words:  # Nothing was made, and there is no record of a release.
        return words
    checkpoint.put(one, unready=True)
    return (yield from _deploy(one, (), checkpoint, "install"))


def upgrade(old: Registration, one: Registration, checkpoint: Checkpoint) -> Move[str]:
    """As an install, but crds/ is not looked at, and what is no longer in the chart is deleted."""
    words = yield from _built(one)
    if words:
        return _failed(one, words)
    checkpoint.put(one, unready=True)
    kept = {_ref(body) for body in one.contents}
    gone = [body for body in _plain(old) if _ref(body) not in kept]
    return (yield from _deploy(one, gone, checkpoint, "upgrade"))


def uninstall(one: Registration) -> Move[str]:
    before, after = hooks.EVENTS_OF["uninstall"]
    words = yield from _run_hooks(one, before)
    if words:
        return _failed(one, words)
    gone = [body for body in reversed(_plain(one)) if "keep" not in _policy(body)]
    for body in gone:
        answer = yield about(body, "delete", propagation="Background")
        if answer.served and answer.message and answer.code != 404:
            return _failed(one, f"failed to delete release: {answer.message}")
    if not one.inputs.get("skipAwait"):
        for body in gone:
            yield from until_gone(body, _ref(body))
    words = yield from _run_hooks(one, after)
    return _failed(one, words) if words else ""


def _deploy(one: Registration, gone: Iterable[Body], checkpoint: Checkpoint, action: str) -> Move[str]:
    before, after = hooks.EVENTS_OF[action]
    words = yield from _run_hooks(one, before)
    for body in () if words else _plain(one):
        sent = marked(body, _owner(one))
        answer = yield structs.replace(about(body, "apply", sent), force=True)  # A patch, which asks no manager.
        if answer.message or not answer.served:
            words = answer.message or messages.no_match(body)
            break
    for body in () if words else gone:
        if "keep" not in _policy(body):
            yield about(body, "delete", propagation="Background")
    if not words and not one.inputs.get("skipAwait"):
        for body in _plain(one):
            if body.get("kind") != "Job" or one.inputs.get("waitForJobs"):
                yield from _until_ready(body)
    words = words or (yield from _run_hooks(one, after))
    if words:
        return _failed(one, words)
    checkpoint.ready(one.urn)
    return ""


def _built(one: Registration) -> Move[str]:
    """Helm maps every kind before it makes anything."""
    for body in _plain(one):
        answer = yield about(body, "discover")
        if not answer.served:
            own = metadata(body).get("namespace") or ""
            return (
                "unable to build kubernetes objects from release manifest: resource mapping not found for name: "
                f'"{name_of(body)}" namespace: "{own}" from "": {messages.no_match(body)}\n'
                "ensure CRDs are installed first"
            )
    return ""


def _owned(one: Registration) -> Move[str]:
    """What is there already and is not of this release, Helm does not touch."""
    for body in _plain(one):
        live = yield about(body, "get")
        wrong = not_owned(live.body, _owner(one)) if live.code == 200 else ""
        if wrong:
            what = f'{body.get("kind")} "{name_of(body)}" in namespace "{metadata(body).get("namespace") or ""}"'
            return (
                f"Unable to continue with install: {what} exists and cannot be imported into the current release: "
                f"invalid ownership metadata; {wrong}"
            )
    return ""


def _owner(one: Registration) -> tuple[str, str]:
    return str(one.inputs.get("name") or one.name), str(one.inputs.get("namespace") or "default")


def _run_hooks(one: Registration, event: str) -> Move[str]:
    """One after another, by weight; each is deleted first where its policy says so, made, and waited for."""
    bodies = [b for b in one.contents if event in hooks.events_of(b) and not hooks.unknown_events(b)]
    for body in sorted(_ordered(bodies), key=hooks.weight_of):
        if hooks.BEFORE_CREATION in hooks.delete_policies(body):
            yield about(body, "delete", propagation="Background")
            yield from until_gone(body, _ref(body))
        answer = yield about(body, "create", body)
        if answer.message or not answer.served:
            said = answer.message or messages.no_match(body)
            return f"failed {event}: warning: Hook {event} {name_of(body)} failed: {said}"
        live = yield from _until_ended(body)
        if any(c.get("type") == "Failed" and c.get("status") == "True" for c in listed(live, "status", "conditions")):
            return f"failed {event}: job {name_of(body)} failed: BackoffLimitExceeded"
    for body in bodies:
        if hooks.SUCCEEDED in hooks.delete_policies(body):
            yield about(body, "delete", propagation="Background")
    return ""


def _until_ready(body: Body) -> Move[None]:
    while True:
        live = yield about(body, "get")
        if live.code == 200 and helm3.content_when_waited_for(live.body):
            return
        yield Wait((_ref(body),))


def _until_ended(body: Body) -> Move[Body]:
    while True:
        live = yield about(body, "get")
        if live.code == 200 and helm3.content_as_hook(live.body):
            return live.body
        yield Wait((_ref(body),))


def _plain(one: Registration) -> list[Body]:
    return _ordered(body for body in one.contents if not hooks.is_hook(body))


def _ordered(bodies: Iterable[Body]) -> list[Body]:
    return sorted(bodies, key=_rank)


def _rank(body: Body) -> tuple[int, str]:
    kind = str(body.get("kind"))
    return (INSTALL_ORDER.index(kind), "") if kind in INSTALL_ORDER else (len(INSTALL_ORDER), kind)


def _policy(body: Body) -> str:
    return str((metadata(body).get("annotations") or {}).get(hooks.RESOURCE_POLICY) or "")


def _ref(body: Body) -> Ref:
    return ref_of(body, namespaced=bool(metadata(body).get("namespace")))


def _failed(one: Registration, words: str) -> str:
    name, namespace = _owner(one)
    return f"failed to become available within allocated timeout. Error: Helm Release {namespace}/{name}: {words}"
