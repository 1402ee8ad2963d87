"""The objects of a real Argo CD: its settings, the Applications that are written for it, and what their status says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from seatrial.engines.argocd.app import API_VERSION, HOME, App, Settings, SyncOptions, marks_of
from seatrial.engines.argocd.asking import requested
from seatrial.engines.argocd.projects import DEFAULT, IN_CLUSTER
from seatrial.engines.argocd.settings import CONFIG_MAP
from seatrial.engines.argocd.tracking import source_failure, tracking
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, listed, name_of
from seatrial.model.timeline import ApplicationCondition, Operation, OperationPhase, SyncTask

KINDS = {"Application": "applications", "ApplicationSet": "applicationsets", "AppProject": "appprojects"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PART_OF = {"app.kubernetes.io/part-of": "argocd"}
"""Argo CD reads no settings without this label."""
PERMITS_ALL: Body = {
    "sourceRepos": ["*"],
    "sourceNamespaces": ["*"],
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
}
PRIVATE = "https://seatrial.invalid"
"""The host of repositories that have no URL of their own."""
BACKOFF: Body = {"duration": "1s", "factor": 1, "maxDuration": "1s"}
"""No time of the cluster passes between two attempts, so a short wait shows the same as a long one."""
TERMINAL: dict[str, OperationPhase] = {"Succeeded": "Succeeded", "Failed": "Failed", "Error": "Error"}
TEMPORARY = lazy_re.compile(r"/dev/shm/\d+")
FILE = "/dev/shm/0"
PRUNES = ("Pruned", "PruneSkipped")


def installed(settings: Settings, projects: Mapping[str, Body]) -> tuple[Body, ...]:
    """What installing Argo CD leaves, as far as its controllers read it, and the projects of the user."""
    return (
        _named("v1", "Namespace", HOME, ""),
        *map(_definition, KINDS),
        _config(settings),
        {
            **_named("v1", "Secret", "argocd-secret", labels=PART_OF),
            "data": {"server.secretkey": "c2VhdHJpYWw="},
        },
        *(_project(name, projects.get(name)) for name in sorted({DEFAULT, *projects})),
    )


def application_of(app: App, source: Body) -> Body:
    """The Application that is assumed where the user gives none."""
    automated = {"prune": app.prune, "selfHeal": app.self_heal}
    body = _named(API_VERSION, "Application", app.name, app.namespace)
    body["metadata"]["finalizers"] = list(app.finalizers)
    destination = {"server": IN_CLUSTER[0], "namespace": app.destination}
    spec = {"project": DEFAULT, "destination": destination, "source": source, "syncPolicy": {"automated": automated}}
    return {**body, "spec": spec}


def named(app: App) -> Body:
    """An Application by its name alone."""
    return _named(API_VERSION, "Application", app.name, app.namespace)


def operated(application: Body, app: App, flags: tuple[str, ...], live: Body | None) -> Body:
    """An Application with an operation, as `argocd app sync` writes it: the state of the last one is cleared."""
    status = {key: value for key, value in ((live or {}).get("status") or {}).items() if key != "operationState"}
    if app.operation is not None:
        kept = (live or {}).get("status") or {}
        return {**application, "status": status if app.forgets else kept}
    return {**application, "status": status, "operation": _operation(app, requested(app, flags))}


def terminating(application: Body) -> Body:
    """An Application whose operation is to end, as `argocd app terminate-op` writes it."""
    status = application["status"]
    return {**application, "status": {**status, "operationState": {**status["operationState"], "phase": "Terminating"}}}


def is_running(application: Body | None) -> bool:
    phase = dig(application, "status", "operationState", "phase")
    return phase is not None and phase not in TERMINAL


def awaited(application: Body, app: App) -> Iterator[Ref]:
    """What a running operation waits for."""
    return (task.object for task in _tasks(application, app) if task.state == "Running")


def operation_of(application: Body, app: App, urls: Mapping[str, str]) -> Operation:
    """The last operation of an Application, as its status has it."""
    state = dig(application, "status", "operationState") or {}
    tasks = tuple(_tasks(application, app))
    done = {(task.object, task.phase) for task in tasks if task.status}
    message = _plain(str(state.get("message") or ""), urls)
    phase = TERMINAL.get(str(state.get("phase")), "Running")
    return Operation(
        app=app.name,
        phase=phase,
        message=message,
        tasks=(*tasks, *(one for one in _pending(app) if (one.object, one.phase) not in done)),
        waits_for=tuple(task.object for task in tasks if task.state == "Running") if phase == "Running" else (),
        conditions=tuple(_conditions(application, urls)),
        attempts=int(state.get("retryCount") or 0) + 1,
        automated=app.automated and app.operation is None,
        failure=source_failure(app, message),
        namespace=app.namespace,
    )


def _operation(app: App, asked: SyncOptions) -> Body:
    strategy = "apply" if asked.skips_hooks else "hook"
    options = [*app.options, *asked.options]
    sync: Body = {"prune": asked.prune, "syncOptions": options}
    if asked.skips_hooks or asked.force:
        sync["syncStrategy"] = {strategy: {"force": True} if asked.force else {}}
    if asked.dry_run:
        sync["dryRun"] = True
    if asked.selected:
        sync["resources"] = [_selected(ref) for ref in asked.selected]
    by = {"automated": True} if asked.automated else {"username": "admin"}
    return {"initiatedBy": by, "sync": sync, "retry": {"limit": asked.retries, "backoff": BACKOFF}}


def _selected(ref: Ref) -> Body:
    return {"group": ref.group, "kind": ref.kind, "name": ref.name, "namespace": ref.namespace}


def _tasks(application: Body, app: App) -> Iterator[SyncTask]:
    """The results of an operation. Argo CD lists cluster-scoped objects under the namespace of the destination."""
    targets = {(target.ref.group, target.ref.kind, target.ref.name): target for target in app.targets}
    for one in listed(application, "status", "operationState", "syncResult", "resources"):
        group, kind, name = (str(one.get(field) or "") for field in ("group", "kind", "name"))
        target = targets.get((group, kind, name))
        namespace = target.ref.namespace if target else str(one.get("namespace") or "")
        yield SyncTask(
            object=Ref(kind, "" if kind == "Namespace" else namespace or app.destination, name, group)
            if not target or target.ref.namespace
            else target.ref,
            phase=str(one.get("syncPhase") or "Sync"),
            wave=marks_of(target).wave if target else 0,
            hook=bool(one.get("hookType")),
            prune=one.get("status") in PRUNES,
            status=str(one.get("status") or ""),
            state=str(one.get("hookPhase") or ""),
            message=_plain(str(one.get("message") or ""), {}),
        )


def _pending(app: App) -> Iterator[SyncTask]:
    for target in app.targets:
        marks = marks_of(target)
        for phase in marks.phases:
            yield SyncTask(target.ref, phase, marks.wave, marks.hook)


def _conditions(application: Body, urls: Mapping[str, str]) -> Iterator[ApplicationCondition]:
    """Warnings about the sources; errors are in the message of the operation as well."""
    for one in listed(application, "status", "conditions"):
        if str(one.get("type")).endswith("Warning"):
            yield ApplicationCondition(str(one["type"]), _plain(str(one.get("message") or ""), urls))


def _plain(message: str, urls: Mapping[str, str]) -> str:
    """A message with the URLs of the user in place of ours, and without the names of temporary files."""
    for ours, url in urls.items():
        message = message.replace(ours, url)
    return TEMPORARY.sub(FILE, message)


def _project(name: str, given: Body | None) -> Body:
    """A project of the user, which also permits private repositories; one that is not known permits all."""
    spec = (given or {}).get("spec") or PERMITS_ALL
    spec = {**spec, "sourceRepos": [*(spec.get("sourceRepos") or ()), f"{PRIVATE}/**"]}
    return {**_named(API_VERSION, "AppProject", name), "spec": spec}


def _config(settings: Settings) -> Body:
    """`argocd-cm`: as shipped, with what the user says in theirs."""
    excluded = [
        {"apiGroups": list(one.groups), "kinds": list(one.kinds), "clusters": list(one.clusters or ("*",))}
        for one in settings.exclusions
    ]
    data = {"application.resourceTrackingMethod": tracking(settings)}
    if excluded:
        data["resource.exclusions"] = msgspec.yaml.encode(excluded).decode()
    for body in settings.given:
        if body.get("kind") == "ArgoCD":
            raise CannotContinue(
                f"ArgoCD/{name_of(body)}: the operator is only simulated; pass the ConfigMap {CONFIG_MAP}"
            )
        if body.get("kind") == "ConfigMap" and name_of(body) == CONFIG_MAP:
            data |= {str(key): str(value) for key, value in (body.get("data") or {}).items()}
    return {**_named("v1", "ConfigMap", CONFIG_MAP, labels=PART_OF), "data": data}


def _definition(kind: str) -> Body:
    plural = KINDS[kind]
    version: Body = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}
    if kind == "ApplicationSet":
        version["subresources"] = {"status": {}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {**_named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{GROUP}", ""), "spec": spec}


def _named(api_version: str, kind: str, name: str, namespace: str = HOME, labels: Body | None = None) -> Body:
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **place, **({"labels": labels} if labels else {})},
    }
