"""The whole graph of one release or several: fields that name objects, and what no field says.

An object needs its namespace and its definition; webhooks are asked about it; what stands behind a Service is found by
its selector; operators make objects out of others. Reads releases and kinds, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from seatrial.graph import needs_of, placed, products_of
from seatrial.kinds import Stage
from seatrial.kinds.core.selection import fits
from seatrial.kinds.operators.table import plural_for
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.webhooks import matching
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, version_of

Why = Literal["field", "namespace", "definition", "webhook", "backend", "made by"]
Path = tuple[str | int, ...]

ALWAYS_THERE = frozenset(("", "default", "kube-node-lease", "kube-public", "kube-system"))
"""Namespaces that every cluster has."""
BLOCKING: tuple[Stage, ...] = ("admit", "schedule", "start", "ready")
"""Stages at which a lack holds an object up; what is needed to serve holds up whoever asks, not the object."""
DEFINITIONS = "apiextensions.k8s.io"
PROTECTED_LABEL = "kubernetes.io/metadata.name"


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
    """Part of a webhook's way: whatever the webhook is asked about waits for it."""

    @property
    def at_apply(self) -> bool:
        """Whether the API server refuses the object itself without it; what bites its pods is met eventually."""
        of_pods = any(part in ("template", "jobTemplate") for part in self.field)
        return self.stage == "admit" and not (of_pods or self.optional or self.guess)

    @property
    def blocks(self) -> bool:
        """Whether the lack holds somebody up."""
        return not self.optional and not self.guess and (self.gate or self.stage in BLOCKING)


class Graph(Struct, frozen=True):
    resources: dict[Ref, Resource]
    """What the releases bring."""
    made: frozenset[Ref]
    """What operators make of it."""
    links: tuple[Link, ...]

    def outside(self) -> dict[Ref, list[Link]]:
        """What no release brings and nothing in them leads to, with those who need it."""
        found: dict[Ref, list[Link]] = {}
        for link in self.links:
            if link.object not in self.resources and link.object not in self.made and not link.optional:
                found.setdefault(link.object, []).append(link)
        return {ref: found[ref] for ref in sorted(found)}


def graph_of(releases: Iterable[Release]) -> Graph:
    resources = {r.ref: r for release in releases for r in (*release.crds, *release.resources)}
    made = {product for resource in resources.values() for product in products_of(resource)}
    there = frozenset(resources) | made
    links = {link for link in _links(resources) if not link.guess or link.object in there}
    return Graph(resources, frozenset(made) - frozenset(resources), tuple(sorted(links)))


def _links(resources: dict[Ref, Resource]) -> Iterator[Link]:
    asked = Webhooks(resources)
    definitions = {_defined(r.body): r.ref for r in resources.values() if r.ref.kind == "CustomResourceDefinition"}
    for resource in resources.values():
        yield from _fields(resource, asked)
        yield from _namespace(resource)
        yield from _definition(resource, definitions)
        yield from asked.about(resource)
        if (resource.ref.group, resource.ref.kind) == ("", "Service"):
            yield from _backends(resource, resources, gate=resource.ref in asked.services)
        for product in products_of(resource):
            yield Link(product, resource.ref, "made by", "ready")


def _fields(resource: Resource, asked: Webhooks) -> Iterator[Link]:
    gate = resource.ref in asked.configurations
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
            gate=gate and need.object in asked.services,
        )


def _namespace(resource: Resource) -> Iterator[Link]:
    if resource.ref.namespace not in ALWAYS_THERE:
        yield Link(resource.ref, Ref("Namespace", "", resource.ref.namespace), "namespace", "admit")


def _definition(resource: Resource, definitions: dict[tuple[str, str], Ref]) -> Iterator[Link]:
    group, kind = resource.ref.group, resource.ref.kind
    if (group, kind) not in CATALOGUE and group:
        usual = Ref("CustomResourceDefinition", "", f"{plural_for(group, kind)}.{group}", DEFINITIONS)
        yield Link(resource.ref, definitions.get((group, kind), usual), "definition", "admit")


def _defined(definition: Body) -> tuple[str, str]:
    return str(dig(definition, "spec", "group")), str(dig(definition, "spec", "names", "kind"))


def _backends(service: Resource, resources: dict[Ref, Resource], *, gate: bool) -> Iterator[Link]:
    """The workloads whose pods a Service finds."""
    selector = dig(service.body, "spec", "selector")
    if not isinstance(selector, dict) or not selector:
        return
    for resource in resources.values():
        template = _template(resource.body)
        same = resource.ref.namespace == service.ref.namespace
        if same and template is not None and selector.items() <= labels_of(template).items():
            yield Link(service.ref, resource.ref, "backend", "serve", ("spec", "selector"), gate=gate)


def _template(body: Body) -> Body | None:
    """What the pods of a workload are made from; a pod is its own."""
    if body.get("kind") == "Pod":
        return body
    found = dig(body, "spec", "template")
    return found if isinstance(found, dict) and isinstance(dig(found, "spec", "containers"), list) else None


class Webhooks:
    """Whom the webhooks of some releases are asked about."""

    def __init__(self, resources: dict[Ref, Resource]) -> None:
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        mutating, validating = ([r.body for r in resources.values() if r.ref.kind == kind] for kind in kinds)
        self._hooks = matching.read(mutating, validating, (), ())
        self._all = (*self._hooks.mutating, *self._hooks.validating)
        self._namespaces = {r.ref.name: labels_of(r.body) for r in resources.values() if r.ref.kind == "Namespace"}
        self.configurations = frozenset(hook.configuration for hook in self._all)
        self.services = frozenset(ref for hook in self._all if (ref := _service(hook.client)))

    def about(self, resource: Resource) -> Iterator[Link]:
        """Who is asked about an object, and about the pods that it makes."""
        for hook, at in self.asked(resource):
            yield Link(resource.ref, hook.configuration, "webhook", "admit", at, optional=hook.ignores)

    def asked(self, resource: Resource, operation: str = "CREATE") -> Iterator[tuple[matching.Hook, Path]]:
        """Each webhook that is asked about a write of an object, or of the pods that come of it at that path."""
        if not self._all or resource.ref.group == matching.GROUP:
            return
        yield from self._asked(resource, operation, resource.ref.group, resource.ref.kind, placed(resource), ())
        template = _template(resource.body)
        if template is not None and resource.ref.kind != "Pod":
            yield from self._asked(resource, operation, "", "Pod", template, ("spec", "template"))

    def _asked(
        self, user: Resource, operation: str, group: str, kind: str, body: Body, at: Path
    ) -> Iterator[tuple[matching.Hook, Path]]:
        version = version_of(str(user.body.get("apiVersion"))) if not at else "v1"
        namespaced = bool(user.ref.namespace)
        target = matching.Target(operation, group, version, plural_for(group, kind), "", namespaced)
        for stage in ("mutating", "validating"):
            for hook in matching.about(self._hooks, stage, target):
                if self._is_selected(hook, user, body):
                    yield hook, at

    def _is_selected(self, hook: matching.Hook, user: Resource, body: Body) -> bool:
        home = user.ref.namespace
        labels = {PROTECTED_LABEL: home, **self._namespaces.get(home, {})}
        return (not home or fits(labels, hook.namespaces)) and fits(labels_of(body), hook.objects)


def _service(client: Body) -> Ref | None:
    named = client.get("service") or {}
    return Ref("Service", str(named.get("namespace") or ""), str(named["name"])) if named.get("name") else None
