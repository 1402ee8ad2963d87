"""Requests to one API server over HTTP, with retries. Knows no kinds."""

from __future__ import annotations

import contextlib
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import urllib3
from msgspec import Struct

from seatrial.live.credentials import Credentials, tls_context
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Denial, FieldCause, Refusal
from seatrial.model.resource import Body, dig, listed

JSON = "application/json"
RETRIED = (429, 500, 502, 503, 504)
RETRIES_MAX = 4
CONNECT_RETRIES_MAX = 2
RETRY_AFTER_SECONDS_MAX = 30
CONNECT_SECONDS_MAX = 10
READ_SECONDS_MAX = 90
"""The API server ends its own requests after 60 seconds."""
LINE_BYTES_MAX = 32 * 1024 * 1024
"""One event of a watch. The API server stores objects of at most 1.5 MB, and CRDs may be larger in JSON."""
CONNECTIONS_MAX = 32


class RefusedRequest(Exception):
    """A request that the API server refused."""

    def __init__(self, doing: str, refusal: Refusal, following: str = "") -> None:
        super().__init__(f"{doing}: {refusal.message}")
        self.refusal = refusal
        self.following = following
        """Where an expired list goes on, if the API server says so."""

    @property
    def code(self) -> int:
        return self.refusal.code


class Disconnected(Exception):
    """A watch was cut off before its end."""


class LiveRequest(Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    denial: Denial | None = None
    """The missing permission, if this is forbidden."""
    retries: int = RETRIES_MAX

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class LiveReply(Struct, frozen=True):
    body: Any
    warnings: tuple[str, ...] = ()


class Transport:
    """A pool of connections to one API server. State over time: connections, credentials, and what was forbidden."""

    def __init__(self, target: ClusterAccess, agent: str = "seatrial") -> None:
        self.target = target
        self.denials: dict[Denial, None] = {}
        """Every permission that turned out to be missing, in order."""
        self.requests = 0
        self._agent = agent
        self._credentials = Credentials(target)
        self._pool = _pool(target, self._credentials)
        self._open: set[urllib3.BaseHTTPResponse] = set()
        self.is_closed = False

    def send(self, request: LiveRequest) -> LiveReply:
        """The decoded reply; raises `RefusedRequest` for a Status, `CannotContinue` if a cluster cannot be reached."""
        response = self._sent(request)
        if response.status >= 400:
            raise self._refused(request, response.status, response.data)
        return LiveReply(_decoded(request, response.data), tuple(response.headers.getlist("warning")))

    def lines(self, request: LiveRequest, seconds: float) -> Iterator[bytes]:
        """The lines of a stream until the server ends it; raises `Disconnected` if it breaks off before."""
        response = self._sent(request, streams=True, seconds=seconds)
        if response.status >= 400:
            raise self._refused(request, response.status, response.read())
        self._open.add(response)
        try:
            if not self.is_closed:  # Else it was closed while the reply was on its way.
                yield from _lines(response)
        finally:
            self._open.discard(response)
            response.close()

    def close(self) -> None:
        """End every stream, also those that another thread reads."""
        self.is_closed = True
        for response in tuple(self._open):
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                response.shutdown()
        self._pool.clear()

    def _sent(self, request: LiveRequest, *, streams: bool = False, seconds: float = READ_SECONDS_MAX) -> Any:
        response = self._once(request, streams, seconds)
        if response.status != 401 or not self._credentials.renew():
            return response
        response.drain_conn()
        return self._once(request, streams, seconds)

    def _once(self, request: LiveRequest, streams: bool, seconds: float) -> urllib3.BaseHTTPResponse:
        target = self.target
        url = f"{target.server}{request.path}"
        if request.query:
            url += f"?{urlencode(request.query)}"
        headers = urllib3.HTTPHeaderDict({"Accept": request.accept, "User-Agent": f"{self._agent}/1"})
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if not streams:
            headers["Accept-Encoding"] = "gzip"
        for name, value in self._credentials.headers():
            headers.add(name, value)
        self.requests += 1
        try:
            return self._pool.request(
                request.method,
                url,
                body=None if request.body is None else msgspec.json.encode(request.body),
                headers=headers,
                preload_content=not streams,
                redirect=False,
                retries=_retries(request.retries),
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS_MAX, read=seconds),
            )
        except urllib3.exceptions.HTTPError as why:
            raise CannotContinue(f"{request} at {target.server}: {_reason(why)}") from None

    def _refused(self, request: LiveRequest, code: int, data: bytes) -> RefusedRequest:
        status = _status(data)
        refusal = status_refusal(status, code) if status else _unknown(code, data)
        if code == 403 and request.denial is not None and not refusal.causes:
            self.denials[request.denial] = None
            refusal = msgspec.structs.replace(refusal, denied=request.denial)
        return RefusedRequest(str(request), refusal, str(dig(status, "metadata", "continue") or ""))


def _pool(target: ClusterAccess, credentials: Credentials) -> urllib3.PoolManager:
    secure = target.server.startswith("https://")
    settings: dict[str, Any] = {"num_pools": 2, "maxsize": CONNECTIONS_MAX}
    if secure:
        settings["ssl_context"] = context = tls_context(target, credentials)
        if context.verify_mode == ssl.CERT_NONE:
            settings["cert_reqs"] = "CERT_NONE"
            # The kubeconfig says so (insecure-skip-tls-verify), and kubectl does not warn either.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        if target.server_name:
            settings |= {"server_hostname": target.server_name, "assert_hostname": target.server_name}
    if proxy := target.proxy or _proxy(target.server):
        return urllib3.ProxyManager(proxy, **settings)
    return urllib3.PoolManager(**settings)


def _proxy(server: str) -> str:
    """The proxy of the environment, as HTTPS_PROXY and NO_PROXY say."""
    parts = urlsplit(server)
    if urllib.request.proxy_bypass(parts.netloc):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")


def _retries(count: int) -> urllib3.Retry:
    """Every request here may be repeated: reads, reviews, server-side applies, and deletions of a known uid."""
    return urllib3.Retry(
        total=count,
        connect=min(count, CONNECT_RETRIES_MAX),
        redirect=0,
        allowed_methods=None,
        status_forcelist=RETRIED,
        raise_on_status=False,
        backoff_factor=0.1,
        backoff_max=5,
        retry_after_max=RETRY_AFTER_SECONDS_MAX,
    )


def _reason(why: urllib3.exceptions.HTTPError) -> str:
    cause = getattr(why, "reason", None) or why
    said = str(cause.args[-1] if getattr(cause, "args", ()) else cause)
    # "HTTPSConnection(host='...', port=6443): Failed to establish a new connection: ..."
    return said.partition("): ")[2] or said


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    held = bytearray()
    try:
        for chunk in response.stream(LINE_BYTES_MAX):
            held += chunk
            *lines, rest = held.split(b"\n")
            yield from (bytes(line) for line in lines if line)
            held = bytearray(rest)
            if len(held) > LINE_BYTES_MAX:
                raise Disconnected(f"an event of more than {LINE_BYTES_MAX} bytes")
    except (urllib3.exceptions.HTTPError, OSError) as why:
        raise Disconnected(str(why)) from None


def _decoded(request: LiveRequest, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise CannotContinue(f"{request}: the reply is no JSON; is this the address of a Kubernetes API?") from None


def _status(data: bytes) -> Body:
    """The Status of a refusal; empty if a proxy in between answered."""
    try:
        status: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _unknown(code: int, data: bytes) -> Refusal:
    said = data[:200].decode(errors="replace").strip()
    return Refusal(code, "", f"HTTP {code}" + (f": {said}" if said else ""))


def status_refusal(status: Body, code: int = 0) -> Refusal:
    details = status.get("details") or {}
    causes = tuple(
        FieldCause(str(cause.get("field") or ""), str(cause.get("reason") or ""), str(cause.get("message") or ""))
        for cause in listed(details, "causes")
    )
    return Refusal(
        int(status.get("code") or code),
        str(status.get("reason") or ""),
        str(status.get("message") or f"HTTP {code}"),
        str(details.get("kind") or ""),
        causes=causes,
    )
