"""The checks of the Pod Security Standards, in the words of the API server. Knows nothing of namespaces.

From k8s.io/pod-security-admission, policy/check_*.go of 1.34. User namespaces make no exception: the feature is off
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from seatrial.model.resource import Body, annotations_of, dig, listed

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
PROFILES = ("RuntimeDefault", "Localhost")
CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
# (since which minor of the policy, what it allows in addition)
SYSCTLS = (
    (
        0,
        (
            "kernel.shm_rmid_forced",
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.ping_group_range",
            "net.ipv4.tcp_syncookies",
        ),
    ),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (
        29,
        (
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_keepalive_time",
        ),
    ),
    (32, ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")),
)
SELINUX_TYPES = ((0, ("", "container_t", "container_init_t", "container_kvm_t")), (31, ("container_engine_t",)))
PROBES = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)


class Violation(Struct, frozen=True):
    reason: str
    detail: str


def violations(pod: Body, level: str, minor: int) -> Iterator[Violation]:
    """The violations of a level as of a minor by a pod or pod template: baseline first, by the name of the check."""
    if level == "privileged":
        return
    for since, check in RESTRICTED if level == "restricted" else BASELINE:
        if minor >= since and (found := check(pod, minor)):
            yield Violation(*found)


Found = tuple[str, str] | None
"""(reason, detail)"""
Check = Callable[[Body, int], Found]


def _apparmor(pod: Body, minor: int) -> Found:
    setters, values = _setting(pod, ("appArmorProfile", "type"), lambda value: value not in PROFILES)
    shown = sorted(set(values))
    notes = sorted(f'{key}="{value}"' for key, value in annotations_of(pod).items() if _is_bad_apparmor(key, value))
    if notes:
        setters.append("annotation" if len(notes) == 1 else "annotations")
        shown += notes
    if not setters:
        return None
    reason = _many("forbidden AppArmor profile", shown)
    return reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(shown)}"


def _is_bad_apparmor(key: str, value: str) -> bool:
    return (
        key.startswith(APPARMOR) and bool(value) and value != "runtime/default" and not value.startswith("localhost/")
    )


def _capabilities(pod: Body, minor: int) -> Found:
    return _found("non-default capabilities", _adding(pod, CAPABILITIES))


def _capabilities_restricted(pod: Body, minor: int) -> Found:
    if _is_windows(pod, minor):
        return None
    keeping = [n for n, c in _containers(pod) if "ALL" not in listed(c, "securityContext", "capabilities", "drop")]
    details = []
    if keeping:
        details.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding := _adding(pod, frozenset(("NET_BIND_SERVICE",))):
        details.append(adding)
    return _found("unrestricted capabilities", "; ".join(details))


def _adding(pod: Body, allowed: frozenset[str]) -> str:
    adds = {name: set(listed(c, "securityContext", "capabilities", "add")) - allowed for name, c in _containers(pod)}
    bad = [name for name, added in adds.items() if added]
    if not bad:
        return ""
    what = _quoted(sorted(set().union(*adds.values())))
    return f"{_named(bad)} must not include {what} in securityContext.capabilities.add"


def _host_namespaces(pod: Body, minor: int) -> Found:
    fields = ("hostNetwork", "hostPID", "hostIPC")
    return _found("host namespaces", ", ".join(f"{field}=true" for field in fields if dig(pod, "spec", field)))


def _host_paths(pod: Body, minor: int) -> Found:
    names = [str(volume.get("name")) for volume in listed(pod, "spec", "volumes") if volume.get("hostPath") is not None]
    return _found("hostPath volumes", f"{_many('volume', names)} {_quoted(names)}" if names else "")


def _host_ports(pod: Body, minor: int) -> Found:
    ports = {name: [p["hostPort"] for p in listed(c, "ports") if p.get("hostPort")] for name, c in _containers(pod)}
    users = [name for name, used in ports.items() if used]
    if not users:
        return None
    numbers = sorted({str(port) for used in ports.values() for port in used})
    return "hostPort", f"{_named(users)} {_use(users)} {_many('hostPort', numbers)} {', '.join(numbers)}"


def _host_probes(pod: Body, minor: int) -> Found:
    hosts = {
        name: {host for path in PROBES for host in _hosts(dig(container, *path) or {})}
        for name, container in _containers(pod)
    }
    users = sorted(name for name, used in hosts.items() if used)
    if not users:
        return None
    shown = sorted(set().union(*hosts.values()))
    what = "probe or lifecycle host"
    return what, f"{_named(users)} {_use(users)} {_many(what, shown)} {_quoted(shown)}"


def _hosts(handler: Body) -> list[str]:
    return [host for action in ("httpGet", "tcpSocket") if (host := dig(handler, action, "host"))]


def _privileged(pod: Body, minor: int) -> Found:
    names = [name for name, c in _containers(pod) if dig(c, "securityContext", "privileged")]
    return _found("privileged", f"{_named(names)} must not set securityContext.privileged=true" if names else "")


def _proc_mount(pod: Body, minor: int) -> Found:
    mounts = {name: dig(c, "securityContext", "procMount") for name, c in _containers(pod)}
    names = [name for name, mount in mounts.items() if mount not in (None, "Default")]
    if not names:
        return None
    shown = _quoted(sorted({str(mounts[name]) for name in names}))
    return "procMount", f"{_named(names)} must not set securityContext.procMount to {shown}"


def _selinux(pod: Body, minor: int) -> Found:
    allowed = _allowed(SELINUX_TYPES, minor)
    setters, options = _setting(
        pod,
        ("seLinuxOptions",),
        lambda o: bool((o.get("type") or "") not in allowed or o.get("user") or o.get("role")),
    )
    if not setters:
        return None
    types = sorted({kind for o in options if (kind := str(o.get("type") or "")) not in allowed})
    data = [f"{_many('type', types)} {_quoted(types)}"] if types else []
    data += [f"{field} may not be set" for field in ("user", "role") if any(o.get(field) for o in options)]
    detail = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return "seLinuxOptions", detail


def _seccomp(pod: Body, minor: int) -> Found:
    setters, values = _setting(pod, ("seccompProfile", "type"), lambda value: value not in PROFILES)
    if not setters:
        return None
    detail = f"must not set securityContext.seccompProfile.type to {_quoted(sorted(set(values)))}"
    return "seccompProfile", f"{' and '.join(setters)} {detail}"


def _seccomp_restricted(pod: Body, minor: int) -> Found:
    if _is_windows(pod, minor):
        return None
    if found := _seccomp(pod, minor):
        return found
    unset = _unset(pod, "seccompProfile", dig(pod, "spec", "securityContext", "seccompProfile") is not None)
    detail = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return _found("seccompProfile", f"pod or {_named(unset)} {detail}" if unset else "")


def _sysctls(pod: Body, minor: int) -> Found:
    names = [str(sysctl.get("name")) for sysctl in listed(pod, "spec", "securityContext", "sysctls")]
    allowed = _allowed(SYSCTLS, minor)
    return _found("forbidden sysctls", ", ".join(name for name in names if name not in allowed))


def _host_process(pod: Body, minor: int) -> Found:
    setters, _ = _setting(pod, ("windowsOptions", "hostProcess"), bool)
    detail = "must not set securityContext.windowsOptions.hostProcess=true"
    return _found("hostProcess", f"{' and '.join(setters)} {detail}" if setters else "")


def _escalation(pod: Body, minor: int) -> Found:
    if _is_windows(pod, minor):
        return None
    names = [n for n, c in _containers(pod) if dig(c, "securityContext", "allowPrivilegeEscalation") is not False]
    detail = "must set securityContext.allowPrivilegeEscalation=false"
    return _found("allowPrivilegeEscalation != false", f"{_named(names)} {detail}" if names else "")


def _volumes(pod: Body, minor: int) -> Found:
    bad = [volume for volume in listed(pod, "spec", "volumes") if not VOLUMES & volume.keys()]
    if not bad:
        return None
    names = [str(volume.get("name")) for volume in bad]
    kinds = sorted({next((key for key in volume if key != "name"), "unknown") for volume in bad})
    what = f"{_many('restricted volume type', kinds)} {_quoted(kinds)}"
    return "restricted volume types", f"{_many('volume', names)} {_quoted(names)} {_use(names)} {what}"


def _non_root(pod: Body, minor: int) -> Found:
    reason = "runAsNonRoot != true"
    setters, _ = _setting(pod, ("runAsNonRoot",), lambda value: value is False)
    if setters:
        return reason, f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
    unset = _unset(pod, "runAsNonRoot", dig(pod, "spec", "securityContext", "runAsNonRoot") is True)
    return _found(reason, f"pod or {_named(unset)} must set securityContext.runAsNonRoot=true" if unset else "")


def _root_user(pod: Body, minor: int) -> Found:
    setters, _ = _setting(pod, ("runAsUser",), lambda value: value == 0)
    return _found("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0" if setters else "")


def _containers(pod: Body) -> Iterator[tuple[str, Body]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in listed(pod, "spec", field):
            yield str(container.get("name")), container


def _setting(pod: Body, path: tuple[str, ...], is_bad: Callable[[Any], bool]) -> tuple[list[str], list[Any]]:
    """What sets a field of the security context to a forbidden value (`pod`, `container "a"`), and the values."""
    of_pod = dig(pod, "spec", "securityContext", *path)
    of_containers = [(name, dig(c, "securityContext", *path)) for name, c in _containers(pod)]
    bad = [(name, value) for name, value in of_containers if value is not None and is_bad(value)]
    pod_is_bad = of_pod is not None and is_bad(of_pod)
    setters = [*(["pod"] if pod_is_bad else []), *([_named([name for name, _ in bad])] if bad else [])]
    return setters, [*([of_pod] if pod_is_bad else []), *(value for _, value in bad)]


def _unset(pod: Body, field: str, set_on_pod: bool) -> list[str]:
    """Containers that leave a field to the pod, which does not set it either."""
    if set_on_pod:
        return []
    return [name for name, c in _containers(pod) if dig(c, "securityContext", field) is None]


def _allowed(table: tuple[tuple[int, tuple[str, ...]], ...], minor: int) -> set[str]:
    return {name for since, names in table if minor >= since for name in names}


def _is_windows(pod: Body, minor: int) -> bool:
    return minor >= 25 and dig(pod, "spec", "os", "name") == "windows"


def _found(reason: str, detail: str) -> Found:
    return (reason, detail) if detail else None


def _named(names: list[str]) -> str:
    return f"{_many('container', names)} {_quoted(names)}"


def _many(word: str, things: Iterable[object]) -> str:
    return word if len(list(things)) == 1 else f"{word}s"


def _use(users: list[str]) -> str:
    return "uses" if len(users) == 1 else "use"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


# (the minor of the policy since which it applies, the check), in the order of their names upstream.
BASELINE: tuple[tuple[int, Check], ...] = (
    (0, _apparmor),
    (0, _capabilities),
    (0, _host_namespaces),
    (0, _host_paths),
    (0, _host_ports),
    (34, _host_probes),
    (0, _privileged),
    (0, _proc_mount),
    (0, _selinux),
    (19, _seccomp),
    (0, _sysctls),
    (0, _host_process),
)
OVERRIDDEN = (_capabilities, _host_paths, _seccomp)
"""Baseline checks that the restricted level replaces by stricter ones."""
RESTRICTED: tuple[tuple[int, Check], ...] = (
    *((since, check) for since, check in BASELINE if check not in OVERRIDDEN),
    (8, _escalation),
    (22, _capabilities_restricted),
    (0, _volumes),
    (0, _non_root),
    (23, _root_user),
    (19, _seccomp_restricted),
)
