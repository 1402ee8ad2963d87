"""Which cluster is meant, and how to reach it: kubeconfig files and service accounts, as kubectl resolves them.

Opens no connection and runs no program. As client-go's `tools/clientcmd` (loader.go, client_config.go).
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.text.yamlnode import InvalidYaml, value_of

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PARTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields that name files, relative to the folder of their kubeconfig."""


class Pem(Struct, frozen=True):
    """A certificate or key: a file, or the text itself."""

    file: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.file or self.text)


class ClusterAccess(Struct, frozen=True):
    """A cluster and how to authenticate there."""

    server: str
    namespace: str = "default"
    context: str = ""
    authority: Pem = Pem()
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    token: str = ""
    token_file: str = ""
    """Read again when the token is refused: the kubelet renews it."""
    username: str = ""
    password: str = ""
    certificate: Pem = Pem()
    key: Pem = Pem()
    plugin: Body = msgspec.field(default_factory=dict)
    """The `exec` of the user, with a path to its command."""
    acts_as: str = ""
    groups: tuple[str, ...] = ()


def find_target(
    *,
    kubeconfig: str = "",
    context: str = "",
    namespace: str = "",
    environment: Mapping[str, str] | None = None,
    account: Path = SERVICE_ACCOUNT,
) -> ClusterAccess:
    """The cluster that kubectl would use with these options.

    In this order: --kubeconfig, the files of KUBECONFIG, ~/.kube/config, the service account of the pod.
    """
    variables = os.environ if environment is None else environment
    config = _merged(_files(kubeconfig, variables))
    if not config["contexts"] and not context and (inside := _in_cluster(variables, account)) is not None:
        return msgspec.structs.replace(inside, namespace=namespace or inside.namespace)
    chosen = context or str(config["current-context"])
    if not chosen:
        raise CannotContinue(
            "find the cluster: no kubeconfig sets a current context, and this is no pod of a cluster; "
            "use --kubeconfig or --context, or set KUBECONFIG"
        )
    settings = _named(config, "contexts", chosen, "find the cluster")
    why = f"use context '{chosen}'"
    cluster = _named(config, "clusters", str(settings.get("cluster") or ""), why)
    user = _named(config, "users", str(settings["user"]), why) if settings.get("user") else {}
    return _target(cluster, user, chosen, namespace or str(settings.get("namespace") or "default"))


def _files(kubeconfig: str, variables: Mapping[str, str]) -> list[Path]:
    if kubeconfig:
        file = Path(kubeconfig)
        if not file.is_file():
            raise CannotContinue(f"read {kubeconfig}: there is no such file")
        return [file]
    # client-go skips empty names and missing files of the list.
    listed = [name for name in variables.get("KUBECONFIG", "").split(os.pathsep) if name]
    found = [Path(name) for name in listed] or [Path(variables.get("HOME") or "~").expanduser() / ".kube/config"]
    return [file for file in found if file.is_file()]


def _merged(files: list[Path]) -> Body:
    """All files as one. The first one that names an entry, or sets the current context, wins."""
    merged: Body = {**{part: {} for part in PARTS}, "current-context": ""}
    for file in files:
        config = _read(file)
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for part, member in PARTS.items():
            for entry in config.get(part) or ():
                if isinstance(entry, dict) and isinstance(entry.get(member) or {}, dict):
                    merged[part].setdefault(str(entry.get("name")), _absolute(entry.get(member) or {}, file.parent))
    return merged


def _read(file: Path) -> Body:
    try:
        config = value_of(file.read_text())
    except (OSError, UnicodeDecodeError, InvalidYaml) as why:
        raise CannotContinue(f"read {file}: {why}") from None
    if not isinstance(config, dict):
        raise CannotContinue(f"read {file}: it is no kubeconfig")
    return config


def _absolute(entry: Body, folder: Path) -> Body:
    found = {key: str(folder / str(entry[key])) for key in FILES if entry.get(key)}
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        found_plugin: Any = {**plugin, "command": str(folder / str(plugin["command"]))}
        return {**entry, **found, "exec": found_plugin}
    return {**entry, **found}


def _named(config: Body, part: str, name: str, doing: str) -> Body:
    entry: Body | None = config[part].get(name)
    if entry is None:
        known = ", ".join(sorted(config[part])) or "none"
        raise CannotContinue(f"{doing}: the kubeconfig has no {PARTS[part]} '{name}' (it has: {known})")
    return entry


def _target(cluster: Body, user: Body, context: str, namespace: str) -> ClusterAccess:
    server = str(cluster.get("server") or "")
    if not server.startswith(("http://", "https://")):
        raise CannotContinue(f"use context '{context}': its cluster has no server address")
    if user.get("auth-provider"):
        raise CannotContinue(
            f"use context '{context}': auth-provider was removed in Kubernetes 1.26; use an exec plugin"
        )
    return ClusterAccess(
        server=server.rstrip("/"),
        namespace=namespace,
        context=context,
        authority=_pem(cluster, "certificate-authority"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        token=str(user.get("token") or ""),
        token_file=str(user.get("tokenFile") or ""),
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        certificate=_pem(user, "client-certificate"),
        key=_pem(user, "client-key"),
        plugin=user.get("exec") or {},
        acts_as=str(user.get("as") or ""),
        groups=tuple(map(str, user.get("as-groups") or ())),
    )


def _pem(entry: Body, field: str) -> Pem:
    """Inline data wins over a file."""
    data = entry.get(f"{field}-data")
    if not data:
        return Pem(file=str(entry.get(field) or ""))
    try:
        return Pem(text=base64.b64decode(str(data)).decode())
    except (binascii.Error, UnicodeDecodeError):
        raise CannotContinue(f"read the kubeconfig: {field}-data is not base64 of a certificate or key") from None


def _in_cluster(variables: Mapping[str, str], account: Path) -> ClusterAccess | None:
    host, port = variables.get("KUBERNETES_SERVICE_HOST", ""), variables.get("KUBERNETES_SERVICE_PORT", "")
    token = account / "token"
    if not host or not port or not token.is_file():
        return None
    namespace = account / "namespace"
    return ClusterAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        authority=Pem(file=str(account / "ca.crt")),
        token_file=str(token),
    )
