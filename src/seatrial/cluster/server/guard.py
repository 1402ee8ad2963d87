"""Who may send requests to a server that is there for long: the owner of its kubeconfig, and no web page.

The secret is a bearer token. It is also the first part of the path in the kubeconfig's URL: clients in Go do not send a
token over plain HTTP (`ClientConfig` in client-go's tools/clientcmd/client_config.go).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from msgspec import Struct

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.refusal import Refused, unsupported_media
from seatrial.cluster.verbs import reviews
from seatrial.model import lazy_re

LOCAL = lazy_re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.I)
FOREIGN = Refused(403, "Forbidden", "requests of web pages are refused: the Host or Origin is not local")
UNAUTHORIZED = Refused(401, "Unauthorized", "Unauthorized")
MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


class Guard(Struct, frozen=True):
    """The secret of one server."""

    token: str

    @property
    def path(self) -> str:
        return f"/{self.token}"

    def admitted(self, cluster: Cluster, url: str, headers: Mapping[bytes, bytes], *, has_body: bool) -> str:
        """The URL without the secret. Raises `Refused` for a stranger."""
        if b"origin" in headers or not LOCAL.fullmatch(headers.get(b"host", b"localhost")):
            raise FOREIGN
        first, slash, rest = url[1:].partition("/")
        knows_path = secrets.compare_digest(first.encode("latin-1"), self.token.encode())
        if not knows_path and not self._knows_token(cluster, headers):
            raise UNAUTHORIZED
        if has_body and b"content-type" not in headers:
            raise unsupported_media(MEDIA_TYPES)
        return slash + rest if knows_path else url

    def _knows_token(self, cluster: Cluster, headers: Mapping[bytes, bytes]) -> bool:
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            return False
        return (
            secrets.compare_digest(token.encode(), self.token.encode()) or reviews.user_of(cluster, token) is not None
        )


def new_guard() -> Guard:
    return Guard(secrets.token_urlsafe(24))
