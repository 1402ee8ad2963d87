"""The graph of one or several releases: fields that name objects, and links that no field names.

An object needs its namespace and its CRD; webhooks are called for it; a Service selects its backends; operators create
objects from others. Reads releases and kinds, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from seatrial.graph import config_maps, needs_of, placed, products_of
from seatrial.kinds import Stage
from seatrial.kinds.core.selection import fits
from seatrial.kinds.operators.table import plural_for
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.webhooks import matching
from seatrial.kinds.workloads.images import stream_tag
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, version_of

Why = Literal["field", "namespace", "definition", "webhook", "backend", "made by"]
Path = tuple[str | int, ...]

ALWAYS_THERE = frozenset(("", "default", "kube-node-lease", "kube-public", "kube-system"))
"""Namespaces that every cluster has."""
BLOCKING: tuple[Stage, ...] = ("admit", "schedule", "start", "ready")
"""Stages at which a missing object blocks its user. What is needed to serve blocks clients, not the object."""
CRD_GROUP = "apiextensions.k8s.io"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


class Link(Struct, frozen=True, order=True):
    """One object needs another, and why."""

    user: Ref
    object: Ref
    why: Why
    stage: Stage
    field: Path = ()
    key: str = ""
    optional: bool = False
    guess: bool = False
    gate: bool = False
    """Whether the link is part of a webhook's path: every object that the webhook is called for waits for it."""

    @property
    def at_apply(self) -> bool:
        """Whether the API server rejects the object itself without it. Needs of its pods may be met later."""
        of_pods = any(part in ("template", "jobTemplate") for part in self.field)
        return self.stage == "admit" and not (of_pods or self.optional or self.guess)

    @property
    def blocks(self) -> bool:
        """Whether the object, if missing, blocks its user."""
        return not self.optional and not self.guess and (self.gate or self.stage in BLOCKING)


class Graph(Struct, frozen=True):
    resources: dict[Ref, Resource]
    """The objects of the releases."""
    made: frozenset[Ref]
    """The objects that operators create from them."""
    links: tuple[Link, ...]

    def outside(self) -> dict[Ref, list[Link]]:
        """Objects that no release contains and no operator creates, with the links to them."""
        found: dict[Ref, list[Link]] = {}
        for link in self.links:
            if link.object not in self.resources and link.object not in self.made and not link.optional:
                found.setdefault(link.object, []).append(link)
        return {ref: found[ref] for ref in sorted(found)}


def graph_of(releases: Iterable[Release]) -> Graph:
    resources = {r.ref: r for release in releases for r in (*release.crds, *release.resources)}
    beside = config_maps(resources.values())
    made = {product for resource in resources.values() for product in products_of(resource, beside=beside)}
    there = frozenset(resources) | made
    links = {link for link in _links(resources) if not link.guess or link.object in there}
    return Graph(resources, frozenset(made) - frozenset(resources), tuple(sorted(links)))


def _links(resources: dict[Ref, Resource]) -> Iterator[Link]:
    webhooks, beside = Webhooks(resources), config_maps(resources.values())
    crds = {_kind_of_crd(r.body): r.ref for r in resources.values() if r.ref.kind == "CustomResourceDefinition"}
    for resource in resources.values():
        yield from _fields(resource, webhooks)
        yield from _images(resource)
        yield from _namespace(resource)
        yield from _crd(resource, crds)
        yield from webhooks.about(resource)
        if (resource.ref.group, resource.ref.kind) == ("", "Service"):
            yield from _backends(resource, resources, gate=resource.ref in webhooks.services)
        for product in products_of(resource, beside=beside):
            yield Link(product, resource.ref, "made by", "ready")


def _fields(resource: Resource, webhooks: Webhooks) -> Iterator[Link]:
    gate = resource.ref in webhooks.configurations
    for need in needs_of(resource):
        yield Link(
            resource.ref,
            need.object,
            "field",
            need.stage,
            need.field,
            need.key,
            optional=need.optional,
            guess=need.guess,
            gate=gate and need.object in webhooks.services,
        )


def _images(resource: Resource) -> Iterator[Link]:
    """The images that a custom resource names: its operator starts pods with them, in whatever field they are."""
    if (resource.ref.group, resource.ref.kind) not in CATALOGUE:
        for field, text in _texts(resource.body.get("spec"), ("spec",)):
            if (tag := stream_tag(text)) is not None:
                yield Link(resource.ref, tag, "field", "start", field, guess=True)


def _texts(value: Any, at: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, (*at, key))


def _namespace(resource: Resource) -> Iterator[Link]:
    if resource.ref.namespace not in ALWAYS_THERE:
        yield Link(resource.ref, Ref("Namespace", "", resource.ref.namespace), "namespace", "admit")


def _crd(resource: Resource, crds: dict[tuple[str, str], Ref]) -> Iterator[Link]:
    group, kind = resource.ref.group, resource.ref.kind
    if (group, kind) not in CATALOGUE and group:
        usual = Ref("CustomResourceDefinition", "", f"{plural_for(group, kind)}.{group}", CRD_GROUP)
        yield Link(resource.ref, crds.get((group, kind), usual), "definition", "admit")


def _kind_of_crd(crd: Body) -> tuple[str, str]:
    return str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))


def _backends(service: Resource, resources: dict[Ref, Resource], *, gate: bool) -> Iterator[Link]:
    """The workloads whose pods a Service selects."""
    selector = dig(service.body, "spec", "selector")
    if not isinstance(selector, dict) or not selector:
        return
    for resource in resources.values():
        template = _template(resource.body)
        same = resource.ref.namespace == service.ref.namespace
        if same and template is not None and selector.items() <= labels_of(template).items():
            yield Link(service.ref, resource.ref, "backend", "serve", ("spec", "selector"), gate=gate)


def _template(body: Body) -> Body | None:
    """The pod template of a workload; for a Pod the Pod itself."""
    if body.get("kind") == "Pod":
        return body
    found = dig(body, "spec", "template")
    return found if isinstance(found, dict) and isinstance(dig(found, "spec", "containers"), list) else None


class Webhooks:
    """The webhooks of some releases, and the objects they are called for."""

    def __init__(self, resources: dict[Ref, Resource]) -> None:
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        mutating, validating = ([r.body for r in resources.values() if r.ref.kind == kind] for kind in kinds)
        self._hooks = matching.read(mutating, validating, (), ())
        self._all = (*self._hooks.mutating, *self._hooks.validating)
        self._namespaces = {r.ref.name: labels_of(r.body) for r in resources.values() if r.ref.kind == "Namespace"}
        self.configurations = frozenset(hook.configuration for hook in self._all)
        self.services = frozenset(ref for hook in self._all if (ref := _service(hook.client)))

    def about(self, resource: Resource) -> Iterator[Link]:
        """The webhooks that are called for an object and for the pods it creates."""
        for hook, at in self.called(resource):
            yield Link(resource.ref, hook.configuration, "webhook", "admit", at, optional=hook.ignores)

    def called(self, resource: Resource, operation: str = "CREATE") -> Iterator[tuple[matching.Hook, Path]]:
        """Each webhook that is called when an object, or its pods (at that path), are written."""
        if not self._all or resource.ref.group == matching.GROUP:
            return
        yield from self._called(resource, operation, resource.ref.group, resource.ref.kind, placed(resource), ())
        template = _template(resource.body)
        if template is not None and resource.ref.kind != "Pod":
            yield from self._called(resource, operation, "", "Pod", template, ("spec", "template"))

    def _called(
        self, user: Resource, operation: str, group: str, kind: str, body: Body, at: Path
    ) -> Iterator[tuple[matching.Hook, Path]]:
        version = version_of(str(user.body.get("apiVersion"))) if not at else "v1"
        namespaced = bool(user.ref.namespace)
        target = matching.WriteTarget(operation, group, version, plural_for(group, kind), "", namespaced)
        for stage in ("mutating", "validating"):
            for hook in matching.webhooks_for(self._hooks, stage, target):
                if self._is_selected(hook, user, body):
                    yield hook, at

    def _is_selected(self, hook: matching.Hook, user: Resource, body: Body) -> bool:
        namespace = user.ref.namespace
        labels = {NAMESPACE_NAME_LABEL: namespace, **self._namespaces.get(namespace, {})}
        return (not namespace or fits(labels, hook.namespaces)) and fits(labels_of(body), hook.objects)


def _service(client: Body) -> Ref | None:
    named = client.get("service") or {}
    return Ref("Service", str(named.get("namespace") or ""), str(named["name"])) if named.get("name") else None
