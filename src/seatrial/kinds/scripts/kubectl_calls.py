"""The API requests of a kubectl or oc call. Knows neither scripts nor RBAC.

Read from k8s.io/kubectl 1.34, pkg/cmd, and from the refusals of an API server for each call; oc from openshift/oc 4.18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from seatrial.kinds.access.authorizer import Access
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import KubectlCall, parse_call
from seatrial.kinds.scripts.resource_names import ResourceName, find, of_kind
from seatrial.kinds.scripts.shell import Certainty
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.resource import Body, version_of

FORBIDDEN = "Error from server (Forbidden): {}"
"""kubectl's error for a refusal, with the API server's message."""
REPEATED = {"list": "failed to list *unstructured.Unstructured: {}", "watch": "Failed to watch: {}"}
"""What a reflector of `kubectl rollout status` prints and then tries again, until the call's own --timeout."""

# The requests for a named object, in order: (verb, subresource).
ON_OBJECTS: dict[str, tuple[tuple[str, str], ...]] = {
    "get": (("get", ""),),
    "describe": (("get", ""),),
    "label": (("get", ""), ("patch", "")),
    "annotate": (("get", ""), ("patch", "")),
    "patch": (("get", ""), ("patch", "")),
    "edit": (("get", ""), ("patch", "")),
    "set": (("get", ""), ("patch", "")),
    "scale": (("get", ""), ("patch", "scale")),
    "delete": (("delete", ""),),
    "expose": (("get", ""),),
    "autoscale": (("get", ""),),
    "wait": (("get", ""), ("list", ""), ("watch", "")),
    "rollout status": (("get", ""), ("list", ""), ("watch", "")),
    "rollout restart": (("get", ""), ("patch", "")),
    "rollout pause": (("get", ""), ("patch", "")),
    "rollout resume": (("get", ""), ("patch", "")),
    "rollout undo": (("get", ""), ("patch", "")),
    "rollout history": (("get", ""),),
    "rollout latest": (("create", "instantiate"),),
}
# The requests for the objects of a file. The last ones depend on whether the object exists.
ON_FILES: dict[str, tuple[tuple[str, str, Certainty], ...]] = {
    "apply": (("get", "", "will"), ("create", "", "may"), ("patch", "", "may")),
    "apply --server-side": (("patch", "", "will"), ("create", "", "may")),
    "create": (("create", "", "will"),),
    "replace": (("get", "", "will"), ("update", "", "will")),
    "delete": (("delete", "", "will"),),
    "get": (("get", "", "will"),),
    "wait": (("get", "", "will"), ("list", "", "will"), ("watch", "", "will")),
}
# The further request for a pod, which may be named without its kind.
ON_PODS = {
    "logs": ("get", "log"),
    "log": ("get", "log"),
    "exec": ("create", "exec"),
    "rsh": ("create", "exec"),
    "cp": ("create", "exec"),
    "rsync": ("create", "exec"),
    "attach": ("create", "attach"),
    "port-forward": ("create", "portforward"),
    "debug": ("patch", "ephemeralcontainers"),
}
# `kubectl create KIND`: the position of the name, and its error if it is a special one.
CREATES: dict[str, tuple[int, str]] = {
    "configmap": (1, "error: failed to create configmap: {}"),
    "cronjob": (1, "error: failed to create cronjob: {}"),
    "deployment": (1, "error: failed to create deployment: {}"),
    "ingress": (1, "error: failed to create ingress: {}"),
    "job": (1, "error: failed to create job: {}"),
    "poddisruptionbudget": (1, "error: failed to create poddisruptionbudgets: {}"),
    "priorityclass": (1, "error: failed to create priorityclass: {}"),
    "rolebinding": (1, "error: failed to create rolebinding: {}"),
    "clusterrolebinding": (1, "error: failed to create clusterrolebinding: {}"),
    "secret": (2, "error: failed to create secret {}"),
    "service": (2, "error: failed to create ClusterIP service: {}"),
    "serviceaccount": (1, "error: failed to create serviceaccount: {}"),
}
CREATE_ALIASES = {
    "cj": "cronjob",
    "cm": "configmap",
    "deploy": "deployment",
    "ing": "ingress",
    "ns": "namespace",
    "pc": "priorityclass",
    "pdb": "poddisruptionbudget",
    "quota": "resourcequota",
    "sa": "serviceaccount",
    "svc": "service",
}
OTHER_CLUSTER_FLAGS = frozenset(
    ("--as", "--cluster", "--context", "--kubeconfig", "--server", "-s", "--token", "--user")
)
"""Flags that select another cluster or another user."""
NAMESPACES = ResourceName("", "namespaces", namespaced=False)


class ApiRequest(Struct, frozen=True):
    """One API request of a call."""

    access: Access
    certainty: Certainty = "will"
    says: str = FORBIDDEN
    """The error on refusal, with `{}` for the API server's message."""

    @property
    def is_repeated(self) -> bool:
        """Whether the call does not end on refusal, but sends the request again."""
        return self.says in REPEATED.values()


class CallTarget(Struct, frozen=True):
    resource: ResourceName
    name: str = ""
    namespace: str = ""
    kind: str = ""
    version: str = "v1"
    """As in a file."""


def requests_of(
    words: tuple[str, ...],
    namespace: str,
    crds: Iterable[Body] = (),
    stdin: str = "",
    feeder: tuple[str, ...] = (),
) -> Iterator[ApiRequest]:
    """The API requests of a call; none if it is not kubectl or oc, or cannot be parsed."""
    if not words or words[0].rpartition("/")[2] not in ("kubectl", "oc"):
        return
    call = parse_call(words[1:], namespace, stdin, tuple(crds), feeder)
    if (
        UNKNOWN in call.verb
        or call.flags.get("--dry-run", "server") != "server"
        or OTHER_CLUSTER_FLAGS & call.flags.keys()
    ):
        return
    yield from _requests_of(call)


def _requests_of(call: KubectlCall) -> Iterator[ApiRequest]:
    if call.verb in ON_PODS:
        yield from _on_pods(call)
    elif call.verb in SPECIAL:
        yield from SPECIAL[call.verb](call)
    elif "-f" in call.flags or "-k" in call.flags:
        yield from _on_files(call)
    elif call.verb in ON_OBJECTS:
        yield from _on_objects(call)


def _on_objects(call: KubectlCall) -> Iterator[ApiRequest]:
    for target in targets_of(call):
        # An empty list needs no further requests.
        certainty: Certainty = "will" if target.name else "may"
        steps = ON_OBJECTS[call.verb]
        if not target.name:
            yield _request(call, "list", target)
            steps = () if call.verb == "get" else steps
        for verb, subresource in steps:
            yield _request(call, verb, target, subresource, certainty, _error_for(call, verb, target))
        if call.verb == "get" and "-w" in call.flags:
            yield _request(call, "watch", target)
    extra = {"expose": "services", "autoscale": "horizontalpodautoscalers"}.get(call.verb)
    if extra and (resource := find(extra)):
        yield _request(call, "create", CallTarget(resource))


def _error_for(call: KubectlCall, verb: str, target: CallTarget) -> str:
    if verb in ("list", "watch") and call.verb == "wait":
        return f"error: timed out waiting for the condition on {target.resource.plural}/{target.name}"
    if verb in REPEATED and call.verb == "rollout status":
        return REPEATED[verb]
    return "error: no objects passed to scale {}" if (call.verb, verb) == ("scale", "get") else FORBIDDEN


def targets_of(call: KubectlCall) -> Iterator[CallTarget]:
    """TYPE NAME..., TYPE/NAME..., TYPE,TYPE: as kubectl parses them. Without a name, all objects.

    `key=value` and `key-` are no targets, also where the key or an image has a slash (GetResourcesAndPairs).
    """
    words = [word for word in call.words if not re.search(r"=|-$", word)]
    pairs = [word.partition("/") for word in words]
    if any(slash for _, slash, _ in pairs):
        for kind, slash, name in pairs:
            yield from _target(call, kind, name) if slash else ()
        return
    if not words:
        return
    kinds, names = words[0].split(","), words[1:]
    for kind in kinds:
        for name in names or [""]:
            yield from _target(call, kind, name)


def _target(call: KubectlCall, kind: str, name: str) -> Iterator[CallTarget]:
    resource = find(kind, call.crds) if UNKNOWN not in kind else None
    if resource is not None:
        yield CallTarget(resource, name)


def _on_files(call: KubectlCall) -> Iterator[ApiRequest]:
    """Only files from stdin can be read here."""
    verb = "apply --server-side" if call.verb == "apply" and "--server-side" in call.flags else call.verb
    for target in stdin_objects(call) if call.flags.get("-f") == "-" else ():
        for what, subresource, certainty in ON_FILES.get(verb, ()):
            named = target if what != "create" else CallTarget(target.resource, "", target.namespace)
            yield _request(call, what, named, subresource, certainty, _file_error_for(call, what, target))


def _file_error_for(call: KubectlCall, verb: str, target: CallTarget) -> str:
    if verb == "create":
        return 'Error from server (Forbidden): error when creating "STDIN": {}'
    if (call.verb, verb) != ("apply", "get"):
        return FORBIDDEN
    resource = target.resource
    kind = target.kind or next(
        (e.kind for e in CATALOGUE.values() if (e.group, e.plural) == (resource.group, resource.plural)), ""
    )
    where = target.namespace or call.namespace if resource.namespaced else ""
    return (
        "Error from server (Forbidden): error when retrieving current configuration of:\n"
        f'Resource: "{resource.group}/{target.version}, Resource={resource.plural}", '
        f'GroupVersionKind: "{resource.group}/{target.version}, Kind={kind}"\n'
        f'Name: "{target.name}", Namespace: "{where}"\nfrom server for: "STDIN": {{}}'
    )


def stdin_objects(call: KubectlCall) -> Iterator[CallTarget]:
    """The objects in a here-document, or those that `kubectl create --dry-run=client -o yaml` prints."""
    for document in re.split(r"^---\s*$", call.stdin, flags=re.M):
        kind, version = _field(document, "kind"), _field(document, "apiVersion")
        if kind and version:
            name = _field(document, "name", deep=True)
            namespace = _field(document, "namespace", deep=True)
            yield CallTarget(of_kind(version, kind, call.crds), name, namespace, kind, version_of(version))
    if call.feeder and call.feeder[0].rpartition("/")[2] in ("kubectl", "oc"):
        made = parse_call(call.feeder[1:], call.namespace, "", call.crds, ())
        if made.verb == "create" and "--dry-run" in made.flags:
            yield from (target for target, _ in created(made))


def _field(document: str, name: str, *, deep: bool = False) -> str:
    start = r"[ \t{,]+" if deep else r"[ \t{]*"
    found = re.search(rf"^(?:metadata:)?{start}[\"']?{name}[\"']?:\s*[\"']?([\w./-]+)", document, re.M)
    return found[1] if found else ""


def _on_pods(call: KubectlCall) -> Iterator[ApiRequest]:
    verb, subresource = ON_PODS[call.verb]
    pods = ResourceName("", "pods")
    if "-l" in call.flags:
        yield _request(call, "list", CallTarget(pods))
        yield _request(call, verb, CallTarget(pods), subresource)
        return
    word = next((word for word in call.words if call.verb != "cp" or ":" in word), "")
    kind, slash, name = word.partition(":")[0].rpartition("/")
    if call.verb in ("cp", "rsync"):
        kind, slash = "", ""
    if not word:
        return
    if slash and kind not in ("pod", "pods", "po"):
        for target in _target(call, kind, name):
            yield _request(call, "get", target)
            yield _request(call, "list", CallTarget(pods))
            yield _request(call, verb, CallTarget(pods), subresource)
        return
    pod = CallTarget(pods, name)
    yield _request(call, "get", pod)
    yield _request(call, verb, pod, subresource)


def _create(call: KubectlCall) -> Iterator[ApiRequest]:
    if "-f" in call.flags or "-k" in call.flags:
        yield from _on_files(call)
        return
    if call.words[:1] == ("token",):
        account = CallTarget(ResourceName("", "serviceaccounts"), "".join(call.words[1:2]))
        yield _request(call, "create", account, "token", says="error: failed to create token: {}")
        return
    kind, _, name = call.flags.get("--from", "").partition("/")
    for target in _target(call, kind, name) if kind else ():
        yield _request(call, "get", target)
    for target, says in created(call):
        yield _request(call, "create", CallTarget(target.resource), says=says)


def created(call: KubectlCall) -> Iterator[tuple[CallTarget, str]]:
    word = "".join(call.words[:1])
    kind = CREATE_ALIASES.get(word, word)
    place, says = CREATES.get(kind, (1, FORBIDDEN))
    resource = find(kind, call.crds) if kind and UNKNOWN not in kind else None
    if resource is not None:
        name = "".join(call.words[place : place + 1])
        yield CallTarget(resource, name), says


def _run(call: KubectlCall) -> Iterator[ApiRequest]:
    yield _request(call, "create", CallTarget(ResourceName("", "pods")))


def _drain(call: KubectlCall) -> Iterator[ApiRequest]:
    yield _request(call, "get", CallTarget(ResourceName("", "nodes", False), "".join(call.words[:1])))
    yield _request(call, "patch", CallTarget(ResourceName("", "nodes", False), "".join(call.words[:1])))
    if call.verb == "drain":
        yield _request(call, "list", CallTarget(ResourceName("", "pods")))
        yield _request(call, "create", CallTarget(ResourceName("", "pods")), "eviction", "may")


def _start_build(call: KubectlCall) -> Iterator[ApiRequest]:
    """A build is created through a subresource of its BuildConfig."""
    name = "".join(call.words[:1]).rpartition("/")[2]
    group = "build.openshift.io"
    if "--from-build" in call.flags:
        yield _request(call, "create", CallTarget(ResourceName(group, "builds"), call.flags["--from-build"]), "clone")
        return
    binary = any(flag in call.flags for flag in ("--from-dir", "--from-file", "--from-archive", "--from-repo"))
    subresource = "instantiatebinary" if binary else "instantiate"
    yield _request(call, "get", CallTarget(ResourceName(group, "buildconfigs"), name), certainty="may")
    yield _request(call, "create", CallTarget(ResourceName(group, "buildconfigs"), name), subresource)
    if any(flag in call.flags for flag in ("-F", "--follow")):
        yield _request(call, "get", CallTarget(ResourceName(group, "builds")), "log")
    if any(flag in call.flags for flag in ("-w", "--wait")):
        yield _request(call, "watch", CallTarget(ResourceName(group, "builds")))


def _process(call: KubectlCall) -> Iterator[ApiRequest]:
    if "--local" in call.flags:
        return
    group = "template.openshift.io"
    if call.words:
        yield _request(call, "get", CallTarget(ResourceName(group, "templates"), call.words[0]))
    yield _request(call, "create", CallTarget(ResourceName(group, "processedtemplates")))


def _tag(call: KubectlCall) -> Iterator[ApiRequest]:
    yield _request(call, "create", CallTarget(ResourceName("image.openshift.io", "imagestreamtags")), certainty="may")
    yield _request(call, "update", CallTarget(ResourceName("image.openshift.io", "imagestreamtags")), certainty="may")


def _import_image(call: KubectlCall) -> Iterator[ApiRequest]:
    yield _request(call, "create", CallTarget(ResourceName("image.openshift.io", "imagestreamimports")))


SPECIAL: dict[str, Callable[[KubectlCall], Iterator[ApiRequest]]] = {
    "cordon": _drain,
    "create": _create,
    "drain": _drain,
    "import-image": _import_image,
    "process": _process,
    "run": _run,
    "start-build": _start_build,
    "tag": _tag,
    "uncordon": _drain,
}


def _request(
    call: KubectlCall,
    verb: str,
    target: CallTarget,
    subresource: str = "",
    certainty: Certainty = "will",
    says: str = FORBIDDEN,
) -> ApiRequest:
    resource = target.resource
    namespace = target.namespace or call.namespace if resource.namespaced else ""
    if resource == NAMESPACES:
        namespace = target.name
    unknown = UNKNOWN in namespace or not resource.sure
    where = "" if UNKNOWN in namespace else namespace
    name = "" if UNKNOWN in target.name else target.name
    access = Access(verb, resource.group, resource.plural, where, name, subresource)
    return ApiRequest(access, "may" if unknown else certainty, says)
