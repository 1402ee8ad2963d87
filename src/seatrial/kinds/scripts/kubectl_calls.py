"""What one call of kubectl or oc asks of the API, by its words. Knows neither scripts nor who may do what.

Read from k8s.io/kubectl 1.34, pkg/cmd, and from what an API server refused of each call; oc from openshift/oc 4.18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from seatrial.kinds.access.authorizer import Access
from seatrial.kinds.scripts.kubectl_words import Call, taken_apart
from seatrial.kinds.scripts.resource_names import Resource, find, of_kind
from seatrial.kinds.scripts.shell import Certainty
from seatrial.kinds.scripts.words import UNKNOWN
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.resource import Body, version_of

SAYS = "Error from server (Forbidden): {}"
"""How kubectl puts a refusal, for the API server's words."""
WAITS = ""
"""Of what it goes on to wait for in vain: nothing is said."""

# What is asked of an object that is named, in order: (verb, subresource).
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
# What is asked of the objects of a file; the last only where one is there already, or is not.
ON_FILES: dict[str, tuple[tuple[str, str, Certainty], ...]] = {
    "apply": (("get", "", "will"), ("create", "", "may"), ("patch", "", "may")),
    "apply --server-side": (("patch", "", "will"), ("create", "", "may")),
    "create": (("create", "", "will"),),
    "replace": (("get", "", "will"), ("update", "", "will")),
    "delete": (("delete", "", "will"),),
    "get": (("get", "", "will"),),
    "wait": (("get", "", "will"), ("list", "", "will"), ("watch", "", "will")),
}
# Pods, by a name that may stand alone: what else is asked of one.
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
# `kubectl create KIND`: the place of the name among the words, and how a refusal is put where not as usual.
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
ELSEWHERE = frozenset(("--as", "--cluster", "--context", "--kubeconfig", "--server", "-s", "--token", "--user"))
"""Flags by which a call speaks to another cluster, or as somebody else."""
NAMESPACES = Resource("", "namespaces", namespaced=False)


class Ask(Struct, frozen=True):
    """One thing that a call asks of the API."""

    access: Access
    certainty: Certainty = "will"
    says: str = SAYS
    """How a refusal is put, with `{}` for the API server's words; empty where the call waits in vain."""


class Target(Struct, frozen=True):
    resource: Resource
    name: str = ""
    namespace: str = ""
    kind: str = ""
    version: str = "v1"
    """As a file says them."""


def asked_by(
    words: tuple[str, ...],
    namespace: str,
    definitions: Iterable[Body] = (),
    stdin: str = "",
    feeder: tuple[str, ...] = (),
) -> Iterator[Ask]:
    """What a call asks for; nothing where it is no call of kubectl or oc, or one that is not understood."""
    if not words or words[0].rpartition("/")[2] not in ("kubectl", "oc"):
        return
    call = taken_apart(words[1:], namespace, stdin, tuple(definitions), feeder)
    if UNKNOWN in call.verb or call.flags.get("--dry-run", "server") != "server" or ELSEWHERE & call.flags.keys():
        return
    yield from _asked(call)


def _asked(call: Call) -> Iterator[Ask]:
    if call.verb in ON_PODS:
        yield from _on_pods(call)
    elif call.verb in SPECIAL:
        yield from SPECIAL[call.verb](call)
    elif "-f" in call.flags or "-k" in call.flags:
        yield from _on_files(call)
    elif call.verb in ON_OBJECTS:
        yield from _on_objects(call)


def _on_objects(call: Call) -> Iterator[Ask]:
    for target in _targets(call):
        # Whatever is done to all that a list holds is done to nothing where it is empty.
        certainty: Certainty = "will" if target.name else "may"
        steps = ON_OBJECTS[call.verb]
        if not target.name:
            yield _ask(call, "list", target)
            steps = () if call.verb == "get" else steps
        for verb, subresource in steps:
            yield _ask(call, verb, target, subresource, certainty, _says(call, verb, target))
        if call.verb == "get" and "-w" in call.flags:
            yield _ask(call, "watch", target)
    extra = {"expose": "services", "autoscale": "horizontalpodautoscalers"}.get(call.verb)
    if extra and (resource := find(extra)):
        yield _ask(call, "create", Target(resource))


def _says(call: Call, verb: str, target: Target) -> str:
    if verb in ("list", "watch") and call.verb == "wait":
        return f"error: timed out waiting for the condition on {target.resource.plural}/{target.name}"
    if verb in ("list", "watch") and call.verb == "rollout status":
        return WAITS
    return "error: no objects passed to scale {}" if (call.verb, verb) == ("scale", "get") else SAYS


def _targets(call: Call) -> Iterator[Target]:
    """TYPE NAME..., TYPE/NAME..., TYPE,TYPE: as kubectl takes them. Without a name, all of them."""
    words = [word for word in call.words if not re.search(r"=|-$", word) or "/" in word]
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


def _target(call: Call, kind: str, name: str) -> Iterator[Target]:
    resource = find(kind, call.definitions) if UNKNOWN not in kind else None
    if resource is not None:
        yield Target(resource, name)


def _on_files(call: Call) -> Iterator[Ask]:
    """Of the files that are given, only what comes through a pipe can be read here."""
    verb = "apply --server-side" if call.verb == "apply" and "--server-side" in call.flags else call.verb
    for target in _fed(call) if call.flags.get("-f") == "-" else ():
        for what, subresource, certainty in ON_FILES.get(verb, ()):
            named = target if what != "create" else Target(target.resource, "", target.namespace)
            yield _ask(call, what, named, subresource, certainty, _says_of_file(call, what, target))


def _says_of_file(call: Call, verb: str, target: Target) -> str:
    if verb == "create":
        return 'Error from server (Forbidden): error when creating "STDIN": {}'
    if (call.verb, verb) != ("apply", "get"):
        return SAYS
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


def _fed(call: Call) -> Iterator[Target]:
    """The objects in a here-document, or those that `kubectl create --dry-run=client -o yaml` prints."""
    for document in re.split(r"^---\s*$", call.stdin, flags=re.M):
        kind, version = _field(document, "kind"), _field(document, "apiVersion")
        if kind and version:
            name = _field(document, "name", deep=True)
            namespace = _field(document, "namespace", deep=True)
            yield Target(of_kind(version, kind, call.definitions), name, namespace, kind, version_of(version))
    if call.feeder and call.feeder[0].rpartition("/")[2] in ("kubectl", "oc"):
        made = taken_apart(call.feeder[1:], call.namespace, "", call.definitions, ())
        if made.verb == "create" and "--dry-run" in made.flags:
            yield from (target for target, _ in _created(made))


def _field(document: str, name: str, *, deep: bool = False) -> str:
    start = r"[ \t{,]+" if deep else r"[ \t{]*"
    found = re.search(rf"^(?:metadata:)?{start}[\"']?{name}[\"']?:\s*[\"']?([\w./-]+)", document, re.M)
    return found[1] if found else ""


def _on_pods(call: Call) -> Iterator[Ask]:
    verb, subresource = ON_PODS[call.verb]
    pods = Resource("", "pods")
    if "-l" in call.flags:
        yield _ask(call, "list", Target(pods))
        yield _ask(call, verb, Target(pods), subresource)
        return
    word = next((word for word in call.words if call.verb != "cp" or ":" in word), "")
    kind, slash, name = word.partition(":")[0].rpartition("/")
    if call.verb in ("cp", "rsync"):
        kind, slash = "", ""
    if not word:
        return
    if slash and kind not in ("pod", "pods", "po"):
        for target in _target(call, kind, name):
            yield _ask(call, "get", target)
            yield _ask(call, "list", Target(pods))
            yield _ask(call, verb, Target(pods), subresource)
        return
    pod = Target(pods, name)
    yield _ask(call, "get", pod)
    yield _ask(call, verb, pod, subresource)


def _create(call: Call) -> Iterator[Ask]:
    if "-f" in call.flags or "-k" in call.flags:
        yield from _on_files(call)
        return
    if call.words[:1] == ("token",):
        account = Target(Resource("", "serviceaccounts"), "".join(call.words[1:2]))
        yield _ask(call, "create", account, "token", says="error: failed to create token: {}")
        return
    kind, _, name = call.flags.get("--from", "").partition("/")
    for target in _target(call, kind, name) if kind else ():
        yield _ask(call, "get", target)
    for target, says in _created(call):
        yield _ask(call, "create", Target(target.resource), says=says)


def _created(call: Call) -> Iterator[tuple[Target, str]]:
    word = "".join(call.words[:1])
    kind = CREATE_ALIASES.get(word, word)
    place, says = CREATES.get(kind, (1, SAYS))
    resource = find(kind, call.definitions) if kind and UNKNOWN not in kind else None
    if resource is not None:
        name = "".join(call.words[place : place + 1])
        yield Target(resource, name), says


def _run(call: Call) -> Iterator[Ask]:
    yield _ask(call, "create", Target(Resource("", "pods")))


def _drain(call: Call) -> Iterator[Ask]:
    yield _ask(call, "get", Target(Resource("", "nodes", False), "".join(call.words[:1])))
    yield _ask(call, "patch", Target(Resource("", "nodes", False), "".join(call.words[:1])))
    if call.verb == "drain":
        yield _ask(call, "list", Target(Resource("", "pods")))
        yield _ask(call, "create", Target(Resource("", "pods")), "eviction", "may")


def _start_build(call: Call) -> Iterator[Ask]:
    """A build is made through a door of its configuration, not by creating it."""
    name = "".join(call.words[:1]).rpartition("/")[2]
    group = "build.openshift.io"
    if "--from-build" in call.flags:
        yield _ask(call, "create", Target(Resource(group, "builds"), call.flags["--from-build"]), "clone")
        return
    binary = any(flag in call.flags for flag in ("--from-dir", "--from-file", "--from-archive", "--from-repo"))
    door = "instantiatebinary" if binary else "instantiate"
    yield _ask(call, "get", Target(Resource(group, "buildconfigs"), name), certainty="may")
    yield _ask(call, "create", Target(Resource(group, "buildconfigs"), name), door)
    if any(flag in call.flags for flag in ("-F", "--follow")):
        yield _ask(call, "get", Target(Resource(group, "builds")), "log")
    if any(flag in call.flags for flag in ("-w", "--wait")):
        yield _ask(call, "watch", Target(Resource(group, "builds")))


def _process(call: Call) -> Iterator[Ask]:
    if "--local" in call.flags:
        return
    group = "template.openshift.io"
    if call.words:
        yield _ask(call, "get", Target(Resource(group, "templates"), call.words[0]))
    yield _ask(call, "create", Target(Resource(group, "processedtemplates")))


def _tag(call: Call) -> Iterator[Ask]:
    yield _ask(call, "create", Target(Resource("image.openshift.io", "imagestreamtags")), certainty="may")
    yield _ask(call, "update", Target(Resource("image.openshift.io", "imagestreamtags")), certainty="may")


def _import_image(call: Call) -> Iterator[Ask]:
    yield _ask(call, "create", Target(Resource("image.openshift.io", "imagestreamimports")))


SPECIAL: dict[str, Callable[[Call], Iterator[Ask]]] = {
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


def _ask(
    call: Call,
    verb: str,
    target: Target,
    subresource: str = "",
    certainty: Certainty = "will",
    says: str = SAYS,
) -> Ask:
    resource = target.resource
    namespace = target.namespace or call.namespace if resource.namespaced else ""
    if resource == NAMESPACES:
        namespace = target.name
    unknown = UNKNOWN in namespace or not resource.sure
    where = "" if UNKNOWN in namespace else namespace
    name = "" if UNKNOWN in target.name else target.name
    access = Access(verb, resource.group, resource.plural, where, name, subresource)
    return Ask(access, "may" if unknown else certainty, says)
