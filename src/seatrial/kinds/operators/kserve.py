"""InferenceService: a Deployment that serves a model. Ready when its pods are.

From pkg/controller/v1beta1/inferenceservice of KServe 0.20, in its Standard deployment mode.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Kind, Need, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.operators.reconcile import keep_finalizer, set_condition
from seatrial.kinds.operators.table import is_available, release_of
from seatrial.kinds.workloads.pod_template import pod_needs
from seatrial.model.resource import Body, Ref, dig, listed, name_of

GROUP = "serving.kserve.io"
OPERATOR = "kserve"
COMPONENTS = ("predictor", "transformer", "explainer")
CLAIM = "pvc://"
SERVER_IMAGE = "kserve/modelserver"
"""Stands for the image of a serving runtime."""

Path = tuple[str | int, ...]


def needs(service: Body) -> Iterator[Need]:
    namespace = namespace_of(service)
    for component in COMPONENTS:
        spec = dig(service, "spec", component)
        if not isinstance(spec, dict):
            continue
        yield from pod_needs(spec, namespace, ("spec", component))
        for path, model in _models(spec, ("spec", component)):
            if claim := _claim(model):
                yield Need(Ref("PersistentVolumeClaim", namespace, claim), "schedule", (*path, "storageUri"))
            if runtime := model.get("runtime"):
                # It may also be a ClusterServingRuntime.
                ref = Ref("ServingRuntime", namespace, str(runtime), GROUP)
                yield Need(ref, "ready", (*path, "runtime"), optional=True)


def produces(service: Body) -> Iterator[Ref]:
    for component in COMPONENTS:
        if isinstance(dig(service, "spec", component), dict):
            yield Ref("Deployment", namespace_of(service), f"{name_of(service)}-{component}", "apps")


def behave(service: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(service, release)):
        return
    unready = []
    for ref in produces(service):
        found = world.get(ref)
        if found is None:
            yield Create(_deployment(service, ref.name.rpartition("-")[2]), owner=service)
        if found is None or not is_available(found):
            unready.append(ref.name.rpartition("-")[2])
    if unready:
        yield set_condition(service, "Ready", "False", f"{unready[0].capitalize()}NotReady")
    else:
        yield set_condition(service, "Ready", "True")


def is_ready(service: Body) -> bool:
    return conditions.is_true(service, "Ready")


def _models(spec: Body, at: Path) -> Iterator[tuple[Path, Body]]:
    """The served models: under `model`, or under the name of a framework (`sklearn`, `xgboost`...)."""
    for key, value in spec.items():
        if isinstance(value, dict) and ("storageUri" in value or key == "model"):
            yield (*at, key), value


def _claim(model: Body) -> str:
    uri = str(model.get("storageUri") or "")
    return uri.removeprefix(CLAIM).partition("/")[0] if uri.startswith(CLAIM) else ""


def _deployment(service: Body, component: str) -> Body:
    written = dig(service, "spec", component) or {}
    claims = [claim for _, model in _models(written, ()) if (claim := _claim(model))]
    volumes = [
        *listed(written, "volumes"),
        *({"name": f"kserve-pvc-source-{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)),
    ]
    containers = listed(written, "containers") or [{"name": "kserve-container", "image": SERVER_IMAGE}]
    pod = {key: written[key] for key in ("serviceAccountName", "imagePullSecrets", "nodeSelector") if key in written}
    name = f"{name_of(service)}-{component}"
    labels = {"app": f"isvc.{name}", "serving.kserve.io/inferenceservice": name_of(service)}
    template = {"metadata": {"labels": labels}, "spec": {**pod, "containers": containers, "volumes": volumes}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": labels["app"]}}, "template": template}
    meta = {"name": name, "namespace": namespace_of(service), "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


KINDS = (
    Kind(
        "InferenceService",
        GROUP,
        actor="kserve-controller-manager",
        needs=needs,
        produces=produces,
        behave=behave,
        ready=is_ready,
    ),
)
