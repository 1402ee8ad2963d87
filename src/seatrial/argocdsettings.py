"""How Argo CD is set up, from what users keep of it: `argocd-cm`, or the operator's `ArgoCD` resource. Reads no files.

Upstream: `util/settings/settings.go` of Argo CD 3.5; `controllers/argocd/configmap.go` of argocd-operator, and
`controllers/argocd/argocd.go` of gitops-operator for what comes with OpenShift GitOps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from seatrial.engines.argocd import Filter, Settings, versions
from seatrial.engines.argocd.app import GROUP
from seatrial.engines.argocd.projects import project_of
from seatrial.engines.argocd.tracking import SHIPPED_EXCLUSIONS
from seatrial.errors import CannotContinue
from seatrial.readiness.argocd.verdict import Script
from seatrial.resource import Body, dig, group_of, listed, name_of
from seatrial.text import Text
from seatrial.yamlfile import BrokenYaml, documents

CONFIG_MAP = "argocd-cm"
PARAMETERS = "argocd-cmd-params-cm"
FLAG = "--enable-progressive-syncs"
VARIABLE = "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS"
PROGRESSIVE = "applicationsetcontroller.enable.progressive.syncs"
OPENSHIFT = "openshift-gitops"
OPENSHIFT_VERSION = (3, 3)
"""Of OpenShift GitOps 1.20."""
APISERVICES = Filter(groups=("apiregistration.k8s.io",), kinds=("APIService",))
TEKTON = Filter(groups=("tekton.dev",), kinds=("TaskRun", "PipelineRun"))
HEALTH = "resource.customizations.health."
OPEN_LIBS = "resource.customizations.useOpenLibs."
IGNORING = ("jsonPointers", "jqPathExpressions", "managedFieldsManagers")
IGNORE = "resource.customizations.ignoreDifferences."


def settings_of(asked: str, bodies: Iterable[Body]) -> Settings:
    """Argo CD in the version asked for (`3.5`, `openshift-gitops`), set up as these objects say."""
    settings = _as_it_comes(asked)
    for body in bodies:
        if body.get("kind") == "ConfigMap" and name_of(body) == CONFIG_MAP:
            settings = _configured(settings, {str(k): str(v) for k, v in (body.get("data") or {}).items()})
        elif body.get("kind") == "ConfigMap" and name_of(body) == PARAMETERS:
            settings = replace(settings, progressive_syncs=str(dig(body, "data", PROGRESSIVE)).lower() == "true")
        elif body.get("kind") == "ArgoCD" and group_of(str(body.get("apiVersion", ""))) == GROUP:
            settings = _operated(settings, body)
        elif is_project(body):
            settings = replace(settings, projects={**settings.projects, name_of(body): project_of(body)})
    return settings


def is_setting(body: Body) -> bool:
    """Whether an object says how Argo CD is set up."""
    if body.get("kind") == "ConfigMap":
        return name_of(body) in (CONFIG_MAP, PARAMETERS)
    return body.get("kind") in ("ArgoCD", "AppProject") and group_of(str(body.get("apiVersion", ""))) == GROUP


def is_project(body: Body) -> bool:
    return body.get("kind") == "AppProject" and group_of(str(body.get("apiVersion", ""))) == GROUP


def _as_it_comes(asked: str) -> Settings:
    if asked == OPENSHIFT:
        return Settings(OPENSHIFT_VERSION, exclusions=(*SHIPPED_EXCLUSIONS, APISERVICES, TEKTON))
    version = versions.parse(asked)
    shipped = versions.has(version, "exclusions in argocd-cm")
    return Settings(version, exclusions=SHIPPED_EXCLUSIONS if shipped else ())


def _configured(settings: Settings, data: dict[str, str]) -> Settings:
    """What `argocd-cm` says; what it does not say stays."""
    scripts = dict(settings.scripts)
    ignored = list(settings.ignore_differences)
    legacy = _yaml(data.get("resource.customizations", ""), "resource.customizations")
    for key, entry in legacy.items() if isinstance(legacy, dict) else ():
        if isinstance(entry, dict) and entry.get("health.lua"):
            scripts[str(key)] = Script(str(entry["health.lua"]), bool(entry.get("health.lua.useOpenLibs")))
        if isinstance(entry, dict) and entry.get("ignoreDifferences"):
            ignored += _ignored(str(key).replace("/", "_", 1), _yaml(str(entry["ignoreDifferences"]), str(key)))
    for key, value in data.items():
        if key.startswith(HEALTH):
            name = key.removeprefix(HEALTH)
            opened = data.get(f"{OPEN_LIBS}{name}") == "true"
            scripts[name.replace("_", "/", 1)] = Script(value, opened)
        elif key.startswith(IGNORE):
            ignored += _ignored(key.removeprefix(IGNORE), _yaml(value, key))
    return replace(
        settings,
        scripts=scripts,
        ignore_differences=tuple(ignored),
        exclusions=_filters(data, "resource.exclusions", settings.exclusions),
        inclusions=_filters(data, "resource.inclusions", settings.inclusions),
        tracking=data.get("application.resourceTrackingMethod", settings.tracking),
        label=data.get("application.instanceLabelKey", settings.label),
    )


def _operated(settings: Settings, body: Body) -> Settings:
    """The operator writes `argocd-cm` from its own resource; its own exclusions are there only while that has none."""
    data: dict[str, str] = {str(k): str(v) for k, v in (dig(body, "spec", "extraConfig") or {}).items()}
    for check in listed(body, "spec", "resourceHealthChecks"):
        group, kind = str(check.get("group") or ""), str(check.get("kind") or "")
        data[HEALTH + (f"{group}_{kind}" if group else kind)] = str(check.get("check") or "")
    fields = {
        "resourceExclusions": "resource.exclusions",
        "resourceInclusions": "resource.inclusions",
        "resourceTrackingMethod": "application.resourceTrackingMethod",
        "applicationInstanceLabelKey": "application.instanceLabelKey",
    }
    for field, key in fields.items():
        value = dig(body, "spec", field)
        if value:
            data[key] = str(value)
    shipped = versions.has(settings.version, "exclusions in argocd-cm")
    usual = (*SHIPPED_EXCLUSIONS, APISERVICES) if shipped else ()
    arguments = listed(body, "spec", "applicationSet", "extraCommandArgs")
    variables = {str(v.get("name")): v.get("value") for v in listed(body, "spec", "applicationSet", "env")}
    progressive = bool({FLAG, f"{FLAG}=true"} & set(arguments)) or variables.get(VARIABLE) == "true"
    return _configured(replace(settings, exclusions=usual, progressive_syncs=progressive), data)


def _filters(data: dict[str, str], key: str, usual: tuple[Filter, ...]) -> tuple[Filter, ...]:
    if key not in data:
        return usual
    found = _yaml(data[key], key)
    return tuple(
        Filter(tuple(map(str, entry.get("apiGroups") or ())), tuple(map(str, entry.get("kinds") or ())))
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict)
    )


def _ignored(name: str, entry: Any) -> Iterator[Body]:
    group, _, kind = name.rpartition("_")
    if name == "all":
        group, kind = "*", "*"
    if isinstance(entry, dict):
        yield {"group": group, "kind": kind, **{field: entry.get(field) or [] for field in IGNORING}}


def _yaml(text: str, key: str) -> Any:
    try:
        return next((document.body for document in documents(Text(key, text))), None)
    except BrokenYaml as broken:
        raise CannotContinue(f"{CONFIG_MAP}: {key}: {broken.problem}") from None
