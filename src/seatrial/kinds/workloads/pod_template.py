"""What a pod or pod template refers to, and the API server's defaults for it. Knows no kubelet and no scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.kinds import Need
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.network.mentions import mentioned_services
from seatrial.kinds.workloads.images import stream_tag
from seatrial.model.resource import Body, Ref, dig, listed, name_of

Path = tuple[str | int, ...]

BUILT_IN = ("system-cluster-critical", "system-node-critical")
"""Priority classes that every API server creates."""

# Volume sources of drivers that read a Secret, and the field that names it.
VOLUME_SECRETS = (
    ("csi", "nodePublishSecretRef", "name"),
    ("cephfs", "secretRef", "name"),
    ("rbd", "secretRef", "name"),
    ("iscsi", "secretRef", "name"),
    ("flexVolume", "secretRef", "name"),
    ("scaleIO", "secretRef", "name"),
    ("storageos", "secretRef", "name"),
    ("azureFile", "secretName"),
)

PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
RESOURCE_CLAIMS = (("resourceClaimName", "ResourceClaim"), ("resourceClaimTemplateName", "ResourceClaimTemplate"))


class Source(Struct, frozen=True):
    """A ConfigMap or Secret that a volume or container reads."""

    kind: str
    name: str
    field: Path
    """Relative to the volume or the container."""
    optional: bool = False
    keys: tuple[str, ...] = ()


def pod_needs(spec: Body, namespace: str, at: Path) -> Iterator[Need]:
    """The needs of a pod with this spec. `at` is the path of the spec in its object."""
    yield from _named(spec, namespace, at)
    for index, volume in entries(spec, "volumes"):
        yield from _volume_needs(volume, namespace, (*at, "volumes", index))
    for place, container in containers_of(spec):
        for source in env_sources(container):
            yield from _source_needs(source, namespace, (*at, *place))
        if image := stream_tag(str(container.get("image") or "")):
            yield Need(image, "start", (*at, *place, "image"))
        yield from mentioned_services(container, namespace, (*at, *place))


def template_needs(*path: str) -> Callable[[Body], Iterator[Need]]:
    """`needs` of a kind with its pod template at `path`."""

    def needs(body: Body) -> Iterator[Need]:
        namespace = str(dig(body, "metadata", "namespace") or "")
        spec = dig(body, *path, "spec")
        return pod_needs(spec, namespace, (*path, "spec")) if isinstance(spec, dict) else iter(())

    return needs


def containers_of(spec: Body) -> Iterator[tuple[Path, Body]]:
    """Init containers first, as they run."""
    for field in ("initContainers", "containers"):
        for index, container in entries(spec, field):
            yield (field, index), container


def volume_sources(volume: Body) -> Iterator[Source]:
    """ConfigMaps and Secrets mounted as files."""
    if config := volume.get("configMap"):
        yield _source("ConfigMap", config, ("configMap", "name"))
    if secret := volume.get("secret"):
        yield _source("Secret", secret, ("secret", "secretName"))
    for index, source in entries(volume, "projected", "sources"):
        if config := source.get("configMap"):
            yield _source("ConfigMap", config, ("projected", "sources", index, "configMap", "name"))
        if secret := source.get("secret"):
            yield _source("Secret", secret, ("projected", "sources", index, "secret", "name"))


def env_sources(container: Body) -> Iterator[Source]:
    """ConfigMaps and Secrets used as environment variables, in the order in which a kubelet reads them."""
    for index, source in entries(container, "envFrom"):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if ref := source.get(field):
                yield _source(kind, ref, ("envFrom", index, field, "name"))
    for index, variable in entries(container, "env"):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if ref := dig(variable, "valueFrom", field):
                yield _source(kind, ref, ("env", index, "valueFrom", field, "name"))


def claims_of(spec: Body, pod_name: str = "") -> Iterator[tuple[int, str]]:
    """The PVCs that a pod uses, by volume. PVCs of ephemeral volumes are named after the pod."""
    for index, volume in entries(spec, "volumes"):
        if claim := dig(volume, "persistentVolumeClaim", "claimName"):
            yield index, str(claim)
        elif pod_name and isinstance(volume.get("ephemeral"), dict):
            yield index, f"{pod_name}-{volume.get('name')}"


def used_claims(body: Body) -> Iterator[Ref]:
    """The PVCs that a pod uses; none for other kinds."""
    if (body.get("apiVersion"), body.get("kind")) == ("v1", "Pod"):
        for _, name in claims_of(body.get("spec") or {}, name_of(body)):
            yield Ref("PersistentVolumeClaim", namespace_of(body), name)


def default_template(template: Body) -> Body:
    spec = template.get("spec")
    return {**template, "spec": default_pod_spec(spec)} if isinstance(spec, dict) else template


def default_pod_spec(spec: Body) -> Body:
    """The spec with the defaults of `SetDefaults_PodSpec` and related functions."""
    filled = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **spec,
    }
    for field in ("initContainers", "containers"):
        if field in spec:
            filled[field] = [_default_container(container) for container in listed(spec, field)]
    if "serviceAccountName" in spec:
        filled.setdefault("serviceAccount", spec["serviceAccountName"])
    elif "serviceAccount" in spec:
        filled["serviceAccountName"] = spec["serviceAccount"]
    if volumes := listed(spec, "volumes"):
        filled["volumes"] = [_default_volume(volume) for volume in volumes]
    return filled


def _named(spec: Body, namespace: str, at: Path) -> Iterator[Need]:
    """Objects that the spec names directly."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account and account != "default":
        field = "serviceAccountName" if spec.get("serviceAccountName") else "serviceAccount"
        yield Need(Ref("ServiceAccount", namespace, str(account)), "admit", (*at, field))
    priority = spec.get("priorityClassName")
    if priority and priority not in BUILT_IN:
        yield Need(Ref("PriorityClass", "", str(priority), "scheduling.k8s.io"), "admit", (*at, "priorityClassName"))
    if runtime := spec.get("runtimeClassName"):
        yield Need(Ref("RuntimeClass", "", str(runtime), "node.k8s.io"), "admit", (*at, "runtimeClassName"))
    for index, secret in entries(spec, "imagePullSecrets"):
        if name := secret.get("name"):
            # A kubelet continues without a missing pull secret: the image may be public.
            path = (*at, "imagePullSecrets", index, "name")
            yield Need(Ref("Secret", namespace, str(name)), "start", path, optional=True)
    for index, claim in entries(spec, "resourceClaims"):
        for field, kind in RESOURCE_CLAIMS:
            if name := claim.get(field):
                ref = Ref(kind, namespace, str(name), "resource.k8s.io")
                yield Need(ref, "schedule", (*at, "resourceClaims", index, field))


def _volume_needs(volume: Body, namespace: str, at: Path) -> Iterator[Need]:
    for source in volume_sources(volume):
        yield from _source_needs(source, namespace, at)
    if claim := dig(volume, "persistentVolumeClaim", "claimName"):
        ref = Ref("PersistentVolumeClaim", namespace, str(claim))
        yield Need(ref, "schedule", (*at, "persistentVolumeClaim", "claimName"))
    template = ("ephemeral", "volumeClaimTemplate", "spec", "storageClassName")
    if storage_class := dig(volume, *template):
        yield Need(Ref("StorageClass", "", str(storage_class), "storage.k8s.io"), "schedule", (*at, *template))
    for path in VOLUME_SECRETS:
        if name := dig(volume, *path):
            yield Need(Ref("Secret", namespace, str(name)), "start", (*at, *path))
    provider = ("csi", "volumeAttributes", "secretProviderClass")
    if name := dig(volume, *provider):
        ref = Ref("SecretProviderClass", namespace, str(name), "secrets-store.csi.x-k8s.io")
        yield Need(ref, "start", (*at, *provider))


def _source_needs(source: Source, namespace: str, at: Path) -> Iterator[Need]:
    ref = Ref(source.kind, namespace, source.name)
    for key in source.keys or ("",):
        yield Need(ref, "start", (*at, *source.field), optional=source.optional, key=key)


def _source(kind: str, body: Body, field: Path) -> Source:
    keys = [item.get("key") for item in listed(body, "items")] or [body.get("key")]
    return Source(
        kind,
        str(body.get(str(field[-1])) or ""),
        field,
        optional=bool(body.get("optional")),
        keys=tuple(str(key) for key in keys if key),
    )


def _default_container(container: Body) -> Body:
    image = str(container.get("image") or "")
    filled = {
        "imagePullPolicy": "Always" if _is_latest(image) else "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    if ports := listed(container, "ports"):
        filled["ports"] = [{"protocol": "TCP", **port} for port in ports]
    if variables := listed(container, "env"):
        filled["env"] = [_default_variable(variable) for variable in variables]
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(field), dict):
            filled[field] = _default_request({**PROBE, **container[field]})
    if lifecycle := container.get("lifecycle"):
        filled["lifecycle"] = {
            event: _default_request(handler) if isinstance(handler, dict) else handler
            for event, handler in lifecycle.items()
        }
    return filled


def _default_request(handler: Body) -> Body:
    """The default path of an HTTP probe or hook is `/`."""
    if not isinstance(handler.get("httpGet"), dict):
        return handler
    return {**handler, "httpGet": {"path": "/", "scheme": "HTTP", **handler["httpGet"]}}


def _default_variable(variable: Body) -> Body:
    field = dig(variable, "valueFrom", "fieldRef")
    if not isinstance(field, dict):
        return variable
    return {**variable, "valueFrom": {**variable["valueFrom"], "fieldRef": {"apiVersion": "v1", **field}}}


def _is_latest(image: str) -> bool:
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _default_volume(volume: Body) -> Body:
    """Default file modes. A volume without a source is an emptyDir."""
    if set(volume) <= {"name"}:
        return {**volume, "emptyDir": {}}
    filled = dict(volume)
    for field in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(field), dict):
            filled[field] = {"defaultMode": 420, **volume[field]}
    if isinstance(volume.get("hostPath"), dict):
        filled["hostPath"] = {"type": "", **volume["hostPath"]}
    return filled
