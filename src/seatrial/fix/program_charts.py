"""Charts in Pulumi programs, deployed with another resource: a `helm.v4.Chart` or a `helm.v3.Release`.

Both take the same properties. A `helm.v3.Chart` calls some of them otherwise, in Python within a class of its own.
"""

from __future__ import annotations

import re
from textwrap import dedent

from msgspec import Struct

from seatrial.fix.calls import Argument, ResourceCall, call_at, inner_call, object_at
from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.model.resource import Place
from seatrial.phrases.programs import PYTHON
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text, edited

RENAMED = {"path": "chart", "skip_crd_rendering": "skip_crds", "skipCRDRendering": "skipCrds"}
KEPT = ("chart", "name", "namespace", "values", "version", "skip_await", "skipAwait", "skip_crds", "skipCrds")
REPOSITORY = {"fetch_opts": "repository_opts", "fetchOpts": "repositoryOpts"}
KEPT_REPOSITORY = (*REPOSITORY.values(), "value_yaml_files", "valueYamlFiles")
_CLASS = lazy_re.compile(r"(?P<head>(?:[\w$]+\.)*)(?P<version>v[34])\.Chart")
_IMPORT = lazy_re.compile(
    r"^(?:from[ ]+pulumi_kubernetes\.helm\.(?P<python>v[34])[ ]+import[ ]+(?P<names>[\w, ]+)"
    r"|import[ ]*\{(?P<imported>[\w, ]+)\}[ ]*from[ ]*[\"']@pulumi/kubernetes/helm/(?P<typescript>v[34])[\"'])",
    re.M,
)


class ChartInProgram(Struct, frozen=True):
    """What a chart is deployed with."""

    version: str
    name: str

    @property
    def title(self) -> str:
        return f"helm.{self.version}.{self.name}"


CHART = ChartInProgram("v4", "Chart")
RELEASE = ChartInProgram("v3", "Release")


class _No(Exception):
    """Why the text is not changed."""


def deployed_with(place: Place, other: ChartInProgram) -> Edits | ByHand:
    """Let the chart that the program creates at a place be deployed with another resource."""
    text = text_of(place.file)
    call = call_at(text, place.line) if text else None
    if text is None or call is None or not call.arguments:
        return ByHand(f"{place} does not create one resource")
    try:
        edits = (*_class(call, other), *_properties(call, other))
    except _No as why:
        return ByHand(f"{place} {why}")
    return tuple(TextEdit(text, one) for one in edits)


def _class(call: ResourceCall, other: ChartInProgram) -> list[Edit]:
    """The class, by its module or by its import."""
    text, words = call.text, call.text.within(call.callee)
    if found := _CLASS.fullmatch(words):
        return [Edit(call.callee, f"{found['head']}{other.version}.{other.name}")]
    found = next((one for one in _IMPORT.finditer(text.content) if words in _names(one)), None)
    if found is None:
        raise _No(f"does not say of which version {words} is")
    outside = text.content[: found.start()] + text.content[found.end() : call.callee.start] + _after(call)
    if used := next((name for name in _names(found) if re.search(rf"\b{name}\b", outside)), ""):
        raise _No(f"imports {used}, which the program also uses elsewhere")
    group = "python" if found["python"] else "typescript"
    listed = "names" if found["python"] else "imported"
    padding = found[listed][len(found[listed].rstrip()) :] if listed == "imported" else ""
    lead = found[listed][: len(found[listed]) - len(found[listed].lstrip())]
    return [
        Edit(Span(*found.span(group)), other.version),
        Edit(Span(*found.span(listed)), f"{lead}{other.name}{padding}"),
        *([Edit(call.callee, other.name)] if words != other.name else []),
    ]


def _names(found: re.Match[str]) -> list[str]:
    return [name.strip() for name in (found["names"] or found["imported"]).split(",") if name.strip()]


def _after(call: ResourceCall) -> str:
    return call.text.content[call.arguments[-1].whole.end :]


def _properties(call: ResourceCall, other: ChartInProgram) -> list[Edit]:
    python = call.text.path.endswith(PYTHON)
    given = next((one for one in call.arguments[1:] if one.name in ("", "config")), None)
    if python:
        options = inner_call(call.text, given.value) if given else None
        if given is None:  # The arguments of a v4.Chart are those of the call.
            own = [one for one in call.arguments if one.name not in ("", "opts")]
            return [*_named(call, call, own, other), *_changed(call.text, own)]
        if options is None or not call.text.within(options.callee).endswith(("ChartOpts", "LocalChartOpts")):
            raise _No("takes its properties from elsewhere")
        return [_unwrapped(call, options, given, other)]
    options = object_at(call.text, given.value) if given else None
    if options is None or any(not one.name for one in options.arguments):
        raise _No("takes its properties from elsewhere")
    return [*_named(call, options, options.arguments, other), *_changed(call.text, options.arguments)]


def _named(
    call: ResourceCall, options: ResourceCall, own: tuple[Argument, ...] | list[Argument], other: ChartInProgram
) -> list[Edit]:
    """The name of a Release: without one Pulumi generates it, and so the names of its objects."""
    if other != RELEASE or not own or any(one.name == "name" for one in own):
        return []
    at = own[0].whole.start
    before = call.text.content[options.opens : at] if options is not call else ""
    between = "=" if call.text.path.endswith(PYTHON) else ": "
    words = f"name{between}{_resource_name(call)}"
    return [Edit(Span(at, at), f"{words},{before}" if "\n" in before else f"{words}, ")]


def _resource_name(call: ResourceCall) -> str:
    return call.text.within(call.arguments[0].value)


def _changed(text: Text, own: tuple[Argument, ...] | list[Argument]) -> list[Edit]:
    """The properties under the names that they have elsewhere."""
    edits: list[Edit] = []
    for one in own:
        key = Span(one.whole.start, one.whole.start + len(one.name))
        if one.name in RENAMED:
            shorthand = one.value == one.whole and not text.path.endswith(PYTHON)
            edits.append(Edit(key, RENAMED[one.name] + (f": {one.name}" if shorthand else "")))
        elif one.name in REPOSITORY:
            edits += [Edit(key, REPOSITORY[one.name]), *_repository(text, one)]
        elif one.name not in (*KEPT, *KEPT_REPOSITORY):
            raise _No(f"has {one.name}, which other resources do not have")
    return edits


def _repository(text: Text, one: Argument) -> list[Edit]:
    python = text.path.endswith(PYTHON)
    options = inner_call(text, one.value) if python else object_at(text, one.value)
    if options is None or [each.name for each in options.arguments] != ["repo"]:
        raise _No(f"has {one.name} with more than a repo")
    if not python:
        return []
    repo = options.arguments[0]
    return [Edit(one.value, f'{{"repo": {text.within(repo.value)}}}')]


def _unwrapped(call: ResourceCall, options: ResourceCall, given: Argument, other: ChartInProgram) -> Edit:
    """The arguments of ChartOpts as arguments of the resource, with its indentation."""
    text = call.text
    if not options.arguments:
        raise _No("has no properties")
    start, end = options.arguments[0].whole.start, options.arguments[-1].whole.end
    inner = [Edit(Span(e.span.start - start, e.span.end - start), e.new) for e in _changed(text, options.arguments)]
    words = edited(Text(text.path, text.content[start:end]), inner).content
    name = f"name={_resource_name(call)}" if other == RELEASE else ""
    if "\n" not in text.content[options.opens : start]:
        return Edit(given.whole, f"{name}, {words}" if name else words)
    if '"""' in words:
        raise _No("has text of several lines")
    first = text.line_at(text.line(given.whole.start))
    indent = first[: len(first) - len(first.lstrip())]
    own = text.line_at(text.line(start))
    lead = own[: len(own) - len(own.lstrip())]
    lines = dedent(f"{lead}{words}").split("\n")
    lines = [f"{name},", *lines] if name else lines
    return Edit(given.whole, f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n"))
