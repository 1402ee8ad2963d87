"""Route and DeploymentConfig of OpenShift.

From pkg/apps/deployer and the router of OpenShift 4. A DeploymentConfig replaces its pods at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Kind, Need, Status, Update, World
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import generation_of, is_terminating, namespace_of
from seatrial.kinds.workloads.images import IMAGES, has_tag
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

APPS = "apps.openshift.io"
ROUTES = "route.openshift.io"
VERSION = "openshift.io/deployment-config.latest-version"


def route_needs(route: Body) -> Iterator[Need]:
    targets = [(("spec", "to"), dig(route, "spec", "to"))]
    others = entries(route, "spec", "alternateBackends")
    for path, target in (*targets, *((("spec", "alternateBackends", index), entry) for index, entry in others)):
        if isinstance(target, dict) and target.get("name"):
            yield Need(Ref("Service", namespace_of(route), str(target["name"])), "serve", (*path, "name"))


def behave_route(route: Body, world: World) -> Acts:
    if not is_terminating(route) and not listed(route, "status", "ingress"):
        host = str(dig(route, "spec", "host") or f"{name_of(route)}-{namespace_of(route)}.apps.example.com")
        admitted = condition(route, "Admitted", "True")
        yield Status(route, {"ingress": [{"host": host, "routerName": "default", "conditions": [admitted]}]})


def route_is_ready(route: Body) -> bool:
    return bool(listed(route, "status", "ingress"))


def needs(config: Body) -> Iterator[Need]:
    yield from template_needs("spec", "template")(config)
    for index, trigger in entries(config, "spec", "triggers"):
        if tag := _tag(trigger, config):
            yield Need(tag, "ready", ("spec", "triggers", index, "imageChangeParams", "from", "name"))


def behave(config: Body, world: World) -> Acts:
    """One ReplicationController for each template. Old ones are scaled to zero."""
    if is_terminating(config):
        return
    tags = [tag for _, trigger in entries(config, "spec", "triggers") if (tag := _tag(trigger, config))]
    if not all(has_tag(tag, world) for tag in tags):
        return
    made = sorted(world.owned(config, "ReplicationController"), key=_version)
    template = default_template(dig(config, "spec", "template") or {})
    if not made or dig(made[-1], "spec", "template", "spec") != template.get("spec"):
        yield from _deploy(config, template, _version(made[-1]) + 1 if made else 1)
        return
    for old in made[:-1]:
        yield Update({**old, "spec": {**old["spec"], "replicas": 0}})
    newest = made[-1]
    replicas = int(dig(config, "spec", "replicas") or 0)
    if dig(newest, "spec", "replicas") != replicas:
        yield Update({**newest, "spec": {**newest["spec"], "replicas": replicas}})
    yield Status(config, _status(config, newest))


def is_ready(config: Body) -> bool:
    wanted = int(dig(config, "spec", "replicas") or 0)
    return int(dig(config, "status", "availableReplicas") or 0) >= wanted


def _tag(trigger: Body, config: Body) -> Ref | None:
    source = dig(trigger, "imageChangeParams", "from") or {}
    if source.get("kind") != "ImageStreamTag" or not source.get("name"):
        return None
    return Ref("ImageStreamTag", str(source.get("namespace") or namespace_of(config)), str(source["name"]), IMAGES)


def _version(controller: Body) -> int:
    return int(labels_of(controller).get(VERSION) or 0)


def _deploy(config: Body, template: Body, version: int) -> Acts:
    selector = dig(config, "spec", "selector") or labels_of(template)
    own = {**selector, "deployment": f"{name_of(config)}-{version}", "deploymentconfig": name_of(config)}
    labels = {**labels_of(template), **own}
    meta = {
        "name": f"{name_of(config)}-{version}",
        "namespace": namespace_of(config),
        "labels": {VERSION: str(version)},
    }
    spec = {
        "replicas": int(dig(config, "spec", "replicas") or 0),
        "selector": own,
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    yield Create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": meta, "spec": spec}, owner=config)


def _status(config: Body, newest: Body) -> Body:
    counts = {key: int(dig(newest, "status", key) or 0) for key in ("replicas", "readyReplicas", "availableReplicas")}
    wanted = int(dig(config, "spec", "replicas") or 0)
    available = "True" if counts["availableReplicas"] >= wanted else "False"
    return {
        **counts,
        "updatedReplicas": counts["replicas"],
        "unavailableReplicas": max(0, wanted - counts["availableReplicas"]),
        "latestVersion": _version(newest),
        "observedGeneration": generation_of(config),
        "conditions": [condition(config, "Available", available)],
    }


KINDS = (
    Kind("Route", ROUTES, actor="openshift-router", needs=route_needs, behave=behave_route, ready=route_is_ready),
    Kind("DeploymentConfig", APPS, actor="deploymentconfig-controller", needs=needs, behave=behave, ready=is_ready),
)
