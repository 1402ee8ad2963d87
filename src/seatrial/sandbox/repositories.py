"""Repositories of git and of Helm charts under the URLs of the user, for programs in one sandbox. Run by path.

It is the proxy of these programs: whatever host they fetch from is answered here, from folders in the sandbox. Its
arguments are a port and a folder with `routes.json`, `served.pem` and `served.key`. Uses the standard library only.

`routes.json` has `git`, the folder of each repository by host and path, and `files`, the file of each other URL.
"""

from __future__ import annotations

import gzip
import json
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

ROUTES, CERTIFICATE, KEY = "routes.json", "served.pem", "served.key"
SERVICE = "git-upload-pack"
ADVERTISED, PACK = "/info/refs", f"/{SERVICE}"
UPLOAD_PACK = ("git", "-c", "uploadpack.allowAnySHA1InWant=true", "upload-pack", "--stateless-rpc")


def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    Proxy.context, Proxy.routes = context, json.loads((folder / ROUTES).read_text())
    ThreadingHTTPServer(("127.0.0.1", port), Proxy).serve_forever()


class Proxy(BaseHTTPRequestHandler):
    """A connection of a program: requests with the whole URL, or a tunnel to a host, which ends here."""

    protocol_version = "HTTP/1.1"
    context: ssl.SSLContext
    routes: dict[str, dict[str, str]]
    host = ""
    """The other end of a tunnel."""

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.host = self.path.removesuffix(":443")
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
        self.close_connection = False

    def do_GET(self) -> None:
        place, query = self._asked()
        if place.endswith(ADVERTISED) and (folder := self._repository(place.removesuffix(ADVERTISED))):
            if parse_qs(query).get("service") != [SERVICE]:
                return self._answer(403, b"", "text/plain")
            said = _packet(f"# service={SERVICE}\n") + b"0000" + _ran((*UPLOAD_PACK, "--advertise-refs", folder))
            return self._answer(200, said, f"application/x-{SERVICE}-advertisement")
        if file := self.routes["files"].get(place.lower()):
            return self._answer(200, Path(file).read_bytes(), "application/octet-stream")
        return self._answer(404, b"", "text/plain")

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            sent = gzip.decompress(sent)
        place, _ = self._asked()
        folder = self._repository(place.removesuffix(PACK)) if place.endswith(PACK) else ""
        if not folder:
            return self._answer(404, b"", "text/plain")
        return self._answer(200, _ran((*UPLOAD_PACK, folder), sent), f"application/x-{SERVICE}-result")

    def log_message(self, *_: object) -> None:
        """Says nothing: every fetch of a program would be a line."""

    def _asked(self) -> tuple[str, str]:
        """The host and path of a request, and its query."""
        url = urlsplit(self.path)
        return f"{self.host or url.netloc.removesuffix(':80')}{url.path}", url.query

    def _repository(self, place: str) -> str:
        return self.routes["git"].get(place.lower().removesuffix("/").removesuffix(".git"), "")

    def _answer(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _ran(command: tuple[str, ...], sent: bytes = b"") -> bytes:
    return subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=False).stdout


def _packet(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


if __name__ == "__main__":
    main()
