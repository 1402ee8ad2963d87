"""Argo CD's configuration, from `argocd-cm` or the operator's `ArgoCD` resource. Reads no files.

Upstream: `util/settings/settings.go` of Argo CD 3.5; `controllers/argocd/configmap.go` of argocd-operator, and
`controllers/argocd/argocd.go` of gitops-operator for what comes with OpenShift GitOps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import Filter, Settings
from seatrial.engines.argocd.projects import is_project, project_of
from seatrial.engines.argocd.tracking import SHIPPED_EXCLUSIONS
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, group_of, listed, name_of
from seatrial.readiness.argocd.verdict import HealthScript
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

CONFIG_MAP = "argocd-cm"
PARAMETERS = "argocd-cmd-params-cm"
FLAG = "--enable-progressive-syncs"
VARIABLE = "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS"
PROGRESSIVE = "applicationsetcontroller.enable.progressive.syncs"
OPENSHIFT = "openshift-gitops"
OPENSHIFT_VERSION = "3.3"
"""Of OpenShift GitOps 1.20."""
APISERVICES = Filter(groups=("apiregistration.k8s.io",), kinds=("APIService",))
TEKTON = Filter(groups=("tekton.dev",), kinds=("TaskRun", "PipelineRun"))
IGNORING = ("jsonPointers", "jqPathExpressions", "managedFieldsManagers")
CUSTOMIZATION = lazy_re.compile(r"resource\.customizations\.(?P<type>[^.]*)\.(?P<about>.*)")
OTHER_CUSTOMIZATIONS = ("useOpenLibs", "actions", "ignoreResourceUpdates", "knownTypeFields")
KEY = lazy_re.compile(r"[-._a-zA-Z0-9]+")
FIELDS_OF_OPERATOR = {
    "resourceCustomizations": "resource.customizations",
    "resourceExclusions": "resource.exclusions",
    "resourceInclusions": "resource.inclusions",
    "resourceTrackingMethod": "application.resourceTrackingMethod",
    "applicationInstanceLabelKey": "application.instanceLabelKey",
}


def settings_of(asked: str, bodies: Iterable[Body]) -> Settings:
    """Argo CD in the requested version (`3.5`, `openshift-gitops`), configured by these objects."""
    given = tuple(bodies)
    settings = replace(_as_installed(asked), given=given)
    for body in given:
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
    """Whether an object configures Argo CD."""
    if body.get("kind") == "ConfigMap":
        return name_of(body) in (CONFIG_MAP, PARAMETERS)
    return body.get("kind") in ("ArgoCD", "AppProject") and group_of(str(body.get("apiVersion", ""))) == GROUP


def _as_installed(asked: str) -> Settings:
    version = versions.parse(OPENSHIFT_VERSION if asked == OPENSHIFT else asked)
    if asked == OPENSHIFT:
        return Settings(version, exclusions=(*SHIPPED_EXCLUSIONS, APISERVICES, TEKTON))
    shipped = versions.has(version, "exclusions in argocd-cm")
    return Settings(version, exclusions=SHIPPED_EXCLUSIONS if shipped else ())


def _configured(settings: Settings, data: dict[str, str]) -> Settings:
    """The settings with the values of `argocd-cm`."""
    scripts, ignored = dict(settings.scripts), list(settings.ignore_differences)
    legacy = _yaml(data.get("resource.customizations", ""), "resource.customizations")
    for key, entry in legacy.items() if isinstance(legacy, dict) else ():
        if isinstance(entry, dict) and entry.get("health.lua"):
            scripts[str(key)] = HealthScript(str(entry["health.lua"]), bool(entry.get("health.lua.useOpenLibs")))
        if isinstance(entry, dict) and entry.get("ignoreDifferences"):
            ignored += _ignored(str(key), _yaml(str(entry["ignoreDifferences"]), str(key)))
    for key, value in data.items():
        _refuse_key(key)
        customization = CUSTOMIZATION.fullmatch(key)
        if customization is None:
            continue
        about = override_key(customization["about"])
        match customization["type"]:
            case "health":
                opened = data.get(f"resource.customizations.useOpenLibs.{customization['about']}") == "true"
                scripts[about] = HealthScript(value, opened)
            case "ignoreDifferences":
                ignored += _ignored(about, _yaml(value, key))
            case kind if kind not in OTHER_CUSTOMIZATIONS:
                raise CannotContinue(f"{CONFIG_MAP}: resource customization type {kind} not supported")
    return replace(
        settings,
        scripts=scripts,
        ignore_differences=tuple(ignored),
        exclusions=_filters(data, "resource.exclusions", settings.exclusions),
        inclusions=_filters(data, "resource.inclusions", settings.inclusions),
        tracking=data.get("application.resourceTrackingMethod", settings.tracking),
        label=data.get("application.instanceLabelKey", settings.label),
    )


def _refuse_key(key: str) -> None:
    """Patterns cannot be keys of a ConfigMap; only the combined key supports wildcards."""
    if not KEY.fullmatch(key):
        example = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        raise CannotContinue(
            f'ConfigMap "{CONFIG_MAP}" is invalid: data[{key}]: Invalid value: "{key}": {words} {example}'
        )


def override_key(about: str) -> str:
    """`group_Kind`, `Kind`, or `all`, as `group/Kind`."""
    if about.count("_") > 1:
        form = "`resource.customizations.<type>.<group_kind>` or resource.customizations.<type>.<kind>`"
        raise CannotContinue(f"{CONFIG_MAP}: group kind should be in format {form}, got group kind: '{about}'")
    return "*/*" if about == "all" else about.replace("_", "/")


def _operated(settings: Settings, body: Body) -> Settings:
    """The operator writes `argocd-cm` from its own resource; its default exclusions apply only if that has none."""
    data: dict[str, str] = {}
    for check in listed(body, "spec", "resourceHealthChecks"):
        data[f"resource.customizations.health.{about_of(check)}"] = str(check.get("check") or "")
    for field, key in FIELDS_OF_OPERATOR.items():
        value = dig(body, "spec", field)
        if value:
            data[key] = str(value)
    data |= {str(key): str(value) for key, value in (dig(body, "spec", "extraConfig") or {}).items()}
    shipped = versions.has(settings.version, "exclusions in argocd-cm")
    usual = (*SHIPPED_EXCLUSIONS, APISERVICES) if shipped else ()
    ignored = (*settings.ignore_differences, *_ignored_by_operator(body))
    known = replace(settings, exclusions=usual, ignore_differences=ignored, progressive_syncs=_rolls_by_operator(body))
    return _configured(known, data)


def about_of(entry: Body) -> str:
    group, kind = str(entry.get("group") or ""), str(entry.get("kind") or "")
    return f"{group}_{kind}" if group else kind


def _ignored_by_operator(body: Body) -> Iterator[Body]:
    said = dig(body, "spec", "resourceIgnoreDifferences") or {}
    if said.get("all"):
        yield from _ignored("*/*", said["all"])
    for entry in listed(said, "resourceIdentifiers"):
        yield from _ignored(override_key(about_of(entry)), entry.get("customization"))


def _rolls_by_operator(body: Body) -> bool:
    arguments = listed(body, "spec", "applicationSet", "extraCommandArgs")
    variables = {str(v.get("name")): v.get("value") for v in listed(body, "spec", "applicationSet", "env")}
    said = (variables.get(VARIABLE), dig(body, "spec", "cmdParams", PROGRESSIVE))
    return bool({FLAG, f"{FLAG}=true"} & set(arguments)) or "true" in said


def _filters(data: dict[str, str], key: str, usual: tuple[Filter, ...]) -> tuple[Filter, ...]:
    if key not in data:
        return usual
    found = _yaml(data[key], key)
    return tuple(
        Filter(*(tuple(map(str, entry.get(field) or ())) for field in ("apiGroups", "kinds", "clusters")))
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict)
    )


def _ignored(about: str, entry: Any) -> Iterator[Body]:
    group, _, kind = about.rpartition("/")
    if isinstance(entry, dict):
        yield {"group": group, "kind": kind, **{field: entry.get(field) or [] for field in IGNORING}}


def _yaml(text: str, key: str) -> Any:
    try:
        return next((document.body for document in documents(Text(key, text))), None)
    except BrokenYaml as broken:
        raise CannotContinue(f"{CONFIG_MAP}: {key}: {broken.problem}") from None
