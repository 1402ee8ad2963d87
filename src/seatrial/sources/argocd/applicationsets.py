"""From ApplicationSets to Applications: their templates, filled with the parameters of their generators.

Upstream: `applicationset/controllers/template` and `applicationset/utils` of Argo CD 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, listed, metadata, name_of
from seatrial.sources.argocd.generators import Ground, flat, generated, own_template
from seatrial.sources.charts.files import ChartFiles, archived
from seatrial.sources.charts.output import HelmError, output
from seatrial.sources.charts.values import merge_patch, merged
from seatrial.sources.repos import Repos
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

APPLICATIONS_MAX = 2_000
NORMALIZE = (
    '{{- define "normalize" }}{{ regexReplaceAll "[^-a-z0-9.]" (lower .) "-" | trunc 253 | trimAll "-." }}{{ end -}}'
)
"""A template function of Argo CD that Helm does not have."""
NO_VALUE, MARK = "<no value>", "<\u2205>"
"""Go's text for a missing key, and its placeholder: Helm removes Go's text."""
_NORMALIZE = lazy_re.compile(r"\bnormalize\b")
_ACTION = lazy_re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FIELD = lazy_re.compile(r"\{\{-?\s*\.(\w+(?:\.\w+)*)\s*-?\}\}")
_SCOPES = lazy_re.compile(r"\b(range|with|if|define|block)\b")
"""Actions that change the dot, or decide whether a key is used."""
_KEY = lazy_re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def applications_of(application_set: Body, repos: Repos) -> list[Body]:
    """The Applications that a set creates. Raises `SourceNotFound` if its generators need data from outside."""
    go = bool(dig(application_set, "spec", "goTemplate"))
    strict = "missingkey=error" in listed(application_set, "spec", "goTemplateOptions")
    ground = Ground(repos, go, partial(_executed, strict=strict) if go else _replaced)
    template = dig(application_set, "spec", "template") or {}
    patch = dig(application_set, "spec", "templatePatch")
    found = []
    for generator in listed(application_set, "spec", "generators"):
        for parameters in generated(generator, ground):
            body = ground.fill(merged(template, own_template(generator)), parameters)
            application = _application(body, application_set)
            if patch:
                application = _patched(application, ground.fill(str(patch), parameters), application_set)
            found.append(application)
            if len(found) > APPLICATIONS_MAX:
                raise CannotContinue(f"{name_of(application_set)}: makes more than {APPLICATIONS_MAX} Applications")
    return found


def _application(template: Body, application_set: Body) -> Body:
    meta = metadata(template)
    home = metadata(application_set).get("namespace") or "argocd"
    kept = {key: meta[key] for key in ("name", "labels", "annotations", "finalizers") if key in meta}
    own = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": template.get("spec") or {}}
    preserved = dig(application_set, "spec", "syncPolicy", "preserveResourcesOnDeletion")
    finalizers = kept.get("finalizers") or ([] if preserved else ["resources-finalizer.argocd.argoproj.io"])
    return {**own, "metadata": {**kept, "namespace": home, "finalizers": finalizers}}


def _patched(application: Body, patch: str, application_set: Body) -> Body:
    """Apply `templatePatch`, which can change everything but the project."""
    try:
        body: Body = next((document.body for document in documents(Text("templatePatch", patch))), {})
    except BrokenYaml as broken:
        raise CannotContinue(f"{name_of(application_set)}: templatePatch: {broken.problem}") from None
    patched: Body = merge_patch(application, body)
    project = dig(application, "spec", "project")
    return {**patched, "spec": {**patched["spec"], **({"project": project} if project else {})}}


def _replaced(template: Any, parameters: Body) -> Any:
    """A template with `{{name}}` replaced by its value; unknown parameters are left unchanged."""
    texts = dict(flat(parameters))
    known = {text: _KEY.sub(lambda found: texts.get(found[1], found[0]), text) for text in _texts(template)}
    return _exchanged(template, known)


def _executed(template: Any, parameters: Body, *, strict: bool) -> Any:
    """A template rendered with Go's template engine, through Helm, which has the same functions."""
    texts = sorted(set(_texts(template)))
    known = [_with_no_values(text, parameters, strict=strict) for text in texts]
    asked = {f"templates/t{index}.txt": _within(text, index) for index, text in enumerate(known)}
    files = {"Chart.yaml": b"apiVersion: v2\nname: set\nversion: 0.0.1\n", **asked}
    try:
        chart, options = ChartFiles("", files), {"name": "set", "namespace": "default"}
        rendered = output(chart, archived(chart, "set"), "set", parameters, options).texts
    except HelmError as error:
        raise CannotContinue(f"fill the template of an ApplicationSet: {error}") from None
    results = {
        text: rendered.get(f"set/templates/t{index}.txt", "").replace(MARK, NO_VALUE)
        for index, text in enumerate(texts)
    }
    return _exchanged(template, results)


def _with_no_values(text: str, parameters: Body, *, strict: bool) -> str:
    """Missing keys, which Helm ignores: Go writes `<no value>`, or fails."""
    if _SCOPES.search(text):
        return text

    def value(found: re.Match[str]) -> str:
        place: Any = parameters
        for key in found[1].split("."):
            if not isinstance(place, dict):
                return found[0]
            if key not in place and strict:
                raise CannotContinue(
                    f'fill the template of an ApplicationSet: {text}: map has no entry for key "{key}"'
                )
            if key not in place:
                return MARK
            place = place[key]
        return found[0]

    return _FIELD.sub(value, text)


def _within(text: str, index: int) -> bytes:
    """A template whose dot and dollar are the parameters, as in Argo CD; each has a unique name."""
    known = _ACTION.sub(lambda found: _NORMALIZE.sub('include "normalize"', found[0]), text)
    return f'{NORMALIZE}{{{{- define "{index}" }}}}{known}{{{{ end }}}}{{{{ template "{index}" .Values }}}}'.encode()


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str) and "{{" in node:
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _exchanged(node: Any, results: dict[str, str]) -> Any:
    if isinstance(node, str):
        return results.get(node, node)
    if isinstance(node, dict):
        return {results.get(key, key): _exchanged(value, results) for key, value in node.items()}
    if isinstance(node, list):
        return [_exchanged(value, results) for value in node]
    return node
