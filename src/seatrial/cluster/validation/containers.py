"""Validation of containers. The order follows `validateContainerCommon` in core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import names
from seatrial.cluster.validation.causes import (
    duplicate,
    each,
    forbidden,
    internal,
    invalid,
    not_found,
    required,
    unsupported,
)
from seatrial.cluster.validation.scalars import IDS, NOT_NEGATIVE, PORTS, not_negative, one_of, port
from seatrial.kinds.core.quantities import amount, canonical
from seatrial.model.resource import Body

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
SCHEMES = ("HTTP", "HTTPS")
SECCOMP_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_TIMES = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_RESOURCE_FIELDS = tuple(
    f"{what}.{name}" for what in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_CONTEXT_FIELDS = (
    *("Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot"),
    *("ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile", "AppArmorProfile"),
)


def container_problems(at: str, container: Body, volumes: frozenset[str]) -> Iterator[str]:
    """The problems of any container, in whichever list."""
    name = container.get("name")
    if not name:
        yield required(f"{at}.name")
    elif problems := names.label(name):
        yield from each(f"{at}.name", name, problems)
    if not container.get("image"):
        yield required(f"{at}.image")
    yield from one_of(f"{at}.terminationMessagePolicy", container.get("terminationMessagePolicy"), MESSAGE_POLICIES)
    if ports := container.get("ports"):
        yield from _ports(f"{at}.ports", ports)
    if env := container.get("env"):
        yield from _env(f"{at}.env", env)
    if env_from := container.get("envFrom"):
        yield from _env_from(f"{at}.envFrom", env_from)
    if mounts := container.get("volumeMounts"):
        yield from _mounts(f"{at}.volumeMounts", mounts, volumes)
    yield from one_of(f"{at}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    if resources := container.get("resources"):
        yield from resource_problems(f"{at}.resources", resources)
    if context := container.get("securityContext"):
        yield from _security_context(f"{at}.securityContext", context)


def running_problems(at: str, container: Body) -> Iterator[str]:
    """The problems of the probes and lifecycle hooks of a container that keeps running."""
    for moment in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(moment)
        if handler is not None:
            yield from _handler(f"{at}.lifecycle.{moment}", handler)
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            yield from _probe(f"{at}.{name}", probe, once=name != "readinessProbe")


def waiting_problems(at: str, container: Body) -> Iterator[str]:
    """An init container ends before any probe could run, unless it is a sidecar."""
    if container.get("restartPolicy") == "Always":
        yield from running_problems(at, container)
        return
    for name in ("lifecycle", *_PROBES):
        if container.get(name) is not None:
            yield forbidden(f"{at}.{name}", _ONLY_SIDECARS)


def host_port_conflicts(at: str, containers: list[Body]) -> Iterator[str]:
    seen = set()
    for place, container in enumerate(containers):
        for index, entry in enumerate(container.get("ports") or ()):
            if not entry.get("hostPort"):
                continue
            taken = f"{entry.get('protocol') or 'TCP'}/{entry.get('hostIP') or ''}/{entry['hostPort']}"
            if taken in seen:
                yield duplicate(f"{at}[{place}].ports[{index}].hostPort", taken)
            seen.add(taken)


def resource_problems(at: str, resources: Body) -> Iterator[str]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in limits.items():
        yield from _resource(f"{at}.limits[{name}]", name, value)
    for name, value in requests.items():
        yield from _resource(f"{at}.requests[{name}]", name, value)
        overcommits = "/" not in name and not name.startswith("hugepages-")
        if name not in limits:
            if not overcommits:
                yield required(f"{at}.limits", "Limit must be set for non overcommitable resources")
            continue
        much, most = amount(value), amount(limits[name])
        if much != most and not overcommits:
            detail = f"must be equal to {name} limit of {canonical(limits[name])}"
            yield invalid(f"{at}.requests", canonical(value), detail)
        elif much > most:
            detail = f"must be less than or equal to {name} limit of {canonical(limits[name])}"
            yield invalid(f"{at}.requests", canonical(value), detail)


def _resource(at: str, name: str, value: str | int | float) -> Iterator[str]:
    yield from each(at, name, names.qualified_name(name))
    if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        yield invalid(at, name, "must be a standard resource type or fully qualified")
        yield invalid(at, name, "must be a standard resource for containers")
    if amount(value) < 0:
        yield invalid(at, canonical(value), NOT_NEGATIVE)
    if "/" in name and amount(value).denominator != 1:
        yield invalid(at, canonical(value), "must be an integer")


def _ports(at: str, ports: list[Body]) -> Iterator[str]:
    seen = set()
    for index, entry in enumerate(ports):
        if name := entry.get("name"):
            if problems := names.port_name(name):
                yield from each(f"{at}[{index}].name", name, problems)
            elif name in seen:
                yield duplicate(f"{at}[{index}].name", name)
            seen.add(name)
        number = entry.get("containerPort")
        if not number:
            yield required(f"{at}[{index}].containerPort")
        elif not 1 <= number <= 65535:
            yield invalid(f"{at}[{index}].containerPort", number, PORTS)
        number = entry.get("hostPort")
        if number and not 1 <= number <= 65535:
            yield invalid(f"{at}[{index}].hostPort", number, PORTS)
        yield from one_of(f"{at}[{index}].protocol", entry.get("protocol"), PROTOCOLS)


def _env(at: str, env: list[Body]) -> Iterator[str]:
    for index, entry in enumerate(env):
        name = entry.get("name")
        if not name:
            yield required(f"{at}[{index}].name")
        elif problems := names.env_name(name):
            yield from each(f"{at}[{index}].name", name, problems)
        source = entry.get("valueFrom")
        if source is not None:
            yield from _value_from(f"{at}[{index}].valueFrom", entry, source)


def _value_from(at: str, entry: Body, source: Body) -> Iterator[str]:
    given = [key for key in _ENV_SOURCES if source.get(key) is not None]
    for key in given:
        yield from _env_source(f"{at}.{key}", key, source[key])
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(at, "", f"must specify one of: {listed}")
    elif entry.get("value"):
        yield invalid(at, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(at, "", "may not have more than one field specified at a time")


def _env_source(at: str, key: str, source: Body) -> Iterator[str]:
    match key:
        case "fieldRef":
            yield from field_path(f"{at}.fieldPath", source.get("fieldPath") or "")
        case "resourceFieldRef":
            resource = source.get("resource") or ""
            if not resource:
                yield required(f"{at}.resource")
            elif resource not in _RESOURCE_FIELDS and ".hugepages-" not in resource:
                yield unsupported(f"{at}.resource", resource, _RESOURCE_FIELDS)
        case _:
            name = source.get("name") or ""
            yield from each(f"{at}.name", name, names.subdomain(name))
            if not source.get("key"):
                yield required(f"{at}.key")
            else:
                yield from each(f"{at}.key", source["key"], names.config_key(source["key"]))


def field_path(at: str, path: str) -> Iterator[str]:
    """The problem of a fieldPath that a pod does not have."""
    if not path:
        yield required(at)
    elif path not in _FIELD_PATHS and not path.startswith(("metadata.labels", "metadata.annotations")):
        yield invalid(at, path, f"error converting fieldPath: field label not supported: {path}")


def _env_from(at: str, sources: list[Body]) -> Iterator[str]:
    for index, source in enumerate(sources):
        if prefix := source.get("prefix"):
            yield from each(f"{at}[{index}].prefix", prefix, names.env_name(prefix))
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in given:
            name = source[key].get("name")
            if not name:
                yield required(f"{at}[{index}].{key}.name")
            else:
                yield from each(f"{at}[{index}].{key}.name", name, names.subdomain(name))
        if not given:
            yield invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(at, "", "may not have more than one field specified at a time")


def _mounts(at: str, mounts: list[Body], volumes: frozenset[str]) -> Iterator[str]:
    seen = set()
    for index, mount in enumerate(mounts):
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{at}[{index}].name")
        if name not in volumes:
            yield not_found(f"{at}[{index}].name", name)
        if not path:
            yield required(f"{at}[{index}].mountPath")
        if path in seen:
            yield invalid(f"{at}[{index}].mountPath", path, "must be unique")
        seen.add(path)
        if below := mount.get("subPath"):
            yield from descending_path(f"{at}.subPath", below)


def descending_path(at: str, path: str) -> Iterator[str]:
    if path.startswith("/"):
        yield invalid(at, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(at, path, "must not contain '..'")


def _probe(at: str, probe: Body, *, once: bool) -> Iterator[str]:
    yield from _handler(at, probe)
    yield from not_negative(at, probe, *_PROBE_TIMES)
    threshold = probe.get("successThreshold")
    if once and threshold not in (None, 0, 1):
        yield invalid(f"{at}.successThreshold", threshold, "must be 1")


def _handler(at: str, handler: Body) -> Iterator[str]:
    given = [key for key in _HANDLERS if handler.get(key) is not None]
    if not given:
        yield required(at, "must specify a handler type")
        return
    yield from _action(f"{at}.{given[0]}", given[0], handler[given[0]])
    for key in given[1:]:
        yield forbidden(f"{at}.{key}", "may not specify more than 1 handler type")


def _action(at: str, key: str, action: Body) -> Iterator[str]:
    match key:
        case "exec":
            if not action.get("command"):
                yield required(f"{at}.command")
        case "httpGet":
            yield from port(f"{at}.port", action.get("port") or 0)
            yield from one_of(f"{at}.scheme", action.get("scheme"), SCHEMES)
        case "tcpSocket" | "grpc":
            yield from port(f"{at}.port", action.get("port") or 0)


def _security_context(at: str, context: Body) -> Iterator[str]:
    for key in ("runAsUser", "runAsGroup"):
        number = context.get(key)
        if number is not None and not 0 <= number < 2**31:
            yield invalid(f"{at}.{key}", number, IDS)
    seccomp = context.get("seccompProfile") or {}
    yield from one_of(f"{at}.procMount", context.get("procMount"), ("Default", "Unmasked"))
    yield from one_of(f"{at}.seccompProfile.type", seccomp.get("type"), SECCOMP_TYPES)
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(at, internal(context, _CONTEXT_FIELDS), detail)
