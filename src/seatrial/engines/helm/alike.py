"""Rehearsals that the other major version of Helm certainly repeats, so that it need not be rehearsed to compare.

Helm 3 creates and patches where Helm 4 applies, in the same order of kinds. Where every write of Helm 4 created an
object, left it unchanged, gave some of its fields another value or deleted it at once, nothing was refused, and only
the control plane acted, the writes of Helm 3 are accepted as well. With `--wait`, all that Helm 4 wrote must be ready
for Helm 3 when Helm 4 ends. Knows no differences of the versions: where one could show, the answer is no.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.helm import hooks, records
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, annotations_of, changed_paths, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.readiness import helm3

HELM = "helm"
WAIT = "--wait"
KINDS = frozenset(
    (
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount", "ConfigMap", "Secret"),
        *("Service", "Ingress", "IngressClass", "NetworkPolicy", "PriorityClass", "PodDisruptionBudget"),
        *("Deployment", "DaemonSet", "CronJob", "HorizontalPodAutoscaler"),
    )
)
"""Kinds that both versions have at the same place in their order, and that hold nothing when they are deleted."""
THERE = KINDS | {"StorageClass"}
"""What may be in the cluster before: it neither refuses nor changes other objects."""
CONTROL_PLANE = frozenset(
    (
        *("kubernetes", "kubelet", "garbage-collector", "namespace-controller", "serviceaccount-controller"),
        *("service-controller", "endpoint-controller", "endpointslice-controller", "ingress-controller"),
        *("deployment-controller", "replicaset-controller", "daemonset-controller", "cronjob-controller"),
        *("job-controller", "disruption-controller", "clusterrole-aggregation-controller"),
    )
)
DID = frozenset((("apply", "created"), ("apply", "unchanged"), ("delete", "deleted")))
CHANGED = ("apply", "changed")
KEPT_BY_SERVER = tuple(("metadata", field) for field in ("managedFields", "resourceVersion", "generation"))
RECORDED = frozenset((*DID, ("create", "created"), ("update", "changed")))
"""What may have happened to Helm's own records."""


def alike(steps: Sequence[PlannedStep[Any]], rehearsal: Rehearsal, there: Sequence[Body]) -> bool:
    """Whether every step of a rehearsal with Helm 4 certainly ends well with Helm 3, too."""
    return (
        all(step.outcome == "ok" and step.again is None for step in rehearsal.steps)
        and all(body.get("kind") in THERE for body in there)
        and all(map(_is_plain_step, steps))
        and all(map(_is_plain_event, rehearsal.timeline))
        and all(_is_ready(rehearsal, at) for at, step in enumerate(steps) if WAIT in step.act.flags)
    )


def _is_plain_step(planned: PlannedStep[Any]) -> bool:
    act, release = planned.act, planned.release
    if not isinstance(act, HelmAct) or set(act.flags) - {WAIT} or planned.step.kill:
        return False
    return act.action != "test" and (release is None or _is_plain_release(release))


def _is_plain_release(release: Release) -> bool:
    names = {resource.ref for resource in release.resources}
    return (
        not release.crds
        and len(names) == len(release.resources)
        and all(_is_plain(resource.ref.kind, resource.body) for resource in release.resources)
    )


def _is_plain(kind: str, body: Body) -> bool:
    """Whether it is a regular resource without a policy, or a hook that no step of the trial runs."""
    if hooks.is_hook(body):
        return {*hooks.events_of(body)} <= {*hooks.EVENTS_OF["test"]}
    return kind in KINDS and hooks.RESOURCE_POLICY not in annotations_of(body)


def _is_plain_event(event: Event) -> bool:
    if event.actor != HELM:
        return event.actor in CONTROL_PLANE and event.effect != "refused"
    what = event.verb, event.effect
    if records.NAME.fullmatch(event.object.name):
        return what in RECORDED
    # Templates that ask the cluster may render more than was planned.
    done = what in DID or (what == CHANGED and _changes_values(event))
    return done and _is_plain(event.object.kind, event.after or event.before or {})


def _changes_values(event: Event) -> bool:
    """Whether a write only gives fields another value: a patch of Helm 3 and an apply of Helm 4 then do the same."""
    paths = (path for path in changed_paths(event.before, event.after) if path[:2] not in KEPT_BY_SERVER)
    values = (dig(body, *path) for path in paths for body in (event.before, event.after))
    return all(isinstance(value, str | int | float) for value in values)


def _is_ready(rehearsal: Rehearsal, step: int) -> bool:
    """Whether all that Helm wrote in a step is ready for Helm 3 as well when Helm ends."""
    own = [event for event in rehearsal.of_step(step) if event.actor == HELM]
    written = {event.object for event in own if event.verb == "apply"}
    return all(helm3.is_ready_for_wait(_body_at(rehearsal, ref, own[-1].index)) for ref in written)


def _body_at(rehearsal: Rehearsal, ref: Ref, index: int) -> Body:
    bodies = [event.after for event in rehearsal.of_object(ref) if event.index <= index and event.after]
    return bodies[-1]
