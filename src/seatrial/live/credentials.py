"""Who we are at the API server: tokens, passwords, certificates, and the programs that print them.

A program is run only if the kubeconfig names it, as kubectl does: it is the user's own, outside of the sandbox.
"""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import tempfile
from pathlib import Path

import msgspec

from seatrial.live.kubeconfig import ClusterAccess, Pem
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PLUGIN_SECONDS_MAX = 60


class Credentials:
    """What proves who we are. State over time: a token is renewed when the API server refuses it."""

    def __init__(self, target: ClusterAccess) -> None:
        self._target = target
        self._token = ""
        self.certificate, self.key = target.certificate, target.key
        self.renew()

    def renew(self) -> bool:
        """Read or request a new token. Returns whether it is another one."""
        before = self._token
        target = self._target
        if target.token_file:
            self._token = _text(target.token_file)
        elif target.token:
            self._token = target.token
        elif target.plugin:
            status = _run(target)
            self._token = str(status.get("token") or "")
            if status.get("clientCertificateData"):
                self.certificate = Pem(text=str(status["clientCertificateData"]))
                self.key = Pem(text=str(status.get("clientKeyData") or ""))
        return self._token != before

    def headers(self) -> list[tuple[str, str]]:
        target = self._target
        found = []
        if self._token:
            found.append(("Authorization", f"Bearer {self._token}"))
        elif target.username:
            pair = base64.b64encode(f"{target.username}:{target.password}".encode()).decode()
            found.append(("Authorization", f"Basic {pair}"))
        if target.acts_as:
            found.append(("Impersonate-User", target.acts_as))
            found += [("Impersonate-Group", group) for group in target.groups]
        return found


def tls_context(target: ClusterAccess, credentials: Credentials) -> ssl.SSLContext:
    """TLS with the cluster's authority and our certificate."""
    try:
        context = ssl.create_default_context()
        if target.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif target.authority:
            # Only this authority: create_default_context loads those of the system if it gets none.
            context = ssl.create_default_context(
                cafile=target.authority.file or None, cadata=target.authority.text or None
            )
        if credentials.certificate:
            _load_certificate(context, credentials.certificate, credentials.key)
    except (OSError, ValueError) as why:  # ssl.SSLError is an OSError
        raise CannotContinue(f"prepare TLS for {target.server}: {why}") from None
    return context


def _load_certificate(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """The library only reads files: inline data is written to a private folder for a moment."""
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        context.load_cert_chain(_file(certificate, folder, "certificate"), _file(key, folder, "key") if key else None)


def _file(pem: Pem, folder: str, name: str) -> str:
    if not pem.text:
        return pem.file
    path = Path(folder) / name
    path.touch(0o600)
    path.write_text(pem.text)
    return str(path)


def _text(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as why:
        raise CannotContinue(f"read the token of {file}: {why.strerror or why}") from None


def _run(target: ClusterAccess) -> Body:
    """The status that the exec plugin prints."""
    plugin = target.plugin
    version, command = str(plugin.get("apiVersion") or ""), str(plugin.get("command") or "")
    doing = f"get credentials of context '{target.context}' from {command}"
    if version not in VERSIONS:
        raise CannotContinue(f"{doing}: its apiVersion '{version}' is not one of {', '.join(VERSIONS)}")
    asked = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False, **({"cluster": _cluster(target)} if plugin.get("provideClusterInfo") else {})},
    }
    given = {str(pair["name"]): str(pair.get("value") or "") for pair in plugin.get("env") or () if "name" in pair}
    environment = {**os.environ, **given, "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}
    try:
        ran = subprocess.run(
            [command, *map(str, plugin.get("args") or ())],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PLUGIN_SECONDS_MAX,
            check=True,
        )
        status = dig(msgspec.json.decode(ran.stdout), "status")
    except FileNotFoundError:
        raise CannotContinue(f"{doing}: {plugin.get('installHint') or 'it is not installed'}") from None
    except subprocess.CalledProcessError as why:
        said = why.stderr.decode(errors="replace").strip() or f"exit {why.returncode}"
        raise CannotContinue(f"{doing}: {said}") from None
    except subprocess.TimeoutExpired:
        raise CannotContinue(f"{doing}: no answer after {PLUGIN_SECONDS_MAX} seconds") from None
    except msgspec.DecodeError:
        raise CannotContinue(f"{doing}: it printed no ExecCredential") from None
    if not isinstance(status, dict):
        raise CannotContinue(f"{doing}: its ExecCredential has no status")
    return status


def _cluster(target: ClusterAccess) -> Body:
    authority = target.authority.text or (Path(target.authority.file).read_text() if target.authority.file else "")
    return {
        "server": target.server,
        "insecure-skip-tls-verify": target.insecure,
        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
    }
