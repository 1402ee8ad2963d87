"""Namespace: gets a ServiceAccount and the root CA ConfigMap. Deleting it deletes all its content, not at once.

Conditions from pkg/controller/namespace/deletion of Kubernetes 1.34. Its controller waits 5 seconds before it deletes
anything (`namespaceDeletionGracePeriod` in namespace_controller.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Delete, Kind, Status, Update, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating, with_metadata
from seatrial.kinds.tables.catalogue import plural_of
from seatrial.model.resource import Body, Ref, dig, group_of, labels_of, listed, name_of

FINALIZER = "kubernetes"
"""In `spec.finalizers`, which only namespaces have."""
NAME_LABEL = "kubernetes.io/metadata.name"
ROOT_CA = "kube-root-ca.crt"
ABOUT_ROOT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)

# The conditions when nothing is wrong.
NO_PROBLEMS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)

Problems = dict[str, tuple[str, str]]
"""(reason, message) by the type of the condition that becomes true."""


def behave(namespace: Body, world: World) -> Acts:
    if is_terminating(namespace):
        yield from _empty(namespace, world)
        return
    for body in _content_of_every_namespace(name_of(namespace)):
        if world.get(Ref(body["kind"], name_of(namespace), name_of(body))) is None:
            yield Create(body)


def default(namespace: Body) -> Body:
    new = {} if is_terminating(namespace) else {"finalizers": [FINALIZER]}
    spec = {**new, **(namespace.get("spec") or {})}
    labels = {**labels_of(namespace), NAME_LABEL: name_of(namespace)}
    status = {"phase": "Active", **(namespace.get("status") or {})}
    return {**with_metadata(namespace, labels=labels), "spec": spec, "status": status}


def deleting(namespace: Body) -> Body:
    return {**namespace, "status": {**(namespace.get("status") or {}), "phase": "Terminating"}}


def ready(namespace: Body) -> bool:
    return not is_terminating(namespace)


def has_content_deleted_later(namespace: Body) -> bool:
    """Whether the controller lets its grace period pass before it deletes the content."""
    return is_terminating(namespace) and FINALIZER in listed(namespace, "spec", "finalizers")


def is_quick(namespace: Body) -> bool:
    return not has_content_deleted_later(namespace)


def _content_of_every_namespace(name: str) -> Iterator[Body]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    meta = {"name": ROOT_CA, "namespace": name, "annotations": {"kubernetes.io/description": ABOUT_ROOT_CA}}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": "the cluster's own"}}


def _empty(namespace: Body, world: World) -> Acts:
    """Delete pods first (since 1.33), then everything else. Remove the namespace's finalizer when nothing is left."""
    name = name_of(namespace)
    problems = _undiscovered(world)
    pods = [body for body in world.content(name) if _is_pod(body)]
    yield from _delete_all(pods, name, problems)
    if not any(_is_pod(body) for body in world.content(name)):
        yield from _delete_all(world.content(name), name, problems)
        problems.update(_remaining(world.content(name), world))
    status = {"phase": "Terminating", "conditions": _conditions(namespace, problems)}
    if problems or world.content(name):
        yield Status(namespace, status)
        return
    held = [finalizer for finalizer in listed(namespace, "spec", "finalizers") if finalizer != FINALIZER]
    yield Update({**namespace, "spec": {**namespace["spec"], "finalizers": held}, "status": status})


def _delete_all(bodies: list[Body], namespace: str, problems: Problems) -> Acts:
    errors = []
    for body in bodies:
        if not is_terminating(body):
            refusal = yield Delete(body, why=f"namespace {namespace} is being deleted")
            errors += [refusal.message] if refusal else []
    if errors:
        text = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(sorted(errors))}"
        problems["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", text


def _undiscovered(world: World) -> Problems:
    """An APIService with an unavailable backend hides its kinds, so no namespace is known to be empty."""
    down = sorted(
        f"{dig(service, 'spec', 'group')}/{dig(service, 'spec', 'version')}"
        for service in world.all("APIService", group="apiregistration.k8s.io")
        if dig(service, "spec", "service") and not conditions.is_true(service, "Available")
    )
    if not down:
        return {}
    groups = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in down)
    text = f"unable to retrieve the complete list of server APIs: {groups}"
    message = f"Discovery failed for some groups, {len(down)} failing: {text}"
    return {"NamespaceDeletionDiscoveryFailure": ("DiscoveryFailed", message)}


def _remaining(bodies: list[Body], world: World) -> Problems:
    problems: Problems = {}
    kinds = Counter(_resource(body, world) for body in bodies)
    if kinds:
        counted = ", ".join(sorted(f"{resource} has {count} resource instances" for resource, count in kinds.items()))
        problems["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {counted}"
    finalizers = Counter(finalizer for body in bodies for finalizer in finalizers_of(body))
    if finalizers:
        counted = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
        text = f"Some content in the namespace has finalizers remaining: {counted}"
        problems["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", text
    return problems


def _resource(body: Body, world: World) -> str:
    """`configmaps.`, `widgets.example.com`: the dot is there even without a group."""
    kind, group = str(body.get("kind")), group_of(str(body.get("apiVersion")))
    plural = plural_of(group, kind)
    for crd in () if plural else world.all("CustomResourceDefinition", group="apiextensions.k8s.io"):
        if (dig(crd, "spec", "names", "kind"), dig(crd, "spec", "group")) == (kind, group):
            plural = str(dig(crd, "spec", "names", "plural"))
    return f"{plural or kind.lower()}.{group}"


def _conditions(namespace: Body, problems: Problems) -> list[Body]:
    return [
        conditions.condition(namespace, type_, "True", *problems[type_])
        if type_ in problems
        else conditions.condition(namespace, type_, "False", reason, message)
        for type_, reason, message in NO_PROBLEMS
    ]


def _is_pod(body: Body) -> bool:
    return bool(body.get("kind") == "Pod" and body.get("apiVersion") == "v1")


KINDS = (
    Kind(
        "Namespace",
        actor="namespace-controller",
        behave=behave,
        quick=is_quick,
        late=has_content_deleted_later,
        default=default,
        deleting=deleting,
        ready=ready,
    ),
)
