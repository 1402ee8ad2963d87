"""What well-known operators create when they start: CRDs, webhooks. Which do is in operators.toml (`creates`).

An operator that elects a leader creates it once, whichever of its pods leads. It is trusted to have the rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds import Acts, Create, World
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.operators.manifests import configurations, crds
from seatrial.kinds.operators.table import OperatorEntry, workload_of
from seatrial.kinds.workloads.images import image_tag
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.resource import Body, Ref, dig, listed, name_of, uid_of

CRD_GROUP = "apiextensions.k8s.io"
CRDS = "crds"
WEBHOOK_GROUP = "admissionregistration.k8s.io"
WEBHOOKS = "webhooks"
COMPONENT = "app.kubernetes.io/component"


def start(pod: Body, world: World) -> Acts:
    """Create what is not there when a pod of an operator is ready."""
    workload: Body = {"spec": {"template": pod}}
    operator = _started(workload)
    if operator is None:
        return
    for crd in crds_created(workload, world.all("ConfigMap", namespace_of(pod))):
        if world.get(Ref("CustomResourceDefinition", "", name_of(crd), CRD_GROUP)) is None:
            yield Create(crd, by=operator.name)
    for made in _webhooks_created(operator, pod):
        if world.get(Ref(made["kind"], "", name_of(made), WEBHOOK_GROUP)) is None:
            yield Create(_owned(made, _webhook_owner(operator, world)), by=operator.name)


def creator_in(workload: Body) -> OperatorEntry | None:
    """The operator that a workload runs, if it creates CRDs when it starts."""
    operator = _started(workload)
    return operator if operator is not None and CRDS in operator.creates else None


def _started(workload: Body) -> OperatorEntry | None:
    known = workload_of(workload)
    return known[0] if known is not None and known[0].creates and known[1].role == "controller" else None


def _webhooks_created(operator: OperatorEntry, pod: Body) -> Iterator[Body]:
    """The webhook configurations that an operator creates by itself. They call the Service that its pod names."""
    if WEBHOOKS not in operator.creates:
        return
    variables = (one for _, container in containers_of(pod["spec"]) for one in listed(container, "env"))
    named = (str(one.get("value") or "") for one in variables if one.get("name") == operator.service_variable)
    yield from configurations(operator, namespace_of(pod), next(named, ""))


def _webhook_owner(operator: OperatorEntry, world: World) -> Body | None:
    if not operator.webhook_owner:
        return None
    roles = world.select("ClusterRole", "", {COMPONENT: operator.name}, RBAC)
    return next((role for role in roles if name_of(role).endswith(operator.webhook_owner)), None)


def _owned(body: Body, role: Body | None) -> Body:
    if role is None:
        return body
    owner = {"apiVersion": role["apiVersion"], "kind": role["kind"], "name": name_of(role), "uid": uid_of(role)}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}


def crds_created(workload: Body, settings: Iterable[Body] = ()) -> Iterator[Body]:
    """The CRDs that an operator creates by itself, if the workload runs one that does. `settings` are ConfigMaps."""
    operator, spec = creator_in(workload), dig(workload, "spec", "template", "spec") or {}
    if operator is not None and _is_wanted(operator, spec, settings):
        images = (str(container.get("image") or "") for _, container in containers_of(spec))
        yield from crds(operator, next((image_tag(image) for image in images if workload_of(_running(image))), ""))


def _running(image: str) -> Body:
    return {"spec": {"template": {"spec": {"containers": [{"image": image}]}}}}


def _is_wanted(operator: OperatorEntry, spec: Body, settings: Iterable[Body]) -> bool:
    words = [
        str(word) for _, one in containers_of(spec) for field in ("command", "args") for word in listed(one, field)
    ]
    if operator.creates_if and operator.creates_if not in words:
        return False
    setting = operator.creates_unless
    given = (word.lstrip("-").partition("=") for word in words)
    values = [value or "true" for name, _, value in given if setting and name == setting]
    values += [str(dig(body, "data", setting) or "") for body in settings if setting]
    return "true" not in values
