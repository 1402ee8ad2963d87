"""What is known of one kind: needs, webhooks, products, order, immutable fields, finalizers. Reads tables only.

Needs and immutable fields are asked of the kind itself, with the object of `examples.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from seatrial.explain.readiness import ExplainedState, merged, states_of
from seatrial.graph import needs_of, products_of
from seatrial.graph.drawing import path
from seatrial.helm import kindorder
from seatrial.kinds import Kind, known
from seatrial.kinds.operators.patterns import EACH, Pattern, parse
from seatrial.kinds.operators.table import OperatorEntry, OperatorKind, operator_kinds, plural_for
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Origin, metadata, ref_of
from seatrial.rules import all_explained
from seatrial.text.yamlnode import body_of

STAGES = {
    "resolve": "no engine can apply it",
    "admit": "it is refused",
    "schedule": "its pods stay Pending",
    "start": "its containers do not start",
    "ready": "it does not become ready",
    "serve": "nothing answers",
    "delete": "its deletion hangs",
}
"""What happens without an object that is needed at a stage."""
_FIELD = lazy_re.compile(r"\{([^{}|]+)(?:\|([^{}]*))?\}")
PODS_REFUSED = "its pods are refused"
WORDS_IN_RULES = {
    "Deployment": ("selector", "rollingupdate"),
    "StatefulSet": ("statefulset", "stateful"),
    "PersistentVolumeClaim": ("pvc", "rwo"),
    "CustomResourceDefinition": ("crd", "crds"),
    "ValidatingWebhookConfiguration": ("webhook",),
    "MutatingWebhookConfiguration": ("webhook",),
    "ExternalSecret": ("asynchronously",),
    "SealedSecret": ("asynchronously",),
    "Application": ("apps", "applications"),
    "HelmRelease": ("helmrelease", "retries"),
}
"""The words in names of rules that are about a kind, if it is not the kind itself."""


class KindNeed(Struct, frozen=True, order=True):
    stage: str
    kind: str
    field: str
    optional: bool = False


class KindTopic(Struct, frozen=True, tag="kind", tag_field="topic"):
    kind: str
    group: str
    namespaced: bool
    names: tuple[str, ...]
    brought_by: str
    others: tuple[str, ...]
    """Kinds of the same name in other groups."""
    needs: tuple[KindNeed, ...]
    webhooks: tuple[str, ...]
    produces: tuple[str, ...]
    states: tuple[ExplainedState, ...]
    order: dict[str, str]
    immutable: tuple[str, ...]
    finalizers: tuple[str, ...]
    rules: tuple[str, ...]


def find(name: str) -> KindTopic | None:
    """The kind of a name as kubectl takes it: `deploy`, `Deployment`, `deployments.apps`."""
    keys = _names().get(_turned(name) if "/" in name else name.lower(), [])
    return topic(*keys[0], others=tuple(keys[1:])) if keys else None


def names() -> list[str]:
    """Kinds as people write them, to compare misspelled ones with."""
    return [kind for _, kind in _all_kinds()]


def topic(group: str, kind: str, others: tuple[tuple[str, str], ...] = ()) -> KindTopic:
    example, states = _example(group, kind)
    operator = operator_kinds().get((group, kind))
    behaviour = known().get((group, kind))
    resource = Resource(ref_of(example), example, Origin("", 0))
    return KindTopic(
        kind=kind,
        group=group,
        namespaced="namespace" in metadata(example),
        names=_short_names(group, kind),
        brought_by=operator[0].name if operator else "Kubernetes" if (group, kind) in CATALOGUE else "",
        others=tuple(f"{named}.{of}" if of else named for of, named in others),
        needs=tuple(dict.fromkeys(_needs(resource, operator[1] if operator else None))),
        webhooks=tuple(_webhooks(operator[0], operator[1])) if operator else (),
        produces=tuple(dict.fromkeys(ref.kind for ref in products_of(resource))) or _made(operator),
        states=states_of(example, states),
        order=_order(kind),
        immutable=tuple(_immutable(example, behaviour)),
        finalizers=tuple(_finalizers(example, behaviour, operator)),
        rules=_rules(kind),
    )


def _needs(resource: Resource, operated: OperatorKind | None) -> Iterator[KindNeed]:
    for need in needs_of(resource):
        field = path(tuple("*" if isinstance(part, int) else part for part in need.field)).replace(".*", "[]")
        yield KindNeed(need.stage, need.object.kind, field, need.optional)
    if (resource.ref.group, resource.ref.kind) not in CATALOGUE:
        crd = f"{plural_for(resource.ref.group, resource.ref.kind)}.{resource.ref.group}"
        yield KindNeed("resolve", "CustomResourceDefinition", crd)
    if resource.ref.kind not in _written():  # Its example has all fields; without one, the operator's table names them.
        yield from (_from_pattern(parse(text)) for text in (operated.needs if operated else ()))


def _from_pattern(wanted: Pattern) -> KindNeed:
    """A need as the operator's table writes it: `{each.ref.kind|Secret} {each.ref.name} each spec.items`."""
    field = _FIELD.sub(r"\1", wanted.name)
    field = f"{wanted.each}[]{field.removeprefix(EACH)}" if field.startswith(EACH) else field
    return KindNeed(wanted.stage, _kind_of(wanted.kind), field, wanted.optional)


def _kind_of(pattern: str) -> str:
    """The kind in a pattern without its group: the default, if a field decides."""
    return _FIELD.sub(lambda field: field[2] or "(any)", pattern).partition(".")[0]


def _made(operator: tuple[OperatorEntry, OperatorKind] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_kind_of(parse(text).kind) for text in operator[1].makes)) if operator else ()


def _webhooks(operator: OperatorEntry, kind: OperatorKind) -> Iterator[str]:
    for webhook in operator.webhooks:
        if {f"{kind.plural}.{kind.group}", f"*.{kind.group}", f"*/*.{kind.group}"} & set(webhook.resources):
            service = f"Service/{operator.namespace}/{webhook.service}"
            yield f"{webhook.name} ({service}, failurePolicy {webhook.failure_policy})"


def _order(kind: str) -> dict[str, str]:
    from seatrial.engines.argocd.tasks import KIND_ORDER
    from seatrial.engines.flux.order import DEFINITIONS
    from seatrial.engines.helm.v3_objects import INSTALL_ORDER

    stage = "first stage" if kind in DEFINITIONS else "second stage" if kind.endswith("Class") else "last stage"
    return {
        "Helm 4": _place(kind, kindorder.INSTALL_ORDER),
        "Helm 3": _place(kind, INSTALL_ORDER),
        "Argo CD": f"{_place(kind, KIND_ORDER)}, within its wave",
        "Flux": f"{stage} of its Kustomization",
        "Pulumi": "after what it depends on",
        "kubectl": "as in the files",
    }


def _place(kind: str, order: tuple[str, ...]) -> str:
    if kind in order:
        return f"{order.index(kind) + 1} of {len(order)} kinds"
    return f"after the {len(order)} listed kinds, by name"


def _immutable(example: Body, behaviour: Kind | None) -> Iterator[str]:
    """The fields whose change the kind refuses, one changed at a time."""
    if behaviour is None or behaviour.immutable is None:
        return
    example = next((body for body in _lived(example) if behaviour.ready and behaviour.ready(body)), example)
    old = behaviour.default(example) if behaviour.default else example
    for field in _fields(example):
        new = deepcopy(old)
        _change(new, field)
        if next(behaviour.immutable(old, new), None) is not None:
            yield path(field)


def _lived(example: Body) -> list[Body]:
    """The object of a kind in each of its states."""
    entry = _written().get(str(example["kind"])) or {}
    return [merged(example, state) for state in entry.get("states", ())]


def _fields(example: Body) -> Iterator[tuple[str, ...]]:
    for top in example:
        if top == "spec":
            yield from ((top, field) for field in example[top])
        elif top not in ("apiVersion", "kind", "metadata", "status", "immutable"):
            yield (top,)


def _change(body: Any, field: tuple[str, ...]) -> None:
    *parents, last = field
    for parent in parents:
        body = body[parent]
    match body.get(last):
        case bool(value):
            body[last] = not value
        case int(value):
            body[last] = value + 1
        case str(value):
            body[last] = f"{value}y"
        case list():
            body[last] = []
        case dict(value):
            body[last] = _changed(value)


def _changed(value: dict[str, Any]) -> dict[str, Any]:
    """Another value of the same shape: a label more in a selector, another image in a template."""
    if "matchLabels" in value:
        return {"matchLabels": {**value["matchLabels"], "y": "y"}}
    if "requests" in value:
        return {**value, "requests": {"storage": "2Gi"}}
    if "spec" in value:
        return {**value, "spec": {**value["spec"], "terminationGracePeriodSeconds": 1}}
    return {**value, "y": "y"}


def _finalizers(
    example: Body, behaviour: Kind | None, operator: tuple[OperatorEntry, OperatorKind] | None
) -> Iterator[str]:
    created = {**example, "metadata": {**metadata(example), "uid": "x"}}
    bodies = [behaviour.prepare(created, None)] if behaviour and behaviour.prepare else []
    bodies += [behaviour.deleting(example)] if behaviour and behaviour.deleting else []
    yield from dict.fromkeys(name for body in bodies for name in metadata(body).get("finalizers") or ())
    if operator is not None and operator[1].finalizer:
        yield f"{operator[1].finalizer} (removed by {operator[0].name}, which must still run)"


def _rules(kind: str) -> tuple[str, ...]:
    words = {*WORDS_IN_RULES.get(kind, (kind.lower(), f"{kind.lower()}s"))}
    return tuple(rule.name for rule in all_explained() if words & set(rule.name.split("-")))


@cache
def _written() -> dict[str, Body]:
    read = _examples()
    return {entry["object"]["kind"]: entry for entry in read["kinds"]}


@cache
def _examples() -> Body:
    found: Body = body_of(files(__package__ or "").joinpath("examples.yaml").read_text(encoding="utf-8"))
    return found


def _example(group: str, kind: str) -> tuple[Body, list[Body]]:
    """The object of a kind and its states; an empty one with the usual states if there is none."""
    entry = _written().get(kind)
    if entry is not None and ref_of(entry["object"]).group == group:
        return entry["object"], entry.get("states") or _examples()["states"]
    operator = operator_kinds().get((group, kind))
    served = CATALOGUE.get((group, kind))
    namespaced = operator[1].namespaced if operator else served.namespaced if served else True
    version = operator[1].versions[-1].name if operator else "v1"
    meta = {"name": "x", "namespace": "x"} if namespaced else {"name": "x"}
    body = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "metadata": meta, "spec": {}}
    return body, [{"when": "it exists"}] if served and not operator else _examples()["states"]


def _all_kinds() -> list[tuple[str, str]]:
    return list(dict.fromkeys((*CATALOGUE, *known(), *operator_kinds())))


@cache
def _names() -> dict[str, list[tuple[str, str]]]:
    """Kinds by every name that they go by, in lower case."""
    found: dict[str, list[tuple[str, str]]] = {}
    for group, kind in _all_kinds():
        spelled = (kind.lower(), *_short_names(group, kind))
        for name in (*spelled, *(f"{name}.{group}" for name in spelled if group)):
            keys = found.setdefault(name, [])
            if (group, kind) not in keys:
                keys.append((group, kind))
    return found


def _short_names(group: str, kind: str) -> tuple[str, ...]:
    served, operator = CATALOGUE.get((group, kind)), operator_kinds().get((group, kind))
    short = served.short_names if served else operator[1].short_names if operator else ()
    return (plural_for(group, kind), *short)


def _turned(name: str) -> str:
    """`external-secrets.io/ExternalSecret` as `externalsecret.external-secrets.io`."""
    group, _, kind = name.lower().rpartition("/")
    return f"{kind}.{group}"
