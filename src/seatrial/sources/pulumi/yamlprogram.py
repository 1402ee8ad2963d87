"""Pulumi programs in YAML: the resources of a Pulumi.yaml with resolved references. Runs nothing.

Upstream: `pkg/pulumiyaml` of pulumi-yaml 1.2x. References are dependencies, also through variables; unknown keys are
dropped with a warning, so a misspelled `dependsOn` depends on nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.program import LOCAL_COMPONENTS, PROVIDER, REMOTE_COMPONENTS, api_version_of
from seatrial.model.resource import Body
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import PulumiProject
from seatrial.sources.pulumi.values import UNKNOWN
from seatrial.sources.typed import refuse_misfits
from seatrial.text.yamlfile import Document

OPTIONS = (
    *("additionalSecretOutputs", "aliases", "customTimeouts", "deleteBeforeReplace", "dependsOn", "ignoreChanges"),
    *("import", "parent", "protect", "provider", "providers", "version", "pluginDownloadURL", "replaceOnChanges"),
    *("retainOnDelete", "deletedWith"),
)
KEYS = ("type", "name", "defaultProvider", "properties", "get", "options")
REFERENCE = lazy_re.compile(r"(?<!\$)\$\{([^}]+)\}")
STEP = lazy_re.compile(r"\[\"([^\"]+)\"\]|\['([^']+)'\]|\[(\d+)\]|\.?([^.\[\]]+)")
NO_CHART = (
    "Helm Chart resources are not supported in YAML, consider using the Helm Release resource instead: "
    "https://www.pulumi.com/registry/packages/kubernetes/api-docs/helm/v3/release/"
)
NOT_YET = (
    "The resource type [{}] is not supported in YAML at this time, "
    "see: https://github.com/pulumi/pulumi-kubernetes/issues/1971"
)
UNSUPPORTED = {type_: NO_CHART if type_.endswith(":Chart") else NOT_YET.format(type_) for type_ in LOCAL_COMPONENTS}
"""Types that pulumi-yaml refuses, in its words (`blocklist_test.go`)."""
NO_TYPE = "kubernetes:apiextensions.k8s.io:CustomResource"


def read(project: PulumiProject, monitor: Monitor) -> None:
    """Register the resources of a program, each after the resources that it refers to."""
    document = project.document
    assert document is not None
    refuse_misfits(document, "pulumi.Program", "read the Pulumi project")
    resources = document.body.get("resources") or {}
    known = _Known(project, document, monitor)
    pending = {str(name): body or {} for name, body in resources.items()}
    known.refuse_circles()
    while pending:
        ready = [name for name, body in pending.items() if not (known.behind(body) & (pending.keys() - {name}))]
        if not ready:
            raise CannotContinue(f"{project.file}: circular dependency of resource {', '.join(sorted(pending))}")
        for name in ready:
            known.register(name, pending.pop(name))


class _Known:
    """The resources registered so far, by their names in the program."""

    def __init__(self, project: PulumiProject, document: Document, monitor: Monitor) -> None:
        self._project = project
        self._document = document
        self._monitor = monitor
        self._variables: Body = document.body.get("variables") or {}
        self._answers: dict[str, Body] = {}
        self._types: dict[str, str] = {}
        self._providers: dict[str, str] = {}
        self._default = ""
        """The provider of resources that name none."""

    def refuse_circles(self) -> None:
        for name, value in self._variables.items():
            if name in self.behind(value):
                place = self._document.place("variables", name)
                raise CannotContinue(f"{place}: circular dependency of variable '{name}' transitively on itself")

    def behind(self, value: Any) -> set[str]:
        """The names that a value refers to, directly or through variables."""
        found = _names(value)
        for _ in self._variables:
            found |= {other for name in found & self._variables.keys() for other in _names(self._variables[name])}
        return found

    def register(self, name: str, body: Body) -> None:
        self._warn(name, body)
        self._refuse_undefined(name, body)
        options = body.get("options") or {}
        written = body.get("properties") or {}
        by_property = {key: self._urns(value) for key, value in written.items()}
        named = [self._target(one, name) for one in _listed(options.get("dependsOn"))]
        asked = [str(self._answers[one]["urn"]) for one in named]
        type_ = _type(str(body.get("type") or ""), written)
        self._refuse_unsupported(name, type_)
        called = str(body.get("name") or name)
        place = self._document.place("resources", name)
        component = type_ in REMOTE_COMPONENTS
        message: Body = {
            "do": "read" if "get" in body else "register",
            "id": str((body.get("get") or {}).get("id") or ""),
            "type": type_,
            "name": called,
            "parent": self._urn(options.get("parent")),
            "custom": not component,
            "remote": type_ in REMOTE_COMPONENTS,
            "provider": self._provider(options, type_),
            "inputs": self._value(written),
            "dependencies": sorted({*(u for urns in by_property.values() for u in urns), *asked}),
            "propertyDependencies": {key: urns for key, urns in by_property.items() if urns},
            "aliases": [self._alias(alias) for alias in _listed(options.get("aliases"))],
            "asked": [[self._types[one], self._answers[one]["name"]] for one in named],
            "options": {
                **options,
                "deletedWith": self._urn(options.get("deletedWith")),
                "protect": self._value(options.get("protect")) in (True, "true"),
            },
            "file": (self._project.folder / self._project.file.rpartition("/")[2]).as_uri(),
            "line": place.line,
        }
        answer = self._monitor.answer(message)
        if "error" in answer:
            raise CannotContinue(f"{place}: {answer['error']}")
        self._answers[name] = {**answer, "name": called}
        self._types[name] = type_
        self._providers[name] = message["provider"]
        if type_ == PROVIDER and body.get("defaultProvider") is True:
            self._default = str(answer["urn"])

    def _warn(self, name: str, body: Body) -> None:
        for where, keys, known in (("", body, KEYS), ("options.", body.get("options") or {}, OPTIONS)):
            for key in keys:
                if key not in known:
                    place = self._document.place("resources", name, *filter(None, (where.rstrip("."), key)))
                    unknown = f"{where}{key} of {name} is unknown to Pulumi, which ignores it with a warning"
                    self._monitor.warnings.append(f"{place}: {unknown}")

    def _refuse_unsupported(self, name: str, type_: str) -> None:
        """Refuse components that only the SDKs of other languages expand."""
        if why := UNSUPPORTED.get(type_):
            place = self._document.place("resources", name, "type")
            raise CannotContinue(f"{place}: error resolving type of resource {name}: {why}")

    def _refuse_undefined(self, name: str, body: Body) -> None:
        """Refuse references to undefined names."""
        declared = {**(self._document.body.get("config") or {}), **(self._document.body.get("configuration") or {})}
        own = {key.removeprefix(f"{self._project.name}:") for key in (*self._project.config, *declared)}
        known = {*self._answers, *self._variables, *self._project.config, *own, "pulumi"}
        for key, value in (body.get("properties") or {}).items():
            if undefined := sorted(self.behind(value) - known):
                place = self._document.place("resources", name, "properties", key)
                raise CannotContinue(f'{place}: resource or variable named "{undefined[0]}" could not be found')

    def _target(self, written: Any, name: str) -> str:
        wanted = _reference(written)
        if wanted not in self._answers:
            place = self._document.place("resources", name, "options", "dependsOn")
            raise CannotContinue(f'{place}: resource or variable named "{wanted}" could not be found')
        return wanted

    def _urn(self, written: Any) -> str:
        found = self._answers.get(_reference(written)) if written else None
        return str(found["urn"]) if found else ""

    def _provider(self, options: Body, type_: str) -> str:
        """The provider of a resource: its own, else that of its parent, else the default one."""
        several = options.get("providers") or ()
        named = [*(several.values() if isinstance(several, dict) else several), options.get("provider")]
        given = next((urn for urn in map(self._urn, named) if f"::{PROVIDER}::" in urn), "")
        inherited = self._providers.get(_reference(options.get("parent")), "") or self._default
        return "" if type_ == PROVIDER else given or inherited

    def _alias(self, written: Any) -> Body:
        """A URN, or the parts that were different: a name, a type, a parent."""
        if not isinstance(written, dict):
            return {"urn": str(written)}
        return {**written, "parentUrn": self._urn(written.get("parent"))}

    def _urns(self, value: Any) -> list[str]:
        return sorted({self._answers[name]["urn"] for name in self.behind(value) if name in self._answers})

    def _value(self, value: Any) -> Any:
        match value:
            case dict() if any(str(key).startswith("fn::") for key in value):
                return self._function(*next(iter(value.items())))
            case dict():
                return {key: self._value(one) for key, one in value.items()}
            case list():
                return [self._value(one) for one in value]
            case str():
                return self._text(value)
        return value

    def _function(self, name: str, argument: Any) -> Any:
        if name == "fn::toJSON":
            return json.dumps(self._value(argument))
        if name == "fn::join" and isinstance(argument, list) and len(argument) == 2:
            return str(argument[0]).join(map(str, self._value(argument[1])))
        if name == "fn::secret":
            return self._value(argument)
        return UNKNOWN

    def _text(self, text: str) -> Any:
        whole = REFERENCE.fullmatch(text)
        if whole:
            return self._looked_up(whole[1])
        filled = REFERENCE.sub(lambda found: str(self._looked_up(found[1])), text)
        return filled.replace("$${", "${")

    def _looked_up(self, path: str) -> Any:
        """`res`, `res.id`, `res.metadata.name`, `pulumi.stack`, a variable, or a key of the configuration."""
        first, *rest = _steps(path)
        if first == "pulumi":
            return {"stack": self._project.stack, "project": self._project.name}.get(rest[0] if rest else "", UNKNOWN)
        if first in self._answers:
            answer = self._answers[first]
            return _inside({**answer["state"], "id": answer["id"], "urn": answer["urn"]}, rest or ["id"])
        if first in self._variables:
            return _inside(self._value(self._variables[first]), rest)
        return self._project.config.get(f"{self._project.name}:{first}", UNKNOWN)


def _inside(value: Any, path: list[str]) -> Any:
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return UNKNOWN
    return value


def _type(type_: str, properties: Body) -> str:
    """The type token of a resource; for a CustomResource from the apiVersion and kind in its properties."""
    if type_.startswith("kubernetes:apiextensions.k8s.io") and type_.endswith(":CustomResource"):
        return f"kubernetes:{properties.get('apiVersion')}:{properties.get('kind')}"
    if type_ in ("kubernetes:Provider", PROVIDER):
        return PROVIDER
    return type_ if api_version_of(type_)[1] or ":" in type_ else NO_TYPE


def _reference(written: Any) -> str:
    found = REFERENCE.fullmatch(str(written or "").strip())
    return next(iter(_steps(found[1])), "") if found else ""


def _names(value: Any) -> set[str]:
    """The names that a value refers to."""
    return {step for text in _texts(value) for found in REFERENCE.findall(text) for step in _steps(found)[:1]}


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case str():
            yield value


def _steps(path: str) -> list[str]:
    return ["".join(groups) for groups in STEP.findall(path)]


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [written] if written else []
