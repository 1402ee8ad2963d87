"""A minimal Kubernetes API client that can send any request, including invalid ones."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import yaml
from msgspec import Struct

from seatrial.model.resource import Body

SECONDS_MAX = 20
"""Timeout of a request, so that a test fails instead of hanging."""

JSON = "application/json"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Reply(Struct, frozen=True):
    code: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Code, reason and message of a failure Status in one line."""
        if not isinstance(self.body, dict) or self.body.get("status") != "Failure":
            return f"{self.code}: no Status of failure"
        return f"{self.code} {self.body.get('reason', '')}: {self.body['message']}"


class Api:
    """One API server and a connection to it."""

    def __init__(self, url: str, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.url = url
        self.port = urlsplit(url).port or 443
        self.tls = tls
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = self._connect()

    def get(self, path: str, **query: str | int) -> Reply:
        return self.send("GET", path, query=query)

    def post(self, path: str, body: Any, **query: str | int) -> Reply:
        return self.send("POST", path, body, query=query)

    def put(self, path: str, body: Any, **query: str | int) -> Reply:
        return self.send("PUT", path, body, query=query)

    def patch(self, path: str, body: Any, type_: str = "merge", **query: str | int) -> Reply:
        return self.send("PATCH", path, body, PATCHES[type_], query=query)

    def apply(self, path: str, body: Any, manager: str = "tester", **query: str | int) -> Reply:
        return self.patch(path, body, "apply", fieldManager=manager, **query)

    def delete(self, path: str, body: Any = None, **query: str | int) -> Reply:
        return self.send("DELETE", path, body, query=query)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        *,
        query: dict[str, str | int] | None = None,
        accept: str = JSON,
    ) -> Reply:
        """Send one request and read the whole response. A body of bytes is sent unchanged."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": accept, "User-Agent": "tester/1"}
        if data is not None:
            headers["Content-Type"] = content_type
        self._connection.request(method, _url(path, query), data, headers)
        try:
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # A server may close a connection that was idle; a read can be repeated.
            if method != "GET":
                raise
            self._connection.close()
            self._connection.request(method, _url(path, query), data, headers)
            answer = self._connection.getresponse()
        text = answer.read()
        warnings = answer.headers.get_all("Warning") or ()
        return Reply(answer.status, _decoded(text), tuple(_unquoted(found) for found in warnings))

    @contextmanager
    def watch(self, path: str, **query: str | int) -> Iterator[Iterator[Body]]:
        """The events of a watch on its own connection; ends when the server ends it."""
        connection = self._connect()
        connection.request("GET", _url(path, {"watch": "true", **query}), headers={**self._headers, "Accept": JSON})
        answer = connection.getresponse()
        try:
            yield (json.loads(line) for line in answer)
        finally:
            answer.close()
            connection.close()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        host = urlsplit(self.url).hostname or ""
        return http.client.HTTPSConnection(host, self.port, timeout=SECONDS_MAX, context=self.tls)


def from_kubeconfig(file: Path) -> Api:
    """The API of a kubeconfig's current context."""
    config = yaml.safe_load(file.read_text())
    found = {part: {each["name"]: each for each in config[part]} for part in ("clusters", "users", "contexts")}
    context = found["contexts"][config["current-context"]]["context"]
    cluster, user = found["clusters"][context["cluster"]]["cluster"], found["users"][context["user"]]["user"]
    if cluster["server"].startswith("http://"):
        return Api(cluster["server"], token=user.get("token", ""))
    tls = ssl.create_default_context()
    if authority := _file(cluster, "certificate-authority"):
        tls.load_verify_locations(authority)
    if certificate := _file(user, "client-certificate"):
        tls.load_cert_chain(certificate, _file(user, "client-key"))
    return Api(cluster["server"], token=user.get("token", ""), tls=tls)


def _file(entry: Body, name: str) -> str | None:
    """The file that an entry names, or a file with its inline data."""
    if f"{name}-data" not in entry:
        path: str | None = entry.get(name)
        return path
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(base64.b64decode(entry[f"{name}-data"]))
    return file.name


def _url(path: str, query: dict[str, str | int] | None) -> str:
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")


def _unquoted(warning: str) -> str:
    """The text in `299 - "..."`."""
    return warning.partition('"')[2].rpartition('"')[0].replace('\\"', '"').replace("\\\\", "\\")
