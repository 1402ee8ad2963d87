"""The resource monitor: takes the registrations of a program, answers them as a preview would, and renders charts.

Knows nothing of languages: all recorders and readers of programs send the same messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from msgspec.structs import replace

from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.model.errors import CannotContinue
from seatrial.model.program import (
    CHART_V3,
    CHART_V4,
    HELM_RELEASE,
    KUBERNETES,
    REMOTE_COMPONENTS,
    Generated,
    Manner,
    Program,
    Registration,
    api_version_of,
    short,
    urn_of,
)
from seatrial.model.release import Pin, Release, Resource
from seatrial.model.resource import Body, Place, Ref, annotations_of, dig, group_of, metadata, ref_of
from seatrial.sources.charts.lacking import pins_of
from seatrial.sources.charts.rendering import NotRendered
from seatrial.sources.places import origin
from seatrial.sources.pulumi.charts import (
    Charts,
    absent_chart,
    as_v3_chart,
    as_v4_chart,
    chart_options,
    decoded,
    dropped_hooks,
    fitting,
    in_namespace,
    version_of,
)
from seatrial.sources.pulumi.components import ordered_children
from seatrial.sources.pulumi.locks import locked_provider
from seatrial.sources.pulumi.lookups import RenderedChart, generated, rendered
from seatrial.sources.pulumi.naming import NAMESPACE, NOT_KNOWN, as_object, scoped, suffix
from seatrial.sources.pulumi.options import aliases_of, options_of
from seatrial.sources.pulumi.project import RECORDED, PulumiProject
from seatrial.sources.pulumi.providers import (
    elsewhere,
    left_out,
    manner_of,
    older_provider,
    settings_of,
    without_objects,
)
from seatrial.sources.pulumi.values import UNKNOWN, plain

SKIP_AWAIT = "pulumi.com/skipAwait"
DIRECTORY_V2 = "kubernetes:kustomize/v2:Directory"
STACK_REFERENCE = "pulumi:pulumi:StackReference"


class Monitor:
    """One run of a program."""

    def __init__(self, project: PulumiProject, charts: Charts, own_crds: Iterable[Body] = ()) -> None:
        """`own_crds` are the CRDs that the program creates; charts may look them up in the cluster."""
        self._project = project
        self._root = project.root
        self._charts = charts
        self._config = project.config
        self._own_crds = tuple(own_crds)
        self._charted: dict[str, RenderedChart] = {}
        self.asks = False
        """Whether a chart asks which kinds the cluster serves."""
        self.refused: CannotContinue | None = None
        """Why a chart could not be rendered; the rest of the program may create what it needs."""
        self._registrations: list[Registration] = []
        self._rendered: dict[Ref, Resource] = {}
        self._asked: dict[str, list[tuple[str, str]]] = {}
        self._unknown: list[str] = []
        self._absent: list[str] = []
        self._varies = False
        self.dropped: list[Resource] = []
        """Hooks of charts that are not registered."""
        self.skipped_crds: list[Resource] = []
        self.pins: list[Pin] = []
        self.notes: list[str] = []
        self._locked = locked_provider(project.folder, self._root)
        self.warnings: list[str] = [*older_provider(project, self._locked)]
        self._answers = {"register": self._register, "read": self._read, "call": self._call}

    def answer(self, message: Body) -> Body:
        """The answer of the engine to one message of a program; an error is passed to the program."""
        try:
            return self._answers[message["do"]](message)
        except CannotContinue as why:
            return {"error": str(why)}

    def program(self) -> Program:
        named = {(one.type, one.name): one.urn for one in self._registrations}
        asked = {urn: tuple(named[key] for key in keys if key in named) for urn, keys in self._asked.items()}
        return Program(
            self._project.name,
            tuple(self._finished(one, asked.get(one.urn, ())) for one in self._placed()),
            self._project.stack,
            tuple(dict.fromkeys([*self._unknown, *left_out(self._elsewhere(), self._registrations, self._config)])),
            tuple(dict.fromkeys(self.warnings)),
            absent=tuple(dict.fromkeys(self._absent)),
            recorded=self._project.runtime == RECORDED,
            varies=self._varies,
        )

    def definitions(self) -> list[Body]:
        """The CRDs that the program creates."""
        bodies = (body for one in self._registrations for body in (one.object, *one.definitions, *one.contents))
        return [body for body in bodies if body and body.get("kind") == "CustomResourceDefinition"]

    def resources(self) -> Iterator[Resource]:
        """The objects of the program, each with its place."""
        for one in self._placed():
            if one.object is not None and one.ref is not None and not (one.reads or one.patches):
                yield self._resource(one.ref, one.object, one)
            for body in (*one.definitions, *one.contents):
                yield self._resource(ref_of(body), body, one)

    def _placed(self) -> Iterator[Registration]:
        """All registrations, with scopes from the CRDs of the program."""
        clustered = {
            (str(dig(body, "spec", "group")), str(dig(body, "spec", "names", "kind")))
            for body in self.definitions()
            if dig(body, "spec", "scope") == "Cluster"
        }
        away = self._elsewhere()
        return (without_objects(one) if one.urn in away else scoped(one, clustered) for one in self._registrations)

    def _elsewhere(self) -> dict[str, str]:
        return elsewhere(self._registrations, self._config)

    def _finished(self, one: Registration, asked: tuple[str, ...]) -> Registration:
        chart = self._charted.get(f"{one.type} {one.name}")
        if chart is not None:
            one = replace(one, unrendered=chart.refused, after=chart.after, guarded=chart.guarded)
        return replace(one, asked=asked)

    def _register(self, message: Body) -> Body:
        one = self._registration(message)
        self._registrations.append(one)
        if one.remote and not message.get("expanded"):  # A recording already contains the children.
            self._expand(one)
        return {"urn": one.urn, "id": self._id(one), "state": self._state(one)}

    def _read(self, message: Body) -> Body:
        type_, name = str(message["type"]), str(message["name"])
        urn = self._urn(message)
        inputs = plain(message.get("inputs") or {})
        ref = _read_ref(type_, str(message.get("id") or ""))
        body: Body | None = None
        if type_.startswith(KUBERNETES):
            api_version, kind = api_version_of(type_)
            meta = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
            body = {"apiVersion": api_version, "kind": kind, "metadata": meta}
        one = Registration(
            urn,
            type_,
            name,
            reads=str(message.get("id") or ""),
            parent=str(message.get("parent") or ""),
            inputs=inputs,
            dependencies=tuple(message.get("dependencies") or ()),
            provider=str(message.get("provider") or ""),
            manner=self._manner(message),
            place=self._place(message),
            object=body,
            ref=ref if body else None,
        )
        self._registrations.append(one)
        if type_ == STACK_REFERENCE:
            self._unknown.append(f"{short(urn)}: the outputs of another stack are unknown")
        return {"urn": urn, "id": one.reads, "state": {**inputs, **(body or {})}}

    def _registration(self, message: Body) -> Registration:
        type_, name, custom = str(message["type"]), str(message["name"]), bool(message.get("custom"))
        urn, inputs = self._urn(message), plain(message.get("inputs") or {})
        self._asked[urn] = [(str(kind), str(called)) for kind, called in message.get("asked") or ()]
        one = Registration(
            urn=urn,
            type=type_,
            name=name,
            custom=custom,
            remote=bool(message.get("remote")) or type_ in REMOTE_COMPONENTS,
            parent=str(message.get("parent") or ""),
            inputs=inputs,
            dependencies=tuple(message.get("dependencies") or ()),
            property_dependencies={k: tuple(v or ()) for k, v in (message.get("propertyDependencies") or {}).items()},
            options=options_of(message.get("options") or {}),
            aliases=aliases_of(message, self._project, self._registrations),
            provider=str(message.get("provider") or ""),
            manner=self._manner(message),
            place=self._place(message),
        )
        one = fitting(one)
        if type_ == HELM_RELEASE:
            return self._helm_release(one)
        if custom and UNKNOWN in (metadata(inputs).get("name"), metadata(inputs).get("namespace")):
            self._unknown.append(f"{short(urn)}: its name or namespace is unknown; assuming {NOT_KNOWN!r}")
        return as_object(one) if custom else one

    def _manner(self, message: Body) -> Manner:
        settings = settings_of(str(message.get("provider") or ""), self._registrations, self._config)
        return manner_of(settings, upserts=self._locked is not None and self._locked.upserts)

    def _helm_release(self, one: Registration) -> Registration:
        named = str(one.inputs.get("chart") or "")
        namespace = str(one.inputs.get("namespace") or one.manner.namespace or NAMESPACE)
        called = str(one.inputs.get("name") or f"{one.name}-{suffix(one.urn)}")
        one = replace(one, auto_named=not one.inputs.get("name"))
        values = self._charts.values(one.inputs)
        rendered = self._render(one, named, called, namespace, values)
        if rendered is None:
            return one
        crds = () if one.inputs.get("skipCrds") else rendered.crds
        self.skipped_crds += rendered.crds if not crds else ()
        found = {
            "name": called,
            "namespace": namespace,
            "version": self._charts.version(named, version_of(one.inputs)),
            "values": values,
        }
        return replace(
            one,
            inputs={**one.inputs, **found},
            contents=tuple(in_namespace(r).body for r in rendered.resources),
            definitions=tuple(r.body for r in crds),
            generated=self._generated(one, rendered),
        )

    def _generated(self, one: Registration, first: Release) -> tuple[Generated, ...]:
        """What differs in another render of a Release's chart."""
        named, version = str(one.inputs.get("chart") or ""), version_of(one.inputs)
        if not self._charts.generates_values(named, version, looks=False):
            return ()
        looked_up = not self._charts.generates_values(named, version, looks=True)
        values = self._charts.values(one.inputs)
        given = {"release": first.name, "namespace": first.namespace, "values": values, "version": version}
        again = rendered(self._charts, named, self._own_crds, **given)
        return tuple(generated(first, again.release, looked_up=looked_up)) if again is not None else ()

    def _expand(self, one: Registration) -> None:
        """Register the children of a remote component, as the provider does."""
        for child in ordered_children(one, self._content(one), self._project.stack, self._project.name):
            self._registrations.append(child)

    def _content(self, one: Registration) -> list[Resource]:
        inputs, inline = one.inputs, list[Resource]()
        namespace = str(inputs.get("namespace") or one.manner.namespace or NAMESPACE)
        if one.type == CHART_V4:
            named, called = str(inputs.get("chart") or ""), str(inputs.get("name") or one.name)
            rendered = self._render(one, named, called, namespace, self._charts.values(inputs))
            found = [] if rendered is None else list(as_v4_chart(rendered, crds=not inputs.get("skipCrds")))
            self.dropped += [] if rendered is None else map(in_namespace, dropped_hooks(rendered))
            self.skipped_crds += rendered.crds if rendered and inputs.get("skipCrds") else ()
            self._varies = self._varies or self._charts.generates_values(named, version_of(inputs), looks=True)
        elif one.type.startswith("kubernetes:yaml/v2:"):
            files = [inputs["file"]] if "file" in inputs else inputs.get("files") or []
            found = [*self._charts.read_files(files if isinstance(files, list) else [files], namespace)]
            inline = list(self._inline(inputs, namespace))
        elif one.type == DIRECTORY_V2:
            found = self._built(short(one.urn), str(inputs.get("directory") or ""), namespace)
        else:
            self._absent.append(f"{short(one.urn)}: its content is unknown without the provider")
            found = []
        self._rendered.update((r.ref, in_namespace(r)) for r in found)
        placed = (in_namespace(r) for r in (*found, *inline))
        return [_unawaited(r) if inputs.get("skipAwait") else r for r in placed]

    def _inline(self, inputs: Body, namespace: str) -> Iterator[Resource]:
        """Objects written in the program itself; their place is that of the component."""
        texts = inputs.get("yaml") or ()
        for text in [texts] if isinstance(texts, str) else texts:
            yield from decoded(str(text), namespace, self._project.file)
        objects = map(json.dumps, inputs.get("objs") or ())
        yield from decoded("\n---\n".join(objects), namespace, self._project.file)

    def _built(self, who: str, named: str, namespace: str) -> list[Resource]:
        found = self._charts.built(named, namespace)
        if found is None:
            self._absent.append(f"{who}: the kustomization {named} is not on disk")
        return found or []

    def _render(self, one: Registration, named: str, called: str, namespace: str, values: Body) -> Release | None:
        given = {"release": called, "namespace": namespace, "values": values, "version": version_of(one.inputs)}
        rendered = self._rendering(f"{one.type} {one.name}", named, **given)
        if rendered is None:
            self._absent.append(absent_chart(short(one.urn), named, one.inputs))
            self.pins += pins_of(named, version_of(one.inputs), short(one.urn))
            return None
        self._rendered.update((r.ref, in_namespace(r)) for r in (*rendered.crds, *rendered.resources))
        return rendered

    def _rendering(self, who: str, named: str, **options: Any) -> Release | None:
        """A chart as it renders once the CRDs of the program exist."""
        self.asks = self.asks or self._charts.asks_for_kinds(named, options["version"])
        try:
            found = rendered(self._charts, named, self._own_crds, **options)
        except NotRendered as refused:
            self.refused = self.refused or refused
            return Release(options["release"], options["namespace"], named, ())
        if found is not None:
            self._charted[who] = found
            self.notes += found.release.notes
        return found.release if found is not None else None

    def _call(self, message: Body) -> Body:
        token, args = str(message["token"]), plain(message["args"])
        if token == "kubernetes:helm:template":
            return {"result": {"result": self._template(chart_options(args))}}
        if token == "kubernetes:yaml:decode":
            return {"result": {"result": self._decode(args)}}
        if token == "kubernetes:kustomize:directory":
            found = [in_namespace(r) for r in self._built("Directory", str(args.get("directory") or ""), NAMESPACE)]
            self._rendered.update((r.ref, r) for r in found)
            return {"result": {"result": [r.body for r in found]}}
        self._unknown.append(f"the program calls {token}, which is not supported; it got an empty result")
        return {"result": {"result": []} if token.startswith(KUBERNETES) else {}}

    def _template(self, options: Body) -> list[Body]:
        """The function call of helm.v3.Chart."""
        named = str(options.get("path") or options.get("chart") or "")
        called, namespace = str(options.get("release_name") or ""), str(options.get("namespace") or NAMESPACE)
        values = options.get("values") or {}
        given = {"release": called, "namespace": namespace, "values": values, "version": version_of(options)}
        rendered = self._rendering(f"{CHART_V3} {called}", named, **given)
        if rendered is None:
            self._absent.append(absent_chart(f"v3.Chart {called}", named, options))
            self.pins += pins_of(named, version_of(options), f"v3.Chart {called}")
            return []
        self._varies = self._varies or self._charts.generates_values(named, version_of(options), looks=False)
        wanted = as_v3_chart(
            rendered,
            crds=not options.get("skip_crd_rendering"),
            tests=bool(options.get("include_test_hook_resources")),
        )
        found = [in_namespace(r) for r in wanted]
        self._rendered.update((r.ref, r) for r in found)
        return [r.body for r in found]

    def _decode(self, args: Body) -> list[Body]:
        """The text may come from a file or from the program, so its place is that of its component."""
        text, namespace = str(args.get("text") or ""), str(args.get("defaultNamespace") or NAMESPACE)
        return [r.body for r in decoded(text, namespace, self._project.file)]

    def _urn(self, message: Body) -> str:
        if "urn" in message:
            return str(message["urn"])
        parent = str(message.get("parent") or "")
        return urn_of(self._project.stack, self._project.name, parent, str(message["type"]), str(message["name"]))

    def _id(self, one: Registration) -> str:
        if not one.custom:
            return ""
        if one.ref is not None:
            return f"{one.ref.namespace}/{one.ref.name}" if one.ref.namespace else one.ref.name
        return f"{one.name}-id"

    def _state(self, one: Registration) -> Body:
        """The outputs of a resource: its inputs and generated names; everything else is unknown."""
        if one.object is None:
            return dict(one.inputs)
        return {**one.object, **one.inputs, "metadata": {**metadata(one.object), **metadata(one.inputs)}}

    def _place(self, message: Body) -> Place | None:
        path = unquote(urlparse(str(message.get("file") or "")).path)
        if not path or not message.get("line"):
            return None
        file = Path(path).resolve()
        if not file.is_relative_to(self._root):
            return None
        return Place(self._project.typed(file), int(message["line"]))

    def _resource(self, ref: Ref, body: Body, one: Registration) -> Resource:
        rendered = self._rendered.get(ref)
        if rendered is not None and rendered.file and (one.place is None or one.contents or one.parent):
            return replace(rendered, body=body)
        place = one.place or self._around(one)
        return Resource(ref, body, origin(place.file, lambda path: place))

    def _around(self, one: Registration) -> Place:
        """The place of the nearest parent that has one, or the project file."""
        named = {other.urn: other for other in self._registrations}
        parent = named.get(one.parent)
        while parent is not None and parent.place is None:
            parent = named.get(parent.parent)
        return parent.place if parent and parent.place else Place(self._project.file, 1, "file")


def _read_ref(type_: str, id_: str) -> Ref:
    api_version, kind = api_version_of(type_)
    namespace, _, name = id_.rpartition("/")
    clustered = is_cluster_scoped(group_of(api_version), kind)
    return Ref(kind, "" if clustered else namespace or NAMESPACE, name, group_of(api_version))


def _unawaited(resource: Resource) -> Resource:
    meta = metadata(resource.body)
    annotations = {**annotations_of(resource.body), SKIP_AWAIT: "true"}
    return replace(resource, body={**resource.body, "metadata": {**meta, "annotations": annotations}})
