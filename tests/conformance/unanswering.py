"""Webhooks that do not respond: pods of the embedded cluster, and local ports for a real API server."""

from __future__ import annotations

import base64
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest
from arms import Here, deployment
from msgspec import Struct
from situations import SERVICE, plain

from seatrial.model.resource import Body

LOOPBACK = "127.0.0.1"
AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n").decode()


class Backend(Struct, frozen=True):
    """A webhook's backend, and why it fails; ADDRESS is where it was expected."""

    name: Literal["refusing", "unknown", "silent"]
    why: str


REFUSING = Backend("refusing", "dial tcp ADDRESS: connect: connection refused")
UNKNOWN = Backend("unknown", "tls: failed to verify certificate: x509: certificate signed by unknown authority")
SILENT = Backend("silent", "context deadline exceeded")


@contextmanager
def listening(here: Here, backend: Backend, folder: Path) -> Iterator[tuple[Body, str, str]]:
    """Such a backend: the `clientConfig` of its webhook, the URL that is called, and the error."""
    if here.is_real:
        with _port(backend, folder) as port:
            url = f"https://{LOOPBACK}:{port}/check"
            yield {"url": url}, url, backend.why.replace("ADDRESS", f"{LOOPBACK}:{port}")
        return
    if backend is SILENT:
        pytest.skip("a policy that shuts pods off bites in the lazy schedule alone: unit/test_admission_webhooks.py")
    address = _pod(here, is_ready=backend is UNKNOWN)
    client: Body = {"service": {"name": "hook", "namespace": here.name, "path": "/check"}}
    if backend is REFUSING:
        client["caBundle"] = AUTHORITY
    yield client, f"https://hook.{here.name}.svc:443/check", backend.why.replace("ADDRESS", f"{address}:443")


def _pod(here: Here, *, is_ready: bool) -> str:
    """The IP of a pod behind a Service that publishes unready addresses."""
    here.create(plain("Service", "hook", spec={**SERVICE, "publishNotReadyAddresses": True}))
    body = deployment("hook")
    if not is_ready:
        body["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "missing"}}]
    here.create(body)
    (found,) = here.api.get(here.at("Pod")).body["items"]
    return str(found["status"]["podIP"])


@contextmanager
def _port(backend: Backend, folder: Path) -> Iterator[int]:
    with closing(socket.socket()) as server:
        server.bind((LOOPBACK, 0))
        port: int = server.getsockname()[1]
        if backend is not REFUSING:
            server.listen()
        if backend is UNKNOWN:
            threading.Thread(target=_shake_hands, args=(server, _context(folder)), daemon=True).start()
        yield port


def _shake_hands(server: socket.socket, context: ssl.SSLContext) -> None:
    """Show a certificate to every client until the socket is closed."""
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()


def _context(folder: Path) -> ssl.SSLContext:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl on the PATH to make a certificate with")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hook")
    names = ("-addext", f"subjectAltName=IP:{LOOPBACK}")
    files = ("-keyout", str(key), "-out", str(certificate))
    subprocess.run((openssl, *made, *names, *files), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
