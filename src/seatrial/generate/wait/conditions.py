"""What a gate Job can wait for: the POSIX shell that asks, and the least rights that asking needs.

Every loop only reads, with `get` of named objects where it can: a ServiceAccount with these rights can do no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from shlex import quote

from msgspec import Struct

from seatrial.graph.linking import Graph, Webhooks
from seatrial.kinds.operators.table import plural_for
from seatrial.kinds.webhooks.matching import GROUP, SIDE_EFFECTS_NONE
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, metadata

PAUSE_SECONDS = 2
REACHABLE = "200 | 301 | 307 | 401 | 403 | 405"
"""Answers of a bucket that exists: S3 refuses strangers and redirects to the right region."""
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
FORMS = (
    "webhook/NAME, webhook/NAME=NAMESPACE/SERVICE, crd/PLURAL.GROUP, secret/NAMESPACE/NAME[:KEY], "
    "image/REGISTRY/NAME:TAG, imagestreamtag/NAMESPACE/NAME:TAG, database/HOST:PORT, bucket/URL"
)
_NAME = lazy_re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_KEY = lazy_re.compile(r"[-._a-zA-Z0-9]+")
_HOST_AND_PORT = lazy_re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?):([0-9]{1,5})", re.I)
_IMAGE = lazy_re.compile(
    r"(?P<host>[a-z0-9][-a-z0-9.]*(:[0-9]+)?)/(?P<name>[a-z0-9][-a-z0-9._/]*):(?P<tag>[\w][-.\w]{0,127})"
)


class Right(Struct, frozen=True):
    """What the Job may do, in one namespace or, if that is empty, in the cluster."""

    namespace: str
    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


class WaitCondition(Struct, frozen=True):
    """One thing to wait for."""

    name: str
    """For the name of the Job."""
    words: str
    """As in sentences: `Secret/shop/db has data`."""
    script: str
    rights: tuple[Right, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know, each a sentence."""


def condition(target: str, graph: Graph | None) -> WaitCondition:
    """Read `crd/gates.canal.example`; `graph` contains the webhook configurations that may be named."""
    kind, _, about = target.partition("/")
    read = _READERS.get(kind)
    if read is None or not about:
        raise CannotContinue(f"{target}: unknown; a Job can wait for {FORMS}")
    return read(about, target, graph)


def _crd(about: str, target: str, graph: Graph | None) -> WaitCondition:
    plural, _, group = about.partition(".")
    if not group:
        raise CannotContinue(f"{target}: a CRD is named PLURAL.GROUP, as in crd/gates.canal.example")
    _checked(about, target)
    established = '{.status.conditions[?(@.type=="Established")].status}'
    asks = _get("customresourcedefinition", about, output=f"jsonpath={established}")
    return WaitCondition(
        plural,
        f"CustomResourceDefinition/{about} is established and served",
        _loop(f"CustomResourceDefinition/{about} to be established", f'[ "$({asks})" = True ]')
        + _loop(f"the API server to serve {about}", f"kubectl get {about} --output name"),
        (
            Right("", "apiextensions.k8s.io", "customresourcedefinitions", ("get",), (about,)),
            Right("", group, plural, ("list",)),
        ),
    )


def _secret(about: str, target: str, graph: Graph | None) -> WaitCondition:
    namespace, _, rest = about.partition("/")
    name, _, key = rest.partition(":")
    if not name:
        raise CannotContinue(f"{target}: a Secret is named secret/NAMESPACE/NAME or secret/NAMESPACE/NAME:KEY")
    _checked(namespace, target)
    _checked(name, target)
    if key and not _KEY.fullmatch(key):
        raise CannotContinue(f"{target}: {key} is no key of a Secret")
    field = f"{{.data['{key}']}}" if "." in key else f"{{.data.{key}}}" if key else "{.data}"
    asks = _get("secret", name, namespace, f"jsonpath={field}")
    words = f"Secret/{namespace}/{name} has {f'the key {key}' if key else 'data'}"
    return WaitCondition(
        name, words, _loop(words, f'[ -n "$({asks})" ]'), (Right(namespace, "", "secrets", ("get",), (name,)),)
    )


def _stream_tag(about: str, target: str, graph: Graph | None) -> WaitCondition:
    namespace, _, rest = about.partition("/")
    name, _, tag = rest.partition(":")
    if not tag:
        raise CannotContinue(f"{target}: an image stream tag is named imagestreamtag/NAMESPACE/NAME:TAG")
    _checked(namespace, target)
    _checked(name, target)
    asks = _get("imagestreamtag.image.openshift.io", f"{name}:{tag}", namespace, "name")
    right = Right(namespace, "image.openshift.io", "imagestreamtags", ("get",), (f"{name}:{tag}",))
    return WaitCondition(name, f"the image {name}:{tag} is built", _loop(f"the image {name}:{tag}", asks), (right,))


def _image(about: str, target: str, graph: Graph | None) -> WaitCondition:
    found = _IMAGE.fullmatch(about)
    if found is None:
        raise CannotContinue(f"{target}: an image is named image/REGISTRY/NAME:TAG, with its registry and its tag")
    url = f"https://{found['host']}/v2/{found['name']}/manifests/{found['tag']}"
    accepts = quote("Accept: " + ", ".join(MANIFESTS))
    asks = f"curl --silent --fail --head --output /dev/null --header {accepts} {quote(url)}"
    note = "The registry must let strangers read; otherwise mount its pull secret and pass --header or --netrc to curl."
    name = found["name"].rpartition("/")[2]
    return WaitCondition(
        name, f"the image {about} is in its registry", _loop(f"the image {about}", asks), notes=(note,)
    )


def _database(about: str, target: str, graph: Graph | None) -> WaitCondition:
    found = _HOST_AND_PORT.fullmatch(about)
    if found is None or not 0 < int(found[3]) < 65536:
        raise CannotContinue(f"{target}: a database is named database/HOST:PORT")
    host, port = found[1], found[3]
    return WaitCondition(
        host.partition(".")[0], f"{about} accepts connections", _loop(about, f"nc -z -w 2 {host} {port}")
    )


def _bucket(about: str, target: str, graph: Graph | None) -> WaitCondition:
    if not re.fullmatch(r"https?://[-a-zA-Z0-9.]+(:[0-9]+)?(/[-a-zA-Z0-9._~/]*)?", about):
        raise CannotContinue(f"{target}: a bucket is named by its URL, as in bucket/https://s3.example/backups")
    asks = f"curl --silent --head --max-time 10 --output /dev/null --write-out '%{{http_code}}' {quote(about)}"
    function = f'reached() {{\n  case "$({asks})" in\n    {REACHABLE}) return 0 ;;\n  esac\n  return 1\n}}\n'
    name = [part for part in re.split(r"[/.:]", about.split("//", 1)[1]) if part][-1].lower()
    return WaitCondition(name, f"{about} answers", function + _loop(about, "reached"))


def _webhook(about: str, target: str, graph: Graph | None) -> WaitCondition:
    name, _, service = about.partition("=")
    _checked(name, target)
    found = _configuration(name, graph)
    if found is None and not service:
        raise CannotContinue(
            f"{target}: pass --in with the chart that contains it, or webhook/{name}=NAMESPACE/SERVICE"
        )
    kind = found.ref.kind if found is not None else "ValidatingWebhookConfiguration"
    services = {_service(service, target)} if service else set(_services(found))
    script, rights = "", [Right("", GROUP, f"{kind.lower()}s", ("get",), (name,))]
    for index in range(len(listed(found.body, "webhooks")) if found is not None else 1):
        bundle = _get(kind.lower(), name, output=f"jsonpath={{.webhooks[{index}].clientConfig.caBundle}}")
        script += _loop(f"the caBundle of {kind}/{name}", f'[ -n "$({bundle})" ]')
    for ref in sorted(services):
        addresses = _get("endpoints", ref.name, ref.namespace, "jsonpath={.subsets[*].addresses[*].ip}")
        script += _loop(f"a ready endpoint of {ref}", f'[ -n "$({addresses})" ]')
        rights.append(Right(ref.namespace, "", "endpoints", ("get",), (ref.name,)))
    words, note = f"{kind}/{name} answers", "No object is at hand that the webhook is called for: it is not called."
    probe = _probe(found, graph)
    if probe is None:
        return WaitCondition(name, words, script, tuple(rights), notes=(note,))
    group, resource = group_of(str(probe["apiVersion"])), plural_for(group_of(str(probe["apiVersion"])), probe["kind"])
    rights.append(Right(str(metadata(probe).get("namespace") or ""), group, resource, ("create",)))
    script += ANSWERS + _loop(f"an answer of {kind}/{name} to a dry run", "answers")
    return WaitCondition(name, words, script, tuple(rights), (("PROBE", json.dumps(probe, separators=(",", ":"))),))


ANSWERS = """\
answers() {
  said=$(printf '%s' "$PROBE" | kubectl create --dry-run=server --output name --filename - 2>&1) && return 0
  echo "$said"
  case "$said" in
    *"denied the request"* | *"already exists"*) return 0 ;;
  esac
  return 1
}
"""
"""A webhook that denies an object has answered, and a name is looked up after the webhooks were called."""

_READERS: dict[str, Callable[[str, str, Graph | None], WaitCondition]] = {
    "webhook": _webhook,
    "crd": _crd,
    "secret": _secret,
    "image": _image,
    "imagestreamtag": _stream_tag,
    "database": _database,
    "bucket": _bucket,
}


def _configuration(name: str, graph: Graph | None) -> Resource | None:
    if graph is None:
        return None
    found = (
        r for r in graph.resources.values() if r.ref.group == GROUP and r.ref.kind.endswith("WebhookConfiguration")
    )
    return next((resource for resource in found if resource.ref.name == name), None)


def _services(found: Resource | None) -> Iterator[Ref]:
    for hook in listed(found.body, "webhooks") if found is not None else ():
        named = dig(hook, "clientConfig", "service")
        if isinstance(named, dict) and named.get("name"):
            yield Ref("Service", str(named.get("namespace") or "default"), str(named["name"]))


def _service(text: str, target: str) -> Ref:
    namespace, _, name = text.partition("/")
    _checked(namespace, target)
    return Ref("Service", namespace, _checked(name, target))


def _probe(found: Resource | None, graph: Graph | None) -> Body | None:
    """An object of the input that the webhook is called for, under a name of its own; never a Secret."""
    if found is None or graph is None:
        return None
    for ref, resource in sorted(graph.resources.items()):
        hooks = [hook for hook, at in Webhooks({found.ref: found}).called(resource) if not at]
        if ref.kind == "Secret" or not hooks or any(hook.side_effects not in SIDE_EFFECTS_NONE for hook in hooks):
            continue
        meta = metadata(resource.body)
        kept = {key: meta[key] for key in ("labels",) if meta.get(key)}
        namespace = {"namespace": ref.namespace} if ref.namespace else {}
        body = {key: value for key, value in resource.body.items() if key not in ("metadata", "status")}
        return {**body, "metadata": {"name": f"{ref.name}-probe"[:63], **namespace, **kept}}
    return None


def _get(kind: str, name: str, namespace: str = "", output: str = "name") -> str:
    where = f" --namespace {namespace}" if namespace else ""
    return f"kubectl get {kind} {name}{where} --output {quote(output) if output != 'name' else output}"


def _loop(words: str, asks: str) -> str:
    return f"echo {quote(f'wait for {words}')}\nuntil {asks}; do\n  sleep {PAUSE_SECONDS}\ndone\n"


def _checked(name: str, target: str) -> str:
    """Names end up in a script: only those of Kubernetes are let in."""
    if not _NAME.fullmatch(name):
        raise CannotContinue(f"{target}: {name!r} is no name of a Kubernetes object")
    return name
