"""What is behind the endpoints of Services: webhooks that allow everything, with a valid certificate.

Listens in the private network of the lab, where the addresses of all pods are local.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from seatrial.model.resource import Body

IN_STORIES = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
"""The caBundle of the scenarios, which is no certificate."""
NAME = re.compile(r"[-a-z0-9.]+")


class Authority:
    """A certificate authority, and certificates for the names of Services."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._openssl(
            "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=lab", "-days", "9"
        )
        self.bundle = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def context(self, name: str) -> ssl.SSLContext:
        with self._lock:  # The API server asks several times at once.
            if name not in self._contexts:
                self._contexts[name] = self._new(name)
            return self._contexts[name]

    def _new(self, name: str) -> ssl.SSLContext:
        if not NAME.fullmatch(name):
            raise ssl.SSLError(f"no Service is called {name}")
        key, request, certificate = f"{name}.key", f"{name}.csr", f"{name}.crt"
        (self._folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
        self._openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", "/CN=lab")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-extfile", "names", "-days", "9")
        self._openssl("x509", "-req", "-in", request, "-out", certificate, *signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / certificate, self._folder / key)
        return context

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Backends:
    """One server for each port at which a Service has an endpoint."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self._servers: dict[int, ThreadingHTTPServer] = {}

    def listen(self, ports: set[int]) -> None:
        for port in ports - set(self._servers):
            server = _Server(("0.0.0.0", port), _Handler, bind_and_activate=False)
            try:
                server.server_bind()
                server.server_activate()
            except OSError:  # A port of the control plane.
                continue
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.sni_callback = self._named
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self._servers[port] = server

    def close(self) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def _named(self, socket: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        if not name:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        socket.context = self.authority.context(name)
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever does not trust the certificate hangs up."""


class _Handler(BaseHTTPRequestHandler):
    """Ends the connection after each answer: the API server would use an open one after the pod is gone."""

    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        version = "/".join(self.path.strip("/").split("/")[1:3])
        self._answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []})

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.get("request") or {}
        if review.get("kind") == "ConversionReview":
            wanted = request.get("desiredAPIVersion")
            objects = [{**body, "apiVersion": wanted} for body in request.get("objects") or ()]
            response = {"uid": request.get("uid"), "convertedObjects": objects, "result": {"status": "Success"}}
        else:
            response = {"uid": request.get("uid"), "allowed": True}
        self._answer({"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": response})

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: Body) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
