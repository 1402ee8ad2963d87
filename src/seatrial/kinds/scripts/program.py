"""What a program in a pod is to the cluster: who it is, what it sees, and how it asks. Knows no command."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import controller_of, namespace_of
from seatrial.kinds.network.reach import workloads_with
from seatrial.kinds.scripts.kubectl_args import KubectlCall
from seatrial.kinds.scripts.kubectl_calls import ApiRequest, CallTarget
from seatrial.kinds.scripts.resource_names import kind_of
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, dig, group_of, labels_of, name_of

BUILT_IN = frozenset(group for group, _ in CATALOGUE)
_WORKLOADS = frozenset(("Deployment", "StatefulSet", "DaemonSet"))
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
ANSWERS = "seatrial.dev/answers"
"""On an assumed Service: it answers."""


class ContainerProgram(Struct, frozen=True):
    """The program in a container."""

    world: World
    namespace: str
    owner: Ref
    """Its Job, or its pod."""
    definitions: tuple[Body, ...]
    """The CRDs of the cluster."""
    refuses: Callable[[ApiRequest], str | None]
    """The error of a request that it may not send."""
    refused: dict[str, Refusal]
    """The refusal behind each error that it prints."""
    looked: list[Ref]
    """The objects that it has looked at in this run."""

    @property
    def actor(self) -> str:
        """As the timeline names it: `job/migrate`."""
        return f"{self.owner.kind.lower()}/{self.owner.name}"

    def peek(self, ref: Ref) -> Body | None:
        """An object as it is; only if the program waits now, it waits for it."""
        self.looked.append(ref)
        return self.world.peek(ref)


class NamedTarget(Struct, frozen=True):
    """An object that a call names."""

    ref: Ref
    plural: str

    @property
    def resource(self) -> str:
        """As errors name it: `deployments.apps`."""
        return f"{self.plural}.{self.ref.group}".rstrip(".")

    @property
    def printed(self) -> str:
        """As `-o name` prints it: `deployment.apps/web`."""
        return f"{self.ref.kind.lower()}.{self.ref.group}".rstrip(".") + f"/{self.ref.name}"


def owner_of(pod: Body) -> Ref:
    """The Job of a pod, or the pod."""
    owner, namespace = controller_of(pod), namespace_of(pod)
    if owner is not None and owner.get("kind") == "Job":
        return Ref("Job", namespace, str(owner.get("name")), "batch")
    return Ref("Pod", namespace, name_of(pod))


def workload_of(pod: Body) -> Ref:
    """The Job, Deployment, StatefulSet or DaemonSet of a pod, or the pod. Names of pods change in every run."""
    owner, namespace = controller_of(pod), namespace_of(pod)
    if owner is None:
        return Ref("Pod", namespace, name_of(pod))
    kind, name, group = str(owner.get("kind")), str(owner.get("name")), group_of(str(owner.get("apiVersion")))
    template = labels_of(pod).get("pod-template-hash")
    if kind == "ReplicaSet" and template:
        return Ref("Deployment", namespace, name.removesuffix(f"-{template}"), group)
    return Ref(kind, namespace, name, group)


def target_of(found: CallTarget, call: KubectlCall, definitions: tuple[Body, ...]) -> NamedTarget | None:
    """The object of a target; None where its kind is not known."""
    resource = found.resource
    kind = found.kind or kind_of(resource.group, resource.plural) or _custom_kind(found, definitions)
    if not kind:
        return None
    namespace = (found.namespace or call.namespace or "") if resource.namespaced else ""
    return NamedTarget(Ref(kind, namespace, found.name, resource.group), resource.plural)


def _custom_kind(found: CallTarget, definitions: tuple[Body, ...]) -> str:
    for body in definitions:
        names = dig(body, "spec", "names") or {}
        if (dig(body, "spec", "group"), names.get("plural")) == (found.resource.group, found.resource.plural):
            return str(names.get("kind"))
    return ""


def is_known_absent(ref: Ref, world: World) -> bool:
    """Whether an object that is not in this world is not in the cluster either.

    Where a program names what no release brings, it is assumed to be there (`stand_in`), if its body can be assumed.
    """
    if ref.group in BUILT_IN:
        return stand_in(ref) is not None
    return world.served(ref.kind, ref.group)


ASSUMED_VALUE = "YXNzdW1lZA=="
"""A value of a Secret or a certificate that a script asks for: `assumed`, in base64."""


def stand_in(ref: Ref) -> Body | None:
    """An object that a program only looks at, as it may be in a cluster; None if that is unknown."""
    meta: Body = {"name": ref.name, "namespace": ref.namespace} if ref.namespace else {"name": ref.name}
    labels = {"app": ref.name}
    template: Body = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "assumed", "image": "registry.example/assumed"}]},
    }
    body: Body = {"kind": ref.kind, "metadata": meta}
    match ref.group, ref.kind:
        case "apps", kind if kind in _WORKLOADS:
            spec: Body = {"selector": {"matchLabels": labels}, "template": template}
            spec |= {"serviceName": ref.name} if kind == "StatefulSet" else {}
            return {**body, "apiVersion": "apps/v1", "spec": spec}
        case "", "Service":
            marked = {**meta, "annotations": {ANSWERS: "assumed"}}
            return {**body, "apiVersion": "v1", "metadata": marked, "spec": {"ports": [{"port": 80}]}}
        case "", "Endpoints":
            addresses = [{"ip": "192.0.2.1"}]
            return {**body, "apiVersion": "v1", "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]}
        case "", "Namespace" | "ConfigMap" | "Secret" | "ServiceAccount":
            return {**body, "apiVersion": "v1"}
        case "", "PersistentVolumeClaim":
            size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            return {**body, "apiVersion": "v1", "spec": size}
        case "batch", "Job":
            spec = {"template": {"spec": {**template["spec"], "restartPolicy": "Never"}}}
            return {**body, "apiVersion": "batch/v1", "spec": spec}
        case "apiextensions.k8s.io", "CustomResourceDefinition":
            return _definition(ref.name)
        case "admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration":
            # It has a certificate, as scripts ask for, and no rules: it is never called.
            hook = {"name": f"{ref.name}.assumed.example", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
            client = {"url": "https://assumed.example/", "caBundle": ASSUMED_VALUE}
            return {**body, "apiVersion": f"{ref.group}/v1", "webhooks": [{**hook, "clientConfig": client}]}
    return None


def _definition(name: str) -> Body | None:
    """A CRD by its name alone, which tells everything but the spelling of its kind."""
    plural, _, group = name.partition(".")
    if not plural or not group:
        return None
    kind = plural.removesuffix("s").capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    meta = {"name": name}
    return {"apiVersion": f"{_CRD[0]}/v1", "kind": _CRD[1], "metadata": meta, "spec": spec}


def listed_objects(target: NamedTarget, selector: str, world: World) -> list[Body] | None:
    """The objects of a kind that a selector of equalities chooses; None where it is not read."""
    labels: dict[str, str] = {}
    for term in filter(None, (part.strip() for part in selector.split(","))):
        key, equals, value = term.replace("==", "=").partition("=")
        if not equals or key.endswith("!") or " " in term:
            return None
        labels[key.strip()] = value.strip()
    ref = target.ref
    if labels:
        if ref.namespace:
            if ref.kind == "Pod":
                deque(workloads_with(labels, ref.namespace, world), maxlen=0)  # A wait for pods is a wait for these.
            return world.select(ref.kind, ref.namespace, labels, ref.group)
        found = world.all(ref.kind, group=ref.group)
        return [body for body in found if labels.items() <= labels_of(body).items()]
    return world.all(ref.kind, ref.namespace, ref.group)


def refs_of(target: NamedTarget, bodies: list[Body]) -> Iterator[Ref]:
    for body in bodies:
        where = namespace_of(body) if target.ref.namespace or dig(body, "metadata", "namespace") else ""
        yield Ref(target.ref.kind, where, name_of(body), target.ref.group)
